"""A journal file whose last line may be torn, by a write or a machine that failed."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import Any

from optuna.storages.journal import JournalFileBackend

# How each record begins.
_RECORD = b'{"op_code":'
_BLANK = b"\0\r\n\t "


class JournalFile(JournalFileBackend):
    """Journal file of which every line is whole, also when the disk was full for a while.

    A machine that goes down may leave a part of a record, or NULs, at the end. Nobody has read
    that; it makes way for the next record.
    """

    # Up to here the file is known to be whole.
    _n_checked = 0

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Yield the records from a number on.

        Raises
        ------
        ValueError
            If one is damaged that is not the last one; it has the line.
        """
        line = log_number_from + 1
        try:
            for log in super().read_logs(log_number_from):
                yield log
                line += 1
        except ValueError as error:
            raise ValueError(
                f"line {line} of the journal {self._file_path!r} is damaged ({error}). Give "
                f"another storage or, to keep the trials before it, delete that line and all after "
                f"it."
            ) from error

    def repair(self) -> None:
        """Drop what is torn at the end of the file.

        Raises
        ------
        ValueError
            If it ends in something else than records.
        """
        self.append_logs([])

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append a line for each record, or nothing.

        Raises
        ------
        OSError
            If the file cannot be written to; it is as it was.
        ValueError
            If it ends in something else than records.
        """
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        self._lock.acquire()
        try:
            with open(self._file_path, "r+b", buffering=0) as file:
                end = self._drop_torn_end(file)
                try:
                    _write_all(file, lines)
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(end)
                    raise
                self._n_checked = file.tell()
        finally:
            self._lock.release()

    def _drop_torn_end(self, file: Any) -> int:
        """Cut the file after its last whole record, and return how long it is."""
        size = file.seek(0, os.SEEK_END)
        start = self._n_checked if self._n_checked <= size else 0
        file.seek(start)
        content = file.read()
        n_whole = _whole_length(content)
        for line in content[n_whole:].splitlines():
            if not _RECORD.startswith(line.strip(_BLANK)[: len(_RECORD)]):
                raise ValueError(
                    f"The file {self._file_path!r} ends in a line that is no record of a study: "
                    f"{line[:40]!r}. Give the path of a journal file, or of a new file."
                )
        end = start + n_whole
        if end < size:
            file.truncate(end)
        return file.seek(end)


def _whole_length(content: bytes) -> int:
    """Return the length up to the end of the last line that is JSON."""
    end = len(content)
    while end:
        start = content.rfind(b"\n", 0, end - 1) + 1
        if content[end - 1 : end] == b"\n" and _is_json(content[start:end]):
            return end
        end = start
    return 0


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _write_all(file: Any, content: bytes) -> None:
    while content:
        content = content[file.write(content) :]
