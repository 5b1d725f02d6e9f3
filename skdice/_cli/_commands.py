"""The commands report, fit, compare, score and predict."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


class Task(NamedTuple):
    """What its rows are called, its estimator, and the formats of its files (if told, else)."""

    row: str
    estimator: str
    formats: tuple[str, ...]


TASKS = {
    "tagging": Task("sentence", "DiceTokenTagger", ("conll", "conllu", "tagged json")),
    "query-tagging": Task("sentence", "DiceQueryTagger", ("conll", "conllu", "tagged json")),
    "pairs": Task("pair", "DicePairClassifier", ("pairs",)),
    "texts": Task("text", "DiceTextClassifier", ("labeled text", "labeled json")),
    "questions": Task("question", "DiceSpanExtractor", ("squad",)),
}
DATA = (
    "CoNLL columns, CoNLL-U, pairs or labelled texts in TSV or CSV, SQuAD JSON, or JSON lines "
    'of {"tokens": [...], "tags": [...]} or {"text": ..., "label": ...}; plain, .gz or .xz'
)
# What has to stand in a line for estimators that read two texts.
_TWO_TEXTS = {"pairs": "two texts", "questions": "question and context"}


def run_report(arguments: argparse.Namespace) -> None:
    from ..inspection import imbalance_report

    _, X, y = _read_data(arguments, arguments.data, arguments.task)
    _write_table(imbalance_report(y, X).reset_index(), arguments.format)


def run_fit(arguments: argparse.Namespace) -> None:
    from ..io import check_place

    check_place(arguments.out)  # Before hours of training.
    task, X, y = _read_data(arguments, arguments.data, arguments.task)
    file = getattr(arguments, "valid", None)
    validation = None if file is None else _read_data(arguments, file, task)[1:]
    estimator = _make_estimator(arguments, task).fit(X, y, validation=validation)
    estimator.save_pretrained(arguments.out)
    _write_table(estimator.history_.reset_index(), arguments.format)
    note(arguments, f"saved the {type(estimator).__name__} to {arguments.out}")


def run_compare(arguments: argparse.Namespace) -> None:
    from ..model_selection import compare_losses

    task, X, y = _read_data(arguments, arguments.data, arguments.task)
    test = _read_data(arguments, arguments.test, task)[1:]
    names = ("losses", "seeds", "baseline", "tune_threshold", "n_jobs", "cache_dir")
    options = {**_given(arguments, *names), "verbose": not arguments.quiet}
    comparison = compare_losses(_make_estimator(arguments, task), X, y, *test, **options)
    if arguments.format == "markdown":
        print(comparison.to_markdown(), end="")
    else:
        _write_table(comparison.table().reset_index(), arguments.format)
        note(arguments, comparison.caption())


def run_score(arguments: argparse.Namespace) -> None:
    import pandas as pd
    from sklearn.metrics import classification_report

    from ..metrics import entity_classification_report, squad_report

    estimator, task = _load(arguments)
    _, X, y = _read_data(arguments, arguments.data, task)
    predicted, score = estimator.predict(X), estimator.score(X, y)
    if task == "questions":
        table = squad_report(y, predicted)
    else:
        report: Any = classification_report
        if getattr(estimator, "scheme_", None) is not None:
            report = entity_classification_report
        elif task == "tagging":
            y, predicted = ([tag for tags in rows for tag in tags] for rows in (y, predicted))
        table = pd.DataFrame(report(y, predicted, output_dict=True, zero_division=0)).T
    _write_table(table.rename_axis("rows").reset_index(), arguments.format)
    note(arguments, f"score of {_count(len(X), TASKS[task].row)}: {score:.4f}")


def run_predict(arguments: argparse.Namespace) -> None:
    import pandas as pd
    from tqdm import tqdm

    estimator, task = _load(arguments)
    options = _given(arguments, "threshold", "splitter")
    if hasattr(estimator, "predict_entities"):
        score = ["score"] if _finds_entities(estimator, options) else []
        columns = ["start", "end", "label", *score, "text"]
    elif options:
        raise ValueError(
            f"--{next(iter(options))} is an option of taggers; {arguments.model} holds a "
            f"{type(estimator).__name__}."
        )
    else:
        columns = ["answer"] if task == "questions" else ["label", "score"]
    # An option that is not allowed is an error before anything is read.
    _predict(estimator, task, options, [], 0)
    is_data = _is_data(arguments, task)
    unit = TASKS[task].row if is_data else "line"
    columns = [unit, *columns]
    blocks = _read_rows(arguments, task, is_data)
    _write_table(pd.DataFrame(columns=columns), arguments.format)
    n_rows = n_found = 0
    is_hidden = arguments.quiet or sys.stdout.isatty() or not sys.stderr.isatty()
    with tqdm(unit=unit, disable=is_hidden) as bar:
        for rows in blocks:
            predicted = _predict(estimator, task, options, rows, n_rows)
            found = [
                (number, *prediction)
                for number, predictions in enumerate(predicted, start=n_rows + 1)
                for prediction in predictions
            ]
            if found:
                table = pd.DataFrame(found, columns=columns)
                _write_table(table, arguments.format, has_header=False)
                sys.stdout.flush()
            n_rows, n_found = n_rows + len(rows), n_found + len(found)
            bar.update(len(rows))
    note(arguments, f"{_count(n_rows, unit)}, {_count(n_found, 'prediction')}")


def _is_data(arguments: argparse.Namespace, task: str) -> bool:
    """Whether the file to predict on holds labelled rows, not a row in every line."""
    from ..datasets import find_format

    file = getattr(arguments, "file", None)
    # A pipe is read once only, and a file that is missing has an error of its own.
    if file is None or arguments.lines or not Path(file).is_file():
        return False
    found = find_format(file, is_labeled=False)
    # Lines of two columns may be anything.
    return found in TASKS[task].formats or found not in (None, "labeled text")


def _read_rows(arguments: argparse.Namespace, task: str, is_data: bool) -> Iterable[list[Any]]:
    """Return the rows to predict on: lines as many at a time as are there."""
    from ..datasets import iterate_lines, open_bytes

    file: Any = getattr(arguments, "file", None)
    if is_data:
        _, X, _ = _read_data(arguments, file, task)
        return [list(zip(X["question"], X["context"])) if task == "questions" else X]
    if file is not None:
        return iterate_lines(open_bytes(file), file)
    if sys.stdin.isatty():
        note(arguments, "reading the terminal, a row a line; Ctrl-D ends it")
    return iterate_lines(sys.stdin.buffer, "standard input")


def _predict(
    estimator: "BaseEstimator", task: str, options: dict[str, Any], rows: Sequence[Any], n_done: int
) -> list[list[tuple[Any, ...]]]:
    """Return a list of predictions for each row: lines, of which so many are done, or data."""
    if not hasattr(estimator, "predict_entities"):
        return _predict_rows(estimator, task, rows, n_done)
    are_lines = bool(rows) and isinstance(rows[0], str)
    if _finds_entities(estimator, options):
        if are_lines:
            found = estimator.predict_entities(rows, **options)
        else:
            found = estimator.predict_spans(rows, options.get("threshold"))
        return [
            [(*entity, _part(row, entity.start, entity.end)) for entity in entities]
            for row, entities in zip(rows, found)
        ]
    places = [[(i, i + 1) for i in range(len(row))] for row in rows]
    if are_lines:
        from ..text import checked_split, find_splitter

        split = find_splitter("--splitter", options.get("splitter", estimator.splitter_))
        places = [checked_split(split, text, i) for i, text in enumerate(rows, start=n_done + 1)]
    words = [[_part(row, *place) for place in inside] for row, inside in zip(rows, places)]
    return [
        [(*place, tag, word) for place, tag, word in zip(*row)]
        for row in zip(places, estimator.predict(words), words)
    ]


def _finds_entities(tagger: Any, options: dict[str, Any]) -> bool:
    """Whether predictions are entities, not the tag of each word."""
    return tagger.scheme_ is not None or "threshold" in options


def _part(row: str | list[str], start: int, end: int) -> str:
    """Return a part of a text, or words of a sentence as a text."""
    return row[start:end] if isinstance(row, str) else " ".join(row[start:end])


def _predict_rows(
    estimator: "BaseEstimator", task: str, rows: Sequence[Any], n_done: int
) -> list[list[tuple[Any, ...]]]:
    """Return the labels with scores, or the answer, of each row; two texts have a TAB between."""
    if task in _TWO_TEXTS and rows and isinstance(rows[0], str):
        lines, rows = rows, [tuple(line.split("\t")) for line in rows]
        for number, (line, row) in enumerate(zip(lines, rows), start=n_done + 1):
            if len(row) != 2:
                got = f"{_count(len(row), 'column')} in {line!r}"
                expected = f"expected {_TWO_TEXTS[task]} with a TAB between"
                raise ValueError(f"line {number}: {expected}; got {got}.")
    if not rows:
        return []
    if task == "questions":
        return [[(answer,)] for answer in estimator.predict(rows)]
    labels, scores = estimator.predict_scored(rows)
    if labels.ndim == 1:
        labels = labels[:, None] == estimator.classes_
    classes = estimator.classes_.tolist()
    return [
        [(name, share) for name, is_its, share in zip(classes, *row) if is_its]
        for row in zip(labels.tolist(), scores.tolist())
    ]


def note(arguments: argparse.Namespace, text: str) -> None:
    """Say something on stderr."""
    if not arguments.quiet:
        print(f"skdice: {text}", file=sys.stderr)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those arguments that stand on the command line."""
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def _make_estimator(arguments: argparse.Namespace, task: str) -> Any:
    """Return the estimator of a task, with the parameters of the command line."""
    from .. import estimators

    common = _given(arguments, "model", "loss", "max_epochs", "lr", "random_state")
    verbose = {"verbose": 0} if arguments.quiet else {}
    estimator = getattr(estimators, TASKS[task].estimator)()
    return estimator.set_params(**verbose, **{**common, **dict(arguments.set)})


