"""The invented names and the English words that the generators make sentences from."""

import random
import re
from typing import NamedTuple


class EntityType(NamedTuple):
    """The words of one entity type and the clauses that show it.

    In a clause ``@`` is the entity, or a common noun in its place, and ``WHO`` some person.
    """

    name: str
    clauses: list[str]
    nouns: list[str]
    names: list[str]
    first: list[str]  # words with which longer names may begin
    last: list[str]  # and those with which they may end
    ambiguous: list[str]  # the names that also occur outside of entities


def make_language(ambiguity: float) -> list[EntityType]:
    """Return the entity types; this share of the names of each is ambiguous."""
    types = []
    for block in _TYPES.strip().split("\n\n"):
        head, _, clauses = block.partition("\n")
        (name,), endings, first, last, nouns = (part.split() for part in head.split(" | "))
        names = [stem + endings[i % len(endings)] for i, stem in enumerate(_STEMS)]
        random.Random(name).shuffle(names)
        ambiguous = names[: round(ambiguity * len(names))]
        told = re.split(r" \| |\n", clauses)
        types.append(EntityType(name, told, nouns, names, first, last, ambiguous))
    return types


# Each type has its name, endings of invented names, first and last words of longer entities, common
# nouns that fit the clauses, and the clauses.
_TYPES = """
PER | son well ley mond | Anna Peter Maria David | Junior Senior | nurse farmer judge clerk painter
@ smiled | @ resigned | WHO thanked @ | WHO married @ | @ told reporters | WHO interviewed @
WHO voted for @ | @ , aged forty , confessed | the parents of @ wept | WHO had dinner with @

LOC | ford ton wick burg | North South Lake Port | Valley Heights | village market suburb harbour
WHO toured @ | WHO reached @ | WHO drove to @ | WHO moved away from @ | heavy snow fell in @
the mayor of @ spoke | the streets of @ flooded | roads near @ froze | @ lies beyond the ridge

ORG | corp tek soft dyne | United General | Holdings Group Partners Industries | agency factory bank
@ merged | WHO sued @ | shares of @ fell | WHO worked for @ | @ posted a loss | the board of @ met
@ hired forty engineers | investors abandoned @ | @ opened a branch
"""

_WORDS = """
Bar Bel Bor Cal Cor Dal Dar Del Dor Fal Fen Gar Gil Gor Hal Har Hel Jar Jor Kal Kar Kel Kor Lan Lar
Lor Mal Mel Mor Nar Nel Nor Pel Ral Ros Sal Sel Tal Tar Tor Val Vel Ven Vor Wil Yar Zel Zor |
she he they we |
teacher lawyer driver neighbour writer witness pilot cousin stranger guest gardener |
table ladder basket fence curtain bicycle letter window bottle lamp coat map piano mirror suitcase
carpet blanket hammer clock chair
"""
_STEMS, PRONOUNS, PEOPLE, THINGS = map(str.split, _WORDS.split("|"))
