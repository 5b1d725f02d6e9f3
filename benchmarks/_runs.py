"""Runs in several processes, each a row of a CSV file; finished ones are not run again."""

import json
import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
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
        The CSV file, written after every run.
    jobs : int
        Processes.
    minutes : float
        No run is started after it; one that has begun is finished.
    """
    end = time.time() + 60 * minutes
    out.parent.mkdir(parents=True, exist_ok=True)
    done = (
        pd.read_csv(out, dtype={"regime": str})
        if out.exists()
        else pd.DataFrame(columns=list(names))
    )
    finished = set(done[list(names)].itertuples(index=False, name=None))
    # A forked process cannot use a GPU that its parent has looked for.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        left = [key for key in keys if key not in finished]
        futures = [pool.submit(_run_before, end, run, key, data) for key in left]
        for future in as_completed(futures):
            if error := future.exception():  # The other runs go on.
                traceback.print_exception(error)
                continue
            if (row := future.result()) is None:
                continue
            done = pd.concat([done, pd.DataFrame([row])], ignore_index=True)
            done.to_csv(out, index=False)
            short = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            print(json.dumps(short), flush=True)
    return done


def _run_before(
    end: float, run: Callable[..., dict[str, Any]], key: tuple[Any, ...], data: Path
) -> dict[str, Any] | None:
    return run(key, data) if time.time() < end else None
