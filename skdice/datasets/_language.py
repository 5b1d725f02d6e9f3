"""The invented names and the English words of which the generators make sentences."""

import random
import re
from itertools import islice
from typing import NamedTuple


class EntityType(NamedTuple):
    """The words of one entity type and the clauses that show it.

    In a clause ``@`` is the entity, or a common noun in its place, and ``WHO`` some person.
    """

    name: str
    clauses: list[str]
    nouns: list[str]
    names: list[str]
    prefixes: list[str]
    suffixes: list[str]
    outside_names: frozenset[str]  # the names that also occur outside of entities


def make_language(n_types: int, ambiguity: float) -> list[EntityType]:
    """Give each type its vocabulary, with ambiguous names in place of some of its own words."""
    blocks = re.split(r"\n(?=[A-Z]+ \|)", _TYPES.strip())
    for line in _MORE_TYPES.strip().split("\n"):
        head, verb = line.rsplit(" | ", 1)
        noun = head.rsplit(" | ", 1)[1]
        blocks.append(f"{head}\n{_MORE_CLAUSES}".replace("NOUN", noun).replace("DID", verb))
    heads, clauses = zip(*(block.split("\n", 1) for block in blocks[:n_types]))
    vocabularies = [[part.split() for part in head.split(" | ")] for head in heads]
    n_words = [len(_STEMS) + len(first) + len(last) for _, _, first, last, _ in vocabularies]
    n_ambiguous = [round(ambiguity * n) for n in n_words]
    pool = _WORD_NAMES + [stem + ending for ending in _ENDINGS for stem in _STEMS]
    random.Random(0).shuffle(pool)
    names = iter(pool)
    # Each type shares a quarter of its ambiguous names with either neighbour in the ring of types,
    # and the rest with the words outside of entities.
    n_shared = min(n_ambiguous) // 4 if n_types > 1 else 0
    shared = [list(islice(names, n_shared)) for _ in range(n_types)]
    types = []
    for i, ((name,), endings, prefixes, suffixes, nouns) in enumerate(vocabularies):
        outside = list(islice(names, n_ambiguous[i] - 2 * n_shared))
        own = [stem + endings[(i + j) % len(endings)] for j, stem in enumerate(_STEMS)]
        kept = (prefixes + suffixes + own)[: n_words[i] - n_ambiguous[i]]
        all_names = shared[i - 1] + shared[i] + outside + [word for word in kept if word in own]
        first, last = ([word for word in part if word in kept] for part in (prefixes, suffixes))
        all_clauses = re.split(r" \| |\n", clauses[i])
        types.append(
            EntityType(name, all_clauses, nouns, all_names, first, last, frozenset(outside))
        )
    return types


# Of each type: its name; endings of invented names; first and last words of longer entities; common
# nouns that fit the clauses; and the clauses.
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

# The other types have one noun and one verb each, and clauses with them.
_MORE_TYPES = """
EVENT | fest athon iade gala | Grand Annual | Games Trophy | contest | began
WORK | saga ode idyll rhyme | Tales Songs | Revisited Sonata | poem | rhymed
PRODUCT | pad phone cam ix | Ultra Nano | Deluxe Plus | gadget | broke
DISEASE | itis osis emia algia | Chronic Acute | Syndrome Disorder | disease | spread
DRUG | ol azine icillin afen | Oral Forte | Sodium Acetate | remedy | helped
FOOD | otti asse ini ouille | Creamy Crispy | Pie Broth | meal | cooled
ANIMAL | idon ops urus ax | Spotted Dwarf | Warbler Viper | beast | growled
VESSEL | mar aris ela ona | Royal Lady | Queen Explorer | ship | sank
"""
_MORE_CLAUSES = """@ DID | @ DID again | @ became a NOUN | the best NOUN is @ | @ counts as a NOUN
WHO said that @ DID | experts called @ a typical NOUN | WHO described @ as a NOUN"""

_WORDS = """
Bar Bel Bor Cal Cor Dal Dar Del Dor Fal Fen Gar Gil Gor Hal Har Hel Jar Jor Kal Kar Kel Kor Lan Lar
Lor Mal Mel Mor Nar Nel Nor Pel Ral Ros Sal Sel Tal Tar Tor Val Vel Ven Vor Wil Yar Zel Zor |
en an or is us ey ard ent ett ock ind ows ane ule em ick ish um |
Frost Marsh Brook Stone Rose Reed Field Forest Summit Falcon Orchard Cotton Silver Baker Carter
Mason Hunter Archer Bishop Page Price Bell Wells Banks Hill Wood Lane Rivers Star Eagle Phoenix
Amber Ivory Coral Pearl Jasper Ruby Hazel Olive Ginger Basil Violet Lily Heather Sterling Hope |
she he they we |
teacher lawyer driver neighbour writer witness pilot cousin stranger guest gardener |
old young quiet small new strange friendly famous tired local cheerful plain |
table ladder basket fence curtain bicycle letter window bottle lamp coat map piano mirror suitcase
carpet blanket hammer clock chair
"""
_STEMS, _ENDINGS, _WORD_NAMES, PRONOUNS, PEOPLE, ADJECTIVES, THINGS = map(
    str.split, _WORDS.split("|")
)
