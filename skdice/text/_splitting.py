"""Where the words of raw texts lie."""

import operator
import re
import unicodedata
from collections.abc import Callable, Sequence

from .._parameters import not_allowed

Splitter = Callable[[str], Sequence[tuple[int, int]]]

# Thai, Lao, Burmese, Khmer, kana and Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def split_words(text: str) -> list[tuple[int, int]]:
    """Return where the words of a raw text lie: the splitter ``"words"``.

    White space parts words, and every punctuation mark or symbol (Unicode categories P and S) is a
    word of its own: "Oslo, e.g." has six. Marks and invisible characters stay with their word.
    """
    spans = []
    for start, stop in split_at_spaces(text):
        is_symbol = False
        for i in range(start, stop):
            category = unicodedata.category(text[i])
            stays = category[0] == "M" or category == "Cf"
            if i > start and not stays and (is_symbol or category[0] in "PS"):
                spans.append((start, i))
                start = i
            is_symbol = category[0] in "PS" or (is_symbol and stays)
        spans.append((start, stop))
    return spans


def split_at_spaces(text: str) -> list[tuple[int, int]]:
    """Return where white space leaves something: the splitter ``"whitespace"``."""
    return [match.span() for match in re.finditer(r"\S+", text)]


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
        names = ", ".join(map(repr, SPLITTERS))
        allowed = f"one of {names} or a callable from a text to (start, end) offsets"
        raise not_allowed(owner, "splitter", allowed, splitter)
    return splitter


def checked_split(splitter: Splitter, text: str, row: int) -> list[tuple[int, int]]:
    """Split a text and make sure that the spans are ascending, not empty and inside the text."""
    spans: list[tuple[int, int]] = []
    for span in splitter(text):
        try:
            start, end = map(operator.index, span)
        except (TypeError, ValueError):
            start = end = -1
        if not (spans[-1][1] if spans else 0) <= start < end <= len(text):
            raise ValueError(
                f"The splitter must give ascending (start, end) offsets, start < end, inside the "
                f"text; for row {row} (length {len(text)}) it gave {span!r}."
            )
        spans.append((start, end))
    return spans


def find_word(text: str, context: str) -> tuple[list[int], bool]:
    """Return where a text occurs in a context as words of it, else wherever it occurs.

    The bool says which. Between two letters or digits there is no border of a word, except where a
    script without spaces has one of them.
    """
    anywhere = [match.start() for match in re.finditer(f"(?={re.escape(text)})", context)]
    as_words = [
        start
        for start in anywhere
        if _is_border(context, start) and _is_border(context, start + len(text))
    ]
    return as_words or anywhere, bool(as_words)


def _is_border(text: str, place: int) -> bool:
    around = text[max(place - 1, 0) : place + 1]
    is_inside = len(around) == 2 and all(unicodedata.category(char)[0] in "LMN" for char in around)
    return not 0 < place < len(text) or not is_inside or bool(_UNSPACED.search(around))


def check_spaced(text: str, row: int, hint: str) -> None:
    """Raise a ValueError for a text mostly in a script without spaces, such as Chinese and Thai."""
    if 2 * len(_UNSPACED.findall(text)) > sum(not char.isspace() for char in text):
        raise ValueError(f"Row {row} is written without spaces: {text[:20]!r}. {hint}")
