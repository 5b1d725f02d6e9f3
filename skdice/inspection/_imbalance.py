"""Counts of negatives and positives, over all of a data set and for each of its classes."""

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import _num_samples

from .._inputs import check_rows, column_names, describe, is_table, table_cells
from .._typing import Answers, Labels, Questions, TagSequences
from ..metrics._squad import read_answers
from ..text._tags import are_chunk_tags

_OUTSIDE = "O"
_EXPECTED_QUESTIONS = "X must be a DataFrame or dicts with question and context, or pairs of them"
_HAN = "\u3400-\u9fff"
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_CHARACTER_TOKEN = re.compile(f"[{_HAN}]|[^\\W{_HAN}]+|[^\\w\\s]")
_Row = tuple[int, int | None, int | None, float]  # count, negatives, positives, ratio


def imbalance_report(
    y: TagSequences | Labels | Answers | pd.DataFrame, X: Questions | None = None
) -> pd.DataFrame:
    """Count the negatives and the positives of each class.

    Parameters
    ----------
    y : list, Series or array of shape (n_rows,), or array of shape (n_rows, n_classes)
        Tag sequences (each row a sequence of tags), labels (each row one label), a 0/1 indicator
        matrix (a two-dimensional array or a DataFrame), or the answers of extractive question
        answering: dicts ``{"text": [...], "answer_start": [...]}`` (empty lists: unanswerable), or
        str (``""``: unanswerable) if `X` has the names ``question`` and ``context``.
    X : sequence of length n_rows, default=None
        The texts that belong to `y`. Answers need them: a DataFrame or dicts with ``context``, or
        pairs (question, context). For tags and labels only their number is checked.

    Returns
    -------
    report : DataFrame
        The first row, ``"all"``, is the whole data set. A row for each class follows, from the
        most to the least frequent (ties by name). A class that is itself named ``"all"`` keeps its
        name: ``report.iloc[0]`` is always the summary and ``report.iloc[1:]`` are the classes.
        Columns:

        - ``count``: in class rows the number of items (tags, rows) of the class; in row ``"all"``
          the number of all items (of an indicator matrix: its cells; of answers: the tokens of
          the contexts, see Notes). The classes of answers are ``"start"``, ``"end"`` and
          ``"other"``.
        - ``negatives``, ``positives``: in class rows the items of all other classes and of the
          class. In row ``"all"`` the two sides of the task:

          - tags with ``"O"``: the ``"O"`` tags and all others (the paper's Table 1). ``"O"`` is
            taken for an ordinary tag if it is neither the only one that is not a chunk tag
            (``B-x``, ``I-x``, ...) nor the most frequent tag, as in tweets whose part-of-speech
            tags have an ``"O"`` by mistake;
          - two labels: the smaller and the larger label, scikit-learn's positive class;
          - an indicator matrix: its zeros and its ones;
          - answers: the other tokens of the contexts, and 2 per answerable question, its start and
            its end, however many alternative answers it has (the paper's Table 1);
          - everything else (part-of-speech tags, more than two labels): missing, as no class is
            the negative one.
        - ``ratio``: negatives / positives, infinite without positives. Where these are missing,
          the count of the largest class / that of the smallest one.

    Raises
    ------
    TypeError
        If `y` or one of its rows or tags is of a kind that cannot be counted, or if a row of `X`
        has no context and `y` has answers.
    ValueError
        If `y` is empty, has missing values, a matrix has other values than 0 and 1, `X` has another
        number of rows, or answers have no `X` or (as str) do not occur in their context.

    Notes
    -----
    The tokens of a context are its words between white space, counted once for each question about
    it, answerable or not. A context that has more Chinese characters than such words is cut into
    its Chinese characters, each run of other letters and digits, and each punctuation mark. Start
    and end count as two tokens also where the answer is one word, and a context of a single token
    as two if it has an answer.

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
    >>> imbalance_report(["spam", "ham", "ham", "eggs"])
           count  negatives  positives  ratio
    class
    all        4       <NA>       <NA>    2.0
    ham        2          2          2    1.0
    eggs       1          3          1    3.0
    spam       1          3          1    3.0
    >>> X = [("Where is Oslo?", "Oslo is in Norway, in the south."), ("Why?", "Oslo is old.")]
    >>> y = [{"text": ["Norway"], "answer_start": [11]}, {"text": [], "answer_start": []}]
    >>> imbalance_report(y, X)
           count  negatives  positives  ratio
    class
    all       10          8          2   4.00
    other      8          2          8   0.25
    end        1          9          1   9.00
    start      1          9          1   9.00
    """
    matrix, names = _as_matrix(y)
    what = "tag sequences or labels, or an indicator matrix"
    rows = check_rows(y, "y", what) if matrix is None else []
    n_rows = len(rows) if matrix is None else len(matrix)
    if n_rows == 0:
        raise ValueError("y is empty. At least one row is needed to count classes.")
    if X is not None and _num_samples(X) != n_rows:
        raise ValueError(f"X has {_num_samples(X)} rows, but y has {n_rows}.")
    if matrix is not None:
        return _report_indicator(matrix, names)
    if _are_answers(rows, X):
        return _report_answers(rows, _read_contexts(X))
    has_tags = _is_sequence(rows[0])
    counts = _count_items(rows, has_tags)
    negatives = _count_outside(counts) if has_tags else _count_smaller_label(counts)
    return _report_classes(counts, negatives)


