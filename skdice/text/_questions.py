"""Questions and their contexts as windows of pieces, with the way back to characters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._inputs import number_distinct
from ..losses import IGNORE_INDEX
from ._encoding import EncodedDataset, cut_windows, room_beside
from ._tokenizer import Ragged, TextReader, WordTokenizer, offsets_from_lengths, ranges

Span = tuple[int, int]


@dataclass(frozen=True)
class EncodedQuestions:
    """Questions with their contexts, each in as many windows as the context needs.

    The items are, window by window, the no-answer position and the pieces of the context.
    """

    dataset: EncodedDataset
    piece: np.ndarray  # number in its context, -1 the no-answer position, (n_items,), int32
    start: np.ndarray  # characters that it covers, without white space around, (n_items,), int32
    end: np.ndarray
    can_start: np.ndarray  # an answer, (n_items,), bool; pieces of one character count once
    can_end: np.ndarray
    window_start: np.ndarray  # pieces of the context in the window, (n_windows,), int64
    window_stop: np.ndarray
    uncovered: np.ndarray  # questions whose answer is in no window as a whole, int64

    def count_starts(self) -> np.ndarray:
        """Return the positions at which no answer starts and those at which one does, (2,).

        A piece in several windows is one position, and a weight counts as repetition.
        """
        data = self.dataset
        last_window = np.searchsorted(data.text, np.arange(data.n_texts), side="right") - 1
        n_positions = self.window_stop[last_window] + 1
        weight = data.text_weight
        n_answers = weight.sum()
        return np.array([weight @ n_positions - n_answers, n_answers])


def encode_questions(
    questions: Sequence[str],
    contexts: Sequence[str],
    reader: TextReader,
    stride: int | None = None,
    *,
    answers: Sequence[Span | None] | None = None,
    number: np.ndarray | None = None,
) -> EncodedQuestions:
    """Encode questions, each with its context.

    Windows share ``stride`` pieces of the context, by default a quarter of what fits beside the
    question. ``answers`` has the characters of each answer, None where there is none. In a window
    without the whole answer, "no answer" is right; windows with a part of an answer that is in no
    window as a whole are left out of the loss.

    A question that leaves no room for its context, or an answer without a piece, is a ValueError,
    which names the row by its ``number``, by default its place.
    """
    number = np.arange(len(questions)) if number is None else number
    tokenizer = reader.tokenizer
    asked = tokenizer.encode(questions, as_words=False)
    which, distinct = number_distinct(contexts)
    pieces, start, end = tokenizer.encode_with_offsets(distinct)
    is_filled = start < end
    can_start = _is_new(start, is_filled, pieces.offsets)
    can_end = _is_new(-end[::-1], is_filled[::-1], len(end) - pieces.offsets[::-1])[::-1]

    n_pieces = pieces.lengths[which]
    room, shared = room_beside(
        asked.lengths, reader, stride, n_pieces, lambda i: f"The question of row {number[i]}"
    )
    row, window_start, window_stop = cut_windows(n_pieces, room, shared)
    first, length = pieces.offsets[which[row]], window_stop - window_start
    in_context = ranges(first + window_start, first + window_stop)

    windows = Ragged(pieces.values[in_context], offsets_from_lengths(length))
    asked = asked.take(row)
    input_ids, token_type_ids, before = tokenizer.put_beside(asked, windows)

    def of_items(of_pieces: np.ndarray, of_no_answer: np.ndarray | int = 0) -> np.ndarray:
        return np.insert(of_pieces, windows.offsets[:-1], of_no_answer)

    no_answer = _no_answer_positions(asked, windows, tokenizer)
    positions = of_items(ranges(before, before + length), no_answer)
    items = Ragged(positions.astype(np.int32), offsets_from_lengths(length + 1))
    target, uncovered = None, np.zeros(0, dtype=np.int64)
    if answers is not None:
        gold = _gold_pieces(answers, number, which, pieces.offsets, start, end)
        target, uncovered = _targets(gold, row, window_start, window_stop, items.offsets)
    return EncodedQuestions(
        dataset=EncodedDataset(
            input_ids=input_ids,
            token_type_ids=token_type_ids,
            items=items,
            text=row,
            n_texts=len(which),
            target=target,
        ),
        piece=of_items(in_context - np.repeat(first, length), -1).astype(np.int32),
        start=of_items(start[in_context]),
        end=of_items(end[in_context]),
        can_start=of_items(can_start[in_context]),
        can_end=of_items(can_end[in_context]),
        window_start=window_start,
        window_stop=window_stop,
        uncovered=uncovered,
    )


def _no_answer_positions(asked: Ragged, windows: Ragged, tokenizer: WordTokenizer) -> np.ndarray:
    """Return where the classification token is in each window, which stands for "no answer"."""
    texts = (windows, asked) if tokenizer.pads_left else (asked, windows)
    token = tokenizer.tokenizer.cls_token_id
    position = np.zeros(len(windows), dtype=np.int64)
    for i, group in enumerate(tokenizer.pair_frame.special):
        if token is not None and token in group:
            return position + group.index(token)
        position += len(group) + (texts[i].lengths if i < len(texts) else 0)
    raise ValueError(
        f"Question answering needs a tokenizer that puts a classification token ([CLS], <s>) "
        f"around two texts; that of {tokenizer.tokenizer.name_or_path!r} has none. It stands for "
        f"'no answer'."
    )


def _is_new(place: np.ndarray, is_filled: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return which pieces are filled and start later than the filled ones before, row by row."""
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[is_filled]
    is_later = np.diff(place[is_filled], prepend=0) > 0
    new = np.zeros(len(place), dtype=bool)
    new[is_filled] = is_later | (np.diff(row, prepend=-1) > 0)
    return new


