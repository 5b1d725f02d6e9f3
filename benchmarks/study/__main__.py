"""The defaults against cross-entropy, as PLAN.md declares it: fits side by side, over draws.

    python -m benchmarks.study --data path/to/corpora --encoders path/to/encoders --minutes 120
    python -m benchmarks.study --report

Every run is a row of scores.csv; a finished one is not run again, so the study may be stopped at
any time. The directory of encoders has the folders "base" and "multilingual".
"""

import argparse
import multiprocessing
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import pandas as pd

from .plan import PARTS
from .report import report
from .runs import SCORES, Run, execute, read


def pending(done: pd.DataFrame, parts: list[str]) -> list[Run]:
    """Return the runs that are left, part by part."""
    finished = {Run(*row) for row in done[list(Run._fields)].itertuples(index=False, name=None)}
    runs = dict.fromkeys(run for part in parts for run in PARTS[part]())
    return [run for run in runs if run not in finished]


def carry_out(
    parts: list[str], data: Path, encoders: Path, file: Path, jobs: int, minutes: float
) -> None:
    """Do runs until none is left or the time is over; a run that has begun is finished."""
    end = time.monotonic() + 60 * minutes
    done = read(file)
    running: dict[Future, Run] = {}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        while True:
            left = [run for run in pending(done, parts) if run not in running.values()]
            for run in left[: jobs - len(running)] if time.monotonic() < end else []:
                future = pool.submit(execute, run, data, encoders, file.with_suffix(".models"))
                running[future] = run
            if not running:
                return
            wait(running, return_when=FIRST_COMPLETED)
            for future in [future for future in running if future.done()]:
                del running[future]
                row = future.result()
                done = pd.DataFrame([*done.to_dict("records"), row])
                done.to_csv(file, index=False)
                print(row, flush=True)


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory of the corpora")
    parser.add_argument("--encoders", type=Path, help="directory of E5 and MPNet")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=SCORES)
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no run after it")
    parser.add_argument("--report", action="store_true", help="print the tables, and end")
    args = parser.parse_args()
    if args.report:
        print(report(read(args.out)))
        return
    carry_out(args.parts, args.data, args.encoders, args.out, args.jobs, args.minutes)


if __name__ == "__main__":
    main()
