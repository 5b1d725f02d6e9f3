"""The encoded data set: what fitting, searching, caching and checkpoints share."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ._ragged import Ragged, offsets_from_lengths, ranges
from ._tokenizer import Frame, WordTokenizer
from ._windows import central_window, cut_windows


@dataclass(frozen=True)
class EncodedDataset:
    """Texts as windows of piece ids, and the items in them that are scored.

    An *item* is what gets a row of logits: a word of a tagger, for instance. Every item is scored
    in one window only. Items keep the order of the texts.

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
    target : ndarray of shape (n_items,), int64, or None
        Class index of each item.
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
    target: np.ndarray | None = None,
    weight: np.ndarray | None = None,
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
    target : ndarray of shape (n_words,), optional
        Class index of each word.
    weight : ndarray of shape (n_sentences,), optional
        Weight of each sentence.
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
    position = first - start[owner] + len(tokenizer.frame.prefix)
    scored = n_items > 0
    input_ids, token_type_ids = _frame(pieces.values, start[scored], stop[scored], tokenizer.frame)
    return EncodedDataset(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        items=Ragged(position.astype(np.int32), offsets_from_lengths(n_items[scored])),
        text=window_text[scored],
        item_offsets=word_offsets,
        target=target,
        weight=weight,
    )


def _frame(
    pieces: np.ndarray, start: np.ndarray, stop: np.ndarray, frame: Frame
) -> tuple[Ragged, Ragged]:
    """Put the special tokens around each window; return ids and token types."""
    offsets = offsets_from_lengths(stop - start + frame.n_special)
    ids = np.empty(offsets[-1], dtype=np.int32)
    types = np.full(offsets[-1], frame.text_type, dtype=np.int32)
    body = np.ones(offsets[-1], dtype=bool)
    for special, special_types, first in (
        (frame.prefix, frame.prefix_types, offsets[:-1]),
        (frame.suffix, frame.suffix_types, offsets[1:] - len(frame.suffix)),
    ):
        for i, (token, token_type) in enumerate(zip(special, special_types)):
            ids[first + i] = token
            types[first + i] = token_type
            body[first + i] = False
    ids[body] = pieces[ranges(start, stop)]
    return Ragged(ids, offsets), Ragged(types, offsets)
