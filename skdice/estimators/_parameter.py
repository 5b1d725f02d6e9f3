"""Parameters of estimators, each stated once: its name, type, default, check and documentation.

A parameter is a field of a dataclass. What it may be and what it means stands in its annotation::

    max_epochs: Annotated[int, number("Passes over the rows.", low=1, integer=True)] = 3

:func:`estimator` makes the constructor of these fields and puts the documentation in the docstring
of the class.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform, get_type_hints

from .._docstrings import fill_docstring
from .._parameters import check_number, check_option

T = TypeVar("T")
Check = Callable[[str, str, Any], None]

_CONTAINERS = """\
    X and y may be lists, arrays, tensors, or columns and tables of pandas, polars, pyarrow and
    Hugging Face datasets, of whose ``ClassLabel`` the names are learned, not the numbers.
"""


@dataclass(frozen=True)
class Parameter:
    """What a parameter may be, and what it means.

    Attributes
    ----------
    kind : str
        What it may be, for readers.
    doc : str
        What it means; lines are wrapped.
    check : callable or None
        Takes the name of the class, that of the parameter, and its value; raises a ValueError.
    """

    kind: str
    doc: str
    check: Check | None = None


def number(
    doc: str,
    *,
    low: float = float("-inf"),
    high: float = float("inf"),
    closed: str = "left",
    integer: bool = False,
    optional: bool = False,
    or_auto: bool = False,
) -> Parameter:
    """Return a parameter that is a number in a range, as :func:`check_number` has it.

    If ``or_auto``, it may be "auto", too.
    """

    def check(owner: str, name: str, value: Any) -> None:
        if or_auto and isinstance(value, str) and value == "auto":
            return
        check_number(
            owner,
            name,
            value,
            low=low,
            high=high,
            closed=closed,
            integer=integer,
            optional=optional,
        )

    kind = "int" if integer else "float"
    return Parameter(f'{kind} or "auto"' if or_auto else kind, doc, check)


def option(doc: str, *options: str) -> Parameter:
    """Return a parameter that is one of some names."""

    def check(owner: str, name: str, value: Any) -> None:
        check_option(owner, name, value, options)

    shown = ", ".join(f'"{name}"' for name in options)
    return Parameter(f"{{{shown}}}", doc, check)


def parameters_of(cls: Any) -> dict[str, Parameter]:
    """Return the parameters of an estimator class by name."""
    hints = get_type_hints(cls, include_extras=True)
    marks = {field.name: getattr(hints[field.name], "__metadata__", ()) for field in fields(cls)}
    return {
        name: mark for name, found in marks.items() for mark in found if isinstance(mark, Parameter)
    }


def check_parameters(owner: Any) -> None:
    """Raise a ValueError unless every parameter of an estimator is allowed, each by itself."""
    for name, parameter in parameters_of(type(owner)).items():
        if parameter.check is not None:
            parameter.check(type(owner).__name__, name, getattr(owner, name))


@dataclass_transform(kw_only_default=True)
def estimator(cls: type[T]) -> type[T]:
    """Make the fields of a class its parameters.

    In its docstring ``%(parameters)s`` becomes what they are, ``%(attributes)s`` what the class has
    under ``_attributes``, and ``%(containers)s`` what X and y may be held in.
    """
    made = dataclass(eq=False, repr=False, kw_only=True)(cls)
    # Signatures show types, not what stands beside them.
    init: Any = made.__init__
    init.__annotations__ = {**get_type_hints(init), "return": None}
    fill_docstring(
        made,
        parameters=_document(made),
        attributes=getattr(made, "_attributes", ""),
        containers=_CONTAINERS,
    )
    return made


def _document(cls: Any) -> str:
    defaults = {field.name: field.default for field in fields(cls)}
    lines = []
    for name, parameter in parameters_of(cls).items():
        default = defaults[name]
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        end = "optional" if default is None else f"default={shown}"
        lines.append(f"{name} : {parameter.kind}, {end}\n")
        lines += [f"    {line}\n" for line in parameter.doc.splitlines() if line]
    return "".join(lines)
