"""The encoded data set: what fitting, searching, caching and checkpoints share."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ._frame import Frame
from ._ragged import Ragged, offsets_from_lengths, ranges
from ._shapes import word_shapes
from ._tokenizer import WordTokenizer
from ._truncation import truncated_lengths
from ._windows import central_window, cut_windows


@dataclass(frozen=True)
class EncodedDataset:
    """Texts as windows of piece ids, and the items in them that are scored.

    An *item* is what gets a row of logits: a word of a tagger, a row of a classifier. Every item is
    scored in one window only. Windows and items keep the order of the texts.

    Attributes
    ----------
    input_ids : Ragged of n_windows rows, int32
        Piece ids, special tokens included.
    token_type_ids : Ragged of n_windows rows, int32
        Token types, aligned with ``input_ids``.
    items : Ragged of n_windows rows, int32
        Positions in the window of the pieces whose logits count.
    text : ndarray of shape (n_windows,), int64
        Index of the text that each window belongs to.
    item_offsets : ndarray of shape (n_texts + 1,), int64
        Text i has the items ``item_offsets[i]:item_offsets[i + 1]``.
    target : ndarray of shape (n_items,) or (n_items, n_labels), int64, or None
        Class index of each item; multi-label, 0 or 1 for each label.
    weight : ndarray of shape (n_texts,), float32, or None
        Weight of each text.
    """

    input_ids: Ragged
    token_type_ids: Ragged
    items: Ragged
    text: np.ndarray
    item_offsets: np.ndarray
    target: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.text)

    @property
    def n_texts(self) -> int:
        """Number of texts, those without items included."""
        return len(self.item_offsets) - 1

    @property
    def n_items(self) -> int:
        """Number of items of all texts."""
        return int(self.item_offsets[-1])

    def take(self, texts: np.ndarray) -> "EncodedDataset":
        """Return the data set of the given texts, in that order."""
        first = np.searchsorted(self.text, np.arange(self.n_texts + 1))
        start, stop = first[texts], first[texts + 1]
        windows = ranges(start, stop)
        item_start, item_stop = self.item_offsets[texts], self.item_offsets[texts + 1]
        items = ranges(item_start, item_stop)
        return EncodedDataset(
            input_ids=self.input_ids.take(windows),
            token_type_ids=self.token_type_ids.take(windows),
            items=self.items.take(windows),
            text=np.repeat(np.arange(len(texts)), stop - start),
            item_offsets=offsets_from_lengths(item_stop - item_start),
            target=None if self.target is None else self.target[items],
            weight=None if self.weight is None else self.weight[texts],
        )

    @property
    def fingerprint(self) -> str:
        """Digest of everything in the data set, the same on every machine."""
        digest = hashlib.blake2b(digest_size=16)
        for field in fields(self):
            value = getattr(self, field.name)
            arrays = [value.values, value.offsets] if isinstance(value, Ragged) else [value]
            for array in arrays:
                head = (field.name, None if array is None else (array.dtype.str, array.shape))
                digest.update(repr(head).encode())
                if array is not None:
                    digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def encode_words(
    sentences: Sequence[Sequence[str]],
    tokenizer: WordTokenizer,
    max_length: int,
    stride: int,
    *,
    with_shapes: bool = False,
) -> EncodedDataset:
    """Encode sentences given as words, an item per word.

    A word is scored on its first piece, in the window where that piece is most central. Sentences
    without words have no window; windows in which no word is scored are left out.

    Parameters
    ----------
    sentences : sequence of sequences of str
    tokenizer : WordTokenizer
    max_length : int
        Longest window in pieces, special ones included.
    stride : int
        Pieces that neighbouring windows share.
    with_shapes : bool
        Whether the token type of a piece is the shape of its word (of a special token 0).
    """
    words = [word for sentence in sentences for word in sentence]
    word_offsets = offsets_from_lengths([len(sentence) for sentence in sentences])
    pieces = tokenizer.encode(words)
    first = pieces.offsets[:-1]  # of each word, in the flat pieces
    text_start = pieces.offsets[word_offsets[:-1]]
    n_pieces = pieces.offsets[word_offsets[1:]] - text_start

    capacity = max_length - tokenizer.frame.n_special
    text = np.flatnonzero(n_pieces)
    cuts = [cut_windows(n, capacity, stride) for n in n_pieces[text]]
    n_windows = np.array([len(start) for start, _ in cuts], dtype=np.int64)
    window_offsets = offsets_from_lengths(n_windows)
    window_text = np.repeat(text, n_windows)
    start = np.concatenate([start for start, _ in cuts] or [np.zeros(0, np.int64)])
    stop = np.concatenate([stop for _, stop in cuts] or [np.zeros(0, np.int64)])
    start, stop = start + text_start[window_text], stop + text_start[window_text]

    owner = np.repeat(window_offsets[:-1], np.diff(word_offsets)[text])
    for i in np.flatnonzero(n_windows > 1):
        of_text = slice(word_offsets[text[i]], word_offsets[text[i] + 1])
        mine = slice(window_offsets[i], window_offsets[i + 1])
        owner[of_text] += central_window(first[of_text], start[mine], stop[mine])

    n_items = np.bincount(owner, minlength=len(start))
    position = first - start[owner] + tokenizer.frame.n_before
    scored = n_items > 0
    start, stop = start[scored], stop[scored]
    windows = Ragged(pieces.values[ranges(start, stop)], offsets_from_lengths(stop - start))
    input_ids, token_type_ids = tokenizer.frame.put_around(windows)
    if with_shapes:
        of_pieces = np.repeat(word_shapes(words), pieces.lengths)
        shapes = Ragged(of_pieces[ranges(start, stop)], windows.offsets)
        token_type_ids = tokenizer.frame.of_zeros().put_around(shapes)[0]
    return EncodedDataset(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        items=Ragged(position.astype(np.int32), offsets_from_lengths(n_items[scored])),
        text=window_text[scored],
        item_offsets=word_offsets,
    )


def encode_rows(
    rows: Sequence[Sequence[str]],
    tokenizer: WordTokenizer,
    frame: Frame,
    max_length: int,
    truncation: str,
) -> tuple[EncodedDataset, np.ndarray]:
    """Encode rows of one or two texts, a window and an item per row.

    Parameters
    ----------
    rows : sequence of tuples of str
        All of one length, 1 or 2.
    tokenizer : WordTokenizer
    frame : Frame
        The special tokens around so many texts.
    max_length : int
        Longest row in pieces, special ones included.
    truncation : {"longest_first", "second", "error"}
        What is done with longer rows, see :func:`truncated_lengths`.

    Returns
    -------
    dataset : EncodedDataset
    cut : ndarray
        The rows that were too long.
    """
    n_rows = len(rows)
    n_texts = len(frame.text_types)
    pieces = tokenizer.encode_texts([text for row in rows for text in row])
    texts = [pieces.take(np.arange(i, len(pieces), n_texts)) for i in range(n_texts)]
    lengths = [text.lengths for text in texts]
    kept = truncated_lengths(lengths, max_length - frame.n_special, truncation)
    input_ids, token_type_ids = frame.put_around(
        *(text.heads(length) for text, length in zip(texts, kept))
    )
    one_each = np.arange(n_rows + 1, dtype=np.int64)
    dataset = EncodedDataset(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        items=Ragged(np.zeros(n_rows, dtype=np.int32), one_each),
        text=one_each[:-1],
        item_offsets=one_each,
    )
    return dataset, np.flatnonzero(np.sum(kept, axis=0) < np.sum(lengths, axis=0))
