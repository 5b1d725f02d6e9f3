"""Checks of constructor parameters, in scikit-learn's wording."""

import math
import numbers
from collections.abc import Collection
from typing import Any


def check_number(
    owner: str,
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    closed: str = "left",
    integer: bool = False,
) -> None:
    """Raise a ValueError unless ``value`` is a number in the given range.

    ``closed`` is one of ``"left"``, ``"right"``, ``"both"``, ``"neither"``, as in
    ``sklearn.utils._param_validation.Interval``.
    """
    kind = numbers.Integral if integer else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if is_number:
        above = value >= low if closed in ("left", "both") else value > low
        below = value <= high if closed in ("right", "both") else value < high
        if above and below:
            return
    left = "[" if closed in ("left", "both") else "("
    right = "]" if closed in ("right", "both") else ")"
    what = "an int" if integer else "a float"
    raise ValueError(
        f"The {name!r} parameter of {owner} must be {what} in the range "
        f"{left}{low}, {high}{right}. Got {value!r} instead."
    )


def check_option(owner: str, name: str, value: Any, options: Collection[Any]) -> None:
    """Raise a ValueError unless ``value`` is one of ``options``."""
    # Compared by identity of type too: True must not pass for 1, nor an array for a string.
    if any(type(value) is type(option) and value == option for option in options):
        return
    allowed = ", ".join(repr(option) for option in options)
    raise ValueError(
        f"The {name!r} parameter of {owner} must be one of {{{allowed}}}. Got {value!r} instead."
    )


def check_bool(owner: str, name: str, value: Any) -> None:
    """Raise a ValueError unless ``value`` is True or False."""
    check_option(owner, name, value, (True, False))
