"""What nothing set gains, and how sure that is: fits side by side, over draws of the rows.

    python -m benchmarks.study --data path/to/corpora --parts tuning A --jobs 2 --minutes 120
    python -m benchmarks.study --report

Every run is a row of scores.csv; a finished one is not run again, so the study may be stopped at
any time and shared out to machines whose tables are then put together. Rows, initial weights and
order of the rows have seeds of their own; the draws that choose settings are not those of the
tables. All runs of a file are in one precision, that of its first run.
"""

import argparse
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import pandas as pd

from .plan import PARTS
from .report import cost_plot, forest_plot, report
from .runs import SCORES, Run, execute, read


def pending(done: pd.DataFrame, parts: list[str]) -> list[Run]:
    """Return the runs of the first part that has any left."""
    finished = {Run(*row) for row in done[list(Run._fields)].itertuples(index=False, name=None)}
    for part in parts:
        if left := [run for run in PARTS[part](done) if run not in finished]:
            return left
    return []


def carry_out(
    parts: list[str], data: Path, file: Path, jobs: int, minutes: float, precision: str
) -> None:
    """Do runs until none is left or the time is over; a run that has begun is finished."""
    end = time.monotonic() + 60 * minutes
    done = read(file)
    if len(done):
        precision = done["precision"].iloc[0]
    running: dict[Future, Run] = {}
    with ProcessPoolExecutor(jobs) as pool:
        while True:
            # Asked again after every run: what comes next may depend on it.
            left = [run for run in pending(done, parts) if run not in running.values()]
            for run in left[: jobs - len(running)] if time.monotonic() < end else []:
                running[pool.submit(execute, run, data, precision, file.with_suffix(".rows"))] = run
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
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=SCORES)
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no run after it")
    parser.add_argument(
        "--precision", default="fp32", choices=("fp32", "bf16"), help="of a file that has no runs"
    )
    parser.add_argument("--report", action="store_true", help="print the tables, and end")
    parser.add_argument("--picture", type=Path, help="file for a picture of the differences")
    parser.add_argument("--costs", type=Path, help="file for a picture of F1 over seconds, part B")
    args = parser.parse_args()
    if args.report or args.picture:
        done = read(args.out)
        rows = args.out.with_suffix(".rows")
        print(report(done, rows))
        if args.picture:
            forest_plot(done, rows, args.picture)
        if args.costs:
            cost_plot(done, args.costs)
        return
    carry_out(args.parts, args.data, args.out, args.jobs, args.minutes, args.precision)


if __name__ == "__main__":
    main()
