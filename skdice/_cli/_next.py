"""The command next: which lines of a file to label next, written with predictions to correct."""

import argparse
from itertools import compress
from typing import Any

from ._commands import OF_SPANS, given, load, make_estimator, note, read_data, split_lines

_OF_WORDS = (".conll", ".bio", ".iob")
# The columns of the texts in a CSV file, by task.
_COLUMNS = {"texts": "text", "pairs": "sentence1 sentence2", "questions": "question context"}
_N_SAMPLES = 1000  # of the random lines, for the interval of F1


def run_next(arguments: argparse.Namespace) -> None:
    """Choose the lines to label next, and write them for a labelling tool."""
    from ..datasets import read_lines, write_doccano, write_label_studio
    from ..labeling import choose_rows

    is_fitted = hasattr(arguments, "saved")
    for name in given(arguments, "model", "task") if is_fitted else ():
        raise ValueError(f"--{name} is for a choice without a MODEL, which has its own.")
    task = getattr(arguments, "task", "tagging")
    estimator, task = load(arguments) if is_fitted else (make_estimator(arguments, task), task)
    suffix = _check_suffix(arguments.out, estimator, task)
    pool = enumerate(read_lines(arguments.pool), start=1)
    numbered = {i: line for i, line in pool if line.strip()}
    lines = list(numbered.values())
    splitter = dict(arguments.read).get("splitter", getattr(estimator, "splitter_", None))
    rows = _split(task, numbered, splitter)
    file = getattr(arguments, "labeled", None)
    known = None if file is None else read_data(arguments, file, task, splitter)[0]
    options = given(arguments, "n", "strategy", "random_state")
    chosen = choose_rows(estimator, rows, labeled=known, **options)
    places = chosen["row"].tolist()
    texts, rows, predicted = [lines[i] for i in places], [rows[i] for i in places], None
    if is_fitted:
        found = estimator.predict_entities(texts) if suffix in OF_SPANS else estimator.predict(rows)
        predicted = found.tolist()
        if getattr(found, "ndim", 1) == 2:  # Of labels in 0/1 columns their names are written.
            predicted = [", ".join(map(str, compress(estimator.classes_, row))) for row in found]
    n_rounds = 0 if file is None or task in _COLUMNS else _tell_rounds(file, dict(arguments.read))
    fields = [{"is_random": drawn} for drawn in chosen["is_random"].tolist()]
    for i, row in enumerate(fields):
        if row["is_random"]:
            row["round"] = n_rounds + 1
            if predicted is not None and suffix in OF_SPANS:  # To be scored when it is labelled.
                row["predicted"] = [list(span[:3]) for span in predicted[i]]
    if suffix == ".jsonl":
        write_doccano(arguments.out, texts, predicted, fields=fields)
    elif suffix == ".json":
        write_label_studio(arguments.out, texts, predicted, model_version="skdice", fields=fields)
    else:
        _write_rows(arguments.out, task, rows, predicted, fields)
    n_words = int(chosen["words"].sum())
    note(f"{arguments.out}: {len(rows):,} of {len(lines):,} lines, {n_words:,} words to read")


def _check_suffix(path: str, estimator: Any, task: str) -> str:
    """Return the suffix of the file to write, which must be one of the task."""
    from .._files import as_path, check_not_inside_saved
    from ..datasets import suffix_of

    place, suffix = as_path(path, "--out"), suffix_of(path)
    check_not_inside_saved(place)
    if place.is_dir() or not place.parent.is_dir():
        raise ValueError(f"--out must be a file in a directory that exists; got {path!r}.")
    allowed: tuple[str, ...] = (".csv",)
    if task not in _COLUMNS:
        has_entities = getattr(estimator, "scheme_", "unknown") is not None
        allowed = (*OF_SPANS, *_OF_WORDS) if has_entities else _OF_WORDS
    if suffix not in allowed:
        name = type(estimator).__name__
        raise ValueError(f"--out of a {name} must be a file {' or '.join(allowed)}; got {path!r}.")
    return suffix


def _split(task: str, numbered: dict[int, str], splitter: Any) -> Any:
    """Return the rows that an estimator of a task takes, from lines with their numbers."""
    from ..datasets import words_from_spans

    if task in ("pairs", "questions"):
        return split_lines(numbered)
    lines = list(numbered.values())
    if task == "texts":
        return lines
    return words_from_spans(lines, [()] * len(lines), splitter=splitter)[0]


def _write_rows(path: str, task: str, rows: Any, predicted: Any, fields: Any) -> None:
    """Write words with tags, or a table of texts with labels."""
    import pandas as pd

    from ..datasets import write_conll, write_text

    if task not in _COLUMNS:
        write_conll(path, rows, predicted or [["O"] * len(row) for row in rows])
        return
    table = pd.DataFrame(rows, columns=_COLUMNS[task].split())
    table["answer" if task == "questions" else "label"] = "" if predicted is None else predicted
    table["is_random"] = [row["is_random"] for row in fields]
    write_text(path, table.to_csv(index=False))


def _tell_rounds(path: str, options: dict[str, Any]) -> int:
    """Say how good the predictions of random lines were that now have labels; count the rounds."""
    import numpy as np

    from .. import datasets
    from ..exceptions import hidden

    reader = OF_SPANS.get(datasets.suffix_of(path))
    if reader is None:
        return 0
    options.pop("splitter", None)
    with hidden():  # The same was said when the rows were read.
        gold = dict(zip(*getattr(datasets, reader)(path, **options)))
    fields = [one.get("data", one) for _, _, one in datasets.read_objects(path)]
    rounds = [row["round"] for row in fields if isinstance(row.get("round"), int)]
    counts = []
    for row in fields:
        text = row.get(options.get("text", "text"))
        if isinstance(row.get("predicted"), list) and text in gold:
            found, actual = {tuple(span) for span in row["predicted"]}, set(gold[text])
            counts.append((2 * len(found & actual), len(found) + len(actual)))
    if n := len(counts):
        weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), _N_SAMPLES)
        both, all_ = (np.vstack([np.ones(n), weights]) @ np.array(counts)).T
        f1, *samples = 100 * both / np.maximum(all_, 1)
        low, high = np.percentile(samples, [2.5, 97.5])
        note(
            f"{path}: F1 {f1:.1f} ({low:.1f} to {high:.1f}) of the predictions on {n} random lines"
            f", none of which the model that made them had seen"
        )
    return max(rounds, default=0)
