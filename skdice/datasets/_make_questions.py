"""Generator of questions about contexts with a chosen imbalance."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from .._typing import SquadAnswer
from ._squad import make_question_table
from ._tagging_language import THINGS, make_language

# Each block: what is told; questions, with what they ask for in front; verbs. A and B are persons,
# C and D companies, P a place, W counted things and T a year, which is told of any fact or not. No
# two verbs mean the same, and none follows from another.
_FRAMES = """
A VERBED B
A Who VERBED B | B Whom did A VERB | T When did A VERB B
thank thanked, defeat defeated, interview interviewed, photograph photographed, phone phoned
invite invited, replace replaced, teach taught, insult insulted, forgive forgave

A VERBED W to B
A Who VERBED W to B | W What did A VERB to B | B To whom did A VERB W | T When did A VERB W to B
sell sold, lend lent, mail mailed, donate donated, rent rented, show showed

A VERBED W in P
A Who VERBED W in P | W What did A VERB in P | P Where did A VERB W | T When did A VERB W in P
lose lost, hide hid, repair repaired, burn burned, paint painted, steal stole

A VERBED P
A Who VERBED P | P Which place did A VERB | T When did A VERB P
leave left, describe described, govern governed, map mapped, film filmed, defend defended

A VERBED C
A Who VERBED C | C Which company did A VERB | T When did A VERB C
found founded, join joined, audit audited, advise advised, insure insured, praise praised

C VERBED D
C Which company VERBED D | D Which company did C VERB | T When did C VERB D
acquire acquired, sue sued, outbid outbid, warn warned, copy copied, fund funded
"""
_KINDS = {"A": "person", "B": "person", "C": "company", "D": "company", "P": "place"}
_NUMBERS = range(2, 100)
_YEARS = range(1850, 2025)
# Words of three sentences, the fewest of a context. Mean lengths below cannot be met.
_MIN_MEAN_LENGTH = 22
# Words for which there is room for four sentences.
_MIN_LENGTH_OF_FOUR = 32
# Share of the names and verbs that are taken from the other sentences of the context, if possible.
_REUSED_SHARE = 0.5


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
    verb. So only all words of the question together show the sentence that answers it. Often the
    text of the answer stands in other sentences too.

    An unanswerable question has the same form. Its verb and its names are in the context, but in
    different sentences. In contexts of three sentences it still tells how often they occur; the
    longer the contexts are, the less.

    The vocabulary is always the same: calls with different parameters give samples of the same
    language, so that one call can make the training questions and another one the test questions.

    Parameters
    ----------
    n_samples : int, default=100
        Number of questions, each with its own context.
    ratio : float, default=20.0
        Number of negative tokens for each positive one over all contexts, from 10 to 10,000,
        counted as in Table 1 of the Dice loss paper [1]_: an answerable question has two positive
        tokens, the start and the end of the answer, and the other tokens of the contexts, cut at
        white space, are negative. The length of the contexts is chosen to meet it up to a few
        tokens over all samples: contexts have ``2 * (1 + ratio)`` tokens on average if all
        questions are answerable, fewer if not.
    unanswerable_share : float, default=0.0
        Share of the unanswerable questions, from 0 to below 1.
        ``round(unanswerable_share * n_samples)`` questions are unanswerable. The higher it is, the
        higher must the ratio be.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sentences. None gives other questions in each call. NumPy's global random state
        is neither read nor changed.

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

    See Also
    --------
    read_squad : Questions from a file.

    References
    ----------
    .. [1] X. Li, X. Sun, Y. Meng, J. Liang, F. Wu and J. Li, "Dice Loss for Data-imbalanced NLP
           Tasks", ACL 2020.

    Examples
    --------
    >>> from skdice.datasets import make_questions
    >>> X, y = make_questions(100, ratio=10, random_state=0)
    >>> print(X["context"][0].replace(". ", ".\n"))
    Peter Gilson insulted David Narwell.
    In 1988, Anna Falwell insulted Anna Karson.
    Maria Nelley founded Wilsoft Industries.
    David Selson replaced Anna Karson.
    >>> print(X["question"][0])
    Who insulted Anna Karson?
    >>> print(y[0])
    {'text': ['Anna Falwell'], 'answer_start': [46]}
    >>> n_positive = 2 * len(X)
    >>> n_tokens = X["context"].str.split().str.len().sum()
    >>> print(round((n_tokens - n_positive) / n_positive, 1))
    10.0
    """
    n_unanswerable = _count_unanswerable(n_samples, unanswerable_share)
    mean_length = _find_mean_length(n_samples, n_unanswerable, ratio)
    rng = make_rng(random_state, "make_questions")
    has_answer = [i >= n_unanswerable for i in range(n_samples)]
    rng.shuffle(has_answer)
    writer = _QuestionWriter(rng)
    spread = min(mean_length / 2, mean_length - _MIN_MEAN_LENGTH)
    n_tokens = 0
    rows = []
    answers = []
    for i, is_answerable in enumerate(has_answer):
        # What the contexts so far are too long or too short, this one settles.
        length = mean_length * (i + 1) - n_tokens
        if i < n_samples - 1:
            length += rng.uniform(-spread, spread)
        title, question, context, answer = writer.write_sample(length, is_answerable)
        rows.append((f"q{i}", title, question, context))
        answers.append(answer)
        n_tokens += len(context.split())
    return make_question_table(rows, answers)


