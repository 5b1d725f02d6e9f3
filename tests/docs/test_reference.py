"""The API reference has every public name, the gallery every example."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import skdice

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "api" / "index.rst"
MODULES = ["skdice"] + [
    f"skdice.{module.name}"
    for module in pkgutil.iter_modules(skdice.__path__)
    if not module.name.startswith("_")
]


def read_entries() -> dict[str, str]:
    """Return the names of the reference with the module under which each stands."""
    entries, module = {}, ""
    for line in API.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"   (\w+)", line):
            assert match[1] not in entries, f"{match[1]} stands there twice"
            entries[match[1]] = module
    return entries


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(name):
    module, entries = import_module(name), read_entries()
    missing = [public for public in getattr(module, "__all__", ()) if public not in entries]
    assert [public for public in missing if not public.startswith("__")] == []


def test_every_entry_exists_where_it_stands():
    for name, module in read_entries().items():
        assert name in import_module(module).__all__, f"{module}.{name}"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_an_example_has_the_title_of_its_page(example):
    text = example.read_text(encoding="utf-8")
    title, underline = text.removeprefix('"""').splitlines()[:2]
    assert underline == "=" * len(title)
    # The gallery runs scripts with an empty __doc__.
    assert "__doc__.splitlines()" not in text


def test_the_gallery_has_every_example_once():
    index = (ROOT / "examples" / "index.rst").read_text(encoding="utf-8")
    listed = re.findall(r"examples/(\w+\.py)", index)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))
