"""What each runtime of predictions costs and gives."""

import copy
import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..nn import RUNTIMES

_ROUNDS = 3


def compare_runtimes(estimator: BaseEstimator, X: Any, y: Any) -> pd.DataFrame:
    """Compare the score, the speed and the size of a fitted estimator by its ``runtime``.

    Parameters
    ----------
    estimator : estimator of skdice
        Fitted; it is not changed.
    X, y : rows and labels
        As its ``score`` takes them; some hundred rows tell the speed.

    Returns
    -------
    DataFrame
        A row for each ``runtime``: its ``score``, ``words/s`` (the median of three calls of
        ``predict``) and the ``megabytes`` of the network.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ImportError
        If a package of the extra ``onnx`` is not installed.
    ValueError
        If there is no row, or torch cannot export the architecture (XLNet).

    Examples
    --------
    >>> from skdice.inspection import compare_runtimes
    >>> compare_runtimes(tagger, X_test, y_test)  # doctest: +SKIP
         runtime  score  words/s  megabytes
    0      torch  0.647     2800       90.3
    1       onnx  0.647     3100       90.8
    2  onnx-int8  0.645     6900       59.0
    """
    check_is_fitted(estimator, "net_")
    rows = estimator.task.read_X(X)
    if estimator.task.info.predicts == "tags":
        n_words = sum(map(len, rows))
    else:
        n_words = sum(len(text.split()) for row in rows for text in row)
    if not n_words:
        raise ValueError("X has no word to predict on.")
    runners = [copy.copy(estimator).set_params(runtime=runtime) for runtime in RUNTIMES]
    scores = [runner.score(X, y) for runner in runners]  # The first call makes the network.
    seconds = np.empty((_ROUNDS, len(runners)))
    for row in seconds:
        for i, runner in enumerate(runners):
            start = time.perf_counter()
            runner.predict(X)
            row[i] = time.perf_counter() - start
    return pd.DataFrame(
        {
            "runtime": RUNTIMES,
            "score": scores,
            "words/s": n_words / np.median(seconds, axis=0),
            "megabytes": [runner.network_bytes() / 1e6 for runner in runners],
        }
    )
