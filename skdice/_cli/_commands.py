"""The commands report, fit, compare, score and predict."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from itertools import islice
from typing import Any, TypeAlias

# For each line its predictions: the values of their columns.
Rows: TypeAlias = list[list[tuple[Any, ...]]]
# The estimator of each task, and the reader of its files.
TASKS = {
    "tagging": ("DiceTokenTagger", "read_conll"),
    "query-tagging": ("DiceQueryTagger", "read_conll"),
    "pairs": ("DicePairClassifier", "read_pairs"),
    "texts": ("DiceTextClassifier", "read_labeled_text"),
    "questions": ("DiceSpanExtractor", "read_squad"),
}
# Readers of raw texts with spans, which become the words of taggers.
OF_SPANS = {".json": "read_label_studio", ".jsonl": "read_doccano"}
# Files with other suffixes need --task.
_TASK_OF_SUFFIX = {
    **dict.fromkeys((".conll", ".conllu", ".bio", ".iob", ".jsonl"), "tagging"),
    ".json": "questions",
}
_BLOCK = 1000  # lines that are predicted at a time
_UNDECODED = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, as Python escapes them


def run_report(arguments: argparse.Namespace) -> None:
    """Count negatives and positives by class."""
    from ..inspection import imbalance_report

    X, y = read_data(arguments, arguments.data, _choose_task(arguments))
    _write_table(imbalance_report(y, X).reset_index())


def run_fit(arguments: argparse.Namespace) -> None:
    """Train an estimator and save it."""
    from ..io import check_place

    check_place(arguments.out)  # Before hours of training.
    task = _choose_task(arguments)
    validation = given(arguments, "valid").values()
    (X, y), *others = _read_alike(arguments, task, arguments.data, *validation)
    estimator = make_estimator(arguments, task)
    estimator.fit(X, y, validation=others[0] if others else None)
    estimator.save_pretrained(arguments.out)
    _write_table(estimator.history_.reset_index())
    note(f"saved the {type(estimator).__name__} to {arguments.out}")


def run_compare(arguments: argparse.Namespace) -> None:
    """Fit with several losses and seeds, and score each on test rows."""
    from ..model_selection import compare_losses

    task = _choose_task(arguments)
    train, test = _read_alike(arguments, task, arguments.data, arguments.test)
    options = given(arguments, "losses", "seeds", "baseline", "tune_threshold", "cache_dir")
    comparison = compare_losses(make_estimator(arguments, task), *train, *test, **options)
    _write_table(comparison.table().reset_index())
    note(comparison.caption())


def run_score(arguments: argparse.Namespace) -> None:
    """Score a saved estimator on labelled rows, class by class."""
    import pandas as pd
    from sklearn.metrics import classification_report

    from .._inputs import list_some
    from ..datasets import suffix_of
    from ..metrics import entity_classification_report, squad_report

    estimator, task = load(arguments)
    splitter = getattr(estimator, "splitter_", None)
    X, y = read_data(arguments, arguments.data, task, splitter)
    known = estimator.classes_.tolist() if task == "tagging" else []
    tags = [tag for row in y for tag in row] if known else []
    if tags and not {*known} & {*tags}:
        what = "a file of words and tags is expected. The model knows none of its tags, such as"
        raise ValueError(f"{arguments.data}: {what} {tags[0]!r}, but {list_some(known)}.")
    if task in ("pairs", "texts"):  # The file alone does not say whether 0 is a number.
        known = {str(label): label for label in estimator.classes_.tolist()}
        y = [known.get(str(label), label) for label in y.tolist()]
    score = estimator.score(X, y)
    if task == "query-tagging" and suffix_of(arguments.data) in OF_SPANS:
        y, predicted = _as_tags(y, estimator.predict_spans(X))
    else:
        predicted = estimator.predict(X)
    if task == "questions":
        table = squad_report(y, predicted)
    else:
        report: Any = classification_report
        if getattr(estimator, "scheme_", None) is not None:
            report = entity_classification_report
        elif task == "tagging":
            y, predicted = ([tag for tags in rows for tag in tags] for rows in (y, predicted))
        found = report(y, predicted, output_dict=True, zero_division=0)
        if isinstance(found.get("accuracy"), float):
            found["accuracy"] = {"accuracy": found["accuracy"], "support": len(y)}
        table = pd.DataFrame(found).T
    _write_table(table.rename_axis("rows").reset_index())
    note(f"score of {len(X):,} rows: {score:.4f}")


def _as_tags(*rows: Any) -> Any:
    """Return tags that count as spans do. These may be nested, so each is a word of its own."""
    parts = [[{span[:3] for span in row} for row in part] for part in rows]
    spans = [sorted(set().union(*both)) for both in zip(*parts)]
    return [
        [[f"B-{span[2]}" if span in found else "O" for span in row] for row, found in zip(spans, p)]
        for p in parts
    ]


def run_predict(arguments: argparse.Namespace) -> None:
    """Predict on the lines of a file, or of standard input."""
    import pandas as pd
    from tqdm import tqdm

    estimator, task = load(arguments)
    columns = ["line", "label", "score"]
    predict: Callable[[Any, Mapping[int, str]], Rows] = _classify
    if getattr(estimator, "scheme_", None) is not None:
        columns, predict = ["line", "start", "end", "label", "score", "text"], _find_entities
    elif task == "tagging":
        columns, predict = ["line", "start", "end", "label", "text"], _tag_words
    elif task == "questions":
        columns, predict = ["line", "answer"], _answer
    is_hidden = sys.stdout.isatty() or not sys.stderr.isatty()
    lines = enumerate(tqdm(_read_lines(arguments), unit=" lines", disable=is_hidden), start=1)
    _write_table(pd.DataFrame(columns=columns))
    n_lines = n_found = 0
    failed: dict[int, str] = {}

    def predict_each(lines: Mapping[int, str]) -> list[Any]:
        """Return the lines with their predictions; where some fail, each is tried by itself."""
        try:
            return list(zip(lines, predict(estimator, lines)))
        except ValueError as error:
            if len(lines) < 2:
                failed.update(dict.fromkeys(lines, str(error)))
                return []
        return [row for i in lines for row in predict_each({i: lines[i]})]

    while block := dict(islice(lines, _BLOCK)):
        failed |= {i: "it is no UTF-8." for i in block if _UNDECODED.search(block[i])}
        read = {i: line for i, line in block.items() if i not in failed}
        found = [(number, *row) for number, rows in predict_each(read) for row in rows]
        _write_table(pd.DataFrame(found, columns=columns), has_header=False)
        sys.stdout.flush()
        n_lines, n_found = n_lines + len(block), n_found + len(found)
    note(f"lines: {n_lines:,}, predictions: {n_found:,}")
    if failed:
        shown = ", ".join(map(str, sorted(failed)[:10])) + (", ..." if len(failed) > 10 else "")
        what = f"line {shown}: no predictions; all other lines have theirs"
        raise ValueError(f"{what}. The reason of the first one: {failed[min(failed)]}")


def _read_lines(arguments: argparse.Namespace) -> Iterable[str]:
    from ..datasets import read_lines, suffix_of

    file = getattr(arguments, "file", None)
    if file is None:
        stdin: Any = sys.stdin
        if stdin is None:
            raise ValueError("standard input is closed. Pass a FILE, or a text by a pipe.")
        stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
        return (line.removesuffix("\n") for line in stdin)
    if suffix_of(file) in _TASK_OF_SUFFIX:
        what = f"predict reads a row in every line, and a {suffix_of(file)} file has labelled rows"
        raise ValueError(f"{file}: {what}. skdice score reads it.")
    return read_lines(file, errors="surrogateescape")


def _find_entities(tagger: Any, lines: Mapping[int, str]) -> Rows:
    texts = list(lines.values())
    return [
        [(*entity, text[entity.start : entity.end]) for entity in entities]
        for text, entities in zip(texts, tagger.predict_entities(texts))
    ]


def _tag_words(tagger: Any, lines: Mapping[int, str]) -> Rows:
    from ..text import checked_split, find_splitter

    split = find_splitter("skdice predict", tagger.splitter_)
    places = [checked_split(split, text, i) for i, text in lines.items()]
    words = [[text[a:b] for a, b in inside] for text, inside in zip(lines.values(), places)]
    return [
        [(*place, tag, word) for place, tag, word in zip(*row)]
        for row in zip(places, tagger.predict(words), words)
    ]


def _answer(extractor: Any, lines: Mapping[int, str]) -> Rows:
    return [[(answer,)] for answer in extractor.predict(split_lines(lines))]


def _classify(classifier: Any, lines: Mapping[int, str]) -> Rows:
    is_pairs = classifier.internals.task.info.name == "pairs"
    X = split_lines(lines) if is_pairs else list(lines.values())
    labels, scores = classifier.internals.predict_scored(X)
    if labels.ndim == 1:
        labels = labels[:, None] == classifier.classes_
    classes = classifier.classes_.tolist()
    return [
        [(name, share) for name, is_its, share in zip(classes, *row) if is_its]
        for row in zip(labels.tolist(), scores.tolist())
    ]


def split_lines(lines: Mapping[int, str]) -> list[tuple[str, ...]]:
    """Return two texts of each line."""
    rows = [tuple(line.split("\t")) for line in lines.values()]
    for (number, line), row in zip(lines.items(), rows):
        if len(row) != 2:
            expected = "two texts with one TAB between are expected"
            raise ValueError(f"line {number}: {expected}; got {len(row) - 1} in {line!r}.")
    return rows


def note(text: str) -> None:
    print(f"skdice: {text}", file=sys.stderr)


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those arguments that stand on the command line."""
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def make_estimator(arguments: argparse.Namespace, task: str) -> Any:
    """Return the estimator of a task, with the parameters of the command line."""
    from .. import estimators

    chosen = given(arguments, "model", "loss", "max_epochs", "random_state", "device")
    return getattr(estimators, TASKS[task][0])().set_params(**{**chosen, **dict(arguments.set)})


