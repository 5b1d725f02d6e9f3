"""A model's tokenizer, reduced to what the estimators need: ragged pieces and special tokens."""

import copy
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._pretrained import loading

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerFast

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: np.ndarray
    offsets: np.ndarray  # (n_rows + 1,), int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> "Ragged":
        return self.cut(self.offsets[rows], self.offsets[rows + 1])

    def cut(self, start: np.ndarray, stop: np.ndarray) -> "Ragged":
        """Return new rows: row i has the values from ``start[i]`` to ``stop[i]``."""
        return Ragged(self.values[ranges(start, stop)], offsets_from_lengths(stop - start))


def ranges(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Return ``start[0]..stop[0]-1, start[1]..stop[1]-1, ...`` in one array."""
    offsets = offsets_from_lengths(stop - start)
    return np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], stop - start)


def offsets_from_lengths(lengths: Sequence[int] | np.ndarray) -> NDArray[np.int64]:
    """Return where rows of the given lengths start and end, of shape (n_rows + 1,)."""
    return np.cumulative_sum(lengths, include_initial=True, dtype=np.int64)


@dataclass(frozen=True)
class Frame:
    """The special tokens of a model before, between and after its n texts."""

    special: tuple[tuple[int, ...], ...]  # n + 1 groups of ids
    special_types: tuple[tuple[int, ...], ...]  # their token types
    text_types: tuple[int, ...]  # token type of each text
    n_special: int  # how many tokens the groups have together

    def put_around(self, *texts: Ragged) -> tuple[Ragged, Ragged]:
        """Return ids and types, int32, of the first, the second, ... text of each row, joined."""
        lengths = [text.lengths for text in texts]
        offsets = offsets_from_lengths(np.sum(lengths, axis=0) + self.n_special)
        ids, types = np.empty((2, offsets[-1]), dtype=np.int32)
        end = offsets[:-1].copy()  # of the part of each row that is filled
        for i, (tokens, token_types) in enumerate(zip(self.special, self.special_types)):
            for token, token_type in zip(tokens, token_types):
                ids[end], types[end] = token, token_type
                end += 1
            if i < len(texts):
                text = texts[i]
                place = np.arange(len(text.values)) + np.repeat(end - text.offsets[:-1], lengths[i])
                ids[place], types[place] = text.values, self.text_types[i]
                end += lengths[i]
        return Ragged(ids, offsets), Ragged(types, offsets)


class WordTokenizer:
    """Cuts words or whole texts into the pieces of a pretrained model, a hub id or directory.

    Every word gets at least one piece: a word that the tokenizer drops (empty, zero-width, control
    characters) becomes the unknown token, so that nothing is lost between words and pieces.
    Text that spells a special token ("[SEP]") is ordinary text. ``frame`` and ``pair_frame`` are
    the special tokens around one text, and around two.
    """

    def __init__(self, model: str) -> None:
        self.tokenizer = own = _load_tokenizer(model)
        self.pad_id = int(own.pad_token_id or 0)  # fills up short rows of a batch
        self.pads_left = bool(own.padding_side == "left")  # whether padding is before the text
        known = (own.unk_token_id, own.mask_token_id, own.pad_token_id)
        self._unknown_id = next((int(token) for token in known if token is not None), 0)
        self.word_prefix = ""
        if self._backend.pre_tokenizer is not None:
            cut = self._backend.pre_tokenizer.pre_tokenize_str
            # A byte-level BPE would read a word as if it went on from the one before.
            if cut("a")[0][0] == "a" and cut(" a")[0][0] == "Ġa":
                self.word_prefix = " "
        self.frame = self._find_frame(self._backend.encode("a"))
        self.pair_frame = self._find_frame(self._backend.encode("a", "a"))

    @cached_property
    def _backend(self) -> "Tokenizer":
        """A copy of the tokenizer's backend, set to cut text and do nothing else.

        A copy: every call of the tokenizer itself would set truncation, padding and special tokens.
        """
        backend: Tokenizer = copy.deepcopy(self.tokenizer.backend_tokenizer)
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        return backend

    def __getstate__(self) -> dict[str, Any]:
        # A pickled backend would forget that special tokens are ordinary text.
        return {name: value for name, value in vars(self).items() if name != "_backend"}

    def encode(self, texts: Sequence[str], *, as_words: bool = True) -> Ragged:
        """Return the piece ids of each word, at least one each, or of each text."""
        prefix, of_empty = (self.word_prefix, [self._unknown_id]) if as_words else ("", [])
        known: dict[str, int] = {}
        order = np.array([known.setdefault(prefix + text, len(known)) for text in texts], np.int64)
        return self._encode_all([*known], of_empty)[0].take(order)

    def encode_with_offsets(self, texts: Sequence[str]) -> tuple[Ragged, np.ndarray, np.ndarray]:
        """Return the piece ids of each text, and the first character of each piece and its end.

        White space at the ends of a piece does not count as part of it, so that ``text[start[i] :
        end[j]]`` neither starts nor ends with it; it is empty, or ``start[i] >= end[j]``, if there
        is nothing but white space between. Combining marks belong to the letter before them.
        """
        pieces, encodings = self._encode_all(texts)
        # Unigram models put it before a text too, where it gets the place of the first letter.
        blank = self._backend.token_to_id("▁")
        start, end = np.empty((2, len(pieces.values)), dtype=np.int32)
        for i, (text, encoding) in enumerate(zip(texts, encodings)):
            here = slice(pieces.offsets[i], pieces.offsets[i + 1])
            offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
            is_blank = pieces.values[here] == blank
            offsets[is_blank, 1] = offsets[is_blank, 0]
            start[here], end[here] = _without_spaces(text, offsets)
        return pieces, start, end

    def put_beside(self, asked: Ragged, windows: Ragged) -> tuple[Ragged, Ragged, np.ndarray]:
        """Join windows of texts with their queries, as :meth:`Frame.put_around` does.

        The query comes first, except in models that pad at the left (XLNet), which were trained
        with the text first. The number of pieces before each window is returned as well.
        """
        frame = self.pair_frame
        n_before = np.full(len(windows), len(frame.special[0]))
        if self.pads_left:
            return *frame.put_around(windows, asked), n_before
        n_before += asked.lengths + len(frame.special[1])
        return *frame.put_around(asked, windows), n_before

    def _encode_all(
        self, texts: Sequence[str], of_empty: Sequence[int] = ()
    ) -> "tuple[Ragged, list[Encoding]]":
        """Return the piece ids of each text, ``of_empty`` if it has none, and the encodings."""
        # Lone surrogates have no UTF-8.
        whole = [t if t.isascii() else _SURROGATE.sub("\ufffd", t) for t in texts]
        encodings = self._backend.encode_batch(whole, add_special_tokens=False)
        rows = [encoding.ids or of_empty for encoding in encodings]
        offsets = offsets_from_lengths([len(row) for row in rows])
        ids = np.fromiter((piece for row in rows for piece in row), np.int32, count=offsets[-1])
        # Unigram models have the special tokens among their pieces.
        ids[np.isin(ids, self.tokenizer.all_special_ids)] = self._unknown_id
        return Ragged(ids, offsets), encodings

    def _find_frame(self, probe: "Encoding") -> Frame:
        """Find the special tokens around and between the texts of an encoded probe."""
        groups: list[list[tuple[int, int]]] = [[]]
        text_types: list[int] = []
        for token, token_type, sequence in zip(probe.ids, probe.type_ids, probe.sequence_ids):
            if sequence is None:
                groups[-1].append((token, token_type))
            elif sequence == len(text_types):  # the first piece of a text
                text_types.append(token_type)
                groups.append([])
        ids, types = (tuple(tuple(pair[i] for pair in group) for group in groups) for i in (0, 1))
        return Frame(ids, types, tuple(text_types), n_special=sum(map(len, ids)))


def _without_spaces(text: str, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Move starts to the next, and ends to the last character that is no white space.

    Ends move over the combining marks that follow, which some tokenizers drop.
    """
    is_space = np.fromiter(map(str.isspace, text), dtype=bool, count=len(text))
    next_start = _next_place(is_space)
    last_end = len(text) - _next_place(is_space[::-1])[::-1]
    end = last_end[offsets[:, 1]]
    if not text.isascii():
        is_mark = np.fromiter((unicodedata.category(char)[0] == "M" for char in text), dtype=bool)
        end = np.where(offsets[:, 0] < offsets[:, 1], _next_place(is_mark)[end], end)
    return next_start[offsets[:, 0]], end


def _next_place(is_passed: np.ndarray) -> np.ndarray:
    """Return, for each place in a text and its end, the next one that is not passed over."""
    place = np.arange(len(is_passed) + 1)
    place[:-1][is_passed] = len(is_passed)
    return np.minimum.accumulate(place[::-1])[::-1]


def _load_tokenizer(model: str) -> "PreTrainedTokenizerFast":
    try:
        with loading(model):
            # The import may add warnings filters, which are removed again.
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(model)
    except ValueError as error:
        # The message of transformers if the packages to read a SentencePiece file are missing.
        if "to read a `tiktoken` file" not in str(error.__cause__):
            raise
        raise ValueError(
            f"The tokenizer of {model!r} is a SentencePiece model without a tokenizer.json; "
            f"reading it takes two more packages: pip install sentencepiece protobuf."
        ) from error
    if not tokenizer.is_fast:
        raise ValueError(
            f"The tokenizer of {model!r} ({type(tokenizer).__name__}) is not a fast one (of the "
            f"tokenizers library), which skdice needs to align words and pieces. Convert it with "
            f"transformers and save it as tokenizer.json."
        )
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise ValueError(
            f"The tokenizer of {model!r} has no pieces but the special tokens: its files are "
            f"missing. It needs tokenizer.json, as save_pretrained writes it, or the vocabulary "
            f"file of its family."
        )
    return tokenizer


@dataclass(frozen=True)
class TextReader:
    """How texts are read: the tokenizer, and the most pieces of a window, with special ones."""

    tokenizer: WordTokenizer
    max_length: int
