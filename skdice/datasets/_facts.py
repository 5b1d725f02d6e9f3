"""Facts that make_pairs tells in several ways and make_questions asks for."""

import random
import re
from collections.abc import Mapping
from typing import NamedTuple

from ._language import THINGS, make_language

# Each frame has a line of how to tell a fact, one of what to ask for and how, and lines of verbs in
# present and past, some with one more way to tell it. A and B are persons, P is a place, W stands
# for counted things, T for a year. No two verbs mean the same, and none follows from another.
_FRAMES = """
A VERBED B | B was VERBED by A
A Who VERBED B | B Whom did A VERB | T When did A VERB B
thank thanked A said thank you to B | defeat defeated B lost to A | teach taught B learned from A
phone phoned B got a call from A | invite invited B was a guest of A | interview interviewed
greet greeted | help helped | warn warned B got a warning from A | visit visited | praise praised

A VERBED W to B | W were VERBED to B by A
A Who VERBED W to B | W What did A VERB to B | B To whom did A VERB W | T When did A VERB W to B
sell sold B bought W from A | lend lent B borrowed W from A | rent rented B hired W from A
mail mailed B got W from A by mail | donate donated

A VERBED W in P | W were VERBED in P by A
A Who VERBED W in P | W What did A VERB in P | P Where did A VERB W | T When did A VERB W in P
lose lost | find found | repair repaired | burn burned | paint painted
"""
_SLOT = re.compile(r"\b[ABPWT]\b")


class Relation(NamedTuple):
    """A verb with its frame: the ways to tell it, the first one the plainest, and the questions."""

    frame: int
    wordings: list[str]
    questions: list[str]


def _read_relations() -> list[Relation]:
    relations = []
    for frame, block in enumerate(_FRAMES.strip().split("\n\n")):
        told, asked, *verbs = block.split("\n")
        for verb in " | ".join(verbs).split(" | "):
            base, past, *more = verb.split(maxsplit=2)
            wordings, questions = (
                [part.replace("VERBED", past).replace("VERB", base) for part in line.split(" | ")]
                for line in (told, asked)
            )
            relations.append(Relation(frame, [*wordings, *more], questions))
    return relations


RELATIONS = _read_relations()


class Fact(NamedTuple):
    """A relation between certain persons, things and places."""

    relation: Relation
    values: dict[str, str]  # what stands for the slots A to W, and the year T

    def tell(self, words: str) -> str:
        """Fill in the slots of a wording or a question."""
        return _SLOT.sub(lambda match: self.values[match[0]], words)


Names = Mapping[str, list[str]]


def list_names() -> Names:
    """Return the names for each slot of names; no name is a part of another one."""
    person, place, _ = make_language(ambiguity=0)
    persons = [f"{first} {last}" for first in person.first for last in person.names]
    return {"A": persons, "B": persons, "P": place.names}


def draw_fact(
    rng: random.Random, names: Names, relation: Relation, given: Mapping[str, str] | None = None
) -> Fact:
    """Draw a fact of a relation; ``given`` has the words of some slots."""
    values = {"T": str(rng.randrange(1850, 2025)), **(given or {})}
    for slot in _SLOT.findall(relation.wordings[0]):
        if slot == "W":
            values.setdefault("W", f"{rng.randrange(2, 13)} {rng.choice(THINGS)}s")
        while slot not in values:
            name = rng.choice(names[slot])
            if name not in values.values():
                values[slot] = name
    return Fact(relation, values)
