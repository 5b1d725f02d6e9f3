"""The runs that PLAN.md declares, and their tables.

    python -m benchmarks.study --data path/to/corpora --encoders path/to/encoders --minutes 120
    python -m benchmarks.study --data ... --encoders ... --device cuda --minutes 9
    python -m benchmarks.study --report --pictures docs/_static

Every run is a row of scores.csv and has a process of its own; a finished one is not run again, so
the study may be stopped at any time. The directory of encoders has the folders "base" and
"multilingual".
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .._runs import finish
from .figures import draw_figures
from .plan import ON_GPU, PARTS
from .report import report
from .runs import CONTENDERS, SCORES, Run, execute, read


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
    # Ways that are gone keep their rows.
    runs = [run for part in parts for run in PARTS[part]() if run.contender in CONTENDERS]
    do = partial(execute, encoders=args.encoders, device=args.device)
    finish(runs, Run._fields, do, args.data, args.out, args.jobs, args.minutes)


if __name__ == "__main__":
    main()
