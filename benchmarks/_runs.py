"""Runs in several processes, each a row of a CSV file; finished ones are not run again."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import pandas as pd


def finish(
    keys: Iterable[tuple[Any, ...]],
    names: Sequence[str],
    run: Callable[..., dict[str, Any]],
    data: Path,
    out: Path,
    jobs: int,
    minutes: float = float("inf"),
) -> pd.DataFrame:
    """Call ``run(key, data)`` for each key that the file lacks, and return all rows.

    A run that fails is shown and left out.

    Parameters
    ----------
    keys : iterable of tuples
    names : sequence of str
        Columns of the file that make up a key.
    run : callable
        Returns a row, its key included.
    data : Path
        Directory of the corpora.
    out : Path
        The CSV file, which is whole after every run.
    jobs : int
        Processes.
    minutes : float
        No run is started after it; one that has begun is finished.
    """
    end = time.monotonic() + 60 * minutes
    out.parent.mkdir(parents=True, exist_ok=True)
    done = pd.DataFrame(columns=list(names))
    if out.exists():
        done = pd.read_csv(out, dtype={"regime": str})
    finished = set(done[list(names)].itertuples(index=False, name=None))
    left = [key for key in dict.fromkeys(keys) if key not in finished]
    running: dict[Future, tuple[Any, ...]] = {}
    # A forked process cannot use a GPU that its parent has looked for. Each run has a process of
    # its own, so that the peak of memory is that of the run.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool:
        while True:
            while left and len(running) < jobs and time.monotonic() < end:
                key = left.pop(0)
                running[pool.submit(run, key, data)] = key
            if not running:
                return done
            wait(running, return_when=FIRST_COMPLETED)
            for future in [future for future in running if future.done()]:
                print(running.pop(future), flush=True)
                if error := future.exception():  # The other runs go on.
                    traceback.print_exception(error)
                    continue
                row = future.result()
                done = pd.DataFrame([*done.to_dict("records"), row])
                new = out.with_suffix(".new")
                done.to_csv(new, index=False)
                os.replace(new, out)
                short = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
                print({k: v for k, v in short.items() if len(str(v)) < 50}, flush=True)