def _count_unanswerable(n_samples: int, unanswerable_share: float) -> int:
    check_number("make_questions", "n_samples", n_samples, low=1, integer=True)
    check_number("make_questions", "unanswerable_share", unanswerable_share, low=0, high=1)
    n_unanswerable = round(float(unanswerable_share) * int(n_samples))
    if n_unanswerable == n_samples:
        raise ValueError(
            "make_questions needs at least one answerable question. "
            f"{unanswerable_share=} of {n_samples=} makes none. Take a larger n_samples."
        )
    return n_unanswerable


def _find_mean_length(n_samples: int, n_unanswerable: int, ratio: float) -> float:
    check_number("make_questions", "ratio", ratio, low=10, high=10_000, closed="both")
    n_positive = 2 * (n_samples - n_unanswerable)
    mean_length = (1 + float(ratio)) * n_positive / n_samples
    if mean_length < _MIN_MEAN_LENGTH:
        needed = math.ceil(10 * (_MIN_MEAN_LENGTH * n_samples / n_positive - 1)) / 10
        raise ValueError(
            f"make_questions needs contexts of {_MIN_MEAN_LENGTH} tokens or more on average. "
            f"{ratio=} with {n_unanswerable} of {n_samples} questions unanswerable makes "
            f"{mean_length:.1f}. Take a ratio of {needed:.1f} or more, or a smaller "
            "unanswerable_share."
        )
    return mean_length


@dataclass(frozen=True)
class _Frame:
    statement: list[str]
    questions: list[tuple[str, list[str]]]
    verbs: list[list[str]]


@dataclass
class _Fact:
    """What a sentence says: the numbers of its frame and verb, and what stands for the slots."""

    relation: tuple[int, int]
    values: dict[str, str]
    tells_year: bool = False


@dataclass(frozen=True)
class _Query:
    """A question: the fact it is about, the slot it asks for and the words with slots."""

    fact: _Fact
    asked: str
    words: list[str]

    @property
    def known(self) -> list[str]:
        return [slot for slot in self.words if slot in self.fact.values]

    def is_answered_by(self, fact: _Fact) -> bool:
        return fact.relation == self.fact.relation and all(
            fact.values[slot] == self.fact.values[slot] for slot in self.known
        )


