"""The encoded data set; texts that are too long become windows or lose their end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ._tokenizer import Ragged, TextReader, offsets_from_lengths, ranges

# Shapes of words are token types from 1 on, for encoders that ignore case; special tokens have 0.
N_SHAPES = 8


@dataclass(frozen=True)
class EncodedDataset:
    """Texts as windows of piece ids, and the items in them that are scored.

    An *item* is what gets a row of logits: a word of a tagger, a row of a classifier. Every item is
    scored in one window only. Windows and items keep the order of the texts; text i has the items
    ``item_offsets[i]:item_offsets[i + 1]``.
    """

    input_ids: Ragged  # a row for each window, int32; special tokens included
    token_type_ids: Ragged  # aligned with them
    items: Ragged  # positions in the window of the pieces whose logits count, int32
    text: np.ndarray  # that each window belongs to, (n_windows,), int64
    n_texts: int  # those without items included
    # (n_items,): class indices. Multi-label: (n_items, n_labels), 0 and 1. Questions and queries:
    # (n_items, 2), whether an answer or entity starts there, and whether one ends there.
    target: np.ndarray | None = None
    weight: np.ndarray | None = None  # (n_texts,), float32
    # A row for each window with the (start, end) of each entity that lies in it, as numbers of its
    # items, (n_entities, 2). Of queries only.
    matches: Ragged | None = None
    # What is added to the logits of a network, (n_items, n_outputs), float32. Of pairs only.
    offset: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.text)

    @cached_property
    def item_offsets(self) -> np.ndarray:
        """Where the items of each text start and end, (n_texts + 1,), int64."""
        n_items = np.bincount(self.text, self.items.lengths, self.n_texts).astype(np.int64)
        return offsets_from_lengths(n_items)

    @property
    def text_weight(self) -> np.ndarray:
        """The weight of each text, float64; 1 where none is given."""
        return np.ones(self.n_texts) if self.weight is None else self.weight.astype(np.float64)

    def positives_first(self, is_positive: np.ndarray) -> np.ndarray:
        """Return the group of each text, 0 or 1, from which of its items are positive."""
        text = np.repeat(np.arange(self.n_texts), np.diff(self.item_offsets))
        group = np.ones(self.n_texts, dtype=np.int64)
        group[text[is_positive]] = 0
        return group


def encode_words(
    sentences: Sequence[Sequence[str]],
    reader: TextReader,
    stride: int,
    *,
    with_shapes: bool = False,
) -> EncodedDataset:
    """Encode sentences given as words, an item per word.

    A word is scored on its first piece, in the window where that piece is most central. Sentences
    without words have no window; windows in which no word is scored are left out. Neighbouring
    windows share ``stride`` pieces. With shapes, the token type of a piece is the shape of its
    word. It is 0 for special tokens, and in sentences without a capital letter, whose case tells
    nothing.
    """
    tokenizer, frame = reader.tokenizer, reader.tokenizer.frame
    words = [word for sentence in sentences for word in sentence]
    word_offsets = offsets_from_lengths([len(sentence) for sentence in sentences])
    pieces = tokenizer.encode(words)
    first = pieces.offsets[:-1]  # The first piece of each word, counted through all words.
    text_offsets = pieces.offsets[word_offsets]
    capacity = reader.max_length - frame.n_special
    text, start, stop = cut_windows(np.diff(text_offsets), capacity, stride)
    start, stop = start + text_offsets[text], stop + text_offsets[text]
    owner = central_window(first, text, start, stop)
    position = first - start[owner] + len(frame.special[0])
    n_items = np.bincount(owner, minlength=len(start))
    scored = n_items > 0
    start, stop = start[scored], stop[scored]
    input_ids, token_type_ids = frame.put_around(pieces.cut(start, stop))
    if with_shapes:
        has_capital = [any(word != word.lower() for word in sentence) for sentence in sentences]
        is_told = np.repeat(np.array(has_capital, dtype=bool), np.diff(word_offsets))
        shapes = Ragged(np.repeat(word_shapes(words) * is_told, pieces.lengths), pieces.offsets)
        zeros = tuple((0,) * len(group) for group in frame.special)
        token_type_ids = replace(frame, special=zeros).put_around(shapes.cut(start, stop))[0]
    return EncodedDataset(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        items=Ragged(position.astype(np.int32), offsets_from_lengths(n_items[scored])),
        text=text[scored],
        n_texts=len(sentences),
    )


def encode_rows(
    rows: Sequence[Sequence[str]],
    n_texts: int,
    reader: TextReader,
    truncation: str,
    number: np.ndarray | None = None,
) -> tuple[EncodedDataset, np.ndarray]:
    """Return rows of one or two texts, each a window and an item, and the pieces that each needs.

    A row that needs more than ``max_length`` pieces, special ones included, is cut. Errors name a
    row by its ``number``, by default its place.
    """
    n_rows, tokenizer = len(rows), reader.tokenizer
    frame = tokenizer.pair_frame if n_texts == 2 else tokenizer.frame
    pieces = tokenizer.encode([text for row in rows for text in row], as_words=False)
    texts = [pieces.take(np.arange(i, len(pieces), n_texts)) for i in range(n_texts)]
    lengths = [text.lengths for text in texts]
    kept = truncated_lengths(lengths, reader.max_length - frame.n_special, truncation, number)
    starts = [text.offsets[:-1] for text in texts]
    parts = [text.cut(start, start + n) for text, start, n in zip(texts, starts, kept)]
    input_ids, token_type_ids = frame.put_around(*parts)
    dataset = EncodedDataset(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        items=Ragged(np.zeros(n_rows, dtype=np.int32), np.arange(n_rows + 1)),
        text=np.arange(n_rows),
        n_texts=n_rows,
    )
    return dataset, np.sum(lengths, axis=0) + frame.n_special


def word_shapes(words: Sequence[str]) -> np.ndarray:
    """Return the shape of each word, from 1 to 8, int32."""
    known = {word: _shape(word) for word in set(words)}
    return np.array([known[word] for word in words], dtype=np.int32)


def are_characters(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether nearly all words of sentences are single characters."""
    lengths = [len(word) for words in sentences for word in words]
    return lengths.count(1) > 0.9 * len(lengths)


