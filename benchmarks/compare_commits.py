"""Whether another checkout predicts the same: fits of all estimators, compared bit for bit.

    python -m benchmarks.compare_commits ../other-checkout

Each fit runs in both checkouts on a tiny random model, in fp32 on the CPU with one thread; the
table has the largest difference of the scores of each fit.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
NAMES, PLACES = ["Anna", "Bob", "Cleo", "Dan"], ["Oslo", "Paris", "Rome", "Lima"]
WORDS = ["the", "a", "sees", "walks", "in", "of", "big", "red", "house", "tree", "and", "river"]
LOSSES = ("ce", "dice", "dsc", "auto")


def sentences(n: int, share: float = 0.6) -> tuple[list[list[str]], list[list[str]]]:
    rng = random.Random(0)
    X, y = [], []
    for _ in range(n):
        words = rng.choices(WORDS, k=rng.randint(3, 12))
        tags = ["O"] * len(words)
        if rng.random() < share:
            i = rng.randrange(len(words))
            words[i], tags[i] = rng.choice(
                [(rng.choice(NAMES), "B-PER"), (rng.choice(PLACES), "B-LOC")]
            )
        X.append(words)
        y.append(tags)
    return X, y


def texts(n: int) -> tuple[list[str], list[str]]:
    X, y = sentences(n)
    return [" ".join(words) for words in X], ["yes" if "B-PER" in tags else "no" for tags in y]


def pairs(n: int) -> tuple[list[tuple[str, str]], list[int]]:
    X, _ = texts(2 * n)
    return list(zip(X[:n], X[n:])), [
        int("house" in a and "house" in b) for a, b in zip(X[:n], X[n:])
    ]


def questions(n: int) -> tuple[list[tuple[str, str]], list[str]]:
    X, y = sentences(n, share=0.8)
    answers = [" ".join(w for w, tag in zip(*row) if tag != "O") for row in zip(X, y)]
    return [("Who is named?", " ".join(words)) for words in X], answers


def cases() -> dict[str, tuple[str, dict[str, Any], Callable[[], Any]]]:
    """Return the estimator, the parameters and the rows of each fit, by its name."""
    tagging, some = (lambda: sentences(60)), (lambda: texts(60))
    fits: dict[str, tuple[str, dict[str, Any], Callable[[], Any]]] = {}
    kinds = {
        "DiceTokenTagger": tagging,
        "DiceTextClassifier": some,
        "DicePairClassifier": lambda: pairs(60),
        "DiceSpanExtractor": lambda: questions(40),
        "DiceQueryTagger": lambda: sentences(30),
    }
    for kind, rows in kinds.items():
        for loss in LOSSES:
            fits[f"{kind} {loss}"] = (kind, {"loss": loss}, rows)
        for name, value in {"sampled": 0.3, "all rows": None}.items():
            fits[f"{kind} dice, {name}"] = (kind, {"loss": "dice", "negative_ratio": value}, rows)
            fits[f"{kind} ce, {name}"] = (kind, {"loss": "ce", "negative_ratio": value}, rows)
        held_out = {"validation_fraction": 0.3, "patience": 1, "max_epochs": 4}
        fits[f"{kind} patience"] = (kind, held_out, rows)
        fits[f"{kind} members"] = (kind, {"n_members": 2, "accumulate": 2}, rows)
        fits[f"{kind} weights"] = (kind, {"loss": "wce", "K": 4.0}, rows)
        fits[f"{kind} checkpoint"] = (kind, {"checkpoint_dir": "checkpoints"}, rows)
    fits["tagger chain"] = ("DiceTokenTagger", {"crf": True}, tagging)
    fits["tagger shapes"] = ("DiceTokenTagger", {"word_shapes": True}, tagging)
    fits["tagger bias"] = ("DiceTokenTagger", {"background_bias": "cv"}, tagging)
    fits["texts threshold"] = ("DiceTextClassifier", {"threshold": "cv"}, some)
    return fits


def run(checkout: Path, out: Path, pattern: str) -> None:
    """Run the fits in this process, with the package of a checkout."""
    sys.path.insert(0, str(checkout))
    import torch

    import skdice
    from tests.tiny_models import build_bert

    torch.set_num_threads(1)
    assert Path(skdice.__file__).parents[1] == checkout.resolve()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        model = str(build_bert(Path(place) / "bert"))
        scores = {}
        for name, (kind, parameters, make) in cases().items():
            if pattern not in name:
                continue
            X, y = make()
            shared = {"precision": "fp32", "max_epochs": 2, "random_state": 0, "verbose": 0}
            estimator = getattr(skdice, kind)(model, **{**shared, **parameters})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator.fit(X, y)
            net = estimator.net_
            weights = [w.detach().double().sum().item() for w in net.module_.parameters()]
            scores[f"{name}|weights"] = np.array(weights)
            predicted = estimator.predict(X).tolist()
            scores[f"{name}|predictions"] = np.array([hash_of(predicted)], dtype=np.float64)
            history = estimator.history_["train_loss"].to_numpy(dtype=np.float64)
            scores[f"{name}|losses"] = history
            if hasattr(estimator, "predict_proba"):
                scores[f"{name}|scores"] = np.concatenate(
                    list(estimator.predict_proba(X)), axis=None
                )
        np.savez(out, **scores)


def hash_of(value: Any) -> int:
    """Return a number that tells predictions apart, the same in every process."""
    import zlib

    return zlib.crc32(repr(value).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("--only", default="", help="fits whose name has this text")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        run(options.other, options.run, options.only)
        return
    with tempfile.TemporaryDirectory() as place:
        files = []
        for checkout in (ROOT, options.other.resolve()):
            files.append(Path(place) / f"{len(files)}.npz")
            command = [sys.executable, __file__, str(checkout), "--run", str(files[-1])]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(checkout)}
            subprocess.run([*command, "--only", options.only], check=True, env=environment)
        ours, theirs = map(np.load, files)
        rows = [
            (*name.split("|"), float(np.abs(ours[name] - theirs[name]).max()))
            if ours[name].shape == theirs[name].shape
            else (*name.split("|"), float("nan"))
            for name in ours
        ]
    table = pd.DataFrame(rows, columns=["fit", "part", "difference"])
    table = table.pivot(index="fit", columns="part", values="difference")
    print(table.to_string(float_format=lambda value: "0" if value == 0 else f"{value:.1e}"))


if __name__ == "__main__":
    main()