def _as_matrix(y: Any) -> tuple[np.ndarray | None, list[Hashable]]:
    """Return an indicator matrix and its column names, or None if `y` is something else."""
    names: list[Hashable] = []
    if is_table(y) and not sparse.issparse(y):
        names = column_names(y) or []
        y = table_cells(y)
    if not isinstance(y, np.ndarray) or y.ndim < 2:
        return None, []
    if y.ndim > 2 or y.shape[1] == 0:
        raise ValueError(
            f"y has shape {y.shape}. Expected (n_rows,), or (n_rows, n_classes) for an indicator "
            "matrix."
        )
    if not names and y.dtype.kind in "OUT" and any(isinstance(value, str) for value in y.flat):
        # Tag sequences that happen to have one length, which numpy took for a matrix.
        return None, []
    return y, names or list(range(y.shape[1]))


def _is_sequence(row: object) -> bool:
    return isinstance(row, list | tuple | np.ndarray | pd.Series)


def _is_label(item: Any) -> bool:
    return pd.api.types.is_scalar(item) and not pd.isna(item)


def _count_items(rows: Sequence[Any], has_tags: bool) -> Counter[Any]:
    """Count the tags of all rows, or the rows themselves."""
    counts: Counter[Any] = Counter()
    for i, row in enumerate(rows):
        if _is_sequence(row) != has_tags:
            raise TypeError(
                f"y, row {i}: got {describe(row)}. Expected {_expected_row(has_tags)}, as row 0 "
                "is one."
            )
        try:
            counts.update(row if has_tags else (row,))
        except TypeError:  # not hashable, so no label
            _raise_at_first_bad_item(rows, has_tags)
    if not all(map(_is_label, counts)):
        _raise_at_first_bad_item(rows, has_tags)
    if not counts:
        raise ValueError(f"y has {len(rows)} rows, but every one is an empty sequence.")
    return Counter({k.item() if isinstance(k, np.generic) else k: n for k, n in counts.items()})


def _expected_row(has_tags: bool) -> str:
    return "a sequence of tags" if has_tags else "a label"


def _raise_at_first_bad_item(rows: Sequence[Any], has_tags: bool) -> NoReturn:
    for i, row in enumerate(rows):
        for position, item in enumerate(row if has_tags else (row,)):
            if _is_label(item):
                continue
            where = f"y, row {i}, position {position}" if has_tags else f"y, row {i}"
            if isinstance(item, dict):
                raise TypeError(
                    f"{where}: got a dict. The answers of extractive question answering cannot "
                    "stand among tags or labels."
                )
            error = ValueError if pd.api.types.is_scalar(item) else TypeError
            raise error(
                f"{where}: got {describe(item)}. Expected a {'tag' if has_tags else 'label'}."
            )
    raise AssertionError("called with good items only")


def _count_outside(counts: Counter[Any]) -> int | None:
    """Count the tags outside of all chunks, None if the tags are not of that kind."""
    if _OUTSIDE not in counts:
        return None
    is_largest = counts[_OUTSIDE] == max(counts.values())
    are_words = all(isinstance(tag, str) for tag in counts)
    is_background = is_largest or (are_words and are_chunk_tags(list(counts)))
    return counts[_OUTSIDE] if is_background else None


def _count_smaller_label(counts: Counter[Any]) -> int | None:
    """Count the negatives of a binary task, None if there are not two labels."""
    if len(counts) != 2:
        return None
    first, second = counts
    try:
        return counts[first] if first < second else counts[second]
    except TypeError as error:
        raise TypeError(
            f"y has the labels {first!r} and {second!r}, which cannot be ordered. Of two labels "
            "the larger one is the positive class."
        ) from error


def _report_indicator(matrix: np.ndarray, names: Sequence[Hashable]) -> pd.DataFrame:
    if matrix.dtype.kind in "biuf":
        is_zero_or_one = (matrix == 0) | (matrix == 1)
    else:
        flat = [_is_label(value) and value in (0, 1) for value in matrix.flat]
        is_zero_or_one = np.array(flat, dtype=bool).reshape(matrix.shape)
    if not is_zero_or_one.all():
        row, column = np.argwhere(~is_zero_or_one)[0]
        raise ValueError(
            f"y, row {row}, column {column}: got {matrix[row, column]}. An indicator matrix has "
            "only 0 and 1; labels must be one-dimensional."
        )
    positives = matrix.astype(np.int64).sum(axis=0).tolist()
    total = sum(positives)
    summary = (matrix.size, matrix.size - total, total, _divide(matrix.size - total, total))
    return _make_frame(summary, list(zip(names, positives, strict=True)), len(matrix))


