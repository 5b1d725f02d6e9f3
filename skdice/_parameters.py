"""Parameters of estimators and losses, each stated once: name, type, default, check, documentation.

A parameter is a field of a dataclass. What it may be stands in its annotation::

    max_epochs: Annotated[int, number(low=1, integer=True)] = 3

What it means stands under its name in the section "Parameters" of the docstring of its class.
:func:`parametrised` makes the constructor of these fields and lists them all in that section, those
of base classes as well. The words of the errors are scikit-learn's.
"""

import inspect
import math
import numbers
import random
import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, dataclass_transform, get_args, get_type_hints

import numpy as np

T = TypeVar("T")
Check = Callable[[str, str, Any], None]
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
# These parameters of scikit-learn's estimators change how a fit runs, not what it learns.
_NEVER_COUNT = frozenset({"verbose", "n_jobs"})


@dataclass(frozen=True)
class Parameter:
    """What a parameter may be, what it means, and what depends on it."""

    kind: str  # what it may be, for readers
    # Takes the name of the class, that of the parameter, and its value; raises a ValueError.
    check: Check | None = None
    # What another value changes: the fit ("in fits"), only the predictions ("in predictions"), or
    # neither ("never").
    counts: str = "in fits"
    # Returns the part of a value that the fit depends on; by default all of it.
    counted: Callable[[Any], Any] | None = None
    on_card: bool = True  # whether a model card names it
    rare: bool = False  # whether it is one of the "Other Parameters", which few have to set
    doc: str = ""  # what it means, from the docstring of its class


def number(
    *, integer: bool = False, words: tuple[str, ...] = (), rare: bool = False, **bounds: Any
) -> Parameter:
    """Return a parameter that is a number in a range, as :func:`check_number` has it."""
    check = partial(check_number, integer=integer, words=words, **bounds)
    kinds = ["int" if integer else "float", *(f'"{word}"' for word in words)]
    return Parameter(_in_words(kinds), check, rare=rare)


def option(**more: Any) -> Parameter:
    """Return a parameter that is one of the names of its ``Literal``."""
    return Parameter("", **more)


def flag(words: tuple[str, ...] = ()) -> Parameter:
    """Return a parameter that is True, False or a word."""
    kinds = ["bool", *(f'"{word}"' for word in words)]
    return Parameter(_in_words(kinds), partial(check_option, options=(True, False, *words)))


_KNOWN: dict[Any, dict[str, Parameter]] = {}  # Not functools.cache, which torch.compile refuses.


def parameters_of(cls: Any) -> dict[str, Parameter]:
    """Return the parameters of a class by name."""
    if cls in _KNOWN:  # Losses ask in every step.
        return _KNOWN[cls]
    docs = "".join(inspect.cleandoc(base.__doc__ or "") + "\n" for base in reversed(cls.__mro__))
    # The text on each parameter in the docstrings of the class and its bases.
    texts = dict(re.findall(r"^(\w+)(?: : .*)?\n((?: {4}.+\n)+)", docs, re.MULTILINE))
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, Parameter] = {}
    for name in (known.name for known in fields(cls)):
        for mark in getattr(hints[name], "__metadata__", ()):
            if isinstance(mark, Parameter):
                found[name] = replace(mark, doc=textwrap.dedent(texts.get(name, "")))
                if not mark.kind:  # An option: its type is a Literal of its names.
                    names = get_args(get_args(hints[name])[0])
                    shown = ", ".join(f'"{option}"' for option in names)
                    check = partial(check_option, options=names)
                    found[name] = replace(found[name], kind=f"{{{shown}}}", check=check)
    _KNOWN[cls] = found
    return found


def relevant_parameters(instance: Any, where: str = "in predictions") -> dict[str, Any]:
    """Return the parameters of an object that its predictions depend on.

    With "in fits", parameters that change predictions alone are left out.
    """
    stated = parameters_of(type(instance)) if is_dataclass(instance) else {}
    without = ("never", "in predictions") if where == "in fits" else ("never",)
    left_out = _NEVER_COUNT | {name for name, part in stated.items() if part.counts in without}
    counted = {name: part.counted for name, part in stated.items() if part.counted is not None}
    is_estimator = hasattr(instance, "get_params")
    values = instance.get_params(deep=False) if is_estimator else vars(instance)
    return {
        name: counted[name](value) if name in counted else value
        for name, value in values.items()
        if name not in left_out
    }


