"""Scores of whole entities, by hand, and what is refused; test_seqeval.py has many more."""

import numpy as np
import pytest

from skdice.metrics import (
    entity_classification_report,
    entity_f1_score,
    entity_precision_recall_fscore_support,
    tag_f1_score,
)

SCORES = [entity_f1_score, entity_precision_recall_fscore_support, entity_classification_report]

# PER: 1 of 2 predicted is right, 1 of 1 found. LOC: 1 of 1, 1 of 2. MISC: 0 of 0, 0 of 1.
# ORG: 0 of 1, 0 of 0.
Y_TRUE = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "I-LOC", "B-MISC"], []]
Y_PRED = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "B-PER", "O"], []]


@pytest.mark.parametrize(
    "average, zero_division, precision, recall, f1, support",
    [
        ("micro", 0, 2 / 4, 2 / 4, 2 / 4, 4),
        ("macro", 0, 1.5 / 4, 1.5 / 4, (4 / 3) / 4, 4),
        ("macro", 1, 2.5 / 4, 2.5 / 4, (4 / 3) / 4, 4),
        ("weighted", 0, 2.5 / 4, 2 / 4, 2 / 4, 4),
        ("weighted", 1, 3.5 / 4, 2 / 4, 2 / 4, 4),
        (None, 0, [1, 0, 0, 0.5], [0.5, 0, 0, 1], [2 / 3, 0, 0, 2 / 3], [2, 1, 0, 1]),
        (None, 1, [1, 1, 0, 0.5], [0.5, 0, 1, 1], [2 / 3, 0, 0, 2 / 3], [2, 1, 0, 1]),
    ],
)
def test_hand_table(average, zero_division, precision, recall, f1, support):
    options = {"average": average, "zero_division": zero_division}
    scores = entity_precision_recall_fscore_support(Y_TRUE, Y_PRED, **options)
    for got, expected in zip(scores, (precision, recall, f1, support), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-15)
        assert isinstance(got, np.ndarray) == (average is None)
    np.testing.assert_array_equal(entity_f1_score(Y_TRUE, Y_PRED, **options), scores[2])


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("rows", [[], [["O", "O"]]])
def test_nothing_to_find_and_nothing_found(rows, average, zero_division):
    scores = entity_precision_recall_fscore_support(
        rows, rows, average=average, zero_division=zero_division
    )
    assert scores == (zero_division, zero_division, zero_division, 0)
    assert entity_f1_score(rows, rows, average=None).shape == (0,)


@pytest.mark.parametrize("score", [*SCORES, tag_f1_score])
@pytest.mark.parametrize(
    "y_true, y_pred, error, message",
    [
        ([["O"], ["O"]], [["O"]], ValueError, "got 2 and 1"),
        ([["O"], ["O", "O"]], [["O"], ["O", "O", "O"]], ValueError, "row 1 has 2 and 3"),
        (["O", "B-X"], [["O"], ["O"]], TypeError, "row 0 of y_true .* got 'O'"),
        ([["O"]], None, TypeError, "y_pred .* got None"),
        ([["O"]], [[None]], TypeError, "row 0 of y_pred: tag 0"),
    ],
)
def test_bad_tags(score, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        score(y_true, y_pred)


@pytest.mark.parametrize("score", [*SCORES, tag_f1_score])
@pytest.mark.parametrize(
    "options, message",
    [
        ({"zero_division": "warn"}, "'zero_division'.*'warn'"),
        ({"zero_division": 2}, "'zero_division'.*2"),
    ],
)
def test_bad_options(score, options, message):
    with pytest.raises(ValueError, match=message):
        score(Y_TRUE, Y_PRED, **options)


def test_tag_of_another_scheme_names_row_and_side():
    with pytest.raises(ValueError, match="row 1 of y_pred: tag 0 is 'E-X'"):
        entity_f1_score([["O"], ["O"]], [["O"], ["E-X"]], mode="strict", scheme="IOB2")
