"""Intervals of scores over test rows."""

import numpy as np
import pytest

from skdice.metrics import bootstrap_interval, entity_f1_score

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]


def noisy(n_rows, seed=0, tags=TAGS):
    """Return rows of tags, some of them empty, and of predictions that are mostly right."""
    rng = np.random.default_rng(seed)
    y_true = [rng.choice(tags, rng.integers(0, 8)).tolist() for _ in range(n_rows)]
    y_pred = [[str(rng.choice(tags)) if rng.random() < 0.3 else t for t in row] for row in y_true]
    return y_true, y_pred


def test_of_counts_is_that_of_rows():
    y_true, y_pred = noisy(60)
    by_counts = bootstrap_interval(y_true, y_pred, n_resamples=4000)
    by_rows = bootstrap_interval(
        y_true, y_pred, metric=lambda y, z: entity_f1_score(y, z), n_resamples=1000
    )
    assert by_counts == pytest.approx(by_rows, abs=0.015)


def test_covers_the_score_of_the_population():
    """95 % intervals of samples hold the score of all rows in about 95 of 100 samples."""
    y_true, y_pred = noisy(4000, seed=1)
    whole = entity_f1_score(y_true, y_pred)
    rng = np.random.default_rng(0)
    n_covered = 0
    for _ in range(100):
        rows = rng.integers(4000, size=150)
        low, high = bootstrap_interval(
            [y_true[i] for i in rows], [y_pred[i] for i in rows], n_resamples=500
        )
        n_covered += low <= whole <= high
    assert 88 <= n_covered <= 99


def test_narrows_with_rows_and_confidence():
    few, many = (np.ptp(bootstrap_interval(*noisy(n))) for n in (50, 800))
    assert few / many == pytest.approx(4, rel=0.35)
    y_true, y_pred = noisy(100)
    wide = bootstrap_interval(y_true, y_pred, confidence_level=0.99)
    narrow = bootstrap_interval(y_true, y_pred, confidence_level=0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert wide == bootstrap_interval(y_true, y_pred, confidence_level=0.99)
    assert wide != bootstrap_interval(y_true, y_pred, confidence_level=0.99, random_state=1)


@pytest.mark.parametrize(
    "y_true, y_pred, options, message",
    [
        ([["O"]], [["O"], ["O"]], {}, "got 1 and 2"),
        ([], [], {}, "got none"),
        ([["O"]], [["O"]], {"confidence_level": 95}, r"'confidence_level' .*\(0, 1\)"),
        ([["O"]], [["O"]], {"n_resamples": 0}, "'n_resamples' parameter"),
    ],
)
def test_errors(y_true, y_pred, options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(y_true, y_pred, **options)
