"""Arguments that commands share, and the estimator that they describe."""

import argparse
import ast
from collections.abc import Callable
from typing import Any

from ._data import TASKS


def add_command(
    commands: Any, run: Callable[[argparse.Namespace], None], summary: str, example: str
) -> argparse.ArgumentParser:
    """Return the parser of a command, named as the function that runs it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        run.__name__.removeprefix("_run_"),
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        # What is not given is not passed on: the defaults are those of Python.
        argument_default=argparse.SUPPRESS,
    )
    parser.set_defaults(run=run, quiet=False)
    parser.add_argument("-q", "--quiet", action="store_true", help="neither progress nor notes")
    return parser


def add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Add the format of the result, the first one by default."""
    parser.add_argument(
        "--format",
        choices=formats,
        default=formats[0],
        help=f"of the result; json is one object a line (default: {formats[0]})",
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add what says how files are read."""
    parser.add_argument(
        "--task", choices=tuple(TASKS), default=None, help="by default what the file looks like"
    )
    parser.add_argument(
        "--read",
        metavar="NAME=VALUE",
        type=_assignment,
        action="append",
        default=[],
        help="an option of the reader, such as encoding=latin-1, columns=(0,3) or tag=xpos",
    )


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Add the parameters of the estimator."""
    parser.add_argument("--model", help="hub id or directory of the base model")
    parser.add_argument(
        "--epochs", metavar="N", dest="max_epochs", type=literal, help="passes over the rows"
    )
    parser.add_argument("--lr", type=literal, help="learning rate")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=_assignment,
        action="append",
        default=[],
        help="any parameter of the estimator, such as batch_size=32; may be repeated",
    )


def literal(text: str) -> Any:
    """Return the Python literal that a text is, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as lr=2e-4; got {text!r}")
    return name, literal(value)


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those arguments that stand on the command line."""
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def make_estimator(arguments: argparse.Namespace, task: str) -> Any:
    """Return the estimator of a task, with the parameters of the command line."""
    from .. import estimators

    common = given(arguments, "model", "loss", "max_epochs", "lr", "random_state")
    verbose = {"verbose": 0} if arguments.quiet else {}
    estimator = getattr(estimators, TASKS[task].estimator)()
    try:
        return estimator.set_params(**verbose, **{**common, **dict(arguments.set)})
    except ValueError as error:
        raise ValueError(f"--set: {error}") from None
