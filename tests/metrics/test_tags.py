"""Scores of single tags."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from skdice.metrics import tag_f1_score

AVERAGES = ["micro", "macro", "weighted", None]


def random_rows(random, tags):
    return [random.choice(tags, size=length).tolist() for length in random.integers(0, 9, 40)]


@pytest.mark.parametrize("average", AVERAGES)
def test_equals_sklearn_on_the_flat_tags(average):
    random = np.random.default_rng(0)
    for _ in range(20):
        y_true = random_rows(random, ["O", "B-X", "I-X", "B-Y"])
        y_pred = [random.choice(["O", "B-X", "I-X", "E-Z"], len(row)).tolist() for row in y_true]
        flat_true, flat_pred = np.concatenate(y_true), np.concatenate(y_pred)
        np.testing.assert_allclose(
            tag_f1_score(y_true, y_pred, average=average),
            f1_score(flat_true, flat_pred, average=average, zero_division=0),
            rtol=1e-12,
        )
        assert tag_f1_score(y_true, y_pred) == accuracy_score(flat_true, flat_pred)


@pytest.mark.parametrize("average", AVERAGES[:3])
@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("rows", [[], [[]]])
def test_no_words(rows, average, zero_division):
    score = tag_f1_score(rows, rows, average=average, zero_division=zero_division)
    assert type(score) is float
    assert score == zero_division
