"""Command lines of the examples that the gallery runs, and a note on those that it does not."""

import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ARGUMENTS = {
    "draw_losses.py": ["--out", "{folder}"],
    "look_at_errors.py": ["{folder}/errors.html"],
    "remember_steps.py": ["--out", "{folder}"],
}
NOT_RUN = """

.. note::

   Not run when this page was built, as it takes more than two minutes on one core, or needs several
   processes or other packages.
"""
TITLE_ENDS = "=\n"


def of_example(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return what follows the name of a script on its command line."""
    arguments = ARGUMENTS.get(Path(script_vars["src_file"]).name, [])
    return [argument.format(folder=tempfile.gettempdir()) for argument in arguments]


def mark_not_run(app: Sphinx, name: str, source: list[str]) -> None:
    """Say on the page of an example that it was not run."""
    is_example = name.startswith("auto_examples/") and not name.endswith("index")
    if is_example and "sphx-glr-script-out" not in source[0]:
        before, end, after = source[0].partition(TITLE_ENDS)
        source[0] = before + end + NOT_RUN + after


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", mark_not_run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
