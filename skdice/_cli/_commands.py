"""The commands report, fit, compare and predict."""

import argparse
import csv
import inspect
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


class Task(NamedTuple):
    """What its rows are called, its estimator, and the formats of its files (if told, else)."""

    rows: str
    estimator: str
    formats: tuple[str, ...]


TASKS = {
    "tagging": Task("sentences", "DiceTokenTagger", ("conll", "conllu", "tagged json")),
    "query-tagging": Task("sentences", "DiceQueryTagger", ("conll", "conllu", "tagged json")),
    "pairs": Task("pairs", "DicePairClassifier", ("pairs",)),
    "texts": Task("texts", "DiceTextClassifier", ("labeled text", "labeled json")),
    "questions": Task("questions", "DiceSpanExtractor", ("squad",)),
}
# Of lines to predict, so that memory stays flat; what is there sooner is predicted sooner.
_BLOCK_BYTES = 1 << 16
DATA = (
    "CoNLL columns, CoNLL-U, pairs or labelled texts in TSV or CSV, SQuAD JSON, or JSON lines "
    'of {"tokens": [...], "tags": [...]} or {"text": ..., "label": ...}; plain, .gz or .xz'
)


def run_report(arguments: argparse.Namespace) -> None:
    from ..inspection import imbalance_report

    _, X, y = _read_data(arguments, arguments.data)
    _write_table(imbalance_report(y, X).reset_index(), arguments.format)


def run_fit(arguments: argparse.Namespace) -> None:
    from ..io import check_place

    check_place(arguments.out)  # Before hours of training.
    task, X, y = _read_data(arguments, arguments.data)
    validation = None
    if hasattr(arguments, "valid"):
        validation = _read_same(arguments, task, arguments.valid)
    estimator = _make_estimator(arguments, task).fit(X, y, validation=validation)
    estimator.save_pretrained(arguments.out)
    _write_table(estimator.history_.reset_index(), arguments.format)
    note(arguments, f"saved the {type(estimator).__name__} to {arguments.out}")


def run_compare(arguments: argparse.Namespace) -> None:
    from ..model_selection import compare_losses

    task, X, y = _read_data(arguments, arguments.data)
    X_test, y_test = _read_same(arguments, task, arguments.test)
    names = ("losses", "seeds", "baseline", "tune_threshold", "n_jobs", "cache_dir")
    comparison = compare_losses(
        _make_estimator(arguments, task),
        X,
        y,
        X_test,
        y_test,
        **given(arguments, *names),
        verbose=not arguments.quiet,
    )
    if arguments.format == "markdown":
        print(comparison.to_markdown(), end="")
    else:
        _write_table(comparison.table().reset_index(), arguments.format)
        note(arguments, comparison.caption())


def run_predict(arguments: argparse.Namespace) -> None:
    from tqdm import tqdm

    from ..estimators import load_pretrained

    estimator = load_pretrained(arguments.model, **given(arguments, "device"))
    columns, predict = _find_predictor(arguments, estimator)
    predict([])  # An option that is not allowed is an error before anything is read.
    table = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    if arguments.format == "tsv":
        table.writerow(("line", *columns))
    file = getattr(arguments, "file", None)
    if file is None and sys.stdin.isatty():
        note(arguments, "reading the terminal, a row a line; Ctrl-D ends it")
    number = n_found = 0
    is_hidden = arguments.quiet or sys.stdout.isatty() or not sys.stderr.isatty()
    with ExitStack() as stack:
        bar = stack.enter_context(tqdm(unit="line", disable=is_hidden))
        stream = sys.stdin.buffer if file is None else stack.enter_context(open(file, "rb"))
        for texts in read_texts(stream, file or "standard input"):
            for found in predict(texts, number):
                number += 1
                n_found += len(found)
                for values in found:
                    if arguments.format == "tsv":
                        cells = (f"{x:.4f}" if isinstance(x, float) else x for x in values)
                        table.writerow((number, *cells))
                    else:
                        row = {"line": number, **dict(zip(columns, values))}
                        print(json.dumps(row, ensure_ascii=False))
            sys.stdout.flush()
            bar.update(len(texts))
    note(arguments, f"{number:,} lines, {n_found:,} predictions")


