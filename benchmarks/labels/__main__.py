"""The runs that PLAN.md declares, and their tables.

    python -m benchmarks.labels --data path/to/corpora --jobs 1 --minutes 120
    python -m benchmarks.labels --report

Every run is a row of scores.csv; a finished one is not run again. The folder "base" has MPNet.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from .._runs import finish
from .report import draw_curves, report
from .runs import KEY, SCORES, execute

CORPORA = ("BTC", "re3d", "CoNLL03", "BC5CDR", "Amazon-Google", "SMS")
DRAWS = (720, 721, 722)
# The contenders of each part, and its corpora, in the order of the runs.
PARTS = {
    "main": (("random", "least confident"), CORPORA),
    "strategies": (
        ("expected", "least confident, sum", "mnlp", "least confident, max"),
        CORPORA[:4],
    ),
    "first": (("half random", "spread, then least confident", "spread, then random"), CORPORA[:4]),
    "learners": (("dice for ce",), ("BTC", "re3d")),
    "encoders": (("random, for MPNet", "MiniLM for MPNet"), ("CoNLL03",)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory of the corpora")
    parser.add_argument("--encoders", type=Path, default=Path(), help="directory of MPNet")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--out", type=Path, default=SCORES)
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no run after it")
    parser.add_argument("--report", action="store_true", help="print the tables, and end")
    parser.add_argument("--picture", type=Path, help="with --report: file to draw it in")
    args = parser.parse_args(arguments)
    if args.report:
        print(report(pd.read_csv(args.out)))
        if args.picture:
            draw_curves(pd.read_csv(args.out), args.picture)
        return
    cells = [(draw, *PARTS[part]) for draw in DRAWS for part in args.parts]
    keys = [(corpus, name, draw) for draw, names, of in cells for corpus in of for name in names]
    do = partial(execute, encoders=args.encoders)
    finish(keys, KEY, do, args.data, args.out, args.jobs, args.minutes)


if __name__ == "__main__":
    main()
