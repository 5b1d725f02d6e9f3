"""Where the words of raw texts lie, and the characters of tagged words."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from .._inputs import check_tags, check_token_lists
from .._parameters import not_allowed

Splitter = Callable[[str], Sequence[tuple[int, int]]]

# Thai, Lao, Burmese, Khmer, kana and Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_SPACED = re.compile(r"\S+")


def split_words(text: str) -> list[tuple[int, int]]:
    """Return where the words of a raw text lie: the splitter ``"words"``.

    White space parts words, and every punctuation mark or symbol (Unicode categories P and S) is a
    word of its own: "Oslo, e.g." has six. Marks and invisible characters stay with their word.
    """
    spans: list[tuple[int, int]] = []
    start = None
    for i, char in enumerate(text):
        alone = unicodedata.category(char)[0] in "PS"
        if alone or char.isspace():
            if start is not None:
                spans.append((start, i))
                start = None
            if alone:
                spans.append((i, i + 1))
        elif start is None:
            start = i
    if start is not None:
        spans.append((start, len(text)))
    return spans


def split_at_spaces(text: str) -> list[tuple[int, int]]:
    """Return where white space leaves something: the splitter ``"whitespace"``."""
    return [match.span() for match in _SPACED.finditer(text)]


def split_characters(text: str) -> list[tuple[int, int]]:
    """Return where the characters lie that are no white space: the splitter ``"characters"``."""
    return [(i, i + 1) for i, char in enumerate(text) if not char.isspace()]


SPLITTERS: dict[str, Splitter] = {
    "words": split_words,
    "whitespace": split_at_spaces,
    "characters": split_characters,
}


def find_splitter(owner: str, splitter: str | Splitter) -> Splitter:
    """Return the splitter of a name, or the callable itself; else a ValueError."""
    if isinstance(splitter, str) and splitter in SPLITTERS:
        return SPLITTERS[splitter]
    if not callable(splitter):
        allowed = (
            f"one of {', '.join(map(repr, SPLITTERS))} or a callable from a text to (start, end) "
            "offsets"
        )
        raise not_allowed(owner, "splitter", allowed, splitter)
    return splitter


def checked_split(splitter: Splitter, text: str, row: int) -> list[tuple[int, int]]:
    """Split a text and make sure that the spans are ascending, not empty and inside the text."""
    spans = list(splitter(text))
    before = 0
    for span in spans:
        if not _is_offsets(span) or not before <= span[0] < span[1] <= len(text):
            raise ValueError(
                f"The splitter must give ascending (start, end) offsets, start < end, inside the "
                f"text; for row {row} (length {len(text)}) it gave {span!r}."
            )
        before = span[1]
    return [(int(start), int(end)) for start, end in spans]


def are_characters(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether the words of sentences are single characters, nearly all of them."""
    n_words = n_single = 0
    for words in sentences:
        n_words += len(words)
        n_single += sum(len(word) == 1 for word in words)
    return n_single > 0.9 * n_words


def often_cut(sentences: Sequence[Sequence[str]]) -> list[str]:
    """Return the words that :func:`split_words` cuts most often, if it cuts one in twenty."""
    counts = Counter(word for words in sentences for word in words)
    cut = Counter({word: n for word, n in counts.items() if len(split_words(word)) > 1})
    is_often = cut.total() > 0.05 * counts.total()
    return [word for word, _ in cut.most_common(3)] if is_often else []


def check_spaced(text: str, row: int, hint: str) -> None:
    """Raise a ValueError for a text mostly in a script without spaces, such as Chinese and Thai."""
    if 2 * len(_UNSPACED.findall(text)) > sum(not char.isspace() for char in text):
        raise ValueError(f"Row {row} is written without spaces: {text[:20]!r}. {hint}")


def _is_offsets(span: object) -> bool:
    span = span.tolist() if isinstance(span, np.ndarray) else span
    if not isinstance(span, tuple | list) or len(span) != 2:
        return False
    return all(isinstance(place, int | np.integer) for place in span)


def split_into_characters(
    X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """Turn words with part-of-speech tags into characters that also tell where the words are.

    The first character of a word of tag ``x`` is tagged ``B-x``, the others ``I-x``. A tagger of
    characters then has to find the words, too: entity-level F1 counts a word only if both its
    borders and its tag are right. So the paper judges Chinese part-of-speech tagging (Table 3).

    Characters are Unicode code points: a base letter and each of its combining marks, or the parts
    of an emoji, are characters of their own, and so is a space inside a word. Nothing is
    normalised: ``"".join`` gives the words back.

    Parameters
    ----------
    X : list, Series or object array of list of str
        The words of each sentence.
    y : the same of list of str
        The tags of each sentence, one for each word. Tags of words, not chunk tags (``B-PER``).

    Returns
    -------
    X : list of list of str
        The characters of each sentence, each a string of length 1.
    y : list of list of str
        The tags of each sentence, one for each character, in the scheme IOB2.

    Raises
    ------
    TypeError, ValueError
        If X or y is of another kind, a sentence has not one tag for each word, or a word or a tag
        is empty.

    Examples
    --------
    >>> from skdice.datasets import split_into_characters
    >>> split_into_characters([["他們", "來"]], [["PRON", "VERB"]])
    ([['他', '們', '來']], [['B-PRON', 'I-PRON', 'B-VERB']])
    """
    sentences = check_token_lists(X)
    all_chars: list[list[str]] = []
    all_tags: list[list[str]] = []
    for row, (words, tags) in enumerate(zip(sentences, check_tags(y, sentences))):
        if "" in words or "" in tags:
            what = "words" if "" in words else "tags"
            raise ValueError(f"The {what} must not be empty strings; row {row} has an empty one.")
        all_chars.append([char for word in words for char in word])
        # One object for each tag saves most of the memory of a large corpus.
        borders = {tag: (sys.intern(f"B-{tag}"), sys.intern(f"I-{tag}")) for tag in tags}
        all_tags.append(
            [borders[tag][i > 0] for word, tag in zip(words, tags) for i in range(len(word))]
        )
    return all_chars, all_tags
