"""Scores of extractive question answering, counted as the official SQuAD scripts count them."""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from .._inputs import check_rows, describe, list_items
from .._parameters import check_option
from .._typing import Answers, Strings
from ._entities import check_same_number

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_ANSWER_KINDS = (
    "an answer dict {'text': [...], 'answer_start': [...]}, a str or a list of str, where an empty "
    "one is no answer"
)


class _RowScores(NamedTuple):
    has_answer: NDArray[np.bool_]
    exact_match: NDArray[np.float64]
    f1: NDArray[np.float64]


def squad_f1_score(y_true: Answers, y_pred: Strings, *, version: str = "2.0") -> float:
    r"""Compute the F1 score of SQuAD: how many words of the answer are right, mean over questions.

    Parameters
    ----------
    y_true : list, tuple, Series or array of answers
        One row per question: an answer dict ``{"text": [...], "answer_start": [...]}`` of which
        only ``"text"`` is used, a str, or a list of str. Several texts are alternatives and the
        best one counts. A row without a text that is not empty is a question without an answer.
    y_pred : list, tuple, Series or array of str
        The predicted answers, ``""`` for no answer.
    version : {"2.0", "1.1"}, default="2.0"
        The official script to follow, see Notes. With ``"1.1"`` every row of `y_true` must have an
        answer.

    Returns
    -------
    float
        In [0, 1]; the official scripts print percentages.

    Raises
    ------
    TypeError
        If `y_true` or `y_pred` is no sequence, or one of its rows is of another kind.
    ValueError
        If there are no rows, their numbers differ, an answer dict has no ``"text"``, the version is
        unknown, or a row has no answer and `version` is ``"1.1"``.

    See Also
    --------
    squad_exact_match : The share of the answers that are right as a whole.
    squad_report : Both scores, of questions with and without an answer.

    Notes
    -----
    Texts are compared in lower case, without ASCII punctuation and without the words a, an and the,
    as multisets of the words between white space. F1 is ``2PR / (P + R)`` with the shares P of the
    predicted and R of the true words that the two have in common; the scripts differ where one of
    them has no words:

    - ``"2.0"`` (evaluate-v2.0.py): F1 is 1 if both have none, else 0. Answers without words are
      left out of the alternatives, and where none is left "no answer" is the true one.
    - ``"1.1"`` (evaluate-v1.1.py): F1 is 0, also if both have none (which is an exact match). All
      alternatives count.

    Examples
    --------
    >>> from skdice.metrics import squad_f1_score
    >>> y_true = [{"text": ["the Eiffel Tower"], "answer_start": [10]}, ["1999", "in 1999"], ""]
    >>> squad_f1_score(y_true, ["Eiffel Tower!", "1999", ""])
    1.0
    >>> squad_f1_score(y_true, ["tower", "1999", "Paris"])
    0.555...
    """
    return float(np.mean(score_rows(y_true, y_pred, version).f1))


def squad_exact_match(y_true: Answers, y_pred: Strings, *, version: str = "2.0") -> float:
    """Compute the exact match of SQuAD: the share of the questions whose answer is right.

    Parameters
    ----------
    y_true, y_pred, version
        As in :func:`squad_f1_score`, errors included.

    Returns
    -------
    float
        In [0, 1]; the official scripts print percentages.

    Examples
    --------
    >>> from skdice.metrics import squad_exact_match
    >>> y_true = [{"text": ["the Eiffel Tower"], "answer_start": [10]}, ["1999", "in 1999"], ""]
    >>> squad_exact_match(y_true, ["Eiffel Tower!", "In 1999", "Paris"])
    0.666...
    """
    return float(np.mean(score_rows(y_true, y_pred, version).exact_match))


