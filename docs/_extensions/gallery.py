"""Order, command lines and thumbnails of the examples, and the note on those that are not run."""

import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx.application import Sphinx

INDEX = Path(__file__).parents[2] / "examples" / "index.rst"
SECTION = re.compile(r"\.\. minigallery::\n(?:   \S+\n)+")
NOT_RUN = """

.. note::

   Not run when this page was built: it needs a server, several processes, or packages that the site
   is built without.
"""
TITLE = re.compile(r"^(.+)\n==+\n", re.MULTILINE)
OUTPUT = re.compile(r"sphx-glr-script-out\n\n \.\. code-block:: none\n\n(.*?)\n{4}", re.DOTALL)
BAR = re.compile(r"^.*\d%\|.*\n", re.MULTILINE)
THUMBNAIL = (4, 2.8)  # inches


def of_example(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return what follows the name of a script on its command line."""
    writes = '"--out"' in Path(script_vars["src_file"]).read_text(encoding="utf-8")
    return ["--out", tempfile.mkdtemp()] if writes else []


def place(path: str) -> int:
    """Return where the index has an example, by which those of a section are sorted."""
    return INDEX.read_text(encoding="utf-8").index(Path(path).name)


def draw_thumbnails(app: Sphinx) -> None:
    """Draw what an example printed, or else its title, where it has no picture."""
    images = Path(app.srcdir) / "auto_examples" / "images"
    for page in images.parent.glob("*.rst"):
        if page.stem != "index" and not (images / f"sphx_glr_{page.stem}_001.png").exists():
            figure = Figure(THUMBNAIL)
            write(figure, BAR.sub("", page.read_text(encoding="utf-8")))
            figure.savefig(images / "thumb" / f"sphx_glr_{page.stem}_thumb.png", dpi=100)


def write(figure: Figure, page: str) -> None:
    """Write the last paragraph of three lines or more that was printed, or the title."""
    printed = OUTPUT.search(page)
    if printed:
        paragraphs = textwrap.dedent(printed[1]).split("\n\n")
        long = [part for part in paragraphs if part.count("\n") > 1] or paragraphs
        lines = [line[:34] for line in textwrap.dedent(long[-1]).splitlines()[:9]]
        figure.text(0.04, 0.95, "\n".join(lines), fontsize=13, family="monospace", va="top")
    else:
        title = textwrap.fill(TITLE.search(page)[1], 18)
        figure.text(0.5, 0.5, title, fontsize=20, ha="center", va="center")


def edit_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Say on the page of an example that it was not run; leave out progress bars."""
    if name.startswith("auto_examples/") and not name.endswith("index"):
        source[0] = BAR.sub("", source[0])
        if "sphx-glr-script-out" not in source[0]:
            source[0] = TITLE.sub(lambda title: title[0] + NOT_RUN, source[0], count=1)


def add_toctrees(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the pages of the sections into the navigation, too."""
    if name == "auto_examples/index":
        source[0] = SECTION.sub(
            lambda section: (
                f"{section[0]}\n.. toctree::\n   :hidden:\n\n   "
                + "\n   ".join(re.findall(r"(\w+)\.py", section[0]))
                + "\n"
            ),
            source[0],
        )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", draw_thumbnails, priority=900)  # behind sphinx-gallery
    app.connect("source-read", edit_page)
    app.connect("source-read", add_toctrees)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