def _gold_pieces(
    answers: Sequence[Span | None],
    number: np.ndarray,
    which: np.ndarray,
    offsets: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
) -> np.ndarray:
    """Return first and last piece of each answer, of shape (n_questions, 2); -1 for none."""
    gold = np.full((len(answers), 2), -1)
    for i, answer in enumerate(answers):
        if answer is None:
            continue
        here = slice(offsets[which[i]], offsets[which[i] + 1])
        first, last = start[here], end[here]
        is_filled = first < last
        inside = np.flatnonzero(is_filled & (last > answer[0]) & (first < answer[1]))
        if not len(inside):
            raise ValueError(
                f"The answer of row {number[i]}, characters {answer[0]} to {answer[1]} of the "
                f"context, is nothing that the tokenizer keeps (white space or what it drops)."
            )
        # Of pieces that share a character, the outer ones are those that can be predicted.
        same_start = is_filled & (first == first[inside[0]])
        same_end = is_filled & (last == last[inside[-1]])
        gold[i] = np.flatnonzero(same_start)[0], np.flatnonzero(same_end)[-1]
    return gold


def _targets(
    gold: np.ndarray,
    row: np.ndarray,
    window_start: np.ndarray,
    window_stop: np.ndarray,
    item_offsets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets of all items, and the questions whose answer no window has as a whole."""
    first, last = gold[row].T
    has_answer = first >= 0
    is_whole = has_answer & (first >= window_start) & (last < window_stop)
    is_part = has_answer & ~is_whole & (last >= window_start) & (first < window_stop)
    covered = np.bincount(row, is_whole, minlength=len(gold)) > 0
    uncovered = np.flatnonzero((gold[:, 0] >= 0) & ~covered)

    window = np.repeat(np.arange(len(row)), np.diff(item_offsets))
    target = np.zeros((len(window), 2), dtype=np.int32)
    for column, place in enumerate((first, last)):
        target[item_offsets[:-1] + np.where(is_whole, place - window_start + 1, 0), column] = 1
    is_left_out = is_part & ~covered[row]
    target[is_left_out[window]] = IGNORE_INDEX
    return target, uncovered
