"""References to names of this package must resolve; names of others may not, offline."""

import pkgutil
from functools import cache
from importlib import import_module

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import skdice


@cache
def own_names() -> frozenset[str]:
    """Return the public names, without their modules."""
    names = set(skdice.__all__)
    for module in pkgutil.iter_modules(skdice.__path__):
        if not module.name.startswith("_"):
            names.update(getattr(import_module(f"skdice.{module.name}"), "__all__", ()))
    return frozenset(names)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.TextElement | None:
    """Find a name of ours wherever it is documented, and show one of another package as it is.

    A name such as ``DiceSearchCV`` is public in two modules and documented in one. What is ours and
    found nowhere is left to the warning of ``nitpicky``.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    parts = target.split(".")
    if parts[0] != "skdice" and parts[0] not in own_names():
        return content
    start = next((i for i, part in enumerate(parts) if part in own_names()), 0)
    wanted = "." + ".".join(parts[start:])
    for name, entry in env.domains["py"].objects.items():
        if name.endswith(wanted):
            return make_refnode(
                app.builder, node["refdoc"], entry.docname, entry.node_id, content, name
            )
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", resolve, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
