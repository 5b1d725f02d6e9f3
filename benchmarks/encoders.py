"""Encoders side by side, and fits that begin from a model of the same task.

    python -m benchmarks.encoders --data path/to/corpora --encoders path/to/encoders

Every fit has the defaults. Seconds are those of the processor, on one thread. A finished run is a
row of a CSV file and is not run again. The directory of encoders has the folders "base" and
"multilingual".
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args
from unittest.mock import patch

import numpy as np
import torch

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.datasets import read_squad
from skdice.metrics import entity_f1_score
from skdice.nn import Runtime

from ._runs import finish
from .peers.comparison import to_iob2
from .study.corpora import Part, draw
from .study.runs import encoder_path

KEY = ("task", "encoder", "before", "draw")
RUNTIMES = get_args(Runtime)


class Task(NamedTuple):
    """What is learned and scored.

    Attributes
    ----------
    estimator : type
    train, test : str
        Files of questions, or a corpus of the study and nothing.
    n_train, n_test : int
    n_words : int
        Words of the context of a question at most.
    """

    estimator: Any
    train: str
    test: str = ""
    n_train: int = 250
    n_test: int = 1000
    n_words: int = 0


SQUAD, SQUAD_DEV = "mrc/squad_v1.1/train_subset.json.xz", "mrc/squad_v1.1/dev.json.xz"
QUOREF, QUOREF_TEST = "mrc/quoref/dev_part_train.json.xz", "mrc/quoref/dev_part_test.json.xz"
TASKS = {
    "CoNLL03": Task(DiceTokenTagger, "CoNLL03"),
    "SST-2": Task(DiceTextClassifier, "SST-2"),
    "Amazon-Google": Task(DicePairClassifier, "Amazon-Google", n_test=500),
    "SQuAD": Task(DiceSpanExtractor, SQUAD, SQUAD_DEV, n_test=300, n_words=50),
    "SQuAD, 2,000": Task(DiceSpanExtractor, SQUAD, SQUAD_DEV, 2000, 300, n_words=100),
    "SQuAD, all": Task(DiceSpanExtractor, SQUAD, SQUAD_DEV, 14348, 300),
    "Quoref": Task(DiceSpanExtractor, QUOREF, QUOREF_TEST, n_test=195, n_words=300),
    "CoNLL03, 1,000": Task(DiceTokenTagger, "CoNLL03", n_train=1000),
    "WikiGold": Task(DiceTokenTagger, "WikiGold"),
}
SIDE_BY_SIDE = ("CoNLL03", "SST-2", "Amazon-Google", "SQuAD")
# A task, an encoder, and the task whose model it begins from.
CONTINUED = [
    ("Quoref", "MiniLM", "SQuAD, 2,000"),
    ("WikiGold", "MiniLM", "CoNLL03, 1,000"),
    ("Quoref", "MPNet", "SQuAD, all"),
]
# Of each run: the task, the encoder, the task that it was trained on before, the draw.
PARTS = {
    "encoders": [
        (task, encoder, "none", 510)
        for task in SIDE_BY_SIDE
        for encoder in ("MiniLM", "E5", "MPNet")
    ],
    "continued": [
        (*key, 510)
        for task, encoder, before in CONTINUED
        for key in ((before, encoder, "none"), (task, encoder, before), (task, encoder, "none"))
    ],
}


def read(task: Task, seed: int, data: Path) -> tuple[Part, Part]:
    """Return the training rows and the scored rows of a task."""
    if task.test:
        train = _questions(data / task.train, task.n_train, task.n_words, seed)
        return train, _questions(data / task.test, task.n_test, task.n_words, seed)
    parts = draw(task.train, str(task.n_train), seed, data)
    if task.estimator is not DiceTokenTagger:
        return parts.train, parts.test.take(np.arange(task.n_test))
    # With IOB2 tags the classes of CoNLL03 and WikiGold are the same.
    train, test = (Part(p.X, [to_iob2(tags) for tags in p.y]) for p in (parts.train, parts.test))
    return train, test


def _questions(path: Path, n: int, n_words: int, seed: int) -> Part:
    """Return questions whose contexts have at most so many words, or any, if that is 0."""
    table, answers = read_squad(path)
    is_short = (table["context"].str.split().str.len() <= (n_words or np.inf)).to_numpy()
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(is_short))[:n]
    pairs = table[["question", "context"]].itertuples(index=False, name=None)
    return Part(list(pairs), list(answers)).take(rows)


def run(key: tuple[Any, ...], data: Path, encoders: Path, models: Path) -> dict[str, Any]:
    """Fit and score, and return a row of the file.

    Returns
    -------
    dict
        ``fit_seconds``, ``score`` (what the estimator's ``score`` gives, in percent), and on
        CoNLL03, for each runtime, its score, words of the test rows per second of ``predict``, and
        the megabytes of the network.
    """
    torch.set_num_threads(1)
    name, encoder, before, seed = key
    task = TASKS[name]
    train, test = read(task, seed, data)
    model = encoder_path(encoder, encoders) if before == "none" else str(models / before)
    estimator = task.estimator(model, precision="bf16", random_state=seed, verbose=0)
    start = time.process_time()
    estimator.fit(train.X, train.y)
    row = dict(zip(KEY, key)) | {
        "fit_seconds": time.process_time() - start,
        "n_test": len(test.y),
        "lr": estimator.lr_,
        "head_lr": estimator.net_.head_lr,
        "epochs": estimator.max_epochs_,
    }
    if name in {before for _, _, before in CONTINUED}:
        estimator.save_pretrained(models / name)
    if name != "CoNLL03":
        return row | {"score": 100 * estimator.score(test.X, test.y)}
    n_words = sum(map(len, test.X))
    for runtime in RUNTIMES:
        estimator.set_params(runtime=runtime)
        row[f"MB, {runtime}"] = network_bytes(estimator, test.X[:1]) / 1e6
        start = time.process_time()
        predicted = estimator.predict(test.X)
        row[f"words/s, {runtime}"] = n_words / (time.process_time() - start)
        row["score" if runtime == "torch" else f"score, {runtime}"] = 100 * entity_f1_score(
            test.y, predicted
        )
    return row


def network_bytes(estimator: Any, X: Any) -> int:
    """Return the size of the weights or, of an ONNX runtime, that of the file of the network.

    The estimator must not have predicted with the runtime before: it opens the file only once.
    """
    opened: list[int] = []

    def open_file(path: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(path.stat().st_size)
        return make_session(path, *arguments, **options)

    if estimator.runtime == "torch":
        return sum(weight.nbytes for weight in estimator.net_.module_.parameters())
    import onnxruntime

    make_session = onnxruntime.InferenceSession
    with patch.object(onnxruntime, "InferenceSession", open_file):
        estimator.predict(X)
    return opened[-1]  # A file in int8 is made from others, which are opened before it.


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoders", type=Path, required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/encoders.csv"))
    args = parser.parse_args()
    keys = [key for part in args.parts for key in PARTS[part]]
    models = args.out.parent / "models"
    one_run = partial(run, encoders=args.encoders, models=models)
    runs = finish(keys, KEY, one_run, args.data, args.out, jobs=1)
    print(runs.round(1).to_markdown(index=False))


if __name__ == "__main__":
    main()
