"""A journal file that a write which failed leaves as it was."""

from __future__ import annotations

import json
import os
from typing import Any

from optuna.storages.journal import JournalFileBackend


class JournalFile(JournalFileBackend):
    """Journal file of which every line is whole, also when the disk was full for a while."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append a line for each record, or nothing.

        Raises
        ------
        OSError
            If the file cannot be written to; it is as it was.
        """
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        self._lock.acquire()
        try:
            with open(self._file_path, "r+b", buffering=0) as file:
                end = file.seek(0, os.SEEK_END)
                try:
                    _write_all(file, lines)
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(end)
                    raise
        finally:
            self._lock.release()


def _write_all(file: Any, content: bytes) -> None:
    while content:
        content = content[file.write(content) :]
