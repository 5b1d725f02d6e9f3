"""Rows with their entity mentions replaced by others of the same type."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from .._parameters import check_bool
from .._random_state import RandomState, make_rng
from ._gazetteer import check_gazetteer, fold, make_key
from ._mentions import RowMentions, Spans, check_mentions
from ._rows import Row, Texts, make_row, read_row

# Random tries for a mention that differs from all others of its row.
_MAX_TRIES = 20
# Draws in a row without a new row after which all choices are listed.
_MAX_MISSES = 10
# Choices in a row that make the texts of a pair equal, after which the pair is given up: if the
# cause is one mention, the choices for all others are too many to go through.
_MAX_REJECTED = 1000


def swap_mentions(
    row: Row,
    mentions: RowMentions,
    gazetteer: Mapping[str, Sequence[str]],
    *,
    shared_only: bool = False,
    random_state: RandomState = None,
) -> Row | None:
    """Replace the entity mentions of a row by random others of the same type.

    Mentions are the same if they differ in upper and lower case or white space only. The same
    mention gets the same replacement everywhere in the row. Different mentions stay different, also
    from those that are left alone, as long as the gazetteer has enough entries. A replacement is
    never the mention that it replaces, and never makes the two texts of a pair equal.

    Parameters
    ----------
    row : str or 2-tuple of str
    mentions : list of Entity, for a pair a tuple of two such lists
        With character offsets, as `find_mentions` gives them; ``(start, end, label)`` will do.
    gazetteer : dict of str to list of str
        The mentions of each type. Other types are left alone. A mention with several types in one
        row has the first for which the gazetteer has something else.
    shared_only : bool, default=False
        Replace only what is mentioned in both texts of a pair, so that a paraphrase stays one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draw. NumPy's global random state is neither read nor changed.

    Returns
    -------
    str or 2-tuple of str, or None
        The new row; None if nothing in it can be replaced.

    Raises
    ------
    TypeError
        If the gazetteer is no mapping of str to lists of str.
    ValueError
        If the row or a parameter is invalid, or mentions overlap or lie outside of their text.

    See Also
    --------
    augment : Many rows at once, all distinct.

    Examples
    --------
    >>> from skdice.augmentation import swap_mentions
    >>> pair = ("Is Oslo north of Kiel?", "Oslo - how far north?")
    >>> mentions = ([(3, 7, "LOC"), (17, 21, "LOC")], [(0, 4, "LOC")])
    >>> swap_mentions(pair, mentions, {"LOC": ["Rome", "Kiel"]}, shared_only=True)
    ('Is Rome north of Kiel?', 'Rome - how far north?')
    >>> swap_mentions(pair, mentions, {"PER": ["Ann"]}) is None
    True
    """
    rng = make_rng(random_state, "swap_mentions")
    check_bool("swap_mentions", "shared_only", shared_only)
    texts = read_row(row, "the row")
    check_shared_only(bool(shared_only), len(texts))
    spans = check_mentions(texts, mentions, "the row")
    template = make_template(texts, spans, check_gazetteer(gazetteer), bool(shared_only))
    swapped = None if template is None else next(iter_swaps(template, rng), None)
    return None if swapped is None else make_row(swapped)


class Template(NamedTuple):
    """A row with mentions that can be swapped.

    Attributes
    ----------
    texts : tuple of str
    slots : tuple of lists of (start, end, number)
        Where in each text which of the distinct mentions stands, ascending.
    keys : list of str
        Of each distinct mention that is to be swapped; those with the fewest entries come first.
    entries : list of lists of str
        The gazetteer entries of its type.
    kept : frozenset of str
        Keys of the mentions that are left alone and that no replacement may be.
    are_different : bool
        Whether all replacements must differ. They need not if there are too few entries; then each
        differs from those before it as long as there is such an entry.
    """

    texts: Texts
    slots: tuple[list[tuple[int, int, int]], ...]
    keys: list[str]
    entries: list[list[str]]
    kept: frozenset[str]
    are_different: bool

    def list_options(self, number: int) -> Iterator[str]:
        """Yield the entries that may replace a mention, whatever replaces the others."""
        # If there are too few of them, a mention that is left alone is better than nothing.
        kept = self.kept if self.are_different else frozenset()
        for entry in self.entries[number]:
            key = make_key(entry)
            if key != self.keys[number] and key not in kept:
                yield entry


def check_shared_only(shared_only: bool, n_texts: int) -> None:
    """Raise a ValueError for ``shared_only=True`` with single texts."""
    if shared_only and n_texts == 1:
        raise ValueError("shared_only=True needs pairs (2-tuples of str); got a single text.")


def make_template(
    texts: Texts, spans: tuple[Spans, ...], gazetteer: Mapping[str, list[str]], shared_only: bool
) -> Template | None:
    """Return what can be swapped in a row, None if nothing can be.

    All arguments are checked ones.
    """
    keys_of_texts = [
        [make_key(text[start:end]) for start, end, _ in found] for text, found in zip(texts, spans)
    ]
    shared = set.intersection(*map(set, keys_of_texts))
    entries: dict[str, list[str]] = {}
    for keys, found in zip(keys_of_texts, spans):
        for key, (_, _, label) in zip(keys, found):
            if key in entries or (shared_only and key not in shared):
                continue
            listed = gazetteer.get(label, [])
            if any(make_key(entry) != key for entry in listed):
                entries[key] = listed
    if not entries:
        return None
    # Fewest entries first: a search for different ones that gets stuck does so early.
    keys_to_swap = sorted(entries, key=lambda key: len(entries[key]))
    numbers = {key: i for i, key in enumerate(keys_to_swap)}
    slots = tuple(
        [(start, end, numbers[key]) for key, (start, end, _) in zip(keys, found) if key in numbers]
        for keys, found in zip(keys_of_texts, spans)
    )
    kept = frozenset(key for keys in keys_of_texts for key in keys if key not in numbers)
    listed_entries = [entries[key] for key in keys_to_swap]
    template = Template(texts, slots, keys_to_swap, listed_entries, kept, True)
    for candidate in (template, template._replace(kept=frozenset())):
        if _can_differ(candidate):
            return candidate
    return template._replace(are_different=False)


def iter_swaps(template: Template, rng: random.Random) -> Iterator[Texts]:
    """Yield the rows that can be made of a template, each choice of mentions once.

    The first ones are independent draws. When these begin to repeat themselves, the others follow,
    so that the iterator ends when there is nothing left.
    """
    drawn: set[tuple[str, ...]] = set()
    n_misses = 0
    while n_misses < _MAX_MISSES:
        n_misses += 1
        chosen = _draw(template, rng)
        if chosen is not None and chosen not in drawn:
            drawn.add(chosen)
            texts = _fill(template, chosen)
            if _is_acceptable(texts, template.texts):
                n_misses = 0
                yield texts
    n_misses = 0
    for chosen in _iter_all(template, rng):
        if chosen in drawn:
            continue
        texts = _fill(template, chosen)
        if _is_acceptable(texts, template.texts):
            n_misses = 0
            yield texts
        elif (n_misses := n_misses + 1) == _MAX_REJECTED:
            return


def _draw(template: Template, rng: random.Random) -> tuple[str, ...] | None:
    """Draw a replacement for each mention, or give up."""
    taken = set(template.kept)
    chosen: list[str] = []
    for number, entries in enumerate(template.entries):
        is_free = template.are_different or _has_free(template, number, taken)
        for _ in range(_MAX_TRIES):
            entry = rng.choice(entries)
            key = make_key(entry)
            if key != template.keys[number] and not (is_free and key in taken):
                break
        else:
            return None
        taken.add(key)
        chosen.append(entry)
    return tuple(chosen)


def _iter_all(template: Template, rng: random.Random) -> Iterator[tuple[str, ...]]:
    """Yield every choice of replacements, in a random order."""
    options = [list(template.list_options(number)) for number in range(len(template.keys))]
    for listed in options:
        rng.shuffle(listed)

    def list_candidates() -> Iterator[str]:
        taken = template.kept.union(map(make_key, chosen))
        listed = options[len(chosen)]
        free = [entry for entry in listed if make_key(entry) not in taken]
        return iter(free if free or template.are_different else listed)

    chosen: list[str] = []
    untried = [list_candidates()]
    while untried:
        entry = next(untried[-1], None)
        if entry is None:
            untried.pop()
            if chosen:
                chosen.pop()
        elif len(chosen) + 1 == len(options):
            yield (*chosen, entry)
        else:
            chosen.append(entry)
            untried.append(list_candidates())


def _has_free(template: Template, number: int, taken: Collection[str]) -> bool:
    return any(make_key(entry) not in taken for entry in template.list_options(number))


def _can_differ(template: Template) -> bool:
    """Return whether all mentions can have different replacements (bipartite matching)."""
    owners: dict[str, int] = {}
    owned: dict[int, str] = {}
    for start in range(len(template.keys)):
        # Breadth-first to a free entry, over the mentions that would have to hand theirs on.
        reached_from: dict[str, int] = {}
        queue = [start]
        key: str | None = None
        for number in queue:
            key = _find_free_key(template, number, owners, reached_from, queue)
            if key is not None:
                break
        if key is None:
            return False
        while key is not None:
            number = reached_from[key]
            handed_on = owned.get(number)
            owners[key], owned[number] = number, key
            key = handed_on
    return True


def _find_free_key(
    template: Template,
    number: int,
    owners: Mapping[str, int],
    reached_from: dict[str, int],
    queue: list[int],
) -> str | None:
    """Return an entry without an owner for a mention; note the others and queue their owners."""
    for key in map(make_key, template.list_options(number)):
        if key not in reached_from:
            reached_from[key] = number
            if key not in owners:
                return key
            queue.append(owners[key])
    return None


def _fill(template: Template, chosen: Sequence[str]) -> Texts:
    filled = []
    for text, slots in zip(template.texts, template.slots):
        parts = []
        position = 0
        for start, end, number in slots:
            parts += [text[position:start], chosen[number]]
            position = end
        filled.append("".join(parts) + text[position:])
    return tuple(filled)


def _is_acceptable(texts: Texts, given: Texts) -> bool:
    """Return whether the row is new, and no pair of equal texts unless it was one before."""
    if texts == given:
        return False
    if len(texts) == 1:
        return True
    return fold(texts[0]) != fold(texts[1]) or fold(given[0]) == fold(given[1])
