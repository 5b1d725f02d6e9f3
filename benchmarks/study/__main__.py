"""Does a set loss raise F1? All losses, with an equal budget of tuning, on sets of four tasks.

    python -m benchmarks.study --data ../shared/data --plan
    python -m benchmarks.study --data ../shared/data --regimes 250 --jobs 2 --budget-minutes 120
    python -m benchmarks.study --data ../shared/data --report

Every run is a line of a file; a finished run is not run again, so the study may be stopped at any
time, goes on where it was, and may be shared out to machines whose files are then put together.
finished.jsonl.xz has the runs that came with the repository; STUDY.md says which of its tables
--report makes from them. For each corpus and size, settings of all contenders are scored on dev
rows with one seed; the best one is then run with all seeds, and predicts the test rows.
"""

import argparse
import sys
from pathlib import Path

from .corpora import CORPORA, REGIMES
from .losses import CONTENDERS, MOST_SETTINGS
from .plan import Study, planned_cells
from .report import report
from .runs import FINISHED, read
from .schedule import carry_out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/study.jsonl"))
    parser.add_argument("--plan", action="store_true", help="print what is to be run, and end")
    parser.add_argument("--report", action="store_true", help="print the tables, and end")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--budget-minutes", type=float, default=None, help="start no run after it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument(
        "--settings",
        type=int,
        default=4,
        choices=range(1, MOST_SETTINGS + 1),
        help="settings tried for each way to train: learning rates, then the loss's own parameter",
    )
    parser.add_argument(
        "--regimes",
        nargs="+",
        default=[name for name in REGIMES if name != "smoke"],
        choices=list(REGIMES),
    )
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument(
        "--contenders", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS)
    )
    arguments = parser.parse_args()
    study = Study(
        planned_cells(arguments.regimes, arguments.corpora),
        arguments.contenders,
        arguments.seeds,
        arguments.settings,
        arguments.data,
        read(FINISHED, arguments.out),
    )
    if arguments.plan:
        print(study.table(arguments.jobs).to_markdown())
    elif arguments.report:
        print(report(study))
    elif carry_out(study, arguments.out, arguments.jobs, arguments.budget_minutes):
        sys.exit("Some runs ended with an error; the same command tries them again.")


if __name__ == "__main__":
    main()
