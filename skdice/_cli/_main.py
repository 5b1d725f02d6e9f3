"""The whole command: its arguments, what it runs, and how it ends."""

import argparse
import ast
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .._version import __version__
from ._commands import DATA, TASKS, run_compare, run_fit, run_predict, run_report

_SIGPIPE_STATUS, _SIGINT_STATUS = 141, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, by default with the arguments of the process, and return its status.

    It is 2 if the input is not allowed, with the reason on stderr. What reading and checking raise
    (ValueError, OSError, ImportError) is about the input, unless ``--traceback`` is given; any
    other error is a bug and keeps its traceback.
    """
    is_closed = sys.stdout is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # Closed, as by >&- in a shell.
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    has_traceback = False
    try:
        try:
            arguments = make_parser().parse_args(argv)
            has_traceback = arguments.traceback
            if is_closed:
                raise OSError(
                    "Standard output is closed, so the result would be lost. Send it to a file, or "
                    "to /dev/null."
                )
            if hasattr(sys.stdout, "reconfigure"):
                sys.stdout.reconfigure(encoding="utf-8", newline="\n")
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_: print(
                    f"skdice: warning: {message}", file=sys.stderr
                )
                arguments.run(arguments)
        finally:
            sys.stdout.flush()  # Also of the help.
    except BrokenPipeError:  # The reader of our output has seen enough, as head has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE_STATUS
    except KeyboardInterrupt:
        print("skdice: interrupted", file=sys.stderr)
        return _SIGINT_STATUS
    except (OSError, ValueError, ImportError) as error:
        if has_traceback:
            raise
        lines = "\n  ".join([str(error), *getattr(error, "__notes__", ())])
        print(f"skdice: error: {lines}", file=sys.stderr)
        return 2
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skdice",
        description="Imbalanced text from the shell: count, train, compare losses, predict.",
        epilog="Each command has help with an example: skdice fit --help",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"skdice {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    example = "skdice report train.conll"
    report = _add(commands, run_report, "count negatives and positives by class", example)
    report.add_argument("data", metavar="DATA", help=DATA)
    _add_data(report)
    _add_format(report, "tsv", "json", "markdown")

    example = "skdice fit train.conll --out tagger"
    fit = _add(commands, run_fit, "train an estimator and save it", example)
    fit.add_argument("data", metavar="DATA", help=DATA)
    fit.add_argument("--out", metavar="DIR", type=_path, required=True, help="directory to save to")
    fit.add_argument("--valid", metavar="FILE", help="the same to score after every epoch")
    _add_data(fit)
    _add_parameters(fit)
    fit.add_argument("--loss", help="name of the loss, such as ce, dice or auto")
    fit.add_argument(
        "--seed", metavar="N", dest="random_state", type=literal, help="repeatable fit"
    )
    _add_format(fit, "tsv", "json")

    example = (
        "skdice compare train.conll test.conll --losses ce dice dsc --seeds 0 1 2 \\\n"
        "    --format markdown"
    )
    summary = "fit with several losses and seeds, and score each on test rows"
    compare = _add(commands, run_compare, summary, example)
    add = compare.add_argument
    add("data", metavar="TRAIN", help=DATA)
    add("test", metavar="TEST", help="the same to score on")
    _add_data(compare)
    _add_parameters(compare)
    add("--losses", metavar="LOSS", nargs="+", help="as --loss of fit takes them")
    add("--seeds", metavar="N", nargs="+", type=literal, help="of the fits of each loss")
    add("--baseline", metavar="LOSS", help="the loss that the others are compared with")
    add("--tune-threshold", action="store_true", help="also score with a tuned decision")
    add("--jobs", metavar="N", dest="n_jobs", type=literal, help="processes")
    cache_help = "directory that keeps finished runs"
    add("--cache", metavar="DIR", dest="cache_dir", type=_path, help=cache_help)
    _add_format(compare, "tsv", "json", "markdown")

    example = 'echo "John lives in Oslo." | skdice predict tagger'
    predict = _add(commands, run_predict, "predict on the lines of a file", example, "tag")
    add = predict.add_argument
    add("model", metavar="MODEL", type=_path, help="directory of an estimator, from skdice fit")
    text = "a row a line, two texts with a TAB between (default: standard input)"
    add("file", metavar="FILE", nargs="?", help=text)
    text = "how a tagger splits texts into words (default: as the training sentences were)"
    add("--splitter", choices=("words", "whitespace", "characters"), help=text)
    text = "leave out entities with a lower score, such as 0.9"
    add("--threshold", type=literal, help=text)
    add("--device", help="such as cpu or cuda:1")
    _add_format(predict, "tsv", "json")
    return parser


def _add(
    commands: Any,
    run: Callable[[argparse.Namespace], None],
    summary: str,
    example: str,
    *aliases: str,
) -> argparse.ArgumentParser:
    """Return the parser of a command, named as the function that runs it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        run.__name__.removeprefix("run_"),
        aliases=aliases,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        # What is not given is not passed on: the defaults are those of Python.
        argument_default=argparse.SUPPRESS,
    )
    parser.set_defaults(run=run, quiet=False, traceback=False)
    parser.add_argument("-q", "--quiet", action="store_true", help="neither progress nor notes")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    return parser


def _add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    text = f"of the result; json is one object a line (default: {formats[0]})"
    parser.add_argument("--format", choices=formats, default=formats[0], help=text)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--task", choices=tuple(TASKS), default=None, help="by default what the file looks like"
    )
    text = "an option of the reader, such as encoding=latin-1, columns=(0,3) or tag=xpos"
    _add_assignments(parser, "--read", text)


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", help="hub id or directory of the base model")
    add("--epochs", metavar="N", dest="max_epochs", type=literal, help="passes over the rows")
    add("--lr", type=literal, help="learning rate")
    text = "any parameter of the estimator, such as batch_size=32; may be repeated"
    _add_assignments(parser, "--set", text)


def _add_assignments(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(
        name, metavar="NAME=VALUE", type=_assignment, action="append", default=[], help=text
    )


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("expected a path; got ''")
    return text


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as lr=2e-4; got {text!r}")
    return name, literal(value)


def literal(text: str) -> Any:
    """Return the Python literal that a text is, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
