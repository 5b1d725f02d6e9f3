"""The whole command: its arguments, what it runs, and how it ends."""

import argparse
import ast
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .._version import __version__
from ._commands import DATA, TASKS, run_compare, run_fit, run_predict, run_report, run_score

_SIGPIPE_STATUS, _SIGINT_STATUS = 141, 130
_MODEL, _DEVICE = "directory of an estimator, from skdice fit", "such as cpu or cuda:1"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, by default with the arguments of the process, and return its status.

    It is 2 if the input is not allowed, with the reason on stderr. What reading and checking raise
    (ValueError, OSError, ImportError) is about the input; any other error is a bug and keeps its
    traceback.
    """
    try:
        try:
            arguments = make_parser().parse_args(argv)
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
        lines = "\n  ".join([str(error), *getattr(error, "__notes__", ())])
        print(f"skdice: error: {lines}", file=sys.stderr)
        return 2
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skdice",
        description="Imbalanced text from the shell: count, train, compare losses, score, predict.",
        epilog="Each command has help with an example: skdice fit --help",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"skdice {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def start(
        run: Callable[[argparse.Namespace], None], summary: str, example: str, *formats: str
    ) -> Callable[..., Any]:
        """Begin a command, named as the function that runs it; return what adds its arguments."""
        command = commands.add_parser(
            run.__name__.removeprefix("run_"),
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            # What is not given is not passed on: the defaults are those of Python.
            argument_default=argparse.SUPPRESS,
        )
        command.set_defaults(run=run, quiet=False, task=None, read=[])
        add: Callable[..., Any] = command.add_argument
        add("-q", "--quiet", action="store_true", help="neither progress nor notes")
        text = f"of the result; json is one object a line (default: {formats[0]})"
        add("--format", choices=formats, default=formats[0], help=text)
        return add

    def add_task(add: Callable[..., Any]) -> None:
        add("--task", choices=tuple(TASKS), help="by default what the file looks like")
        text = "an option of the reader, such as encoding=latin-1, columns=(0,3) or tag=xpos"
        add("--read", metavar="NAME=VALUE", type=_assignment, action="append", help=text)

    def add_parameters(add: Callable[..., Any]) -> None:
        add("--model", help="hub id or directory of the base model")
        add("--epochs", metavar="N", dest="max_epochs", type=literal, help="passes over the rows")
        add("--lr", type=literal, help="learning rate")
        text = "any parameter of the estimator, such as batch_size=32; may be repeated"
        options: dict[str, Any] = {"type": _assignment, "action": "append", "default": []}
        add("--set", metavar="NAME=VALUE", help=text, **options)

    summary = "count negatives and positives by class"
    add = start(run_report, summary, "skdice report train.conll", "tsv", "json")
    add("data", metavar="DATA", help=DATA)
    add_task(add)

    summary = "train an estimator and save it"
    add = start(run_fit, summary, "skdice fit train.conll --out tagger", "tsv", "json")
    add("data", metavar="DATA", help=DATA)
    add("--out", metavar="DIR", required=True, help="directory to save to")
    add("--valid", metavar="FILE", help="the same to score after every epoch")
    add("--loss", help="name of the loss, such as ce, dice or auto")
    add("--seed", metavar="N", dest="random_state", type=literal, help="repeatable fit")
    add_task(add)
    add_parameters(add)

    summary = "fit with several losses and seeds, and score each on test rows"
    example = (
        "skdice compare train.conll test.conll --losses ce dice dsc --seeds 0 1 2 \\\n"
        "    --format markdown"
    )
    add = start(run_compare, summary, example, "tsv", "json", "markdown")
    add("data", metavar="TRAIN", help=DATA)
    add("test", metavar="TEST", help="the same to score on")
    add("--losses", metavar="LOSS", nargs="+", help="as --loss of fit takes them")
    add("--seeds", metavar="N", nargs="+", type=literal, help="of the fits of each loss")
    add("--baseline", metavar="LOSS", help="the loss that the others are compared with")
    add("--tune-threshold", action="store_true", help="also score with a tuned decision")
    add("--jobs", metavar="N", dest="n_jobs", type=literal, help="processes")
    add("--cache", metavar="DIR", dest="cache_dir", help="directory that keeps finished runs")
    add_task(add)
    add_parameters(add)

    summary = "score a saved estimator on labelled rows, class by class"
    add = start(run_score, summary, "skdice score tagger test.conll", "tsv", "json")
    add("model", metavar="MODEL", help=_MODEL)
    add("data", metavar="DATA", help=DATA)
    add("--device", help=_DEVICE)
    add_task(add)

    summary = "predict on the rows of a file, or of standard input"
    example = 'echo "John lives in Oslo." | skdice predict tagger'
    add = start(run_predict, summary, example, "tsv", "json")
    add("model", metavar="MODEL", help=_MODEL)
    text = "a row a line, two texts with a TAB between (default: standard input), or labelled rows"
    add("file", metavar="FILE", nargs="?", help=f"{text} as fit reads them")
    add("--lines", action="store_true", default=False, help="read any file line by line")
    text = "how a tagger splits texts into words (default: as the training sentences were)"
    add("--splitter", choices=("words", "whitespace", "characters"), help=text)
    add("--threshold", type=literal, help="leave out entities with a lower score, such as 0.9")
    add("--device", help=_DEVICE)
    return parser


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