def _report_classes(counts: Counter[Any], negatives: int | None) -> pd.DataFrame:
    n_items = counts.total()
    if negatives is None:
        sizes = counts.values()
        summary: _Row = (n_items, None, None, _divide(max(sizes), min(sizes)))
    else:
        positives = n_items - negatives
        summary = (n_items, negatives, positives, _divide(negatives, positives))
    return _make_frame(summary, list(counts.items()), n_items)


def _are_answers(rows: Sequence[object], X: Questions | None) -> bool:
    """Tell answers from labels: bare str are answers if `X` names question and context."""
    if isinstance(rows[0], Mapping):
        return True
    if not isinstance(rows[0], str) or X is None:
        return False
    names = column_names(X) or check_rows(X, "X", "questions")[0]
    return isinstance(names, list | Mapping) and {"question", "context"} <= set(names)


def _read_contexts(X: Any) -> list[str]:
    """Return the contexts of questions, one for each row of `X`."""
    if X is None:
        raise ValueError(
            "y has the answers of extractive question answering, which are counted among the "
            f"tokens of their contexts. {_EXPECTED_QUESTIONS}; got None."
        )
    columns = column_names(X)
    if columns is not None:
        if "context" not in columns:
            raise ValueError(f"{_EXPECTED_QUESTIONS}; got a DataFrame with the columns {columns}.")
        X = [{"context": context} for context in check_rows(X["context"], "X", "str")]
    return [_read_context(row, i) for i, row in enumerate(check_rows(X, "X", "questions"))]


def _read_context(row: object, i: int) -> str:
    """Return the context of row `i` of `X`, a dict or a pair."""
    if isinstance(row, Mapping) and "context" in row:
        context = row["context"]
    elif isinstance(row, list | tuple | np.ndarray) and len(row) == 2:
        context = row[1]
    else:
        raise TypeError(f"{_EXPECTED_QUESTIONS}. X, row {i}: got {describe(row)}.")
    if not isinstance(context, str):
        raise TypeError(f"X, row {i}: got {describe(context)} as context. Expected a str.")
    return context


def _report_answers(rows: Sequence[object], contexts: Sequence[str]) -> pd.DataFrame:
    n_answerable = negatives = 0
    for i, (row, context) in enumerate(zip(rows, contexts, strict=True)):
        texts = read_answers(row, f"row {i} of y")
        has_answer = any(texts)
        if isinstance(row, str) and row not in context:
            raise ValueError(
                f"y, row {i}: got {row!r}, which does not occur in its context. Expected an answer "
                "copied from the context, or '' for an unanswerable question; X without the names "
                "question and context makes str labels."
            )
        n_answerable += has_answer
        negatives += max(_count_tokens(context) - 2 * has_answer, 0)
    positives = 2 * n_answerable
    n_tokens = negatives + positives
    summary = (n_tokens, negatives, positives, _divide(negatives, positives))
    classes = [("start", n_answerable), ("end", n_answerable), ("other", negatives)]
    return _make_frame(summary, classes, n_tokens)


def _count_tokens(context: str) -> int:
    n_words = len(context.split())
    if len(_HAN_CHARACTER.findall(context)) > n_words:
        return len(_CHARACTER_TOKEN.findall(context))
    return n_words


def _make_frame(
    summary: _Row,
    classes: Sequence[tuple[Hashable, int]],
    n_items: int,
) -> pd.DataFrame:
    """Put the summary above the one-versus-rest rows of the classes."""
    classes = _sort_classes(classes)
    rows: list[_Row] = [summary]
    rows += [(n, n_items - n, n, _divide(n_items - n, n)) for _, n in classes]
    # An object index keeps names as they are: 1 beside "all".
    index = pd.Index(["all"] + [name for name, _ in classes], dtype=object, name="class")
    frame = pd.DataFrame(rows, columns=["count", "negatives", "positives", "ratio"], index=index)
    return frame.astype(
        {"count": "int64", "negatives": "Int64", "positives": "Int64", "ratio": "float64"}
    )


def _sort_classes(classes: Sequence[tuple[Any, int]]) -> list[tuple[Any, int]]:
    try:
        by_name = sorted(classes, key=lambda item: item[0])
    except TypeError:  # names of several types
        by_name = sorted(classes, key=lambda item: str(item[0]))
    return sorted(by_name, key=lambda item: -item[1])


def _divide(negatives: int, positives: int) -> float:
    return negatives / positives if positives else math.inf
