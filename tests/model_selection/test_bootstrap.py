"""The bootstrap against a plain loop, its invariances and its coverage."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from skdice.metrics import _bootstrap
from skdice.metrics._row_counts import RowCounts, count_labels
from skdice.model_selection._loss_comparison import _resampled_scores


def random_labels(n_rows, n_runs, seed=0):
    rng = np.random.default_rng(seed)
    y_true = rng.integers(2, size=n_rows)
    y_preds = [np.where(rng.random(n_rows) < 0.3, 1 - y_true, y_true) for _ in range(n_runs)]
    return y_true, y_preds, [RowCounts("pairs", count_labels(y_true, y, 1)) for y in y_preds]


def test_against_a_loop_over_resamples():
    y_true, y_preds, runs = random_labels(25, 3)
    found = _resampled_scores(runs, 50, random_state=7)
    assert found.shape == (3, 50, 3)
    rng = np.random.default_rng(7)
    for i in range(50):
        rows = rng.integers(25, size=25)
        for y_pred, scores in zip(y_preds, found):
            expected = f1_score(y_true[rows], y_pred[rows], zero_division=0.0)
            assert scores[i, 2] == pytest.approx(expected)


def test_the_size_of_the_chunks_does_not_matter(monkeypatch):
    _, _, runs = random_labels(30, 2)
    whole = _resampled_scores(runs, 101)
    monkeypatch.setattr(_bootstrap, "_CELLS_AT_A_TIME", 7 * 30)
    np.testing.assert_array_equal(_resampled_scores(runs, 101), whole)
    monkeypatch.setattr(_bootstrap, "_CELLS_AT_A_TIME", 1)
    np.testing.assert_array_equal(_resampled_scores(runs, 101), whole)


def test_all_runs_see_the_same_resamples():
    _, _, (run, _) = random_labels(30, 2)
    first, second = _resampled_scores([run, run], 20)
    np.testing.assert_array_equal(first, second)
    alone = _resampled_scores([run], 20)[0]
    np.testing.assert_array_equal(first, alone)


def test_the_order_of_the_counts_is_that_of_the_rows():
    _, _, (run, _) = random_labels(30, 2)
    shuffled = RowCounts(run.task, run.counts[::-1])
    assert not np.array_equal(_resampled_scores([run], 20), _resampled_scores([shuffled], 20))


def test_spread_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(0).random(400)
    counts = np.stack([values, values, np.ones(400)], axis=1)
    means = _resampled_scores([RowCounts("questions", counts)], 2000)[0, :, 0]
    assert means.mean() == pytest.approx(values.mean(), abs=2e-3)
    assert means.std() == pytest.approx(values.std() / 20, rel=0.05)


def test_one_row():
    run = RowCounts("pairs", count_labels(np.array([1]), np.array([1]), 1))
    np.testing.assert_array_equal(_resampled_scores([run], 5), np.ones((1, 5, 3)))


def test_intervals_cover_the_true_difference():
    """95 % of the intervals of samples have the difference of the population."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(100):
        y_true = rng.integers(2, size=200)
        flips = rng.random((2, 200)) < [[0.3], [0.2]]
        runs = [RowCounts("pairs", count_labels(y_true, y_true ^ flip, 1)) for flip in flips]
        scores = _resampled_scores(runs, 300)[:, :, 2]
        low, high = np.quantile(scores[1] - scores[0], [0.025, 0.975])
        covered += low <= 0.1 <= high  # F1 is .7 and .8 with as many positives as negatives.
    assert 88 <= covered <= 100
