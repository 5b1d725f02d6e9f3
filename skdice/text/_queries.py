"""Sentences, each asked for every type of entity: query and words in windows of pieces."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ._encoding import EncodedDataset, cut_windows, room_beside
from ._tokenizer import Ragged, TextReader, offsets_from_lengths, ranges


@dataclass(frozen=True)
class EncodedQueries:
    """Sentences with their queries, each in as many windows as it needs.

    The items are, window by window, the words that start in it; a word is scored on its first
    piece. The windows of a sentence lie side by side, query by query. The texts of the data set are
    the sentences.
    """

    dataset: EncodedDataset
    word: np.ndarray  # number in its sentence, (n_items,), int32
    place: np.ndarray  # number of its first piece in the sentence, (n_items,), int64
    query: np.ndarray  # (n_windows,), int64
    window_start: np.ndarray  # pieces of the sentence in the window, (n_windows,), int64
    window_stop: np.ndarray
    n_uncovered: int  # spans whose first and last word are in no window together

    def by_query(self) -> EncodedDataset:
        """Return the data set whose texts are the sentences with one query each."""
        data = self.dataset
        is_next = (np.diff(data.text, prepend=-1) != 0) | (np.diff(self.query, prepend=-1) != 0)
        text = is_next.cumsum() - 1
        weight = None if data.weight is None else data.weight[data.text[is_next]]
        return replace(data, text=text, n_texts=int(is_next.sum()), weight=weight)


def encode_queries(
    sentences: Sequence[Sequence[str]],
    queries: Sequence[str],
    reader: TextReader,
    stride: int | None = None,
    *,
    spans: Sequence[Sequence[tuple[int, int, int]]] | None = None,
) -> EncodedQueries:
    """Encode sentences given as words, each with the queries.

    Windows share ``stride`` pieces of the sentence, by default a quarter of what fits beside the
    query. ``spans`` has the (start, end, query) of each sentence, words with ``end`` exclusive. A
    query that leaves no room for a sentence is a ValueError, which names it.
    """
    tokenizer = reader.tokenizer
    word_offsets = offsets_from_lengths([len(sentence) for sentence in sentences])
    pieces = tokenizer.encode([word for sentence in sentences for word in sentence])
    first = pieces.offsets[:-1]  # The first piece of each word, counted through all words.
    text_offsets = pieces.offsets[word_offsets]
    n_pieces = np.diff(text_offsets)

    asked = tokenizer.encode(queries, as_words=False)
    room, shared = room_beside(
        asked.lengths, reader, stride, np.inf, lambda i: f"The query {queries[i]!r}"
    )
    row_sentence = np.repeat(np.flatnonzero(n_pieces), len(queries))
    row_query = np.tile(np.arange(len(queries)), len(row_sentence) // max(1, len(queries)))
    row, start, stop = cut_windows(n_pieces[row_sentence], room[row_query], shared[row_query])
    sentence, query = row_sentence[row], row_query[row]
    flat_start, flat_stop = text_offsets[sentence] + start, text_offsets[sentence] + stop
    windows = pieces.cut(flat_start, flat_stop)
    input_ids, token_type_ids, before = tokenizer.put_beside(asked.take(query), windows)

    first_word, last_word = np.searchsorted(first, flat_start), np.searchsorted(first, flat_stop)
    words = ranges(first_word, last_word)  # The word of each item, counted through all sentences.
    item_offsets = offsets_from_lengths(last_word - first_word)
    window = np.repeat(np.arange(len(query)), np.diff(item_offsets))
    place = first[words] - text_offsets[sentence[window]]
    word = words - word_offsets[sentence[window]]
    target, matches, n_uncovered = None, None, 0
    if spans is not None:
        target, matches, n_uncovered = _targets(spans, sentence, query, word, item_offsets)
    return EncodedQueries(
        dataset=EncodedDataset(
            input_ids=input_ids,
            token_type_ids=token_type_ids,
            items=Ragged((place - start[window] + before[window]).astype(np.int32), item_offsets),
            text=sentence,
            n_texts=len(sentences),
            target=target,
            matches=matches,
        ),
        word=word.astype(np.int32),
        place=place,
        query=query,
        window_start=start,
        window_stop=stop,
        n_uncovered=n_uncovered,
    )


def _targets(
    spans: Sequence[Sequence[tuple[int, int, int]]],
    sentence: np.ndarray,
    query: np.ndarray,
    word: np.ndarray,
    item_offsets: np.ndarray,
) -> tuple[np.ndarray, Ragged, int]:
    """Return the targets of all items, the spans of all windows, and how many are in none."""
    of_row: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i, row in enumerate(spans):
        for start, end, label in row:
            of_row.setdefault((i, label), []).append((start, end - 1))
    uncovered = {(key, span) for key, row in of_row.items() for span in row}
    target = np.zeros((len(word), 2), dtype=np.int32)
    matches: list[list[tuple[int, int]]] = []
    bounds = pairwise(item_offsets.tolist())
    for key, (low, high) in zip(zip(sentence.tolist(), query.tolist()), bounds):
        inside = []
        for span in of_row.get(key, ()) if high > low else ():
            # The items of a window are words side by side.
            start, end = (place - int(word[low]) for place in span)
            for column, place in enumerate((start, end)):
                if 0 <= place < high - low:
                    target[low + place, column] = 1
            if start >= 0 and end < high - low:
                inside.append((start, end))
                uncovered.discard((key, span))
        matches.append(inside)
    flat = np.array([span for row in matches for span in row], dtype=np.int32).reshape(-1, 2)
    return target, Ragged(flat, offsets_from_lengths([len(row) for row in matches])), len(uncovered)