def _find_predictor(
    arguments: argparse.Namespace, estimator: "BaseEstimator"
) -> tuple[tuple[str, ...], Callable[..., list[list[tuple[Any, ...]]]]]:
    """Return the columns of predictions, and what returns a list of them for each of some lines."""
    options = given(arguments, "threshold", "splitter")
    if hasattr(estimator, "predict_entities"):
        if estimator.scheme_ is None and "threshold" not in options:
            return ("start", "end", "label", "text"), partial(_tag_words, estimator, options)
        columns = ("start", "end", "label", "score", "text")
        return columns, partial(_find_entities, estimator, options)
    if options:
        raise ValueError(
            f"--{next(iter(options))} is an option of taggers; {arguments.model} holds a "
            f"{type(estimator).__name__}."
        )
    is_classifier = estimator.task.info.is_classifier
    return ("label", "score") if is_classifier else ("answer",), partial(_predict_rows, estimator)


def _find_entities(
    tagger: Any, options: dict[str, Any], texts: Sequence[str], n_before: int = 0
) -> list[list[tuple[Any, ...]]]:
    found = tagger.predict_entities(texts, **options)
    return [
        [(*entity, text[entity.start : entity.end]) for entity in entities]
        for text, entities in zip(texts, found)
    ]


def _tag_words(
    tagger: Any, options: dict[str, Any], texts: Sequence[str], n_before: int = 0
) -> list[list[tuple[Any, ...]]]:
    from ..text import checked_split, find_splitter

    split = find_splitter("--splitter", options.get("splitter", tagger.splitter_))
    spans = [checked_split(split, text, i) for i, text in enumerate(texts, start=n_before + 1)]
    words = [[text[a:b] for a, b in row] for text, row in zip(texts, spans)]
    return [
        [(*span, tag, word) for span, tag, word in zip(*row)]
        for row in zip(spans, tagger.predict(words), words)
    ]


