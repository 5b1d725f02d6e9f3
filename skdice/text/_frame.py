"""The special tokens around one text, or around and between two."""

from dataclasses import dataclass, replace

import numpy as np

from ._ragged import Ragged, offsets_from_lengths


@dataclass(frozen=True)
class Frame:
    """What a model wants before, between and after its texts.

    Attributes
    ----------
    special : tuple of n_texts + 1 tuples of int
        Ids before the first text, between the texts, and after the last one.
    special_types : tuple of n_texts + 1 tuples of int
        Their token types.
    text_types : tuple of n_texts int
        Token type of each text.
    """

    special: tuple[tuple[int, ...], ...]
    special_types: tuple[tuple[int, ...], ...]
    text_types: tuple[int, ...]

    @property
    def n_special(self) -> int:
        """Number of special tokens."""
        return sum(map(len, self.special))

    @property
    def n_before(self) -> int:
        """Number of special tokens before the first text."""
        return len(self.special[0])

    def of_zeros(self) -> "Frame":
        """Return a frame with zeros in the places of the special tokens."""
        return replace(self, special=tuple((0,) * len(tokens) for tokens in self.special))

    def put_around(self, *texts: Ragged) -> tuple[Ragged, Ragged]:
        """Join the first, the second, ... text of each row with the special tokens.

        Parameters
        ----------
        *texts : n_texts Ragged of n_rows rows
            Piece ids.

        Returns
        -------
        input_ids, token_type_ids : Ragged of n_rows rows, int32
        """
        lengths = [text.lengths for text in texts]
        offsets = offsets_from_lengths(np.sum(lengths, axis=0) + self.n_special)
        ids = np.empty(offsets[-1], dtype=np.int32)
        types = np.empty(offsets[-1], dtype=np.int32)
        end = offsets[:-1].copy()  # of what is there of each row
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
