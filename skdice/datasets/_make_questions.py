"""Generator of questions about contexts with a chosen imbalance."""

import math
import random
from collections.abc import Mapping
from itertools import chain, count

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from .._typing import SquadAnswer
from ._facts import RELATIONS, Fact, Names, draw_fact, list_names
from ._squad import make_question_table

# Words of three sentences, the fewest of a context, and of four.
_LENGTH_OF_THREE, _LENGTH_OF_FOUR = 22, 32
# Words of a context for one more name of each kind: the same names occur in several sentences.
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
    words of the question together show the sentence that answers it. The verb and the names of an
    unanswerable question are in different sentences.

    Parameters
    ----------
    n_samples : int, default=100
        Number of questions, each with its own context.
    ratio : float, default=20.0
        Number of negative tokens for each positive one over all contexts, from 10 to 10,000,
        counted as in Table 1 of Li et al. (ACL 2020): an answerable question has two positive
        tokens, the start and the end of the answer; the other tokens of the contexts, cut at white
        space, are negative. Contexts have ``2 * (1 + ratio)`` tokens on average if all questions
        are answerable.
    unanswerable_share : float, default=0.0
        Share of the unanswerable questions, ``round(unanswerable_share * n_samples)``, from 0 to
        below 1. The higher it is, the higher must the ratio be.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sentences. None gives other questions in each call.

    Returns
    -------
    X : DataFrame of shape (n_samples, 4)
        The columns ``id``, ``title``, ``question`` and ``context``, of dtype object.
    y : ndarray of shape (n_samples,) and dtype object
        The answers of each question, a dict ``{"text": [...], "answer_start": [...]}`` of two
        lists: of one answer, or empty ones if the question is unanswerable.

    Raises
    ------
    ValueError
        If a parameter is invalid, if no question would be answerable, or if the contexts would be
        shorter than three sentences.

    Examples
    --------
    >>> from skdice.datasets import make_questions
    >>> X, y = make_questions(100, ratio=10, random_state=2)
    >>> print(X["context"][0].replace(". ", ".\n"))
    David Harmond rented 5 maps to Anna Kalmond.
    David Harmond rented 9 curtains to Peter Tormond.
    David Harmond lent 2 mirrors to Peter Tormond.
    >>> print(X["question"][0])
    What did David Harmond rent to Peter Tormond?
    >>> print(y[0])
    {'text': ['9 curtains'], 'answer_start': [66]}
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
    if mean_length < _LENGTH_OF_THREE:
        needed = math.ceil(10 * (_LENGTH_OF_THREE * n_samples / n_positive - 1)) / 10
        raise ValueError(
            f"{ratio=} with {n_unanswerable} of {n_samples} questions unanswerable makes contexts "
            f"of less than three sentences. Take a ratio of {needed:.1f} or more."
        )
    rng = make_rng(random_state, "make_questions")
    has_answer = [i >= n_unanswerable for i in range(n_samples)]
    rng.shuffle(has_answer)
    names = list_names()
    spread = min(mean_length / 2, mean_length - _LENGTH_OF_THREE)
    n_tokens = 0
    rows, answers = [], []
    for i, is_answerable in enumerate(has_answer):
        # This context makes up for the contexts before that were too long or too short.
        length = mean_length * (i + 1) - n_tokens
        if i < n_samples - 1:
            length += rng.uniform(-spread, spread)
        question, context, answer = _write_sample(rng, names, length, is_answerable)
        rows.append((f"q{i}", f"News from {rng.choice(names['place'])}", question, context))
        answers.append(answer)
        n_tokens += len(context.split())
    return make_question_table(rows, answers)


def _write_sample(
    rng: random.Random, names: Names, length: float, is_answerable: bool
) -> tuple[str, str, SquadAnswer]:
    """Write the question, a context of about `length` tokens and the answers."""
    n_names = 4 + int(max(length, 0) / _WORDS_PER_NAME)
    names = {kind: rng.sample(all_, min(n_names, len(all_))) for kind, all_ in names.items()}
    relation = rng.choice(RELATIONS)
    asked, *words = rng.choice(relation.questions).split()
    query = draw_fact(rng, names, relation)
    known = {slot: query.values[slot] for slot in words if slot in query.values}
    facts = _draw_facts(rng, names, query, known, length, is_answerable)
    # Years fill up the context. The answer may be one.
    n_dated = math.floor((length - sum(len(fact.tell().split()) for fact in facts) + 1) / 2)
    order = rng.sample(facts, len(facts))
    dated = sorted(order, key=lambda fact: fact is not query or asked != "T")
    dated = dated[: max(n_dated, int(asked == "T" and is_answerable))]
    sentences: list[str] = []
    answer: SquadAnswer = {"text": [], "answer_start": []}
    for fact in rng.sample(facts, len(facts)):
        wording = fact.relation.wordings[0]
        if fact in dated:
            wording = rng.choice((f"In T, {wording}", f"{wording} in T"))
        if fact is query:
            before = " ".join([*sentences, fact.tell(wording.partition(asked)[0])])
            answer = {"text": [fact.values[asked]], "answer_start": [len(before)]}
        sentences.append(f"{fact.tell(wording)}.")
    return f"{query.tell(' '.join(words))}?", " ".join(sentences), answer


def _draw_facts(
    rng: random.Random,
    names: Names,
    query: Fact,
    known: Mapping[str, str],
    length: float,
    is_answerable: bool,
) -> list[Fact]:
    """Draw facts of about `length` words: those that are always there, then any others."""
    facts = {query.tell(): query} if is_answerable else {}
    # How many sentences have the names or the verb of the question must not tell whether one has
    # both. Three sentences have no room for two of each.
    n_names, n_verbs = (1, 1) if is_answerable else (2, 2)
    if not is_answerable and length < _LENGTH_OF_FOUR:
        n_names, n_verbs = rng.choice(((1, 2), (2, 1)))
    frame = [one for one in RELATIONS if one.frame == query.relation.frame]
    others = rng.sample([one for one in frame if one is not query.relation], n_names)
    nothing: Mapping[str, str] = {}
    plan = [(other, known) for other in others] + [(query.relation, nothing)] * n_verbs
    n_words = sum(len(text.split()) for text in facts)
    for relation, given in chain(plan, ((rng.choice(RELATIONS), nothing) for _ in count())):
        fact = query
        # No other fact may answer the question.
        while fact.tell() in facts or (
            fact.relation == query.relation and fact.values.items() >= known.items()
        ):
            fact = draw_fact(rng, names, relation, given)
        n_words += len(fact.tell().split())
        # Half of the facts tell a year, in two words.
        if len(facts) >= 3 and n_words + len(facts) > length:
            break
        facts[fact.tell()] = fact
    return list(facts.values())
