"""The words and clauses of the sentences that make_tagging writes."""

import random
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True)
class EntityType:
    """The words of one entity type and the clauses that show it.

    In a frame ``@`` is the entity, or a common noun in its place, and ``WHO`` some person.
    """

    name: str
    frames: list[str]
    nouns: list[str]
    names: list[str]
    prefixes: list[str]
    suffixes: list[str]
    outside_names: frozenset[str]  # the names that also occur outside of entities


def make_language(n_types: int, ambiguity: float) -> list[EntityType]:
    """Give each type its vocabulary, with ambiguous names in place of some of its own words."""
    blocks = _KINDS.strip().split("\n\n")
    for i, block in enumerate(_MORE_KINDS.strip().split("\n"), start=len(blocks) + 1):
        noun, rest = block.split(maxsplit=1)
        blocks.append(f"TYPE{i} {rest}\n{_MORE_CLAUSES.replace('NOUN', noun)}")
    tables = [block.split("\n", 2) for block in blocks[:n_types]]
    heads = [[part.split() for part in table[0].split(" | ")] for table in tables]
    n_words = [len(_STEMS) + len(first) + len(last) for _, _, first, last in heads]
    n_ambiguous = [round(ambiguity * n) for n in n_words]
    pool = _WORD_NAMES + [stem + ending for ending in _ENDINGS for stem in _STEMS]
    random.Random(0).shuffle(pool)
    names = iter(pool)
    # Each type shares a quarter of its ambiguous names with either neighbour in the ring of types,
    # and the rest with the words outside of entities.
    n_shared = min(n_ambiguous) // 4 if n_types > 1 else 0
    shared = [list(islice(names, n_shared)) for _ in range(n_types)]
    types = []
    for i, ((name,), endings, prefixes, suffixes) in enumerate(heads):
        outside_names = list(islice(names, n_ambiguous[i] - 2 * n_shared))
        ambiguous = shared[i - 1] + shared[i] + outside_names
        own = [stem + endings[(i + j) % len(endings)] for j, stem in enumerate(_STEMS)]
        kept = (prefixes + suffixes + own)[: n_words[i] - n_ambiguous[i]]
        types.append(
            EntityType(
                name=name,
                frames=tables[i][2].replace("\n", " | ").split(" | "),
                nouns=tables[i][1].split(),
                names=ambiguous + [word for word in kept if word in own],
                prefixes=[word for word in kept if word in prefixes],
                suffixes=[word for word in kept if word in suffixes],
                outside_names=frozenset(outside_names),
            )
        )
    return types


# Each block: name, endings of invented names, first and last words of longer entities; common
# nouns that fit the clauses; clauses.
_KINDS = """
PER | son well ley mond | Anna Peter Maria David | Junior Senior
nurse farmer judge clerk student painter widow tailor
@ smiled | @ resigned | WHO thanked @ | WHO married @ | @ told reporters | WHO interviewed @
WHO voted for @ | @ , aged forty , confessed | the parents of @ wept | WHO had dinner with @

LOC | ford ton wick burg | North South Lake Port | Valley Heights
village market suburb meadow border quarter harbour
WHO toured @ | WHO reached @ | WHO drove to @ | WHO moved away from @ | heavy snow fell in @
the mayor of @ spoke | the streets of @ flooded | roads near @ froze | @ lies beyond the ridge

ORG | corp tek soft dyne | United General | Holdings Group Partners Industries
agency factory company union bakery bureau
@ merged | WHO sued @ | shares of @ fell | WHO worked for @ | @ posted a loss | the board of @ met
@ hired forty engineers | investors abandoned @ | @ opened a branch

EVENT | fest athon iade gala | Grand Annual | Games Trophy
contest parade regatta ceremony tournament
WHO won @ | @ began | tickets for @ sold out | WHO competed in @ | spectators enjoyed @
@ ended with fireworks | the finals of @ grew tense | WHO trained for @

WORK | saga ode idyll rhyme | Tales Songs | Revisited Sonata
novel poem essay play ballad
WHO translated @ | WHO recited @ | critics praised @ | WHO read a chapter of @
the author of @ blushed | the plot of @ puzzled readers | the sequel to @ appeared

PRODUCT | pad phone cam ix | Ultra Nano | Deluxe Plus
radio kettle scanner printer toaster
WHO unpacked @ | WHO recharged @ | the battery of @ died | customers returned @
the warranty for @ expired | WHO installed @ | the manual for @ vanished | the buttons of @ stuck

DISEASE | itis osis emia algia | Chronic Acute | Syndrome Disorder
infection cough fever rash illness
WHO caught @ | @ worsened | symptoms of @ include nausea | WHO died of @ | patients with @ improved
doctors reported an outbreak of @ | WHO recovered from @ | the vaccine against @ worked

DRUG | ol azine icillin afen | Oral Forte | Sodium Acetate
syrup pill ointment capsule powder
WHO swallowed @ | doctors prescribed @ | WHO took a dose of @ | nurses injected @ daily
tablets of @ lowered the blood pressure | the side effects of @ vanished | WHO reacted badly to @

FOOD | otti asse ini ouille | Creamy Crispy | Pie Broth
soup stew pudding salad omelette
WHO cooked @ | WHO tasted @ | WHO ordered a plate of @ | @ tasted sour | WHO ate @ for lunch
WHO served @ cold | a slice of @ remained | @ needed more salt

ANIMAL | idon ops urus ax | Spotted Dwarf | Warbler Viper
goat lizard donkey heron badger
WHO fed @ | @ growled | a herd of @ grazed | hunters tracked @ | WHO tamed @
the feathers of @ shone | farmers fenced off @ | zoologists filmed @

VESSEL | mar aris ela ona | Royal Lady | Queen Explorer
ferry barge trawler yacht
WHO boarded @ | @ sank | the captain of @ saluted | @ dropped anchor | the crew of @ rebelled
sailors mended @ | the deck of @ got wet | a storm battered @
"""

