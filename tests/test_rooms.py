"""Rooms have faces: what other rooms import stands in ``__init__``, what they read has no "_"."""

import ast
from pathlib import Path

import pytest

import skdice

ROOT = Path(skdice.__file__).parent
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def private_imports(path: Path, tree: ast.AST) -> list[str]:
    """Return the modules of other rooms that a file imports past their ``__init__``."""
    parts = path.relative_to(ROOT).parts
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            target = (*parts[: len(parts) - node.level], *(node.module or "").split("."))
            is_other_room = target[0] != parts[0] and (ROOT / target[0]).is_dir()
            if is_other_room and any(name.startswith("_") for name in target[1:]):
                found.append(".".join(target))
    return found


def test_dir_of_the_package() -> None:
    packages = {"datasets", "estimators", "inspection", "labeling", "losses", "metrics"}
    packages.add("model_selection")
    assert {*dir(skdice)} == {*skdice.__all__, *packages}


# Of named tuples, and of libraries that have no public name for it.
FOREIGN = {
    "_replace", "_asdict", "_fields", "_foreach_copy_", "_foreach_zero_", "_attn_implementation",
    "_set_training",
}  # fmt: skip


def room_of(path: Path) -> str:
    """Return the first folder of a file, or its name if it lies in none."""
    return path.relative_to(ROOT).parts[0]


def defined_names(tree: ast.AST) -> set[str]:
    """Return the names that a file defines: functions, variables, and attributes of self."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            names.update([node.attr] if isinstance(node.ctx, ast.Store) else [])
    return names


def private_reads(tree: ast.AST, own: set[str]) -> list[str]:
    """Return the private attributes of other objects that a file reads and its room does not have.

    What an object reads of itself may be of a base class in another library.
    """
    return sorted(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and node.attr not in own | FOREIGN
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
        and not (isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super")
    )


ROOM_NAMES: dict[str, set[str]] = {}
for _path, _tree in TREES.items():
    ROOM_NAMES.setdefault(room_of(_path), set()).update(defined_names(_tree))


@pytest.mark.parametrize("path", TREES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_asks_other_rooms_for_what_is_public(path: Path) -> None:
    assert private_imports(path, TREES[path]) == []
    assert private_reads(TREES[path], ROOM_NAMES[room_of(path)]) == []


def test_what_is_private_is_found() -> None:
    path, past = ROOT / "nn" / "_net.py", ast.parse("from ..text._decoding import Entity")
    assert private_imports(path, past) == ["text._decoding"]
    assert private_imports(path, ast.parse("from ._batching import Batch")) == []
    tree = ast.parse("estimator._task.row; self._own; other._own; entity._replace(start=1)")
    assert private_reads(tree, {"_own"}) == ["_task"]
