"""A PostgreSQL server of one's own, in a temporary directory, that can be stopped and started."""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest


class Server:
    """A server that listens on a socket in its directory."""

    def __init__(self, home, as_user):
        self.url = f"postgresql+psycopg://search@/postgres?host={home}"
        self._quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
        data = home / "data"
        self._pg_ctl = [*as_user, "pg_ctl", "-D", data, "-w", "-l", home / "log"]
        self._options = f"-k {home} -c listen_addresses='' -c fsync=off"
        initdb = [*as_user, "initdb", "-D", data, "-U", "search", "-A", "trust", "--no-sync"]
        subprocess.run(initdb, **self._quiet)

    def start(self):
        subprocess.run([*self._pg_ctl, "-o", self._options, "start"], **self._quiet)

    def stop(self):
        subprocess.run([*self._pg_ctl, "-m", "immediate", "stop"], **self._quiet)


@contextmanager
def server():
    """Start a server; skip the test where none is installed."""
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("no PostgreSQL server is installed")
    if find_spec("psycopg") is None:
        pytest.skip("no driver for PostgreSQL is installed")
    # Not tmp_path: the path of a socket is short, and the server's user has to get there.
    home = Path(tempfile.mkdtemp(prefix="skdice-pg-", dir="/tmp"))
    try:
        as_user = []
        if os.getuid() == 0:
            if not shutil.which("runuser") or not _user_exists("postgres"):
                pytest.skip("the server does not run as root, and there is no user for it")
            as_user = ["runuser", "-u", "postgres", "--"]
            shutil.chown(home, "postgres")
        made = Server(home, as_user)
        made.start()
        try:
            yield made
        finally:
            with suppress(subprocess.CalledProcessError):  # A test may have stopped it.
                made.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _user_exists(name):
    with suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False
