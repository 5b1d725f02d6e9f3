"""The commands that read files: report, fit and compare."""

import argparse
from typing import Any

from ._arguments import (
    add_command,
    add_data,
    add_format,
    add_parameters,
    given,
    literal,
    make_estimator,
)
from ._data import DATA, note, read_data, write_table


def add_report(commands: Any) -> None:
    example = "skdice report train.conll"
    parser = add_command(commands, _run_report, "count negatives and positives by class", example)
    parser.add_argument("data", metavar="DATA", help=DATA)
    add_data(parser)
    add_format(parser, "tsv", "json", "markdown")


def _run_report(arguments: argparse.Namespace) -> None:
    from ..inspection import imbalance_report

    _, X, y = read_data(arguments, arguments.data)
    write_table(imbalance_report(y, X).reset_index(), arguments.format)


def add_fit(commands: Any) -> None:
    example = "skdice fit train.conll --model bert-base-cased --loss recommended --out tagger"
    parser = add_command(commands, _run_fit, "train an estimator and save it", example)
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("--out", metavar="DIR", required=True, help="directory to save to")
    parser.add_argument("--valid", metavar="FILE", help="the same to score after every epoch")
    add_data(parser)
    add_parameters(parser)
    parser.add_argument("--loss", help="name of the loss, such as ce, dice or recommended")
    parser.add_argument(
        "--seed", metavar="N", dest="random_state", type=literal, help="makes it repeatable"
    )
    add_format(parser, "tsv", "json")


def _run_fit(arguments: argparse.Namespace) -> None:
    from ..io._save import check_place

    check_place(arguments.out)  # Before hours of training.
    task, X, y = read_data(arguments, arguments.data)
    validation = None
    if hasattr(arguments, "valid"):
        validation = _read_same(arguments, task, arguments.valid)
    estimator = make_estimator(arguments, task).fit(X, y, validation=validation)
    estimator.save_pretrained(arguments.out)
    write_table(estimator.history_.reset_index(), arguments.format)
    note(arguments, f"saved the {type(estimator).__name__} to {arguments.out}")


def _read_same(arguments: argparse.Namespace, task: str, path: str) -> tuple[Any, Any]:
    """Return the rows and labels of a second file, which must be for the same task."""
    other, X, y = read_data(arguments, path)
    if task != other:
        raise ValueError(
            f"{arguments.data} looks like {task} and {path} like {other}. Say what both are with "
            "--task."
        )
    return X, y


def add_compare(commands: Any) -> None:
    example = (
        "skdice compare train.conll test.conll --model bert-base-cased \\\n"
        "    --losses ce dice dsc --seeds 0 1 2 --format markdown"
    )
    summary = "fit with several losses and seeds, and score each on test rows"
    parser = add_command(commands, _run_compare, summary, example)
    parser.add_argument("data", metavar="TRAIN", help=DATA)
    parser.add_argument("test", metavar="TEST", help="the same to score on")
    add_data(parser)
    add_parameters(parser)
    parser.add_argument("--losses", metavar="LOSS", nargs="+", help="as --loss of fit takes them")
    parser.add_argument(
        "--seeds", metavar="N", nargs="+", type=literal, help="of the fits of each loss"
    )
    parser.add_argument(
        "--baseline", metavar="LOSS", help="the loss that the others are compared with"
    )
    parser.add_argument(
        "--tune-threshold", action="store_true", help="also score with a tuned decision"
    )
    parser.add_argument("--jobs", metavar="N", dest="n_jobs", type=literal, help="processes")
    parser.add_argument(
        "--cache", metavar="DIR", dest="cache_dir", help="directory that keeps finished runs"
    )
    add_format(parser, "tsv", "json", "markdown")


def _run_compare(arguments: argparse.Namespace) -> None:
    from ..model_selection import compare_losses

    task, X, y = read_data(arguments, arguments.data)
    X_test, y_test = _read_same(arguments, task, arguments.test)
    names = ("losses", "seeds", "baseline", "tune_threshold", "n_jobs", "cache_dir")
    comparison = compare_losses(
        make_estimator(arguments, task),
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
        write_table(comparison.table().reset_index(), arguments.format)
        note(arguments, comparison.caption())
