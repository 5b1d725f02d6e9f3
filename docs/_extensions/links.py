"""Links of the pages, which lead to files of the repository, as links inside the site."""

import re

from sphinx.application import Sphinx

# Files of the repository, and the pages that include them.
INCLUDED = {
    "benchmarks/RESULTS.md": "/study/RESULTS.md",
    "benchmarks/STUDY.md": "/study/STUDY.md",
    "CHANGELOG.md": "/changelog.md",
}
LINK = re.compile(r"\]\((?:\.\./)+(?P<file>benchmarks/\w+\.md|CHANGELOG\.md)(?P<anchor>#[^)]*)?\)")
EXAMPLE = re.compile(r"\]\((?:\.\./)+examples(?:/(?P<name>\w+)\.py)?\)")


def to_site(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links to included files and to examples lead to their pages."""
    if name.startswith("auto_examples/"):
        return
    text = LINK.sub(lambda m: f"]({INCLUDED[m['file']]}{m['anchor'] or ''})", source[0])
    source[0] = EXAMPLE.sub(lambda m: f"](/auto_examples/{m['name'] or 'index'})", text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", to_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
