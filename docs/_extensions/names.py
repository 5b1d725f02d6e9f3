"""Write every public name with a line: ``python docs/_extensions/names.py`` makes api/names.md."""

import inspect
import re
from importlib import import_module
from pathlib import Path

API = Path(__file__).parents[1] / "api"
HEAD = """\
# Names

Every public name with a line, under the module to import it from. `help(name)` says more, as does
the site that `make docs` builds. `python docs/_extensions/names.py` writes this page.
"""


def page() -> str:
    """Return the page, with the headings and the order of index.rst."""
    lines, module, above = [HEAD], "", ""
    for line in (API / "index.rst").read_text(encoding="utf-8").splitlines():
        if re.fullmatch("=+", line) and above not in ("", "API reference"):
            lines.append(f"\n## {above}\n\n")
        elif match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"   (\w+)", line):
            value = getattr(import_module(module), match[1])
            told = (
                ", ".join(value)
                if isinstance(value, tuple)
                else inspect.getdoc(value) or f"`{value}`"
            )
            first = " ".join(told.split("\n\n")[0].split())
            first = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", first).replace("``", "`")
            lines.append(f"- `{module}.{match[1]}`: {first}\n")
        above = line
    return "".join(lines)


if __name__ == "__main__":
    (API / "names.md").write_text(page(), encoding="utf-8")
