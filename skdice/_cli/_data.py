"""Files to rows and labels, and tables to stdout."""

import argparse
import inspect
import sys
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
_READERS = {
    "conll": "read_conll",
    "conllu": "read_conllu",
    "pairs": "read_pairs",
    "labeled text": "read_labeled_text",
    "squad": "read_squad",
}
DATA = "CoNLL columns, CoNLL-U, pairs or labelled texts in TSV, or SQuAD JSON; plain, .gz or .xz"


def read_data(arguments: argparse.Namespace, path: str) -> tuple[str, Any, Any]:
    """Return the task of a file, its rows and their labels, and say what was taken."""
    from .. import datasets
    from ..datasets._formats import find_format

    options = dict(arguments.read)
    found = find_format(path, encoding=options.get("encoding", "utf-8"))
    task = arguments.task
    if task is None:
        task = next((name for name, task in TASKS.items() if found in task.formats), None)
        if task is None:
            raise ValueError(
                f"{path}: cannot tell what the file holds. Say it with --task "
                f"{', '.join(TASKS)}. Expected {DATA}."
            )
    formats = TASKS[task].formats
    reader = getattr(datasets, _READERS[found if found in formats else formats[0]])
    known = list(inspect.signature(reader).parameters)[1:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(
            f"--read {unknown[0]}=...: {reader.__name__} has no such option; it has "
            f"{', '.join(known) or 'none'}."
        )
    X, y = reader(path, **options)
    rows = TASKS[task].rows.removesuffix("s" if len(X) == 1 else "")
    rows = f"{len(X):,} {rows} for --task {task}"
    guessed = "" if arguments.task else " (guessed)"
    note(arguments, f"{path}: {rows}{guessed}, read by {reader.__name__}")
    return task, X, y


def note(arguments: argparse.Namespace, text: str) -> None:
    """Say something on stderr."""
    if not arguments.quiet:
        print(f"skdice: {text}", file=sys.stderr)


def write_table(table: Any, form: str) -> None:
    """Write a DataFrame to stdout; numbers of TSV have 6 digits, of JSON 15 decimals."""
    if form == "json":
        table.to_json(
            sys.stdout, orient="records", lines=True, force_ascii=False, double_precision=15
        )
    elif form == "tsv":
        table.to_csv(sys.stdout, sep="\t", index=False, float_format="%.6g", lineterminator="\n")
    else:
        print(table.to_markdown(index=False, floatfmt=".2f", intfmt=","))
