"""The commands that read files: report, fit and compare."""

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Task(NamedTuple):
    """What its rows are called, its estimator, and the formats of its files (if told, else)."""

    rows: str
    estimator: str
    formats: tuple[str, ...]


TASKS = {
    "tagging": Task("sentences", "DiceTokenTagger", ("conll", "conllu")),
    "query-tagging": Task("sentences", "DiceQueryTagger", ("conll", "conllu")),
    "pairs": Task("pairs", "DicePairClassifier", ("pairs",)),
    "texts": Task("texts", "DiceTextClassifier", ("labeled text",)),
    "questions": Task("questions", "DiceSpanExtractor", ("squad",)),
}
DATA = "CoNLL columns, CoNLL-U, pairs or labelled texts in TSV, or SQuAD JSON; plain, .gz or .xz"


def run_report(arguments: argparse.Namespace) -> None:
    from ..inspection import imbalance_report

    _, X, y = _read_data(arguments, arguments.data)
    _write_table(imbalance_report(y, X).reset_index(), arguments.format)


def run_fit(arguments: argparse.Namespace) -> None:
    from ..io._save import check_place

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
    from .. import datasets
    from ..datasets._formats import find_format

    options = dict(arguments.read)
    # A pipe can be read once only.
    is_pipe = Path(path).is_fifo()
    found = None if is_pipe else find_format(path, encoding=options.get("encoding", "utf-8"))
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
    X, y = reader(path, **options)
    rows = TASKS[task].rows.removesuffix("s" if len(X) == 1 else "")
    guessed = "" if arguments.task else " (guessed)"
    note(
        arguments,
        f"{path}: {len(X):,} {rows} for --task {task}{guessed}, read by {reader.__name__}",
    )
    return task, X, y


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
