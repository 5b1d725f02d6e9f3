"""What a reader found in a file and does not return."""

import os
import warnings

from .._inputs import list_rows


class LeftOut:
    """Counts what a reader leaves out, for one warning at its end."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._rows: dict[str, list[int]] = {}

    def add(self, what: str, row: int | None, n: int = 1) -> None:
        """Count something, such as "relations", in a row of the file if it is in one."""
        self._counts[what] = self._counts.get(what, 0) + n
        rows = self._rows.setdefault(what, [])
        if row is not None and row not in rows[-1:]:
            rows.append(row)

    def __str__(self) -> str:
        shown = []
        for what, n in self._counts.items():
            rows = self._rows[what]
            shown.append(f"{what}: {n} ({list_rows(rows)})" if rows else f"{what}: {n}")
        return "; ".join(shown)

    def warn(self, path: str | os.PathLike[str]) -> None:
        """Warn in the name of the caller's caller, if something was left out."""
        if self._counts:
            warnings.warn(f"{os.fspath(path)}: left out {self}.", UserWarning, stacklevel=3)
