"""Speed and memory, against what users would pick instead; a Markdown table per part.

    python -m benchmarks.speed --data ../shared/data

Ratios are medians over rounds in which the contenders alternate. The rounds themselves are written
to benchmarks/results/speed_*.csv.
"""

import argparse
import importlib
import time
from pathlib import Path

PARTS = ("training", "prediction", "streaming", "losses", "scaling", "startup")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for name in arguments.only:
        part = importlib.import_module(f".{name}", __package__)
        start = time.perf_counter()
        table = part.run(arguments.rounds, arguments.data, arguments.out)
        minutes = (time.perf_counter() - start) / 60
        print(f"\n## {part.TITLE}\n")
        print(table.to_markdown(index=False, disable_numparse=True))
        print(f"\n{arguments.rounds} rounds, {minutes:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
