"""Gazetteers: the mentions of each entity type."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from .._inputs import check_tags, check_token_lists, describe
from .._typing import TagSequences, TokenLists
from ..metrics._entities import find_entities
from ..text._tags import are_chunk_tags

_APOSTROPHES = ("'", "’")
_CLOSING = frozenset(",.;:!?)]}%")
_OPENING = frozenset("([{")
_JOINING = frozenset("-–/")


def collect_mentions(X: TokenLists, y: TagSequences) -> dict[str, list[str]]:
    """Collect the mentions of each entity type from tagged sentences.

    Parameters
    ----------
    X : list, tuple, Series or array of lists of str
        The words of each sentence.
    y : the same of lists of str
        Chunk tags (``"O"``, ``"B-PER"``, ...) in any scheme, one for each word.

    Returns
    -------
    dict of str to list of str
        The types in alphabetical order, and the distinct mentions of each, sorted.

    Raises
    ------
    TypeError
        If X or y is of another kind.
    ValueError
        If a row is no list of str, X and y differ in length, a row has more or fewer tags than
        words, or y has tags that are no chunk tags.

    See Also
    --------
    swap_mentions : What the collection is for.

    Notes
    -----
    The words of a mention are joined by a space, but not before ``, . ; : ! ? ) ] } %`` and a
    word that starts with an apostrophe, not after ``( [ {``, and not around ``-``, ``–`` and
    ``/``. After an apostrophe that is a word of its own there is none before an ``s`` or behind a
    single letter (``l ' Abbaye``). Quotation marks and dots inside abbreviations are not known.

    Examples
    --------
    >>> from skdice.augmentation import collect_mentions
    >>> X = [["Ann", "Lee", "saw", "St", ".", "Olav", "'s", "Church"], ["Bo", "left", "Oslo"]]
    >>> y = [["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "I-LOC", "I-LOC", "I-LOC"],
    ...      ["B-PER", "O", "B-LOC"]]
    >>> collect_mentions(X, y)
    {'LOC': ['Oslo', "St. Olav's Church"], 'PER': ['Ann Lee', 'Bo']}
    """
    sentences = check_token_lists(X)
    tags = check_tags(y, sentences)
    collected: dict[str, set[str]] = {}
    distinct_tags: set[str] = set()
    for i, (words, row_tags) in enumerate(zip(sentences, tags)):
        for tag in set(row_tags) - distinct_tags:
            if tag != "O" and not are_chunk_tags([tag]):
                raise ValueError(
                    "y must have chunk tags, 'O' and 'B-x', 'I-x', ... (or another scheme); row "
                    f"{i} has {tag!r}."
                )
            distinct_tags.add(tag)
        for start, end, label in find_entities(row_tags, None, f"row {i} of y"):
            mention = _join_words(words[start:end])
            if mention:
                collected.setdefault(label, set()).add(mention)
    return {label: sorted(collected[label]) for label in sorted(collected)}


def check_gazetteer(gazetteer: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return a copy of a gazetteer without repeated mentions.

    Raises
    ------
    TypeError
        If it is no mapping of str to lists of str.
    ValueError
        If a mention is empty.
    """
    allowed = "gazetteer must map each entity type (str) to a list or tuple of mentions (str)"
    if not isinstance(gazetteer, Mapping):
        raise TypeError(f"{allowed}; got {describe(gazetteer)}.")
    checked = {}
    for label, mentions in gazetteer.items():
        # A set has no order of its own, and a seed would not give the same rows again.
        if not isinstance(label, str) or not isinstance(mentions, list | tuple):
            raise TypeError(f"{allowed}; got {label!r}: {describe(mentions)}.")
        for i, mention in enumerate(mentions):
            if not isinstance(mention, str):
                raise TypeError(f"{allowed}; mention {i} of {label!r} is {describe(mention)}.")
            if not mention.strip():
                raise ValueError(f"{allowed}; mention {i} of {label!r} is empty: {mention!r}.")
        checked[label] = list(dict.fromkeys(mentions))
    return checked


def fold(text: str) -> str:
    """Return a text as it is compared: upper and lower case and white space do not count."""
    return " ".join(text.casefold().split())


# The same entries are compared over and over.
make_key = lru_cache(maxsize=2**16)(fold)


def _join_words(words: Sequence[str]) -> str:
    text = ""
    for i, word in enumerate(words):
        if i > 0 and not _are_joined(words[i - 1], word, words[i - 2] if i > 1 else ""):
            text += " "
        text += word
    return text.strip()


def _are_joined(before: str, word: str, second_before: str) -> bool:
    """Return whether no space stands between two words of a text."""
    if before in _APOSTROPHES and (word in ("s", "S") or len(second_before) == 1):
        return True
    return (
        word.startswith(_APOSTROPHES)
        or word in _CLOSING | _JOINING
        or before in _OPENING | _JOINING
    )
