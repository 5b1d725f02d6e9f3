"""The search for thresholds, against trying everything."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from skdice.tasks import tune_thresholds


def two_classes(n, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.25).astype(int)
    return rng.normal(y - 2.0, 1).round(1), y


def macro_f1(y, predicted):
    """F1 of the columns of two 0/1 matrices, and their mean; quicker than scikit-learn's."""
    return np.mean(2 * (y & predicted).sum(0) / np.maximum(y.sum(0) + predicted.sum(0), 1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("metric", [f1_score, accuracy_score])
def test_two_classes_are_as_good_as_can_be(seed, metric):
    decision, y = two_classes(60, seed)

    def score(threshold):
        return metric(y, decision > threshold)

    best = tune_thresholds(decision, score, is_multilabel=False)
    values = np.unique(decision)
    everything = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1, 0.0]
    scores = [score(threshold) for threshold in everything]
    assert score(best) == max(scores)
    assert abs(best) == min(abs(t) for t, s in zip(everything, scores) if s == max(scores))


def test_many_rows_are_searched_where_it_matters():
    rng = np.random.default_rng(0)
    y = (np.arange(20_000) % 200 == 0).astype(int)  # One in 200: rank alone would be too coarse.
    decision = rng.normal(0, 1, len(y)) + 4 * y
    best = tune_thresholds(decision, lambda t: macro_f1(y, decision > t), is_multilabel=False)
    exact = max(macro_f1(y, decision > t) for t in np.sort(decision)[-300:])
    assert macro_f1(y, decision > best) > exact - 0.02


def test_several_labels():
    rng = np.random.default_rng(1)
    y = (rng.random((80, 3)) < [0.5, 0.2, 0.1]).astype(int)
    decision = rng.normal(2.0 * y - [0, 2, 3], 1)

    def score(thresholds):
        return macro_f1(y, decision > thresholds)

    best = tune_thresholds(decision, score, is_multilabel=True)
    alone = [
        tune_thresholds(
            decision[:, k],
            lambda t, k=k: macro_f1(y[:, k], decision[:, k] > t),
            is_multilabel=False,
        )
        for k in range(3)
    ]
    # Macro F1 is best where each label's F1 is.
    assert score(best) == pytest.approx(score(np.array(alone)), abs=0.02)
    assert score(best) > score(np.zeros(3)) + 0.1


def test_more_classes():
    rng = np.random.default_rng(2)
    y = rng.choice(3, 60, p=[0.7, 0.2, 0.1])
    decision = rng.normal(np.eye(3)[y] * 1.5 - [0, 2.5, 3], 1)

    classes = np.eye(3, dtype=int)

    def score(thresholds):
        return macro_f1(classes[y], classes[(decision - thresholds).argmax(1)])

    best = tune_thresholds(decision, score, is_multilabel=False)
    grid = [
        score(np.array([0, a, b])) for a, b in itertools.product(np.arange(-5, 2, 0.25), repeat=2)
    ]
    assert score(best) > score(np.zeros(3)) + 0.1
    assert score(best) >= max(grid) - 0.05
