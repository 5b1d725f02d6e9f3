"""Links of the pages lead to files and headings of the repository, as one reads them there."""

import re
from functools import cache
from pathlib import Path

import pytest

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
    """Return the relative links of a page without a target."""
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
