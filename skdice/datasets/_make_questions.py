"""Generator of questions about contexts with a chosen imbalance."""

import random

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._parameters import RandomState, check_number, make_rng
from .._typing import SquadAnswer
from ._facts import RELATIONS, Fact, Names, draw_fact, list_names
from ._squad import make_question_table

# The words of three sentences, which a context has at least, and of one more sentence.
_LENGTH_OF_THREE, _LENGTH_OF_ONE = 22, 9


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
        Share of the unanswerable questions, from 0 to below 1; one can be answered at least. The
        higher it is, the higher must the ratio be.
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
    n_unanswerable = min(round(float(unanswerable_share) * int(n_samples)), int(n_samples) - 1)
    n_answerable = n_samples - n_unanswerable
    length = 2 * (1 + float(ratio)) * n_answerable / n_samples
    if length < _LENGTH_OF_THREE + _LENGTH_OF_ONE * n_unanswerable / n_samples:
        got = f"{ratio=} with {n_unanswerable} of {n_samples} questions unanswerable"
        advice = "Take a higher ratio, or fewer unanswerable questions"
        raise ValueError(f"{got} makes contexts of less than three sentences. {advice}.")
    rng = make_rng(random_state, "make_questions")
    names = list_names()
    n_tokens = 0
    rows, answers = [], []
    are_answerable = [True] * n_answerable + [False] * n_unanswerable
    for i, is_answerable in enumerate(rng.sample(are_answerable, n_samples)):
        # This context makes up for those before that were too long or too short.
        due = length * (i + 1) - n_tokens
        question, context, answer = _write_sample(rng, names, due, is_answerable)
        rows.append((f"q{i}", f"News from {rng.choice(names['P'])}", question, context))
        answers.append(answer)
        n_tokens += len(context.split())
    return make_question_table(rows, answers)


def _write_sample(
    rng: random.Random, names: Names, length: float, is_answerable: bool
) -> tuple[str, str, SquadAnswer]:
    """Write the question, a context of about `length` tokens and the answers."""
    relation = rng.choice(RELATIONS)
    asked, *words = rng.choice(relation.questions).split()
    query = draw_fact(rng, names, relation)
    known = {slot: query.values[slot] for slot in words if slot in query.values}
    others = [r for r in RELATIONS if r.frame == relation.frame and r is not relation]
    # How many sentences have the names or the verb of the question must not tell whether one has
    # both: an unanswerable question has one more of each in place of the answer.
    n_others = 1 if is_answerable else 2
    plan = [(other, known) for other in rng.sample(others, n_others)] + [(relation, {})] * n_others
    told: list[tuple[Fact, str]] = []
    n_words = 0
    while plan or n_words < length - _LENGTH_OF_ONE / 2:
        if is_answerable and not told:
            fact = query
        else:
            other, given = plan.pop() if plan else (rng.choice(RELATIONS), {})
            fact = draw_fact(rng, names, other, given)
            # No other fact may answer the question.
            while other is relation and fact.values.items() >= known.items():
                fact = draw_fact(rng, names, other, given)
        wording = fact.relation.wordings[0]
        if rng.random() < 0.25 or (fact is query and asked == "T"):
            wording = rng.choice((f"In T, {wording}", f"{wording} in T"))
        told.append((fact, wording))
        n_words += len(fact.tell(wording).split())
    context = ""
    answer: SquadAnswer = {"text": [], "answer_start": []}
    for fact, wording in rng.sample(told, len(told)):
        if fact is query:
            start = len(context + fact.tell(wording.partition(asked)[0]))
            answer = {"text": [fact.values[asked]], "answer_start": [start]}
        context += f"{fact.tell(wording)}. "
    return f"{query.tell(' '.join(words))}?", context.rstrip(), answer
