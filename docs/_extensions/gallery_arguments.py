"""Command lines of the examples that the gallery runs: small, and without files left behind."""

import tempfile
from pathlib import Path
from typing import Any

ARGUMENTS = {
    "draw_losses.py": ["--out", "{folder}"],
    "look_at_errors.py": ["{folder}/errors.html"],
    "remember_steps.py": ["--out", "{folder}"],
}


def of_example(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return what follows the name of a script on its command line."""
    arguments = ARGUMENTS.get(Path(script_vars["src_file"]).name, [])
    return [argument.format(folder=tempfile.gettempdir()) for argument in arguments]
