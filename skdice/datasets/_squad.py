"""Reader of questions about contexts, in the JSON of SQuAD and its kin."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._inputs import object_array
from .._typing import SquadAnswer
from ._json import get_field, read_objects
from ._text_files import FilePath


def read_squad(path: FilePath) -> tuple[pd.DataFrame, npt.NDArray[np.object_]]:
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
    FileNotFoundError, ValueError
        If there is no such file, or it is not in this layout or has no questions. The error names
        the file, and the line or the place, such as ``data[0]['paragraphs'][2]['qas'][1]``. A
        question that has no ``"answers"`` at all is an error, unless it is impossible to answer.
    """
    rows: list[tuple[str | int, str, str, str]] = []
    answers: list[SquadAnswer] = []
    for _, file, content in read_objects(path):
        for i, article in enumerate(get_field(file, content, "data", list)):
            place = f"{file}, data[{i}]"
            for where, paragraph in _iterate(place, article, "paragraphs"):
                title = get_field(place, {"title": "", **article}, "title", str)
                context = get_field(where, paragraph, "context", str)
                for at, question in _iterate(where, paragraph, "qas"):
                    text = get_field(at, question, "question", str)
                    rows.append((get_field(at, question, "id", str, int), title, text, context))
                    key = "is_impossible"
                    is_impossible = key in question and get_field(at, question, key, bool)
                    gold = [] if is_impossible else list(_iterate(at, question, "answers"))
                    texts = [get_field(here, one, "text", str) for here, one in gold]
                    starts = [get_field(here, one, "answer_start", int) for here, one in gold]
                    answers.append({"text": texts, "answer_start": starts})
    if not rows:
        raise ValueError(f"{os.fspath(path)}: the file has no questions.")
    return make_question_table(rows, answers)


def make_question_table(
    rows: Sequence[tuple[str | int, str, str, str]], answers: Sequence[SquadAnswer]
) -> tuple[pd.DataFrame, npt.NDArray[np.object_]]:
    """Make X and y of (id, title, question, context) and the answers of each question."""
    # Questions about one context share its str, which a string dtype would copy.
    X = pd.DataFrame(rows, columns=["id", "title", "question", "context"], dtype=object)
    return X, object_array(answers)


def _iterate(place: str, value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the items of a field that must be a list, each after its place for errors."""
    for i, item in enumerate(get_field(place, value, key, list)):
        yield f"{place}[{key!r}][{i}]", item
