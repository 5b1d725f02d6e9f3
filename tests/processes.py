"""Other processes: programs that are run to their end, and forks of this one."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_python(*arguments, cwd=ROOT, **environment):
    """Run Python with these arguments, require that it ends well, and return what it wrote."""
    paths = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, env={**os.environ, **paths, **environment},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def in_a_process(work):
    """Run a function in a fork of this process; return how that ended, as ``os.wait`` does."""
    # Newer Pythons warn of forks beside threads.
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)
