"""The whole command: its arguments, what it runs, and how it ends."""

import argparse
import linecache
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .._version import __version__
from ._commands import add_compare, add_fit, add_report
from ._tag import add_tag

_SIGPIPE_STATUS, _SIGINT_STATUS = 141, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    status : int
        0, or 2 if the input is not allowed: the reason is on stderr.

    Raises
    ------
    SystemExit
        If the arguments cannot be parsed, or ask for help or the version.
    """
    arguments = _make_parser().parse_args(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            arguments.run(arguments)
            sys.stdout.flush()
        except BrokenPipeError:  # The reader of our output has seen enough, as head has.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _SIGPIPE_STATUS
        except KeyboardInterrupt:
            print("skdice: interrupted", file=sys.stderr)
            return _SIGINT_STATUS
        except (OSError, TypeError, ValueError) as error:
            if not _is_about_input(error):
                raise
            lines = "\n  ".join([str(error), *getattr(error, "__notes__", ())])
            print(f"skdice: error: {lines}", file=sys.stderr)
            return 2
    return 0


def _is_about_input(error: BaseException) -> bool:
    """Whether the system refused a file, or a raise statement of this package made the error."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or isinstance(error, OSError):
        return True
    statement = linecache.getline(place.tb_frame.f_code.co_filename, place.tb_lineno).strip()
    name = place.tb_frame.f_globals.get("__name__", "")
    return statement.startswith("raise ") and name.startswith("skdice.")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"skdice: warning: {message}", file=sys.stderr)


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skdice",
        description="Imbalanced text from the shell: count it, train on it, compare losses, tag.",
        epilog="Each command has help with an example: skdice fit --help",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"skdice {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_report(commands)
    add_fit(commands)
    add_compare(commands)
    add_tag(commands)
    return parser
