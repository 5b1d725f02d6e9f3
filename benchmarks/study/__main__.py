"""The runs that PLAN.md declares, and their tables.

    python -m benchmarks.study --data path/to/corpora --encoders path/to/encoders --minutes 120
    python -m benchmarks.study --data ... --encoders ... --device cuda --minutes 9
    python -m benchmarks.study --report --pictures docs/_static

Every run is a row of scores.csv and has a process of its own; a finished one is not run again, so
the study may be stopped at any time. The directory of encoders has the folders "base" and
"multilingual".
"""

import argparse
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from .figures import draw_figures
from .plan import ON_GPU, PARTS
from .report import report
from .runs import CONTENDERS, SCORES, Run, execute, read


def pending(done: pd.DataFrame, runs: Sequence[Run]) -> list[Run]:
    """Return the runs that are left, in their order; ways that are gone keep their rows."""
    finished = {Run(*row) for row in done[list(Run._fields)].itertuples(index=False, name=None)}
    runs = [run for run in dict.fromkeys(runs) if run.contender in CONTENDERS]
    return [run for run in runs if run not in finished]


def carry_out(
    runs: Sequence[Run],
    do: Callable[[Run], dict[str, Any]],
    file: Path,
    jobs: int = 1,
    minutes: float = float("inf"),
) -> None:
    """Do runs until none is left or the time is over; a run that has begun is finished.

    A run that fails is shown and left out. The file is whole after every run.
    """
    end = time.monotonic() + 60 * minutes
    left = pending(read(file), runs)
    running: dict[Future, Run] = {}
    # The peak of memory is that of one run, as each has a process of its own.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool:
        while True:
            while left and len(running) < jobs and time.monotonic() < end:
                run = left.pop(0)
                running[pool.submit(do, run)] = run
            if not running:
                return
            wait(running, return_when=FIRST_COMPLETED)
            for future in [future for future in running if future.done()]:
                print(running.pop(future), flush=True)
                if error := future.exception():
                    traceback.print_exception(error)
                else:
                    _append(future.result(), file)


def _append(row: dict[str, Any], file: Path) -> None:
    rows = pd.DataFrame([*read(file).to_dict("records"), row])
    new = file.with_suffix(".new")
    rows.to_csv(new, index=False)
    os.replace(new, file)
    print({name: value for name, value in row.items() if len(str(value)) < 50}, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory of the corpora")
    parser.add_argument("--encoders", type=Path, help="directory of E5 and MPNet")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, help="all by default, on a GPU those that suit it"
    )
    parser.add_argument("--out", type=Path, default=SCORES)
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no run after it")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--report", action="store_true", help="print the tables, and end")
    parser.add_argument("--pictures", type=Path, help="with --report: directory to draw them in")
    args = parser.parse_args(arguments)
    if args.report:
        print(report(read(args.out)))
        if args.pictures:
            draw_figures(read(args.out), args.pictures)
        return
    parts = args.parts or (PARTS if args.device == "cpu" else ON_GPU)
    runs = [run for part in parts for run in PARTS[part]()]
    how = {"data": args.data, "encoders": args.encoders, "device": args.device}
    carry_out(runs, partial(execute, **how), args.out, args.jobs, args.minutes)


if __name__ == "__main__":
    main()