def _predict_rows(
    estimator: "BaseEstimator", texts: Sequence[str], n_before: int = 0
) -> list[list[tuple[Any, ...]]]:
    """Return the label and score, or the answer, of each line; two texts have a TAB between."""
    rows: list[Any] = list(texts)
    columns = estimator.task.info.columns
    if len(columns) == 2:
        rows = [tuple(text.split("\t")) for text in texts]
        for number, row in enumerate(rows, start=n_before + 1):
            if len(row) != 2:
                expected = " and ".join(columns)
                raise ValueError(
                    f"line {number}: expected {expected} with a TAB between; got {len(row)} "
                    f"column{'s' * (len(row) != 1)} in {texts[number - n_before - 1]!r}."
                )
    if not rows:
        return []
    if not estimator.task.info.is_classifier:
        return [[(answer,)] for answer in estimator.predict(rows)]
    labels, scores = estimator.predict_scored(rows)
    classes = estimator.classes_.tolist()
    if labels.ndim == 1:
        labels = labels[:, None] == estimator.classes_
    return [
        [(name, share) for name, is_its, share in zip(classes, of_row, shares) if is_its]
        for of_row, shares in zip(labels.tolist(), scores.tolist())
    ]


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those arguments that stand on the command line."""
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def note(arguments: argparse.Namespace, text: str) -> None:
    """Say something on stderr."""
    if not arguments.quiet:
        print(f"skdice: {text}", file=sys.stderr)


def _make_estimator(arguments: argparse.Namespace, task: str) -> Any:
    """Return the estimator of a task, with the parameters of the command line."""
    from .. import estimators

    common = given(arguments, "model", "loss", "max_epochs", "lr", "random_state")
    verbose = {"verbose": 0} if arguments.quiet else {}
    estimator = getattr(estimators, TASKS[task].estimator)()
    try:
        return estimator.set_params(**verbose, **{**common, **dict(arguments.set)})
    except ValueError as error:
        raise ValueError(f"--set: {error}") from None


def _read_data(arguments: argparse.Namespace, path: str) -> tuple[str, Any, Any]:
    """Return the task of a file, its rows and their labels, and say what was taken."""
    if not Path(path).is_fifo():
        return _read_file(arguments, path, path)
    # A pipe can be read once only, and what it holds is seen by a first look.
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "piped"))
        with open(path, "rb") as pipe, open(file, "wb") as copy:
            shutil.copyfileobj(pipe, copy)
        try:
            return _read_file(arguments, path, file)
        except ValueError as error:
            raise ValueError(str(error).replace(file, path)) from error


def _read_file(arguments: argparse.Namespace, path: str, file: str) -> tuple[str, Any, Any]:
    """Return the same of a file that can be read twice; ``path`` is what it is called."""
    from .. import datasets
    from ..datasets import find_format

    options = dict(arguments.read)
    found = find_format(file, encoding=options.get("encoding", "utf-8"))
    task = arguments.task
    if task is None:
        task = next((name for name, task in TASKS.items() if found in task.formats), None)
        if task is None:
            raise ValueError(
                f"{path}: cannot tell what the file holds. Say it with --task "
                f"{', '.join(TASKS)}. Expected {DATA}."
            )
    formats = TASKS[task].formats
    name = found if found in formats else formats[0]
    reader = getattr(datasets, f"read_{name.replace(' ', '_')}")
    known = list(inspect.signature(reader).parameters)[1:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(
            f"--read {unknown[0]}=...: {reader.__name__} has no such option; it has "
            f"{', '.join(known) or 'none'}."
        )
    X, y = reader(file, **options)
    if name == "labeled text" and not options:
        _check_labels(path, file, y)
    rows = TASKS[task].rows.removesuffix("s" if len(X) == 1 else "")
    guessed = "" if arguments.task else " (guessed)"
    note(
        arguments,
        f"{path}: {len(X):,} {rows} for --task {task}{guessed}, read by {reader.__name__}",
    )
    return task, X, y


def _check_labels(path: str, file: str, labels: Sequence[str]) -> None:
    """Refuse texts without labels, of which each first word was read as the label."""
    from ..datasets import first_line, read_text, suffix_of

    names = sorted(set(labels))
    has_columns = suffix_of(file) == ".csv" or "\t" in first_line(read_text(file))
    if not has_columns and len(names) > max(2, min(len(labels) // 2, 100)):
        raise ValueError(
            f"{path}: the texts seem to have no labels. The first words of {len(labels):,} lines "
            f"are {len(names):,} different ones, such as {names[0]!r} and {names[1]!r}. Expected "
            "label, TAB and text in every line."
        )


def _read_same(arguments: argparse.Namespace, task: str, path: str) -> tuple[Any, Any]:
    """Return the rows and labels of a second file, which must be for the same task."""
    other, X, y = _read_data(arguments, path)
    if task != other:
        raise ValueError(
            f"{arguments.data} looks like {task} and {path} like {other}. Say what both are with "
            "--task."
        )
    return X, y


def _write_table(table: Any, form: str) -> None:
    """Write a DataFrame to stdout; numbers of TSV have 6 digits, of JSON 15 decimals."""
    if form == "json":
        table.to_json(
            sys.stdout, orient="records", lines=True, force_ascii=False, double_precision=15
        )
    elif form == "tsv":
        table.to_csv(sys.stdout, sep="\t", index=False, float_format="%.6g", lineterminator="\n")
    else:
        print(table.to_markdown(index=False, floatfmt=".2f", intfmt=","))


def read_texts(stream: Any, name: str = "standard input") -> Iterator[list[str]]:
    """Yield the lines of a stream of bytes, as many at a time as are there and fit a block.

    Lines end at a line feed only, with one carriage return before it.
    """
    n_before, rest = 0, b""
    while block := stream.read1(_BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        yield from _decode(lines, n_before, name)
        n_before += len(lines)
    if rest:
        yield from _decode([rest], n_before, name)


def _decode(lines: Sequence[bytes], n_before: int, name: str) -> Iterator[list[str]]:
    """Yield the texts of some lines; those before one that is not UTF-8, then the error."""
    texts: list[str] = []
    for number, line in enumerate(lines, start=n_before + 1):
        try:
            text = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            yield texts
            raise ValueError(
                f"{name}, line {number}: cannot decode the bytes "
                f"{line[error.start : error.end]!r} as 'utf-8' ({error.reason}). The lines before "
                "are predicted. Convert the text first, such as with iconv -f latin1 -t utf-8."
            ) from None
        texts.append(text.removeprefix("\ufeff") if number == 1 else text)
    yield texts
