"""Checks of parameters, in scikit-learn's wording."""

import math
import numbers
from collections.abc import Collection
from typing import Any

import numpy as np


def check_number(
    owner: str,
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    closed: str = "left",
    integer: bool = False,
    optional: bool = False,
) -> None:
    """Raise a ValueError unless ``value`` is a number in the given range (or None, if optional).

    ``closed`` is one of ``"left"``, ``"right"``, ``"both"``, ``"neither"``, as in
    ``sklearn.utils._param_validation.Interval``.
    """
    if value is None and optional:
        return
    kind = numbers.Integral if integer else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if is_number:
        above = value >= low if closed in ("left", "both") else value > low
        below = value <= high if closed in ("right", "both") else value < high
        if above and below:
            return
    left = "[" if closed in ("left", "both") else "("
    right = "]" if closed in ("right", "both") else ")"
    what = ("None or " if optional else "") + ("an int" if integer else "a float")
    raise ValueError(
        f"The {name!r} parameter of {owner} must be {what} in the range "
        f"{left}{low}, {high}{right}. Got {value!r} instead."
    )


def check_option(owner: str, name: str, value: Any, options: Collection[Any]) -> None:
    """Raise a ValueError unless ``value`` is one of ``options``."""
    if any(_is_option(value, option) for option in options):
        return
    allowed = ", ".join(repr(option) for option in options)
    raise ValueError(
        f"The {name!r} parameter of {owner} must be one of {{{allowed}}}. Got {value!r} instead."
    )


def check_bool(owner: str, name: str, value: Any) -> None:
    """Raise a ValueError unless ``value`` is True or False."""
    # A grid over an array passes NumPy's bools.
    if not isinstance(value, np.bool_):
        check_option(owner, name, value, (True, False))


def _is_option(value: Any, option: Any) -> bool:
    """Whether both are equal and of one kind: 1 is not True, nor an array of one str that str."""
    if isinstance(option, bool) != isinstance(value, bool):
        return False
    kind = numbers.Real if isinstance(option, numbers.Real) else type(option)
    return isinstance(value, kind) and value == option
