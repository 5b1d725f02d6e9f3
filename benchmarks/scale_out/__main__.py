"""Several processes on this machine, measured, and larger jobs reckoned from that, in Markdown.

python -m benchmarks.scale_out --data ../shared/data
python -m benchmarks.scale_out --only model
"""

import argparse
from pathlib import Path

from . import model, prediction, training

PARTS = {"training": training, "prediction": prediction}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--only", choices=[*PARTS, "model"], nargs="+", default=[*PARTS, "model"])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for name in arguments.only:
        if name == "model":
            for title, table in model.tables().items():
                print(f"\n## {title}\n\n{table.to_markdown(index=False, disable_numparse=True)}")
            continue
        if arguments.data is None:
            parser.error(f"{name} needs --data")
        for title, table in PARTS[name].run(arguments.rounds, arguments.data, arguments.out):
            print(f"\n## {title}\n\n{table.to_markdown(index=False)}", flush=True)


if __name__ == "__main__":
    main()
