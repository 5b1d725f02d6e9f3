"""Whether the process that runs a trial is still there."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

# A worker gives a sign of life this often ...
HEARTBEAT_SECONDS = 30.0
# ... and without one for so long it counts as dead, wherever it runs.
STALE_SECONDS = 180.0
_PARENT_SECONDS = 1.0

_WORKER = "worker"


@contextmanager
def signs_of_life(trial: Trial) -> Iterator[None]:
    """Keep saying that this process runs a trial."""
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(trial, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def ending_with(parent: int) -> Iterator[None]:
    """End this process at once when its parent is gone, for nobody would stop it any more."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(_PARENT_SECONDS):
            if os.getppid() != parent:
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def worker_attribute() -> dict[str, Any]:
    """Return the user attribute that tells which process runs a trial."""
    pid = os.getpid()
    record = {"host": _host(), "pid": pid, "started": _start_of(pid), "seen": time.time()}
    return {_WORKER: record}


class Watch:
    """Tells running trials from those that a dead process left behind.

    On this host, a process that is gone is dead at once. Elsewhere, and if the process is there but
    its trial has no thread any more, a trial is stale when its sign of life has not changed for
    ``STALE_SECONDS`` of watching; clocks of different hosts are never compared.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[Any, float]] = {}

    def is_stale(self, trial: FrozenTrial) -> bool:
        """Return whether a trial with state RUNNING is run by nobody."""
        worker = trial.user_attrs.get(_WORKER)
        if worker is not None and _is_dead(worker):
            return True
        now = time.monotonic()
        sign = None if worker is None else worker["seen"]
        known, since = self._seen.get(trial.number, (sign, now))
        if known != sign:
            known, since = sign, now
        self._seen[trial.number] = known, since
        return now - since > STALE_SECONDS


def _beat(trial: Trial, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT_SECONDS):
        # A storage that is out of reach for a moment costs one sign of life, not the trial.
        with suppress(Exception):
            for name, value in worker_attribute().items():
                trial.set_user_attr(name, value)


def _host() -> str:
    """Return the name of the host and of the process namespace, which containers may not share."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()


def _is_dead(worker: dict[str, Any]) -> bool:
    """Return whether it is certain that the process is gone; False for other hosts."""
    if worker["host"] != _host() or os.name == "nt":
        return False
    try:
        os.kill(worker["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # It is there, and not ours.
    # The number may have been given to a new process, or be that of a zombie.
    return _start_of(worker["pid"]) != worker["started"]


def _start_of(pid: int) -> str | None:
    """Return when a process started, in ticks since boot; None if it is gone or not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started
