"""Speed and memory, against what users would pick instead; a Markdown table per part.

    python -m benchmarks.speed --data path/to/corpora

Ratios are medians over rounds in which the contenders alternate. The rounds themselves are written
to benchmarks/results/speed_*.csv.

    python -m benchmarks.speed --device cuda --encoder path/to/encoder path/to/another

measures training and prediction on one device, see benchmarks/speed/device.py.

    python -m benchmarks.speed --data path/to/corpora --fits

prints how long a fit takes by default, which docs/guide/speed.md shows.
"""

import argparse
import importlib
import time
from pathlib import Path

PARTS = ("training", "prediction", "streaming")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fits", action="store_true", help="only tell how long a fit takes")
    device = parser.add_argument_group("one device")
    device.add_argument("--device", help="'cuda', 'cuda:1', 'cpu', ...")
    device.add_argument("--encoder", nargs="+", help="directories; the embedded one by default")
    device.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 256], help="of batches")
    device.add_argument("--steps", type=int, default=30, help="timed steps of a run")
    device.add_argument("--sentences", type=int, default=2000, help="to predict")
    arguments = parser.parse_args()
    if arguments.fits:
        from .training import time_fits

        print(time_fits(arguments.data).to_markdown(index=False, disable_numparse=True))
        return
    if arguments.device is not None:
        _measure_device(arguments)
        return
    for name in arguments.only:
        part = importlib.import_module(f".{name}", __package__)
        start = time.perf_counter()
        table = part.run(arguments.rounds, arguments.data, arguments.out)
        minutes = (time.perf_counter() - start) / 60
        print(f"\n## {part.TITLE}\n")
        print(table.to_markdown(index=False, disable_numparse=True))
        print(f"\n{arguments.rounds} rounds, {minutes:.1f} minutes", flush=True)


def _measure_device(arguments: argparse.Namespace) -> None:
    from ._tasks import MODEL
    from .device import run

    run(
        arguments.encoder or [MODEL],
        arguments.device,
        arguments.out,
        rounds=arguments.rounds,
        sizes=arguments.sizes,
        n_steps=arguments.steps,
        n_predicted=arguments.sentences,
    )


if __name__ == "__main__":
    main()
