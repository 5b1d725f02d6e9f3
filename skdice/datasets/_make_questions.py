"""Generator of questions about contexts with a chosen imbalance."""

import math
import random

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from .._typing import SquadAnswer
from ._facts import RELATIONS, Names, draw_fact, list_names
from ._squad import make_question_table

# Words of three sentences, the fewest of a context, and of one more.
_LENGTH_OF_THREE, _LENGTH_OF_ONE = 22, 9
# Words of a context for one more name of each kind.
_WORDS_PER_NAME = 25


def make_questions(
    n_samples: int = 100,
    *,
    ratio: float = 20.0,
    unanswerable_share: float = 0.0,
    random_state: RandomState = None,
) -> tuple[pd.DataFrame, npt.NDArray[np.object_]]:
    r"""Generate English-like contexts of several sentences with a question about each.

    A context tells who did what to whom, in three sentences or more. The question asks for a name,
    a year or some things that are told (``"Whom did Anna Barson thank?"``). Another sentence has
    the same verb and other names, and one has the names of the question and another verb: only all
    words of the question together show the answer. An unanswerable question has only such others.

    Parameters
    ----------
    n_samples : int, default=100
        Number of questions, each with its own context.
    ratio : float, default=20.0
        Number of negative tokens for each positive one over all contexts, from 10 to 10,000,
        counted as in Table 1 of Li et al. (ACL 2020): the start and the end of an answer are
        positive, the other tokens of the contexts, cut at white space, negative. It is met up to a
        sentence.
    unanswerable_share : float, default=0.0
        Share of the unanswerable questions, from 0 to below 1. The higher it is, the higher must
        the ratio be.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    X : DataFrame of shape (n_samples, 4)
        The columns ``id``, ``title``, ``question`` and ``context``, of dtype object.
    y : ndarray of shape (n_samples,) and dtype object
        The answers of each question as :func:`read_squad` gives them.

    Examples
    --------
    >>> from skdice.datasets import make_questions
    >>> X, y = make_questions(100, ratio=20, random_state=0)
    >>> context, (answer,), (start,) = X["context"][7], *y[7].values()
    >>> context[start : start + len(answer)] == answer
    True
    """
    check_number("make_questions", "n_samples", n_samples, low=1, integer=True)
    check_number("make_questions", "unanswerable_share", unanswerable_share, low=0, high=1)
    check_number("make_questions", "ratio", ratio, low=10, high=10_000, closed="both")
    n_unanswerable = round(float(unanswerable_share) * int(n_samples))
    n_positive = 2 * (n_samples - n_unanswerable)
    if n_positive == 0:
        raise ValueError(
            "make_questions needs at least one answerable question; the unanswerable_share of "
            f"{n_samples=} leaves none."
        )
    mean_length = (1 + float(ratio)) * n_positive / n_samples
    needed = _LENGTH_OF_THREE + _LENGTH_OF_ONE * n_unanswerable / n_samples
    if mean_length < needed:
        raise ValueError(
            f"{ratio=} with {n_unanswerable} of {n_samples} questions unanswerable makes contexts "
            f"of less than three sentences. Take a ratio of "
            f"{math.ceil(10 * (needed * n_samples / n_positive - 1)) / 10:.1f} or more."
        )
    rng = make_rng(random_state, "make_questions")
    has_answer = [i >= n_unanswerable for i in range(n_samples)]
    rng.shuffle(has_answer)
    names = list_names()
    n_tokens = 0
    rows, answers = [], []
    for i, is_answerable in enumerate(has_answer):
        # This context makes up for those before that were too long or too short.
        length = mean_length * (i + 1) - n_tokens
        if i < n_samples - 1:
            length += rng.uniform(-0.5, 0.5) * mean_length
        question, context, answer = _write_sample(rng, names, length, is_answerable)
        rows.append((f"q{i}", f"News from {rng.choice(names['place'])}", question, context))
        answers.append(answer)
        n_tokens += len(context.split())
    return make_question_table(rows, answers)


def _write_sample(
    rng: random.Random, names: Names, length: float, is_answerable: bool
) -> tuple[str, str, SquadAnswer]:
    """Write the question, a context of about `length` tokens and the answers."""
    # The same names occur in several sentences.
    n_names = 4 + int(max(length, 0) / _WORDS_PER_NAME)
    names = {kind: rng.sample(all_, min(n_names, len(all_))) for kind, all_ in names.items()}
    relation = rng.choice(RELATIONS)
    asked, *words = rng.choice(relation.questions).split()
    query = draw_fact(rng, names, relation)
    known = {slot: query.values[slot] for slot in words if slot in query.values}
    others = [r for r in RELATIONS if r.frame == relation.frame and r is not relation]
    # How many sentences have the names or the verb of the question must not tell whether one has
    # both: an unanswerable question has one more of each in place of the answer.
    n_others = 1 if is_answerable else 2
    plan = [(other, known) for other in rng.sample(others, n_others)] + [(relation, {})] * n_others
    told = {query.tell(): query} if is_answerable else {}
    n_words = sum(len(text.split()) + 1 for text in told)
    while plan or n_words < length - _LENGTH_OF_ONE / 2:
        other, given = plan.pop() if plan else (rng.choice(RELATIONS), {})
        fact = draw_fact(rng, names, other, given)
        # No other fact may answer the question.
        while fact.tell() in told or (other is relation and fact.values.items() >= known.items()):
            fact = draw_fact(rng, names, other, given)
        told[fact.tell()] = fact
        n_words += len(fact.tell().split()) + 1
    sentences: list[str] = []
    answer: SquadAnswer = {"text": [], "answer_start": []}
    for fact in rng.sample(list(told.values()), len(told)):
        wording = fact.relation.wordings[0]
        if rng.random() < 0.5 or (fact is query and asked == "T"):
            wording = rng.choice((f"In T, {wording}", f"{wording} in T"))
        if fact is query:
            before = " ".join([*sentences, fact.tell(wording.partition(asked)[0])])
            answer = {"text": [fact.values[asked]], "answer_start": [len(before)]}
        sentences.append(f"{fact.tell(wording)}.")
    return f"{query.tell(' '.join(words))}?", " ".join(sentences), answer