# The same from the twelfth type on: they have their noun, endings and heads, and common clauses.
_MORE_KINDS = """
mineral | ite spar lith ide | Raw Milky | Crystal Ore
dialect | ese aic undi ska | Upper Lower | Creole Slang
dance | etta ango olka amba | Slow Double | Waltz Reel
gene | ase gen cin tid | Alpha Beta | Receptor Promoter
galaxy | ion eus ida ux | Messier Far | Cluster Nebula
cipher | crypt key hash code | Binary Rotor | Cascade Matrix
flower | anthe flora ella ium | Dusky Trailing | Blossom Creeper
currency | mark dar eso ing | Convertible Gold | Crown Guilder
spice | oon umin erry ander | Smoked Ground | Masala Blend
"""
_MORE_CLAUSES = """sample example variety discovery
@ became a NOUN | one NOUN was @ | WHO described @ as a NOUN | experts called @ a typical NOUN
WHO mistook @ for a NOUN | WHO regarded @ as a famous NOUN | @ counts as a NOUN"""

_STEMS, _ENDINGS, _WORD_NAMES, PRONOUNS, PEOPLE, ADJECTIVES, VERBS, THINGS = (
    block.split()
    for block in """
Bar Bel Bor Cal Cor Dal Dar Del Dor Fal Fen Gar Gil Gor Hal Har Hel Jar Jor Kal Kar Kel Kor Lan Lar
Lor Mal Mel Mor Nar Nel Nor Pel Ral Ros Sal Sel Tal Tar Tor Val Vel Ven Vor Wil Yar Zel Zor

en an or is us ey ard ent ett ock ind ows ane ule em ick ish um

Frost Marsh Brook Stone Rose Reed Field Forest Summit Falcon Orchard Cotton Silver Baker Carter
Mason Hunter Archer Bishop Page Price Bell Wells Banks Hill Wood Lane Rivers Star Eagle Phoenix
Amber Ivory Coral Pearl Jasper Ruby Hazel Olive Ginger Basil Violet Lily Heather Sterling Hope

she he they we

teacher lawyer driver neighbour writer witness pilot cousin stranger guest gardener

old young quiet small new strange friendly famous tired local cheerful plain

carried painted cleaned moved sold bought noticed described forgot liked hid wanted borrowed
measured lost found photographed wrapped

table ladder basket fence curtain bicycle letter window bottle lamp coat map piano mirror suitcase
carpet blanket hammer clock chair
""".strip().split("\n\n")
)
CONNECTIVES = (", and", ", but", "while", "because", ", so", ";", "before", "until")
MODIFIERS = [
    line.split()
    for line in """
on Monday | last week | after lunch | every spring | without noise | at midnight | by accident
for years | in the morning | near the gate | despite the rain | with great care | during the storm
at the last minute | in spite of the cold | for the first time | on the way home | before sunrise
after a long and noisy meeting | because of the bad weather | at the end of the month | this year
with the help of two friends | in front of the whole class | as soon as the sun rose | once again
""".strip()
    .replace("\n", " | ")
    .split(" | ")
]
