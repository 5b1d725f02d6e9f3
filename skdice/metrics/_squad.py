"""Scores of extractive question answering, counted as the official SQuAD scripts count them."""

import math
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from .._inputs import check_rows, describe, list_items
from .._parameters import check_option
from .._typing import Answers, Numbers, Strings
from ._entities import check_same_number

_VERSIONS = ("2.0", "1.1")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_ANSWER_KINDS = (
    "an answer dict {'text': [...], 'answer_start': [...]}, a str or a list of str, where an empty "
    "one is no answer"
)


class _RowScores(NamedTuple):
    has_answer: NDArray[np.bool_]
    is_answered: NDArray[np.bool_]
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
    squad_report : Both scores, with and without an answer, and the best no-answer threshold.

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


def squad_report(
    y_true: Answers,
    y_pred: Strings,
    *,
    no_answer_score: Numbers | None = None,
    version: str = "2.0",
) -> pd.DataFrame:
    """Compute exact match and F1 of all questions and of those with and without an answer.

    Parameters
    ----------
    y_true, y_pred, version
        As in :func:`squad_f1_score`, errors included. For a threshold that can do more than empty
        further answers, give the best answer to every question.
    no_answer_score : list, tuple, Series or array of shape (n_questions,), default=None
        The larger, the more likely is it that the question has no answer: a probability or any
        other number; one that is not finite, or version ``"1.1"`` with it, is a ValueError.

    Returns
    -------
    report : DataFrame
        The rows ``"total"``, ``"HasAns"`` and ``"NoAns"`` with the columns ``exact_match`` and
        ``f1`` in [0, 1] (missing where there is no question) and ``n``, the number of questions.

        With `no_answer_score` a row ``"best"`` follows: the highest total scores that a threshold
        reaches, each with its own, in two more columns, ``exact_match_threshold`` and
        ``f1_threshold`` (missing in the other rows). A threshold turns the answers to questions
        whose `no_answer_score` is larger into ``""``.

    Notes
    -----
    Row ``"best"`` follows ``find_best_thresh`` of evaluate-v2.0.py: of equally good thresholds the
    smallest counts; if no answer at all is best, it is 0 (minus infinity here if a score is
    negative); rows with equal scores are taken one after the other; and a question without an
    answer is right only if the prediction is ``""``, not if it is merely punctuation and articles.

    Examples
    --------
    >>> from skdice.metrics import squad_report
    >>> y_true = ["Oslo", "the North Sea", "", ""]
    >>> y_pred = ["Oslo", "North Sea coast", "Bergen", ""]
    >>> squad_report(y_true, y_pred)
               exact_match   f1  n
    questions
    total              0.5  0.7  4
    HasAns             0.5  0.9  2
    NoAns              0.5  0.5  2
    >>> report = squad_report(y_true, y_pred, no_answer_score=[0.1, 0.3, 0.8, 0.9])
    >>> report.loc["best", ["f1", "f1_threshold"]]
    f1              0.95
    f1_threshold    0.30
    Name: best, dtype: float64
    """
    scores = score_rows(y_true, y_pred, version)
    has_answer = scores.has_answer
    groups = {"total": np.full(len(has_answer), True), "HasAns": has_answer, "NoAns": ~has_answer}
    rows: dict[str, dict[str, float]] = {}
    for name, group in groups.items():
        parts = {"exact_match": scores.exact_match[group], "f1": scores.f1[group]}
        means = {key: part.mean() if len(part) else math.nan for key, part in parts.items()}
        rows[name] = {**means, "n": int(group.sum())}
    if no_answer_score is not None:
        if version != "2.0":
            raise ValueError(
                "no_answer_score needs version='2.0', as version 1.1 has no questions without an "
                f"answer; got version={version!r}."
            )
        numbers = _check_numbers(no_answer_score, len(has_answer))
        exact_match, at_exact_match = _find_best_threshold(scores.exact_match, scores, numbers)
        f1, at_f1 = _find_best_threshold(scores.f1, scores, numbers)
        rows["best"] = {"exact_match": exact_match, "f1": f1, "n": len(has_answer)}
        rows["best"] |= {"exact_match_threshold": at_exact_match, "f1_threshold": at_f1}
    report = pd.DataFrame.from_dict(rows, orient="index").astype({"n": "int64"})
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
    check_option("SQuAD metrics", "version", version, _VERSIONS)
    true_rows = check_rows(y_true, "y_true", "answers, one row per question")
    predictions = check_rows(y_pred, "y_pred", "str, one row per question")
    check_same_number(true_rows, predictions, "rows")
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
    is_answered = np.array([text != "" for text in predictions], dtype=bool)
    return _RowScores(has_answer, is_answered, exact_match, f1)


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


def _find_best_threshold(
    row_scores: NDArray[np.float64], scores: _RowScores, no_answer_score: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the best mean of `row_scores` under a threshold, and the threshold."""
    # What the answer to a question adds to the score of giving none.
    gains = np.where(scores.has_answer, row_scores, -scores.is_answered.astype(float))
    total = best = float(np.sum(~scores.has_answer))
    threshold = 0.0 if no_answer_score.min() >= 0 else -math.inf
    for i in np.argsort(no_answer_score, kind="stable"):
        total += gains[i]
        if total > best:
            best, threshold = total, no_answer_score[i]
    return float(best / len(gains)), float(threshold)


def _check_numbers(no_answer_score: Numbers, n_rows: int) -> NDArray[np.float64]:
    values = check_rows(no_answer_score, "no_answer_score", "numbers, one per question")
    if len(values) != n_rows:
        raise ValueError(
            f"no_answer_score must have one number per row; got {len(values)} numbers and "
            f"{n_rows} rows."
        )
    for i, value in enumerate(values):
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(
                f"row {i} of no_answer_score must be a finite number; got {describe(value)}."
            )
    return np.array(values, dtype=float)


squad_exact_match_scorer = make_scorer(squad_exact_match)
squad_f1_scorer = make_scorer(squad_f1_score)