def squad_report(y_true: Answers, y_pred: Strings, *, version: str = "2.0") -> pd.DataFrame:
    """Compute exact match and F1 of all questions and of those with and without an answer.

    Parameters
    ----------
    y_true, y_pred, version
        As in :func:`squad_f1_score`, errors included.

    Returns
    -------
    report : DataFrame
        The rows ``"total"``, ``"HasAns"`` and ``"NoAns"`` with the columns ``exact_match`` and
        ``f1`` in [0, 1] (missing where there is no question) and ``n``, the number of questions.

    Examples
    --------
    >>> from skdice.metrics import squad_report
    >>> y_true = ["Oslo", "the North Sea", "", ""]
    >>> squad_report(y_true, ["Oslo", "North Sea coast", "Bergen", ""])
               exact_match   f1  n
    questions
    total              0.5  0.7  4
    HasAns             0.5  0.9  2
    NoAns              0.5  0.5  2
    """
    scores = score_rows(y_true, y_pred, version)
    rows = pd.DataFrame({"exact_match": scores.exact_match, "f1": scores.f1})
    has_answer = scores.has_answer
    parts = {"total": rows, "HasAns": rows[has_answer], "NoAns": rows[~has_answer]}
    report = pd.DataFrame({name: part.mean() for name, part in parts.items()}).T
    report["n"] = [len(part) for part in parts.values()]
    return report.rename_axis("questions")


def read_answers(row: object, where: str) -> list[str]:
    """Return the texts of the answers to one question, one of them not empty if it has an answer.

    A row of another kind is a TypeError, a dict without "text" a ValueError; both call it `where`.
    """
    if isinstance(row, str):
        return [row]
    values: object = row
    if isinstance(row, Mapping):
        if "text" not in row:
            raise ValueError(
                f"{where} must be {_ANSWER_KINDS}; got a dict with the keys {list(row)}."
            )
        values = row["text"]
    texts = list_items(values)
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{where} must be {_ANSWER_KINDS}; got {describe(row)}.")
    return texts


def score_rows(y_true: Answers, y_pred: Strings, version: str) -> _RowScores:
    """Check the input and score every question."""
    check_option("SQuAD metrics", "version", version, ("2.0", "1.1"))
    true_rows = check_rows(y_true, "y_true", "answers, one row per question")
    predictions = check_rows(y_pred, "y_pred", "str, one row per question")
    check_same_number(true_rows, predictions, "rows")
    if not true_rows:
        raise ValueError("y_true and y_pred must have at least one row; got none.")
    answers = [read_answers(row, f"row {i} of y_true") for i, row in enumerate(true_rows)]
    has_answer = np.array([any(texts) for texts in answers], dtype=bool)
    if version == "1.1" and not has_answer.all():
        i = int(np.argmin(has_answer))
        raise ValueError(
            f"With version='1.1' every row of y_true must have an answer; row {i} is "
            f"{describe(true_rows[i])}. Use version='2.0' for questions without an answer."
        )
    for i, text in enumerate(predictions):
        if not isinstance(text, str):
            raise TypeError(
                f"row {i} of y_pred must be a str ('' is no answer); got {describe(text)}."
            )
    pairs = [_score_answer(*row, version) for row in zip(answers, predictions)]
    exact_match, f1 = np.array(pairs, dtype=float).T
    return _RowScores(has_answer, exact_match, f1)


def _score_answer(answers: Sequence[str], prediction: str, version: str) -> tuple[float, float]:
    """Return exact match and F1 with the best of the alternatives."""
    alternatives = [_find_words(text) for text in answers]
    if version == "2.0":
        alternatives = [words for words in alternatives if words] or [[]]
    predicted = _find_words(prediction)
    both_empty = float(version == "2.0")
    f1 = max(_score_words(words, predicted, both_empty) for words in alternatives)
    return float(predicted in alternatives), f1


def _find_words(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split()


def _score_words(words: list[str], predicted: list[str], both_empty: float) -> float:
    if not words and not predicted:
        return both_empty
    n_common = (Counter(words) & Counter(predicted)).total()
    if n_common == 0:
        return 0.0
    precision, recall = n_common / len(predicted), n_common / len(words)
    return 2 * precision * recall / (precision + recall)


squad_exact_match_scorer = make_scorer(squad_exact_match)
squad_f1_scorer = make_scorer(squad_f1_score)
