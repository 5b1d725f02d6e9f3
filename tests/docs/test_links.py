"""Links lead to files and headings of the repository; the reference has every public name."""

import pkgutil
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import skdice

ROOT = Path(__file__).parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "benchmarks/**/*.md")
BUILT = {"_build", "auto_examples", "generated"}
PAGES = sorted(
    page for pattern in PATTERNS for page in ROOT.glob(pattern) if not BUILT & {*page.parts}
)
CODE = re.compile(r"^(`{3,}).*?^\1`*\s*?$|`[^`\n]+`", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,4} +(.+?) *$", re.M)  # The site has anchors of four levels.
FENCED = re.compile(r"^(`{3,}).*?^\1`*\s*?$", re.M | re.S)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    found: list[str] = []
    for heading in HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        n_before = sum(
            re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in found
        )
        found.append(f"{slug}-{n_before}" if n_before else slug)
    return set(found)


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_elsewhere = re.match(r"[a-z]+:", link) is not None
        if not is_elsewhere and not (
            target.exists()
            and (not anchor or (target.suffix == ".md" and anchor in anchors(target)))
        ):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page):
    assert dead_links(page) == []


def test_dead_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# `One` & two\n## Same\n## Same\n```\n# no heading\n```\n")
    good = "[a](other.md#one--two) [b](other.md#same-1) [c](https://x.y) `[d](code.md)`"
    bad = ["none.md", "other.md#three", "other.md#no-heading", "#here"]
    page.write_text(good + "".join(f" [x]({link})" for link in bad))
    assert dead_links(page) == bad


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
