"""Names of entities with names of other entities inside, for make_tagging."""

import random
from collections.abc import Sequence

from ._tagging_language import EntityType

Span = tuple[int, int, str]

# How many longer names are plain ones, without another name inside.
_PLAIN_SHARE = 0.2


def write_nested_name(
    rng: random.Random, types: Sequence[EntityType], kind: int, length: int
) -> tuple[list[str], list[Span]]:
    """Write the name of an entity, most longer ones with another name inside.

    The form of a name says what is inside, so that the words always decide:

    - "North Kelford" is named after another entity of its type;
    - "Holdings of Kelford" after one of the type before it;
    - "Kelson Holdings" after one of the type two before it, which is never nested itself.

    Types are counted in a ring.

    Parameters
    ----------
    rng : random.Random
    types : sequence of EntityType
    kind : int
        Index of the type of the whole name.
    length : int
        Words of the whole name.

    Returns
    -------
    words : list of str of the given length
    spans : list of (start, end, label)
        All entities, the whole name first; ``end`` is exclusive.
    """
    own = types[kind]
    forms = []
    if length >= 2 and rng.random() >= _PLAIN_SHARE:
        forms += ["after its type"] if own.prefixes else []
        forms += ["before a head"] if own.suffixes else []
        forms += ["after a head"] if length >= 3 else []
    form = rng.choice(forms) if forms else "plain"
    if form == "after its type":
        inner, spans = write_nested_name(rng, types, kind, length - 1)
        words = [rng.choice(own.prefixes), *inner]
    elif form == "after a head":
        inner, spans = write_nested_name(rng, types, kind - 1, length - 2)
        words = [rng.choice(own.prefixes + own.suffixes or own.names), "of", *inner]
    elif form == "before a head":
        inner, spans = _write_plain_name(rng, types[(kind - 2) % len(types)], length - 1)
        words = [*inner, rng.choice(own.suffixes)]
    else:
        return _write_plain_name(rng, own, length)
    shift = 0 if form == "before a head" else length - len(inner)
    inside = [(start + shift, end + shift, label) for start, end, label in spans]
    return words, [(0, length, own.name), *inside]


def _write_plain_name(
    rng: random.Random, kind: EntityType, length: int
) -> tuple[list[str], list[Span]]:
    return rng.sample(kind.names, length), [(0, length, kind.name)]
