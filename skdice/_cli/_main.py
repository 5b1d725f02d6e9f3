"""The whole command: its arguments, what it runs, and how it ends."""

import argparse
import ast
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .._pretrained import OFFLINE
from .._version import __version__
from ._commands import TASKS, note, run_compare, run_fit, run_predict, run_report, run_score
from ._next import run_next

_SIGPIPE_STATUS, _SIGINT_STATUS = 141, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, by default with the arguments of the process, and return its status.

    It is 2 if the input is not allowed, with the reason on stderr. What reading and checking raise
    (ValueError, OSError, ImportError) is about the input; any other error is a bug and keeps its
    traceback.
    """
    if sys.stderr is None:  # It was closed. What is printed would go to stdout.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        note("error: standard output is closed; write it to a file")
        return 2
    try:
        try:
            arguments = make_parser().parse_args(argv)
            if hasattr(sys.stdout, "reconfigure"):
                sys.stdout.reconfigure(encoding="utf-8", newline="\n")
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_: note(f"warning: {message}")
                arguments.run(arguments)
        finally:
            sys.stdout.flush()  # Also of the help.
    except BrokenPipeError:  # The reader of our output has seen enough, as head has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE_STATUS
    except KeyboardInterrupt:
        note("interrupted")
        return _SIGINT_STATUS
    except (OSError, ValueError, ImportError) as error:
        lines = "\n  ".join([str(error).replace(*OFFLINE), *getattr(error, "__notes__", ())])
        note(f"error: {lines}")
        return 2
    return 0


def literal(text: str) -> Any:
    """Return the Python literal that a text is, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        expected = "expected NAME=VALUE, such as lr=2e-4, and files before the options"
        raise argparse.ArgumentTypeError(f"{expected}; got {text!r}")
    return name, literal(value)


def _directory(text: str) -> str:
    """Return the path of a directory to save to, which must have a name."""
    if not text or not os.path.basename(os.path.realpath(text)):
        raise argparse.ArgumentTypeError(f"expected a directory such as tagger; got {text!r}")
    return text


def _option(text: str, **how: Any) -> dict[str, Any]:
    return {"help": text, **how}


_SEVERAL: Any = {"metavar": "NAME=VALUE", "type": _assignment, "nargs": "+", "action": "extend"}
# All arguments. An argument has the name of the parameter of an estimator or of compare_losses that
# it sets. After a colon stands the command that has an argument of its own.
_ARGUMENTS = {
    "data": _option("CoNLL, CoNLL-U, pairs or labelled texts in TSV or CSV, or SQuAD JSON"),
    "test": _option("the same to score on"),
    "saved": _option("directory of an estimator, from skdice fit", metavar="MODEL"),
    "file": _option("a row in every line, a TAB between two texts (default: stdin)", nargs="?"),
    "--task": _option("needed unless the suffix of the file tells it", choices=tuple(TASKS)),
    "--read": _option("options of the reader, such as tag=xpos or splitter=characters", **_SEVERAL),
    "--out": _option("directory to save to", required=True, type=_directory),
    "--valid": _option("the same to score after every epoch"),
    "--model": _option("hub id or directory of the base model"),
    "--loss": _option("name of the loss, such as ce, dice or auto"),
    "--epochs": _option("passes over the rows", dest="max_epochs", type=literal),
    "--seed": _option("makes the fit repeatable", dest="random_state", type=literal),
    "--set": _option("parameters of the estimator, such as batch_size=32", **_SEVERAL),
    "--losses": _option("as --loss of fit takes them", nargs="+"),
    "--seeds": _option("of the fits of each loss", nargs="+", type=literal),
    "--baseline": _option("the loss that the others are compared with"),
    "--tune-threshold": _option("also score with a tuned decision", action="store_true"),
    "--cache": _option("directory that keeps finished runs", dest="cache_dir"),
    "--device": _option("such as cpu or cuda:1"),
    "saved:next": _option("estimator; without one, lines are spread", metavar="MODEL", nargs="?"),
    "pool": _option("a row in every line, as skdice predict reads it", metavar="POOL"),
    "-n": _option("how many lines (default: 50)", type=literal),
    "--out:next": _option(".json (Label Studio), .jsonl (doccano), .conll or .csv", required=True),
    "--labeled": _option("file of what has labels, as skdice fit reads it"),
    "--strategy": _option("as choose_rows takes it"),
    "--task:next": _option("of lines without a MODEL (default: tagging)", choices=tuple(TASKS)),
    "--seed:next": _option("which lines are drawn", dest="random_state", type=literal),
}
# For each command, by what runs it: an example, and its arguments.
_COMMANDS = {
    run_report: ("skdice report train.conll", "data --task --read"),
    run_fit: (
        "skdice fit train.conll --out tagger",
        "data --out --task --read --valid --model --loss --epochs --seed --set",
    ),
    run_compare: (
        "skdice compare train.conll test.conll --losses ce dice dsc --seeds 0 1 2",
        "data test --task --read --losses --seeds --baseline --tune-threshold --cache "
        "--model --epochs --set",
    ),
    run_score: ("skdice score tagger test.conll", "saved data --read --device"),
    run_predict: ('echo "John lives in Oslo." | skdice predict tagger', "saved file --device"),
    run_next: (
        "skdice next tagger pool.txt --out tasks.json",
        "saved:next pool -n --out:next --labeled --read --strategy --seed:next --task:next --model "
        "--set --device",
    ),
}


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skdice",
        description="Imbalanced text from the shell: from counts and fits to rows to label.",
        epilog="Each command has help with an example: skdice fit --help",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"skdice {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for run, (example, names) in _COMMANDS.items():
        command = commands.add_parser(
            run.__name__.removeprefix("run_"),
            help=run.__doc__,
            description=run.__doc__,
            epilog=f"example: {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            # What is not given is not passed on: the defaults are those of Python.
            argument_default=argparse.SUPPRESS,
        )
        command.set_defaults(run=run, read=[], set=[])
        for name in names.split():
            command.add_argument(name.partition(":")[0], **_ARGUMENTS[name])
    return parser