def _shape(word: str) -> int:
    if any(character.isdigit() for character in word):
        return 1 if word.isdigit() else 2  # digits alone, or with others
    if not any(character.isalpha() for character in word):
        return 3  # neither letters nor digits
    if word.islower():
        return 4
    if word.isupper():
        return 5 if len(word) > 1 else 6  # several letters, or one
    is_capitalised = word[0].isupper() and word[1:].islower()
    return 7 if is_capitalised else 8


def cut_windows(
    n_pieces: np.ndarray, capacity: np.ndarray | int, stride: np.ndarray | int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut texts into windows that cover them: the text, start and stop of each, ascending.

    A window has up to ``capacity`` pieces, special ones not counted, and shares ``stride`` or more
    with its neighbour; all windows of a cut text are full (the last one overlaps more).
    """
    n_pieces, capacity, stride = np.broadcast_arrays(n_pieces, capacity, stride)
    too_many = np.maximum(n_pieces - capacity, 0)
    step = np.maximum(capacity - stride, 1)  # Texts of one window do not use it.
    n_windows = 1 - (-too_many // step)
    text = np.repeat(np.arange(len(n_pieces)), n_windows)
    number = ranges(np.zeros_like(n_windows), n_windows)
    start = np.minimum(number * step[text], too_many[text])
    return text, start, np.minimum(start + capacity[text], n_pieces[text])


def central_window(
    position: np.ndarray, text: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> np.ndarray:
    """Return, for each position, the number of the window in which it is most central.

    A position is taken from the window that leaves it most context on its poorer side; the ends of
    a text are no lack of context. Ties go to the earlier window. Positions and the windows of
    :func:`cut_windows` are counted through all texts.
    """
    last = 2 * stop - 1
    halfway = start[1:] + stop[:-1] - 1  # Between a window and the next one, which it overlaps.
    last[:-1] = np.where(text[1:] == text[:-1], halfway, last[:-1])
    return np.searchsorted(last, 2 * position)


def span_bounds(
    row: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return between which centres the spans of each window lie.

    A span from position i to position j has the centre i + j (twice its middle). It belongs to the
    window in which it is most central, as in :func:`central_window`: so every span that is in a
    window belongs to exactly one, whose ``low < i + j <= high``. The windows of a row lie side by
    side in ascending order.
    """
    low = np.full(len(row), -1, dtype=np.int64)
    high = np.full(len(row), np.iinfo(np.int64).max)
    is_same = row[1:] == row[:-1]
    halfway = (start[1:] + stop[:-1] - 1)[is_same]
    low[1:][is_same] = halfway
    high[:-1][is_same] = halfway
    return low, high


def room_beside(
    n_asked: np.ndarray,
    reader: TextReader,
    stride: int | None,
    n_pieces: np.ndarray | float,
    name: Callable[[int], str],
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many pieces of a text fit beside a query, and how many its windows share.

    Windows share ``stride`` pieces, by default a quarter of those that fit. A query that leaves no
    room, or too little to cut a text of ``n_pieces``, is a ValueError, which calls it ``name(i)``.
    """
    room = reader.max_length - reader.tokenizer.pair_frame.n_special - n_asked
    least = 1 if stride is None else stride + 1
    too_long = np.flatnonzero((room < 1) | ((room < least) & (room < n_pieces)))
    if len(too_long):
        i = int(too_long[0])
        others = f" ({len(too_long)} are too long)" if len(too_long) > 1 else ""
        raise ValueError(
            f"{name(i)} has {n_asked[i]} pieces, which leaves {max(room[i], 0)} pieces of "
            f"max_length={reader.max_length} for its text{others}. At least {least} must be left "
            f"with stride={stride}."
        )
    return room, room // 4 if stride is None else np.full_like(room, stride)


def truncated_lengths(
    lengths: list[np.ndarray], capacity: int, truncation: str, number: np.ndarray | None = None
) -> list[np.ndarray]:
    """Return how many pieces of each text are kept, of rows of one or two texts.

    A row may have ``capacity`` pieces. "longest_first" takes pieces from the end of the longer text
    until the row fits (of a tie, from the second), "second" from the second text only. A row that
    is too long with "error", or whose first text alone is with "second", is a ValueError, which
    names it by its ``number``.
    """
    keeps_first = truncation == "second" and len(lengths) == 2
    uncut = lengths[0] if keeps_first else np.sum(lengths, axis=0)
    too_long = np.flatnonzero(uncut > capacity)
    if len(too_long) and (keeps_first or truncation == "error"):
        row = too_long[0] if number is None else number[too_long[0]]
        others = f" ({len(too_long)} rows are too long)" if len(too_long) > 1 else ""
        raise ValueError(
            f"{'The first text of row' if keeps_first else 'Row'} {row} has {uncut[too_long[0]]} "
            f"pieces, and {capacity} are allowed{others}. Raise max_length, or take "
            f"truncation='longest_first'."
        )
    if len(lengths) == 1:
        return [np.minimum(lengths[0], capacity)]
    first, second = lengths
    if not keeps_first:
        first = np.minimum(first, np.maximum(capacity - second, capacity - capacity // 2))
    return [first, np.minimum(second, capacity - first)]


@dataclass(frozen=True)
class Draw:
    """How many texts of each group an epoch draws; every epoch draws anew."""

    group: np.ndarray  # of each text
    n_texts: np.ndarray  # how many of each group have a window
    n_drawn: np.ndarray  # how many of these an epoch has

    @property
    def share(self) -> np.ndarray:
        """The share of its group that an epoch has, for each text."""
        share: np.ndarray = (self.n_drawn / np.maximum(self.n_texts, 1))[self.group]
        return share


def capped(n_texts: np.ndarray, ratio: float) -> np.ndarray:
    """Count the texts of each group in an epoch: at most ratio times all groups before it."""
    n_drawn = n_texts.copy()
    for i in range(1, len(n_texts)):
        if before := n_drawn[:i].sum():
            n_drawn[i] = min(n_texts[i], max(1, round(ratio * before)))
    return n_drawn