def check_parameters(instance: Any, names: Collection[str] | None = None) -> None:
    """Raise a ValueError unless all parameters of an object, or those named, are allowed."""
    for name, parameter in parameters_of(type(instance)).items():
        if parameter.check is not None and (names is None or name in names):
            parameter.check(type(instance).__name__, name, getattr(instance, name))


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def parametrised(cls: type[T]) -> type[T]:
    """Make the fields of a class its parameters.

    The section "Parameters" of its docstring describes the parameters that the class adds; it
    becomes a list of all parameters. ``%(name)s`` is replaced by ``_texts[name]`` of the class, and
    ``%(attributes)s`` by the sections "Attributes" of its bases.
    """
    made = dataclass(eq=False, repr=False, kw_only=True)(cls)
    # Signatures show types, not what stands beside them.
    init: Any = made.__init__
    init.__annotations__ = {**get_type_hints(init), "return": None}
    if cls.__doc__:  # None under python -OO.
        # As from Python 3.13 on, docstrings lose their common indentation.
        doc = inspect.cleandoc(cls.__doc__) + "\n"
        texts = {"attributes": _attributes(made), **getattr(made, "_texts", {})}
        for name, text in texts.items():
            doc = doc.replace(f"%({name})s\n", textwrap.dedent(text))
        section, entries = "Parameters\n----------\n", _document(made)
        made.__doc__ = re.sub(
            rf"(?<=^{section})(.+\n)*", lambda _: entries, doc, flags=re.MULTILINE
        )
    return made


def _document(cls: Any) -> str:
    """Return the entries of the section "Parameters", and that of the rare ones behind it."""
    defaults = {known.name: known.default for known in fields(cls)}
    usual: list[str] = []
    rare = ["\nOther Parameters\n----------------\n"]
    for name, parameter in parameters_of(cls).items():
        default = defaults[name]
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        end = ", optional" if default is None else f", default={shown}"
        lines = rare if parameter.rare else usual
        lines.append(f"{name} : {parameter.kind}{'' if default is MISSING else end}\n")
        lines += [f"    {line}\n" for line in parameter.doc.splitlines() if line]
    return "".join(usual + rare if len(rare) > 1 else usual)


def _attributes(cls: Any) -> str:
    """Return the entries of the sections "Attributes" in the docstrings of the bases of a class."""
    docs = [inspect.cleandoc(base.__doc__ or "") for base in cls.__mro__[1:]]
    section = r"^Attributes\n-+\n((?:.+\n)+)"
    return "".join(re.findall(section, "\n\n".join([*docs, ""]), re.MULTILINE))


def check_number(
    owner: str,
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    closed: str = "left",
    integer: bool = False,
    optional: bool = False,
    words: Collection[str | bool] = (),
) -> None:
    """Raise a ValueError unless ``value`` is a number in a range, None if optional, or a word.

    ``closed`` is one of ``"left"``, ``"right"``, ``"both"``, ``"neither"``, as in
    ``sklearn.utils._param_validation.Interval``.
    """
    is_word = isinstance(value, str | bool | np.bool_) and value in words
    if is_word or (optional and value is None):
        return
    with_low, with_high = closed in ("left", "both"), closed in ("right", "both")
    kind = numbers.Integral if integer else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if is_number:
        above = value >= low if with_low else value > low
        below = value <= high if with_high else value < high
        if above and below:
            return
    what = _in_words([*map(repr, words), *["None"] * optional, "an int" if integer else "a float"])
    bounds = f"{'[' if with_low else '('}{low}, {high}{']' if with_high else ')'}"
    raise not_allowed(owner, name, f"{what} in the range {bounds}", value)


check_verbose = partial(check_number, low=0, integer=True, words=(True, False))


def not_allowed(
    owner: str, name: str, allowed: str, got: Any, error: type[Exception] = ValueError
) -> Exception:
    """Return the error for a parameter that is not what is allowed, in scikit-learn's words."""
    return error(f"The {name!r} parameter of {owner} must be {allowed}. Got {got!r} instead.")


def _in_words(names: Sequence[str]) -> str:
    """Return "a, b or c"."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def check_option(owner: str, name: str, value: Any, options: Collection[Any]) -> None:
    """Raise a ValueError unless ``value`` is one of ``options``."""
    # An array of one str is not that str, and 1 is not True. A grid over an array passes NumPy's
    # bools.
    is_bool = isinstance(value, bool | np.bool_)
    is_one = value is None or is_bool or isinstance(value, str | numbers.Real)
    if not is_one or not any(
        value == option and is_bool == isinstance(option, bool) for option in options
    ):
        allowed = f"one of {{{', '.join(map(repr, options))}}}"
        raise not_allowed(owner, name, allowed, value)


def check_random_state(owner: str, name: str, value: Any) -> None:
    """Raise a ValueError unless random numbers can be drawn from ``value``."""
    is_int = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    is_generator = isinstance(value, np.random.RandomState | np.random.Generator)
    if value is not None and not is_generator and not (is_int and value >= 0):
        allowed = "an int >= 0, a numpy RandomState, a numpy Generator or None"
        raise not_allowed(owner, name, allowed, value)


def make_rng(random_state: RandomState, owner: str) -> random.Random:
    """Return a private generator; one given by the user is advanced, as scikit-learn does."""
    check_random_state(owner, "random_state", random_state)
    if random_state is None:
        return random.Random()
    if isinstance(random_state, np.random.RandomState):
        return random.Random(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return random.Random(int(random_state.integers(2**63 - 1)))
    return random.Random(int(random_state))