class _QuestionWriter:
    """Draws the facts of a context and a question about them, and words both."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        person, place, company = make_language(3, 0)
        # No name is a part of another one.
        self._names = {
            "person": [f"{first} {last}" for first in person.prefixes for last in person.names],
            "place": [
                f"{place.prefixes[i // 2 % 4]} {name}" if i % 2 else name
                for i, name in enumerate(place.names)
            ],
            "company": [f"{name} {last}" for name in company.names for last in company.suffixes],
        }
        self._frames = list(_read_frames())
        self._relations = [
            (i, j) for i, frame in enumerate(self._frames) for j in range(len(frame.verbs))
        ]

    def write_sample(self, length: float, is_answerable: bool) -> tuple[str, str, str, SquadAnswer]:
        """Write the title, the question, a context of about `length` tokens and the answers."""
        rng = self._rng
        relation = rng.choice(self._relations)
        asked, words = rng.choice(self._frames[relation[0]].questions)
        query = _Query(self._draw_fact(relation, []), asked, words)
        facts = self._draw_facts(query, length, is_answerable)
        rng.shuffle(facts)
        sentences = []
        answer: SquadAnswer = {"text": [], "answer_start": []}
        start = 0
        for fact in facts:
            sentence, starts = self._write_sentence(fact)
            if fact is query.fact:
                answer["text"].append(fact.values[query.asked])
                answer["answer_start"].append(start + starts[query.asked])
            sentences.append(sentence)
            start += len(sentence) + 1
        title = f"News from {rng.choice(self._names['place'])}"
        question = f"{' '.join(self._fill(query.fact, words))}?"
        return title, question, " ".join(sentences), answer

    def _draw_facts(self, query: _Query, length: float, is_answerable: bool) -> list[_Fact]:
        """Draw facts of about `length` words: those that are always there, then any others."""
        rng = self._rng
        facts = [query.fact] if is_answerable else []
        query.fact.tells_year = query.asked == "T"
        # The numbers of sentences with the names and with the verb of the question shall not tell
        # whether one has both. Three sentences have no room for all that takes.
        n_decoys = n_others = 1 if is_answerable else 2
        if not is_answerable and length < _MIN_LENGTH_OF_FOUR:
            n_decoys = rng.choice((1, 2))
            n_others = 3 - n_decoys
        facts += self._draw_decoys(query, n_decoys)
        relations = [query.fact.relation] * n_others
        seen = {_make_key(fact) for fact in facts}
        n_words = sum(map(self._count_words, facts))
        while True:
            if not relations:
                is_reused = rng.random() < _REUSED_SHARE
                drawn = rng.choice(facts).relation if is_reused else rng.choice(self._relations)
                relations.append(drawn)
            fact = self._draw_fact(relations[-1], facts)
            if query.is_answered_by(fact) or _make_key(fact) in seen:
                continue
            n_new = self._count_words(fact)
            # Half of the facts shall tell a year, in two words.
            if len(facts) >= 3 and n_words + len(facts) + n_new / 2 > length:
                break
            relations.pop()
            seen.add(_make_key(fact))
            facts.append(fact)
            n_words += n_new
        undated = [fact for fact in facts if not fact.tells_year]
        for fact in rng.sample(undated, len(undated)):
            if n_words + 1 > length:
                break
            fact.tells_year = True
            n_words += 2
        return facts

    def _draw_decoys(self, query: _Query, n_decoys: int) -> list[_Fact]:
        """Draw facts with other verbs about what the question names."""
        rng = self._rng
        i, j = query.fact.relation
        others = [k for k in range(len(self._frames[i].verbs)) if k != j]
        decoys: list[_Fact] = []
        for k in rng.sample(others, n_decoys):
            values: dict[str, str] = {}
            while len(set(values.values())) < len(query.fact.values):
                values = self._draw_fact((i, k), []).values
                for slot, value in query.fact.values.items():
                    if slot in query.known or (slot != "T" and rng.random() < 0.5):
                        values[slot] = value
            decoys.append(_Fact((i, k), values))
        return decoys

    def _draw_fact(self, relation: tuple[int, int], facts: Sequence[_Fact]) -> _Fact:
        """Draw a fact, with some of the names that `facts` have."""
        rng = self._rng
        values: dict[str, str] = {}
        for slot in self._frames[relation[0]].statement:
            if slot == "W":
                values["W"] = f"{rng.choice(_NUMBERS)} {rng.choice(THINGS)}s"
            elif slot in _KINDS:
                values[slot] = self._draw_name(slot, facts, values)
        values["T"] = str(rng.choice(_YEARS))
        return _Fact(relation, values)

    def _draw_name(self, slot: str, facts: Sequence[_Fact], values: dict[str, str]) -> str:
        rng = self._rng
        while True:
            name = rng.choice(self._names[_KINDS[slot]])
            if facts and rng.random() < _REUSED_SHARE:
                others = rng.choice(facts).values
                used = [others[key] for key in others if _KINDS.get(key) == _KINDS[slot]]
                name = rng.choice(used) if used else name
            if name not in values.values():
                return name

    def _count_words(self, fact: _Fact) -> int:
        words = self._fill(fact, self._frames[fact.relation[0]].statement)
        return len(" ".join(words).split()) + 2 * fact.tells_year

    def _fill(self, fact: _Fact, words: Sequence[str]) -> list[str]:
        frame, verb = fact.relation
        base, past = self._frames[frame].verbs[verb]
        return [{"VERB": base, "VERBED": past, **fact.values}.get(word, word) for word in words]

    def _write_sentence(self, fact: _Fact) -> tuple[str, dict[str, int]]:
        """Write a sentence and say where the slots start in it."""
        slots = self._frames[fact.relation[0]].statement
        if fact.tells_year:
            slots = ["In", "T", *slots] if self._rng.random() < 0.5 else [*slots, "in", "T"]
        sentence = ""
        starts = {}
        for slot, value in zip(slots, self._fill(fact, slots)):
            if sentence:
                sentence += ", " if sentence == f"In {fact.values['T']}" else " "
            starts[slot] = len(sentence)
            sentence += value
        return f"{sentence}.", starts


def _make_key(fact: _Fact) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Make what tells two facts apart, whenever they happened."""
    return fact.relation, tuple(value for slot, value in fact.values.items() if slot != "T")


def _read_frames() -> Iterator[_Frame]:
    for block in _FRAMES.strip().split("\n\n"):
        statement, questions, *verbs = block.split("\n")
        yield _Frame(
            statement=statement.split(),
            questions=[
                (question.split()[0], question.split()[1:]) for question in questions.split(" | ")
            ],
            verbs=[verb.split() for verb in ", ".join(verbs).split(", ")],
        )
