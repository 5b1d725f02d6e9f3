"""Signatures without the parameters of "Other Parameters", data without the words of its type."""

from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from skdice._parameters import parameters_of


def shorten(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Show an ellipsis for parameters that few have to set."""
    signature = content.parent[0]
    documented = getattr(import_module(signature["module"]), signature["fullname"], None)
    if kind != "class" or not is_dataclass(documented):
        return
    others = {name for name, parameter in parameters_of(documented).items() if parameter.rare}
    for parameters in signature.findall(addnodes.desc_parameterlist):
        shown = [p for p in parameters if p.astext().partition("=")[0] not in others]
        if len(shown) < len(parameters):
            parameters[:] = [*shown, addnodes.desc_parameter("", "", nodes.Text("..."))]


def clear(app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Leave out what Python says of tuples where a name is one."""
    if kind == "data":
        lines.clear()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("object-description-transform", shorten)
    app.connect("autodoc-process-docstring", clear)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
