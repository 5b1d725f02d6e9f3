"""The choice of rows to label."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack, vstack
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils import _safe_indexing

from .._inputs import indexable_rows
from .._parameters import RandomState, check_number, check_option, make_rng
from .._pipeline import take_apart
from ..estimators import Internals, TextEstimator
from ..exceptions import silent, warn
from ._scores import score_rows, strategies_of
from ._spread import spread

# Rows whose hashed terms have a larger cosine are near duplicates, or the same: judgement.
_NEAR, _SAME = 0.8, 0.9999
_CHUNK_ROWS, _BLOCK_ROWS = 1024, 256
# Random rows that represent a larger pool if the estimator is not fitted: judgement.
_MOST_SPREAD = 10_000
_TERMS = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), alternate_sign=False)
_Texts = tuple[str, ...]  # a text, the two of a pair, or a question and its context


def choose_rows(
    estimator: Any,
    X: Any,
    n: int = 50,
    *,
    strategy: str = "auto",
    labeled: Any = None,
    random_share: float = 0.1,
    random_state: RandomState = None,
) -> pd.DataFrame:
    """Choose the rows of a pool whose labels would teach an estimator most.

    Scores on chosen rows do not estimate how good a model is, since these rows are harder than
    others. Those on the random rows of a choice do, until a fit has seen them.

    Parameters
    ----------
    estimator : estimator of this package
        Or a Pipeline or search that ends in one. If it is not fitted, the rows are nearest to the
        centres of k-means of the encoder's mean states, over at most 10,000 random rows of X.
    X : rows without labels, or an iterator over them
        Rows without a word are left out.
    n : int, default=50
        How many rows to choose.
    strategy : str, default="auto"
        What the score of a row is. Taggers: "least_confident", 1 less the probability of the best
        tag, as a mean over the words; "least_confident_sum", "least_confident_max"; "mnlp", minus
        the mean log-probability of the predicted tags. Query taggers: the first three, of spans in
        place of words. Classifiers: "margin", the ratio of the odds to those of ``threshold_``, at
        most 1. It is that of the nearest label, or of the best two of several classes, and 0 for
        pairs that are too different to match. Extractors: "least_confident", 1 less the probability
        of the best answer, or of none. All: "random" and, unless it is the same for all rows,
        "expected", the column of that name. The rows with the highest scores are chosen. "auto" is
        "margin" or "least_confident". An estimator that is not fitted has "random" and "spread",
        its "auto", whose score is the share of the rows that are in the same cluster.
    labeled : rows as those of X, optional
        Rows that have labels. They are left out, and near duplicates of them and of chosen rows
        come last: those with a cosine above 0.8 of their terms, three neighbouring characters each.
    random_share : float, default=0.1
        Share of the ``n`` rows that is drawn at random.
    random_state : int, RandomState or Generator, optional
        Seed of the rows that are drawn, and of the order of rows that k-means gets.

    Returns
    -------
    DataFrame
        ``row``, its number in X; ``score``, the highest first; ``words`` to read; ``expected``, how
        many entities, labels or answers it probably has, or the probability of the positive one of
        two classes; ``is_random``. What is not known is NaN.

    Raises
    ------
    TypeError, ValueError
        If the estimator is not of this package or does not have the strategy, a row of X or another
        parameter is not allowed, or there is no row to choose.

    Examples
    --------
    >>> from skdice.labeling import choose_rows
    >>> chosen = choose_rows(tagger, pool, labeled=sentences)  # doctest: +SKIP
    """
    check_number("choose_rows", "n", n, low=1, integer=True)
    check_number("choose_rows", "random_share", random_share, low=0, high=1, closed="both")
    rng = np.random.default_rng(make_rng(random_state, "choose_rows").getrandbits(63))
    inner, read = _open(estimator)
    names, owner = strategies_of(inner), f"choose_rows with this {type(inner.estimator).__name__}"
    check_option(owner, "strategy", strategy, ("auto", *names, "random"))
    strategy = names[0] if strategy == "auto" else strategy
    known = [] if labeled is None else _texts(read(labeled, "labeled is read as X is. "))
    pool = list(X) if isinstance(X, Iterator) else indexable_rows(X)
    left = pd.concat(_score_parts(inner, read, pool, {*known}, strategy), ignore_index=True)
    if not len(left):
        other = f" that is not among the {len(known):,} rows of labeled" if known else ""
        raise ValueError(f"X must have a row with a word{other}; it has none.")

    def texts_at(places: np.ndarray) -> list[_Texts]:
        return _texts(read(_safe_indexing(pool, left["row"].to_numpy()[places]), ""))

    n_random = n if strategy == "random" else round(n * random_share)
    order = rng.permutation(len(left))
    random = _separate(order, texts_at, known, n_random, _SAME)
    left["is_random"] = np.isin(np.arange(len(left)), random)
    order = order[~left["is_random"].to_numpy()[order]]
    if strategy == "spread" and n > n_random:
        order = order[: max(_MOST_SPREAD, 2 * n)]
        nearest, share = spread(inner.estimator, texts_at(order), n - n_random)
        left.loc[order, "score"] = share
        order = order[nearest]
    elif strategy != "random":
        order = order[np.argsort(-left["score"].to_numpy()[order], kind="stable")]
    chosen = random
    for cosine in (_NEAR, _SAME):  # Near duplicates only if nothing else is left.
        if len(chosen) < n:
            taken = [*known, *texts_at(np.array(chosen, dtype=np.int64))]
            chosen = [*chosen, *_separate(order, texts_at, taken, n - len(chosen), cosine)]
    left = left.iloc[chosen] if len(left) > n else left
    if len(left) < n:
        warn(f"X has {len(left):,} rows to choose from, fewer than n={n:,}: all are returned.")
    return left.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _separate(
    order: np.ndarray, texts_at: Callable[..., Any], known: list[_Texts], n: int, cosine: float
) -> list[int]:
    """Return the first ``n`` rows that are not too similar to known ones or to one before."""
    chosen: list[int] = []
    terms = _hash(known) if known else None
    for start in range(0, len(order), _BLOCK_ROWS):
        if len(chosen) == n:
            break
        block = order[start : start + _BLOCK_ROWS]
        new, taken = _hash(texts_at(block)), []
        terms = new[:0] if terms is None else terms
        own, highest = (new @ new.T).toarray(), (new @ terms.T).toarray().max(axis=1, initial=0.0)
        for i, row in enumerate(block.tolist()):
            if highest[i] <= cosine and len(chosen) < n:
                chosen.append(row)
                taken.append(i)
                highest = np.maximum(highest, own[i])
        terms = csr_array(vstack([terms, new[taken]]))
    return chosen


def _hash(rows: list[_Texts]) -> csr_array:
    """Return the terms of each row as a vector of length 1, so that products are cosines."""
    # A lone surrogate has no bytes that could be hashed.
    sides = [[text.encode(errors="replace").decode() for text in side] for side in zip(*rows)]
    # A side may be empty.
    return csr_array(normalize(hstack([_TERMS.transform(side) for side in sides])))


def _texts(rows: list[Any]) -> list[_Texts]:
    """Return the texts of checked rows; the words of a sentence are one text."""
    return [(" ".join(row),) if isinstance(row, list) else tuple(row) for row in rows]


def _score_parts(
    inner: Internals[Any], read: Callable[..., Any], pool: Any, known: set[_Texts], strategy: str
) -> Iterator[pd.DataFrame]:
    """Yield tables of the rows that may be chosen, with the scores of a fitted estimator."""
    n_rows = len(pool) if hasattr(pool, "__len__") else 0  # What is no pool is an error.
    for first in range(0, max(n_rows, 1), _CHUNK_ROWS):
        here = slice(first, first + _CHUNK_ROWS)
        part = _safe_indexing(pool, here) if n_rows > _CHUNK_ROWS else pool
        rows = read(part, f"Row 0 in what follows is row {first} of X. " if first else "")
        texts = _texts(rows)
        words = np.array([sum(len(text.split()) for text in row) for row in texts], dtype=np.int64)
        kept = np.array([i for i, row in enumerate(texts) if words[i] and row not in known], int)
        score = expected = np.full(len(kept), np.nan)
        if len(kept) and strategy not in ("random", "spread"):
            with silent():  # Texts that are cut have a score, too.
                score, expected = score_rows(inner, [rows[i] for i in kept], strategy)
        table = {"row": first + kept, "score": score, "words": words[kept], "expected": expected}
        yield pd.DataFrame(table)


def _open(estimator: Any) -> tuple[Internals[Any], Callable[..., Any]]:
    """Return the last step of an estimator, and what reads rows as it gets them."""
    steps, last = take_apart(estimator)
    if not isinstance(last, TextEstimator):
        expected = "choose_rows takes an estimator of skdice, or what ends in one"
        raise TypeError(f"{expected}; got {last}.")
    last.check_parameters()

    def read(rows: Any, place: str) -> list[Any]:
        try:
            for step in steps:  # Others, such as samplers, only change what is fitted.
                rows = step.transform(rows) if hasattr(step, "transform") else rows
            return last.internals.read_X(rows)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{place}{error}") from error

    return last.internals, read
