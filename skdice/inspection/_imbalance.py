"""Counts of negatives and positives, over all of a data set and for each of its classes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from .._inputs import check_rows, check_y, column_names, describe, is_table
from .._typing import Answers, Labels, Questions, TagSequences
from ..metrics import are_chunk_tags, read_answers
from ..tasks import check_indicator, check_questions

_SEQUENCES = (list, tuple, np.ndarray, pd.Series)  # of the tags of a row


def imbalance_report(
    y: TagSequences | Labels | Answers | pd.DataFrame, X: Questions | None = None
) -> pd.DataFrame:
    """Count the negatives and the positives of each class.

    Parameters
    ----------
    y : list, Series or array of shape (n_rows,), or array of shape (n_rows, n_classes)
        Tag sequences, labels, a 0/1 indicator matrix (an array or a DataFrame), or answers: dicts
        ``{"text": [...]}``, or str if `X` has the names ``question`` and ``context``; empty ones
        are unanswerable.
    X : sequence of length n_rows, default=None
        The questions that answers belong to: a DataFrame or dicts with ``question`` and
        ``context``, or pairs of both. Of other kinds of `y` it is not looked at.

    Returns
    -------
    report : DataFrame
        The first row, ``"all"``, is the whole data set; a row for each class follows, from the
        most to the least frequent, ties by name. Columns:

        - ``count``: the number of items (tags, rows, cells of a matrix, tokens of contexts). The
          classes of answers are ``"start"``, ``"end"`` and ``"other"``.
        - ``negatives``, ``positives``: in class rows the items of all other classes and of the
          class. In row ``"all"`` the two sides of the task:

          - tags with ``"O"``: the ``"O"`` tags and all others (the paper's Table 1). ``"O"`` is
            taken for an ordinary tag if it is neither the only one that is not a chunk tag
            (``B-x``, ``I-x``, ...) nor the most frequent tag;
          - two labels: the smaller and the larger label, scikit-learn's positive class;
          - an indicator matrix: its zeros and its ones;
          - answers: the other tokens of the contexts (words between white space, once for each
            question), and 2 per answerable question, its start and its end (the paper's Table 1);
          - everything else (part-of-speech tags, more than two labels): missing.
        - ``ratio``: negatives / positives, infinite without positives. Where these are missing,
          the count of the largest class / that of the smallest one.

    Raises
    ------
    TypeError, ValueError
        If `y` is empty or has missing or other values that cannot be counted, or if answers come
        without questions or with another number of them.

    Examples
    --------
    >>> from skdice.inspection import imbalance_report
    >>> imbalance_report([["O", "O", "B-LOC", "O"], ["B-PER", "I-PER", "O", "O", "O"]])
           count  negatives  positives  ratio
    class
    all        9          6          3    2.0
    O          6          3          6    0.5
    B-LOC      1          8          1    8.0
    B-PER      1          8          1    8.0
    I-PER      1          8          1    8.0
    """
    if _is_matrix(y):
        matrix, names = check_indicator(y, y.shape[0])
        if not matrix.size:
            raise ValueError(f"y is empty: a table of shape {matrix.shape}.")
        positives = matrix.sum(axis=0).tolist()
        n_zeros = matrix.size - sum(positives)
        return _make_frame(matrix.size, n_zeros, list(zip(names.tolist(), positives)), len(matrix))
    rows = check_rows(y, "y", "tag sequences or labels, or an indicator matrix")
    if not rows:
        raise ValueError("y is empty. At least one row is needed to count classes.")
    if _are_answers(rows, X):
        return _report_answers(rows, X)
    has_tags = isinstance(rows[0], _SEQUENCES)
    are_lists = all(isinstance(row, _SEQUENCES) for row in rows) and len({*map(len, rows)}) == 1
    items = [item for row in rows for item in row] if are_lists else []
    if items and all(isinstance(x, int | np.integer | np.bool_) and x in (0, 1) for x in items):
        return imbalance_report(np.array(rows, dtype=int))  # As classifiers take them, too.
    counts = _count_items(rows, has_tags)
    n_items = counts.total()
    return _make_frame(n_items, _count_negatives(counts, has_tags), list(counts.items()), n_items)


def _is_matrix(y: Any) -> TypeGuard[pd.DataFrame]:
    """Whether y is a table, and not tag sequences of one length that numpy took for one."""
    are_tags = isinstance(y, np.ndarray) and y.dtype.kind in "OUT"
    return is_table(y) and not (are_tags and any(isinstance(value, str) for value in y.flat))


def _count_items(rows: Sequence[Any], has_tags: bool) -> Counter[Any]:
    """Count the tags of all rows, or the rows themselves."""
    counts: Counter[Any] = Counter()
    for i, row in enumerate(rows):
        if isinstance(row, _SEQUENCES) != has_tags:
            expected = "a sequence of tags" if has_tags else "a label"
            raise TypeError(f"y, row {i}: got {describe(row)}, but row 0 is {expected}.")
        for position, item in enumerate(row if has_tags else (row,)):
            if not pd.api.types.is_scalar(item) or pd.isna(item):
                where = f"row {i}, position {position}" if has_tags else f"row {i}"
                raise ValueError(f"y, {where}: got {describe(item)}, which is no tag or label.")
            counts[item] += 1
    if not counts:
        raise ValueError(f"y has {len(rows)} rows, but every one is an empty sequence.")
    return Counter({k.item() if isinstance(k, np.generic) else k: n for k, n in counts.items()})


def _count_negatives(counts: Counter[Any], has_tags: bool) -> int | None:
    """Count the tags outside of all chunks, or the smaller of two labels; None if there is none."""
    if has_tags and "O" in counts:
        are_words = all(isinstance(tag, str) for tag in counts)
        is_largest = counts["O"] == max(counts.values())
        return counts["O"] if is_largest or (are_words and are_chunk_tags(list(counts))) else None
    is_binary = not has_tags and len(counts) == 2
    return counts[min(counts, key=_in_order)] if is_binary else None


def _in_order(name: Any) -> tuple[str, Any]:
    """Return a key that sorts names of several types, such as 1 and "a"."""
    return type(name).__name__, name


def _are_answers(rows: Sequence[object], X: Any) -> bool:
    """Whether rows are answers and not labels; str are answers if `X` has question and context."""
    if isinstance(rows[0], str) and X is not None:
        first = column_names(X) or check_rows(X, "X", "questions")[0]
        return isinstance(first, list | Mapping) and {"question", "context"} <= set(first)
    return isinstance(rows[0], Mapping)


def _report_answers(rows: Sequence[object], X: Any) -> pd.DataFrame:
    if X is None:
        raise ValueError("y has answers, so X must have their questions and contexts; got None.")
    contexts = [context for _, context in check_questions(X)]
    check_y(rows, len(contexts), "answers")
    has_answer = [any(read_answers(row, f"row {i} of y")) for i, row in enumerate(rows)]
    n_answerable = sum(has_answer)
    n_words = [len(context.split()) for context in contexts]
    negatives = sum(max(n - 2 * answered, 0) for n, answered in zip(n_words, has_answer))
    classes = [("start", n_answerable), ("end", n_answerable), ("other", negatives)]
    n_tokens = negatives + 2 * n_answerable
    return _make_frame(n_tokens, negatives, classes, n_tokens)


def _make_frame(
    count: int, negatives: int | None, classes: list[tuple[Any, int]], n_items: int
) -> pd.DataFrame:
    """Return the table: a row for the whole data set, then one for each class."""
    classes.sort(key=lambda item: (-item[1], _in_order(item[0])))
    positives = None if negatives is None else count - negatives
    rows = [(count, negatives, positives), *((n, n_items - n, n) for _, n in classes)]
    # An object index keeps names as they are: 1 beside "all".
    index = pd.Index(["all", *(name for name, _ in classes)], dtype=object, name="class")
    frame = pd.DataFrame(rows, columns=["count", "negatives", "positives"], index=index)
    frame = frame.astype({"count": "int64", "negatives": "Int64", "positives": "Int64"})
    frame["ratio"] = (frame["negatives"] / frame["positives"]).astype("float64")
    if negatives is None:
        frame.iloc[0, 3] = classes[0][1] / classes[-1][1]
    return frame
