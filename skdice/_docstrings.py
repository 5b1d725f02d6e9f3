"""Docstrings that share text."""

import inspect
import textwrap


def fill_docstring(cls: type, **texts: str) -> None:
    """Put texts in place of the lines ``%(name)s`` in the docstring of a class.

    Docstring and texts lose their common indentation, as from Python 3.13 on all docstrings do.
    """
    if not cls.__doc__:  # None under python -OO.
        return
    doc = inspect.cleandoc(cls.__doc__) + "\n"
    for name, text in texts.items():
        doc = doc.replace(f"%({name})s\n", textwrap.dedent(text))
    cls.__doc__ = doc
