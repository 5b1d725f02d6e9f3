"""Rooms have faces: what another room may import stands in the ``__init__`` of its own."""

import ast
from pathlib import Path

import pytest

import skdice

ROOT = Path(skdice.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def private_imports(path: Path, source: str) -> list[str]:
    """Return the modules of other rooms that a file imports past their ``__init__``."""
    parts = path.relative_to(ROOT).parts
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = parts[: len(parts) - node.level]
            target = (*base, *(node.module or "").split("."))
            is_other_room = target[0] != parts[0] and (ROOT / target[0]).is_dir()
            if is_other_room and any(name.startswith("_") for name in target[1:]):
                found.append(".".join(target))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_faces_of_other_rooms_only(path: Path) -> None:
    assert private_imports(path, path.read_text(encoding="utf-8")) == []


def test_a_private_import_is_found() -> None:
    path = ROOT / "nn" / "_net.py"
    assert private_imports(path, "from ..text._tags import are_chunk_tags") == ["text._tags"]
    assert private_imports(path, "from ._batching import Batch") == []
