"""A fit with an open rate begins again if it learned nothing, and never if it learned something."""

import warnings

import numpy as np
import pytest

from skdice import DiceTextClassifier

from ..corpora import easy_texts

FAST = {"lr": "auto", "batch_size": 8, "random_state": 0, "verbose": 0}


def noisy(y, share):
    """Return labels of two, a share of which is wrong."""
    rng = np.random.default_rng(0)
    one, two = sorted({*y})
    other = {one: two, two: one}
    return [other[label] if rng.random() < share else label for label in y]


def begins_again(classifier, X, y):
    with warnings.catch_warnings(record=True, action="always") as caught:
        classifier.fit(X, y)
    return any("started again" in str(warning.message) for warning in caught)


@pytest.mark.parametrize(
    "loss, n_rows, n_epochs, share",
    [("ce", 64, 6, 0.0), ("dice", 64, 12, 0.2), ("ce", 64, 12, 0.35), ("dice", 256, 6, 0.5)],
)
def test_what_has_found_the_classes_is_kept(loss, n_rows, n_epochs, share, quick_bert, constants):
    """However late the loss falls, and however little below that of the shares."""
    constants(lr=1e-3, lowest_lr=1e-3, highest_lr=1e-3)
    X, y = easy_texts(n_rows)
    classifier = DiceTextClassifier(quick_bert, loss=loss, max_epochs=n_epochs, **FAST)
    assert not begins_again(classifier, X, noisy(y, share))
    assert classifier.score(*easy_texts(200, seed=9)) > 0.58, "by chance it is 0.5"
