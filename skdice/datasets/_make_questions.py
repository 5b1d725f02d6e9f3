"""Generator of questions about contexts with a chosen imbalance."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from .._typing import SquadAnswer
from ._squad import make_question_table
from ._tagging_language import THINGS, make_language

# What is told; what can be asked for, with which words; verbs in present and past. A and B are
# persons, C and D companies, P a place, W counted things and T a year, which is told of any fact or
# not. No two verbs mean the same, and none follows from another.
_FRAMES = """
A VERBED B
A Who VERBED B | B Whom did A VERB | T When did A VERB B
thank thanked, defeat defeated, interview interviewed, phone phoned, invite invited, teach taught

A VERBED W to B
A Who VERBED W to B | W What did A VERB to B | B To whom did A VERB W | T When did A VERB W to B
sell sold, lend lent, mail mailed, donate donated, rent rented, show showed

A VERBED W in P
A Who VERBED W in P | W What did A VERB in P | P Where did A VERB W | T When did A VERB W in P
lose lost, hide hid, repair repaired, burn burned, paint painted, steal stole

A VERBED P
A Who VERBED P | P Which place did A VERB | T When did A VERB P
leave left, describe described, govern governed, map mapped, film filmed, defend defended

C VERBED D
C Which company VERBED D | D Which company did C VERB | T When did C VERB D
acquire acquired, sue sued, outbid outbid, warn warned, copy copied, fund funded
"""
_Relation = tuple[str, str, str]
_RELATIONS: list[_Relation] = [
    (statement, questions, verb)
    for statement, questions, verbs in (b.split("\n") for b in _FRAMES.strip().split("\n\n"))
    for verb in verbs.split(", ")
]
_KINDS = {"A": "person", "B": "person", "C": "company", "D": "company", "P": "place"}
# Words of three sentences, the fewest of a context. Mean lengths below cannot be met.
_MIN_MEAN_LENGTH = 22
# Words for which there is room for four sentences.
_MIN_LENGTH_OF_FOUR = 32
# Share of the names and verbs that are taken from the other sentences of the context, if possible.
_REUSED_SHARE = 0.5

# A sentence: its relation, what stands for the slots and the verb, and whether it tells the year T.
_Fact = dict[str, Any]
_Names = Mapping[str, Sequence[str]]


def make_questions(
    n_samples: int = 100,
    *,
    ratio: float = 20.0,
    unanswerable_share: float = 0.0,
    random_state: RandomState = None,
) -> tuple[pd.DataFrame, npt.NDArray[np.object_]]:
    r"""Generate English-like contexts of several sentences with a question about each.

    A context tells who did what to whom, in three sentences or more. The question asks for one
    thing that is told: a name, a year or some things (``"Whom did Anna Barson thank?"``). Another
    sentence has the same verb and other names, and one has the names of the question and another
    verb, so that only all words of the question together show the sentence that answers it. An
    unanswerable question has the same form: its verb and its names are in different sentences.

    Parameters
    ----------
    n_samples : int, default=100
        Number of questions, each with its own context.
    ratio : float, default=20.0
        Number of negative tokens for each positive one over all contexts, from 10 to 10,000,
        counted as in Table 1 of the Dice loss paper (Li et al., ACL 2020): an answerable question
        has two positive tokens, the start and the end of the answer, and the other tokens of the
        contexts, cut at white space, are negative. Contexts are as long as it takes to meet it up
        to a few tokens: ``2 * (1 + ratio)`` on average if all questions are answerable.
    unanswerable_share : float, default=0.0
        Share of the unanswerable questions, from 0 to below 1.
        ``round(unanswerable_share * n_samples)`` questions are unanswerable. The higher it is, the
        higher must the ratio be.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sentences. None gives other questions in each call.

    Returns
    -------
    X : DataFrame of shape (n_samples, 4)
        The columns ``id``, ``title``, ``question`` and ``context``, of dtype object. Ids are
        unique.
    y : ndarray of shape (n_samples,) and dtype object
        The answers of each question, a dict ``{"text": [...], "answer_start": [...]}``. Both lists
        have one element, the text and its first character in the context, or none if the question
        is unanswerable.

    Raises
    ------
    ValueError
        If a parameter is invalid, if no question would be answerable, or if the contexts would be
        shorter than three sentences.

    Examples
    --------
    >>> from skdice.datasets import make_questions
    >>> X, y = make_questions(100, ratio=10, random_state=0)
    >>> print(X["context"][0].replace(". ", ".\n"))
    Faldyne Partners funded Borcorp Group.
    Hartek Holdings acquired Vortek Group.
    Faldyne Partners acquired Borcorp Group.
    Maria Nelley repaired 91 maps in Dalwick.
    >>> print(X["question"][0])
    Which company acquired Borcorp Group?
    >>> print(y[0])
    {'text': ['Faldyne Partners'], 'answer_start': [78]}
    """
    check_number("make_questions", "n_samples", n_samples, low=1, integer=True)
    check_number("make_questions", "unanswerable_share", unanswerable_share, low=0, high=1)
    check_number("make_questions", "ratio", ratio, low=10, high=10_000, closed="both")
    n_unanswerable = round(float(unanswerable_share) * int(n_samples))
    mean_length = _find_mean_length(n_samples, n_unanswerable, ratio)
    rng = make_rng(random_state, "make_questions")
    has_answer = [i >= n_unanswerable for i in range(n_samples)]
    rng.shuffle(has_answer)
    person, place, company = make_language(3, 0)
    names = {  # No name is a part of another one.
        "person": [f"{first} {last}" for first in person.prefixes for last in person.names],
        "place": place.names,
        "company": [f"{name} {last}" for name in company.names for last in company.suffixes],
    }
    spread = min(mean_length / 2, mean_length - _MIN_MEAN_LENGTH)
    n_tokens = 0
    rows = []
    answers = []
    for i, is_answerable in enumerate(has_answer):
        # What the contexts so far are too long or too short, this one settles.
        length = mean_length * (i + 1) - n_tokens
        if i < n_samples - 1:
            length += rng.uniform(-spread, spread)
        question, context, answer = _write_sample(rng, names, length, is_answerable)
        rows.append((f"q{i}", f"News from {rng.choice(place.names)}", question, context))
        answers.append(answer)
        n_tokens += len(context.split())
    return make_question_table(rows, answers)


def _find_mean_length(n_samples: int, n_unanswerable: int, ratio: float) -> float:
    n_positive = 2 * (n_samples - n_unanswerable)
    if n_positive == 0:
        raise ValueError(
            "make_questions needs at least one answerable question; the unanswerable_share of "
            f"{n_samples=} leaves none. Take a larger n_samples."
        )
    mean_length = (1 + float(ratio)) * n_positive / n_samples
    if mean_length < _MIN_MEAN_LENGTH:
        needed = math.ceil(10 * (_MIN_MEAN_LENGTH * n_samples / n_positive - 1)) / 10
        raise ValueError(
            f"{ratio=} with {n_unanswerable} of {n_samples} questions unanswerable makes contexts "
            f"of less than three sentences. Take a ratio of {needed:.1f} or more, or a smaller "
            "unanswerable_share."
        )
    return mean_length


def _write_sample(
    rng: random.Random, names: _Names, length: float, is_answerable: bool
) -> tuple[str, str, SquadAnswer]:
    """Write the question, a context of about `length` tokens and the answers."""
    relation = rng.choice(_RELATIONS)
    asked, *words = rng.choice(relation[1].split(" | ")).split()
    query = _draw_fact(rng, names, relation, []) | {"tells_year": asked == "T"}
    known = [slot for slot in words if slot in query and not slot.startswith("VERB")]
    facts = _draw_facts(rng, names, query, known, length, is_answerable)
    rng.shuffle(facts)
    context = ""
    answer: SquadAnswer = {"text": [], "answer_start": []}
    for fact in facts:
        slots = fact["relation"][0].split()
        if fact["tells_year"]:
            slots = ["In", "T", *slots] if rng.random() < 0.5 else [*slots, "in", "T"]
        for i, slot in enumerate(slots):
            if fact is query and slot == asked:
                answer = {"text": [fact[slot]], "answer_start": [len(context)]}
            end = "." if i == len(slots) - 1 else "," if slots[:i] == ["In"] else ""
            context += f"{fact.get(slot, slot)}{end} "
    question = " ".join(query.get(word, word) for word in words)
    return f"{question}?", context.rstrip(), answer


def _draw_facts(
    rng: random.Random,
    names: _Names,
    query: _Fact,
    known: Sequence[str],
    length: float,
    is_answerable: bool,
) -> list[_Fact]:
    """Draw facts of about `length` words: those that are always there, then any others."""
    facts = [query] if is_answerable else []
    # The numbers of sentences with the names and with the verb of the question shall not tell
    # whether one has both. Three sentences have no room for all that takes.
    n_decoys, n_others = (1, 1) if is_answerable else (2, 2)
    if not is_answerable and length < _MIN_LENGTH_OF_FOUR:
        n_decoys, n_others = rng.choice(((1, 2), (2, 1)))
    relation = query["relation"]
    others = [other for other in _RELATIONS if other[0] == relation[0] and other != relation]
    facts += [_draw_decoy(rng, names, query, known, r) for r in rng.sample(others, n_decoys)]
    seen = {_make_key(fact) for fact in facts}
    n_words = sum(map(_count_words, facts))
    relations = [relation] * n_others
    while True:
        if not relations:
            is_reused = rng.random() < _REUSED_SHARE
            relations.append(rng.choice(facts)["relation"] if is_reused else rng.choice(_RELATIONS))
        fact = _draw_fact(rng, names, relations[-1], facts)
        is_answer = all(fact.get(slot) == query[slot] for slot in ("relation", *known))
        if is_answer or _make_key(fact) in seen:
            continue
        n_new = _count_words(fact)
        # Half of the facts shall tell a year, in two words.
        if len(facts) >= 3 and n_words + len(facts) + n_new / 2 > length:
            break
        relations.pop()
        seen.add(_make_key(fact))
        facts.append(fact)
        n_words += n_new
    undated = [fact for fact in facts if not fact["tells_year"]]
    n_dated = min(max(math.floor((length - n_words - 1) / 2) + 1, 0), len(undated))
    for fact in rng.sample(undated, n_dated):
        fact["tells_year"] = True
    return facts


def _draw_decoy(
    rng: random.Random, names: _Names, query: _Fact, known: Sequence[str], relation: _Relation
) -> _Fact:
    """Draw a fact with another verb about what the question names."""
    slots = [slot for slot in query if slot in _KINDS]
    while True:
        fact = _draw_fact(rng, names, relation, [])
        for slot in ("W", *slots):
            if slot in query and (slot in known or rng.random() < 0.5):
                fact[slot] = query[slot]
        if len({fact[slot] for slot in slots}) == len(slots):
            return fact


def _draw_fact(
    rng: random.Random, names: _Names, relation: _Relation, facts: Sequence[_Fact]
) -> _Fact:
    """Draw a fact, with some of the names that `facts` have."""
    base, past = relation[2].split()
    fact: _Fact = {"relation": relation, "VERB": base, "VERBED": past, "tells_year": False}
    for slot in relation[0].split():
        if slot == "W":
            fact["W"] = f"{rng.randrange(2, 100)} {rng.choice(THINGS)}s"
        while slot in _KINDS and slot not in fact:
            name = rng.choice(names[_KINDS[slot]])
            if facts and rng.random() < _REUSED_SHARE:
                other = rng.choice(facts)
                used = [other[key] for key in other if _KINDS.get(key) == _KINDS[slot]]
                name = rng.choice(used) if used else name
            if name not in fact.values():
                fact[slot] = name
    fact["T"] = str(rng.randrange(1850, 2025))
    return fact


def _count_words(fact: _Fact) -> int:
    words = [fact.get(word, word) for word in fact["relation"][0].split()]
    return len(" ".join(words).split()) + 2 * fact["tells_year"]


def _make_key(fact: _Fact) -> tuple[Any, ...]:
    """Make what tells two facts apart, whenever they happened."""
    return fact["relation"], *(fact.get(slot) for slot in ("W", *_KINDS))