def load(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Return a saved estimator and its task."""
    from ..estimators import load_pretrained

    estimator = load_pretrained(arguments.saved, **given(arguments, "device"))
    return estimator, estimator.internals.task.info.name


def _choose_task(arguments: argparse.Namespace) -> str:
    from ..datasets import suffix_of

    task = getattr(arguments, "task", None) or _TASK_OF_SUFFIX.get(suffix_of(arguments.data))
    if task is None:
        known, names = ", ".join(_TASK_OF_SUFFIX), ", ".join(TASKS)
        what = f"only the suffixes {known} tell the task"
        raise ValueError(f"{arguments.data}: {what}. Pass --task, one of {names}.")
    return task


def read_data(
    arguments: argparse.Namespace, path: str, task: str, splitter: Any = None
) -> tuple[Any, Any]:
    """Return the rows of a file and their labels, and say how it was read.

    ``splitter`` makes words of raw texts, unless --read has another one.
    """
    from .. import datasets

    suffix, name = datasets.suffix_of(path), TASKS[task][1]
    if task in ("tagging", "query-tagging"):
        name = {**OF_SPANS, ".conllu": "read_conllu"}.get(suffix, name)
    reader, options = getattr(datasets, name), dict(arguments.read)
    has_spans = name in OF_SPANS.values()
    splitter = options.pop("splitter", splitter) if has_spans else None
    try:
        X, y = reader(path, **options)
    except TypeError as error:  # An option that the reader does not have.
        _, *known = signature(reader).parameters
        takes = ", ".join([*known, "splitter"] if has_spans else known) or "no options"
        raise ValueError(f"--read: {error}; {name} takes {takes}.") from error
    if has_spans:
        nested = task == "query-tagging" and arguments.run not in (run_report, run_compare)
        X, y = datasets.words_from_spans(X, y, scheme=None if nested else "IOB2", splitter=splitter)
    note(f"{path}: {len(X):,} rows for --task {task}, read by {name}")
    return X, y


def _read_alike(arguments: argparse.Namespace, task: str, *paths: str) -> list[tuple[Any, Any]]:
    """Return rows and labels of files; the labels are numbers if they are integers in all files."""
    rows = [read_data(arguments, path, task) for path in paths]
    if len({str(getattr(y, "dtype", "")) for _, y in rows}) == 1:
        return rows
    return [(X, list(map(str, y.tolist()))) for X, y in rows]


def _write_table(table: Any, has_header: bool = True) -> None:
    """Write a DataFrame to stdout, with 6 digits of each number."""
    options = {"sep": "\t", "float_format": "%.6g", "lineterminator": "\n", "index": False}
    table.to_csv(sys.stdout, **options, header=has_header)
