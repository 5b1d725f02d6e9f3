"""Runs in several processes, each a row of a CSV file; finished ones are not run again."""

import json
import multiprocessing
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
) -> pd.DataFrame:
    """Call ``run(key, data)`` for each key that the file lacks, and return all rows.

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
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    done = (
        pd.read_csv(out, dtype={"regime": str})
        if out.exists()
        else pd.DataFrame(columns=list(names))
    )
    finished = set(done[list(names)].itertuples(index=False, name=None))
    # A forked process cannot use a GPU that its parent has looked for.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(run, key, data) for key in keys if key not in finished]
        for future in as_completed(futures):
            row = future.result()
            done = pd.concat([done, pd.DataFrame([row])], ignore_index=True)
            done.to_csv(out, index=False)
            short = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            print(json.dumps(short), flush=True)
    return done
