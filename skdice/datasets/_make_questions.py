"""Generator of questions about contexts with a chosen imbalance."""

import math
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType
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
# Words of three sentences, the fewest of a context, and of four.
_LENGTH_OF_THREE, _LENGTH_OF_FOUR = 22, 32
# Words of a context for one more name of each kind: the same names occur in several sentences.
_WORDS_PER_NAME = 25

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
        contexts, cut at white space, are negative. Contexts are as long as it takes:
        ``2 * (1 + ratio)`` tokens on average if all questions are answerable.
    unanswerable_share : float, default=0.0
        Share of the unanswerable questions, ``round(unanswerable_share * n_samples)``, from 0 to
        below 1. The higher it is, the higher must the ratio be.
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
    >>> X, y = make_questions(100, ratio=10, random_state=2)
    >>> print(X["context"][0].replace(". ", ".\n"))
    David Harmond mailed 98 blankets to Anna Kalmond.
    David Harmond mailed 9 maps to Peter Tormond.
    David Harmond lent 28 ladders to Anna Kalmond.
    >>> print(X["question"][0])
    What did David Harmond mail to Anna Kalmond?
    >>> print(y[0])
    {'text': ['98 blankets'], 'answer_start': [21]}
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
    spread = min(mean_length / 2, mean_length - _LENGTH_OF_THREE)
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
            f"{n_samples=} leaves none."
        )
    mean_length = (1 + float(ratio)) * n_positive / n_samples
    if mean_length < _LENGTH_OF_THREE:
        needed = math.ceil(10 * (_LENGTH_OF_THREE * n_samples / n_positive - 1)) / 10
        raise ValueError(
            f"{ratio=} with {n_unanswerable} of {n_samples} questions unanswerable makes contexts "
            f"of less than three sentences. Take a ratio of {needed:.1f} or more."
        )
    return mean_length


def _write_sample(
    rng: random.Random, names: _Names, length: float, is_answerable: bool
) -> tuple[str, str, SquadAnswer]:
    """Write the question, a context of about `length` tokens and the answers."""
    n_names = 4 + int(max(length, 0) / _WORDS_PER_NAME)
    names = {kind: rng.sample(all_, min(n_names, len(all_))) for kind, all_ in names.items()}
    relation = rng.choice(_RELATIONS)
    asked, *words = rng.choice(relation[1].split(" | ")).split()
    query = _draw_fact(rng, names, relation) | {"tells_year": asked == "T"}
    known = {slot: query[slot] for slot in words if slot == "W" or slot in _KINDS}
    facts = _draw_facts(rng, names, query, known, length, is_answerable)
    context = ""
    answer: SquadAnswer = {"text": [], "answer_start": []}
    for fact in rng.sample(facts, len(facts)):
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
    known: Mapping[str, str],
    length: float,
    is_answerable: bool,
) -> list[_Fact]:
    """Draw facts of about `length` words: those that are always there, then any others."""
    facts = {_tell(query): query} if is_answerable else {}
    # The numbers of sentences with the names and with the verb of the question shall not tell
    # whether one has both. Three sentences have no room for all that takes.
    n_names, n_verbs = (1, 1) if is_answerable else (2, 2)
    if not is_answerable and length < _LENGTH_OF_FOUR:
        n_names, n_verbs = rng.choice(((1, 2), (2, 1)))
    relation = query["relation"]
    others = [other for other in _RELATIONS if other[0] == relation[0] and other != relation]
    for other in rng.sample(others, n_names):
        fact = _draw_fact(rng, names, other, known)
        facts[_tell(fact)] = fact
    n_words = sum(len(text.split()) for text in facts)
    wanted = [relation] * n_verbs + [rng.choice(_RELATIONS)]
    while True:
        fact = _draw_fact(rng, names, wanted[0])
        is_answer = all(fact.get(slot) == query[slot] for slot in ("relation", *known))
        text = _tell(fact)
        if is_answer or text in facts:
            continue
        n_new = len(text.split())
        # Half of the facts shall tell a year, in two words.
        if len(facts) >= 3 and n_words + len(facts) + n_new / 2 > length:
            break
        facts[text] = fact
        n_words += n_new
        wanted = [*wanted[1:], rng.choice(_RELATIONS)]
    undated = [fact for fact in facts.values() if not fact["tells_year"]]
    n_dated = min(max(math.floor((length - n_words - 1) / 2) + 1, 0), len(undated))
    for fact in rng.sample(undated, n_dated):
        fact["tells_year"] = True
    return list(facts.values())


def _draw_fact(
    rng: random.Random,
    names: _Names,
    relation: _Relation,
    given: Mapping[str, str] = MappingProxyType({}),
) -> _Fact:
    """Draw a fact of a relation; what is given stands in its slots."""
    base, past = relation[2].split()
    fact: _Fact = {"relation": relation, "VERB": base, "VERBED": past, "tells_year": False, **given}
    for slot in relation[0].split():
        if slot == "W":
            fact.setdefault("W", f"{rng.randrange(2, 100)} {rng.choice(THINGS)}s")
        while slot in _KINDS and slot not in fact:
            name = rng.choice(names[_KINDS[slot]])
            if name not in fact.values():
                fact[slot] = name
    return fact | {"T": str(rng.randrange(1850, 2025))}


def _tell(fact: _Fact) -> str:
    """Tell a fact without its year."""
    return " ".join(fact.get(word, word) for word in fact["relation"][0].split())