def _load(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Return a saved estimator and its task."""
    from ..estimators import load_pretrained

    estimator = load_pretrained(arguments.model, **_given(arguments, "device"))
    name = type(estimator).__name__
    return estimator, next(task for task, its in TASKS.items() if its.estimator == name)


def _read_data(arguments: argparse.Namespace, path: str, task: str | None) -> tuple[str, Any, Any]:
    """Return the task of a file, its rows and their labels, and say what was taken."""
    from .. import datasets

    if Path(path).is_fifo():
        raise ValueError(f"{path} is a pipe, which is read once only. Save it to a file first.")
    options = dict(arguments.read)
    found = datasets.find_format(path, encoding=options.get("encoding", "utf-8"))
    if task and not arguments.task and found not in (None, *TASKS[task].formats):
        is_predict = hasattr(arguments, "lines")  # That has no option for the task.
        way = (
            "--lines reads it line by line" if is_predict else "Pass --task to read it all the same"
        )
        raise ValueError(f"{path} looks like {found}, which is not for --task {task}. {way}.")
    guessed = "" if task else " (guessed)"
    task = task or next((name for name, its in TASKS.items() if found in its.formats), None)
    if task is None:
        raise ValueError(
            f"{path}: cannot tell what the file holds. Say it with --task {', '.join(TASKS)}. "
            f"Expected {DATA}."
        )
    formats = TASKS[task].formats
    name = found if found in formats else formats[0]
    reader = getattr(datasets, f"read_{name.replace(' ', '_')}")
    try:
        X, y = reader(path, **options)
    except TypeError as error:  # An option that the reader does not have.
        raise ValueError(f"--read: {error}") from error
    rows = _count(len(X), TASKS[task].row)
    note(arguments, f"{path}: {rows} for --task {task}{guessed}, read by {reader.__name__}")
    return task, X, y


def _write_table(table: Any, form: str, has_header: bool = True) -> None:
    """Write a DataFrame to stdout; numbers of TSV have 6 digits, of JSON 15 decimals."""
    if form == "json" and len(table):
        options = {"orient": "records", "lines": True, "double_precision": 15}
        table.to_json(sys.stdout, **options, force_ascii=False)
    elif form == "tsv":
        options = {"sep": "\t", "float_format": "%.6g", "lineterminator": "\n"}
        table.to_csv(sys.stdout, **options, index=False, header=has_header)
