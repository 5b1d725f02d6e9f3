"""Reader of questions about contexts, in the JSON of SQuAD and its kin."""

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._typing import SquadAnswer
from ._files import read_text, shorten
from ._json import make_kind_error

_COLUMNS = ["id", "title", "question", "context"]


def read_squad(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, npt.NDArray[np.object_]]:
    r"""Read questions, contexts and answers from a JSON file in the layout of SQuAD.

    SQuAD 1.1 and 2.0 have it, and so have Quoref, the squad-style files of CMRC and many others: an
    object with the list ``"data"`` of articles, each with ``"paragraphs"``, each with a
    ``"context"`` and its ``"qas"``.

    Nothing is altered, skipped or put in another order. In some published files an offset is wrong
    (the context has another text there, or the offset is -1) or an id occurs twice; both stay as
    they are.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``), in UTF-8.

    Returns
    -------
    X : DataFrame of shape (n_questions, 4)
        The columns ``id``, ``title``, ``question`` and ``context``, of dtype object. The id is a
        str, or an int where the file has one. The title is empty where the file has none.
    y : ndarray of shape (n_questions,) and dtype object
        The answers of each question as in the file, a dict
        ``{"text": [...], "answer_start": [...]}`` of two lists of the same length. Offsets count
        characters of the context. Both lists are empty if the question cannot be answered: if the
        file says ``"is_impossible": true`` or gives an empty list of answers.

    Raises
    ------
    FileNotFoundError
        If there is no file at `path`, or a directory.
    ValueError
        If the file is not JSON, is not in this layout or has no questions, or cannot be decoded or
        decompressed. The error names the file, and the line or the place, such as
        ``data[0]['paragraphs'][2]['qas'][1]``. A question that has no ``"answers"`` at all is an
        error, unless it is impossible to answer.

    See Also
    --------
    make_questions : Generator of questions.

    Examples
    --------
    >>> import json
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_squad
    >>> answer = {"text": "a clock", "answer_start": 10}
    >>> questions = [
    ...     {"id": "q1", "question": "What did Anna buy?", "answers": [answer]},
    ...     {"id": "q2", "question": "What did Anna sell?", "answers": [], "is_impossible": True},
    ... ]
    >>> paragraph = {"context": "Anna buys a clock.", "qas": questions}
    >>> content = {"data": [{"title": "Anna", "paragraphs": [paragraph]}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "dev.json"
    ...     _ = path.write_text(json.dumps(content), encoding="utf-8")
    ...     X, y = read_squad(path)
    >>> X[["id", "question"]]
       id             question
    0  q1   What did Anna buy?
    1  q2  What did Anna sell?
    >>> y[0]
    {'text': ['a clock'], 'answer_start': [10]}
    >>> y[1]
    {'text': [], 'answer_start': []}
    """
    rows = []
    answers = []
    for article in _Node(path, (), _parse(path)).iterate("data"):
        title = article.get("title", str, default="")
        for paragraph in article.iterate("paragraphs"):
            context = paragraph.get("context", str)
            for question in paragraph.iterate("qas"):
                text = question.get("question", str)
                rows.append((question.get("id", str, int), title, text, context))
                answers.append(_read_answers(question))
    if not rows:
        raise ValueError(f"{os.fspath(path)}: the file has no questions.")
    return make_question_table(rows, answers)


def make_question_table(
    rows: Sequence[tuple[str | int, str, str, str]], answers: Sequence[SquadAnswer]
) -> tuple[pd.DataFrame, npt.NDArray[np.object_]]:
    """Make X and y of (id, title, question, context) and the answers of each question."""
    # Questions about one context share its str, which a string dtype would copy.
    X = pd.DataFrame(rows, columns=_COLUMNS, dtype=object)
    y = np.empty(len(answers), dtype=object)
    y[:] = answers
    return X, y


def _parse(path: str | os.PathLike[str]) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        raise ValueError(
            f"{os.fspath(path)}, line {error.lineno}, column {error.colno}: the file is not JSON "
            f"({error.msg}). Got {shorten(line)}. One JSON object is expected in the whole file."
        ) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or brackets nested thousands of times.
        raise ValueError(f"{os.fspath(path)}: the JSON cannot be read ({error}).") from error


def _read_answers(question: "_Node") -> SquadAnswer:
    texts: list[str] = []
    starts: list[int] = []
    if not question.get("is_impossible", bool, default=False):
        for answer in question.iterate("answers"):
            texts.append(answer.get("text", str))
            starts.append(answer.get("answer_start", int))
    return {"text": texts, "answer_start": starts}


class _Node:
    """A value of the JSON file, which knows its place for errors."""

    def __init__(self, path: str | os.PathLike[str], place: tuple[str | int, ...], value: Any):
        self._path = path
        self._place = place
        self._value = value

    def get(self, key: str, *kinds: type, default: Any = None) -> Any:
        """Get a field, which must be there if it has no default."""
        if type(self._value) is not dict:
            raise self._make_error(self._place, self._value, dict)
        if key not in self._value:
            if default is not None:
                return default
            keys = ", ".join(map(repr, self._value)) or "none"
            raise ValueError(f"{self._name(self._place)}: {key!r} is missing. Got the keys {keys}.")
        value = self._value[key]
        # The types of JSON have no subtypes, and True is no integer.
        if type(value) not in kinds:
            raise self._make_error((*self._place, key), value, *kinds)
        return value

    def iterate(self, key: str) -> Iterator["_Node"]:
        """Iterate over a field that must be a list."""
        for i, value in enumerate(self.get(key, list)):
            yield _Node(self._path, (*self._place, key, i), value)

    def _make_error(self, place: tuple[str | int, ...], value: Any, *kinds: type) -> ValueError:
        return make_kind_error(self._name(place), value, *kinds)

    def _name(self, place: tuple[str | int, ...]) -> str:
        if not place:
            return f"{os.fspath(self._path)}"
        indices = "".join(f"[{key!r}]" for key in place[1:])
        return f"{os.fspath(self._path)}, {place[0]}{indices}"
