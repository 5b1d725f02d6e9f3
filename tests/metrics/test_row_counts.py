"""Metrics from the summed counts of rows are those of the rows, whatever rows they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from skdice.metrics import (
    count_rows,
    entity_precision_recall_fscore_support,
    squad_exact_match,
    squad_f1_score,
    tag_f1_score,
)

from .test_interval import noisy

ANSWERS = ["", "oslo", "the north sea", "north sea coast", "an"]
LABELS = [np.array([0, 1]), np.array(["no", "yes"], dtype=object), np.array(list("abcd"))]
N_ROWS = 12

# Rows drawn with replacement, as in a bootstrap, and a seed of the labels.
drawn = given(
    st.lists(st.integers(0, N_ROWS - 1), min_size=1, max_size=2 * N_ROWS), st.integers(0, 10**6)
)
few = settings(max_examples=40, deadline=None)


def assert_scores(counts, rows, expected):
    totals = counts.counts[rows].sum(axis=0, dtype=float)
    assert dict(zip(counts.metrics, counts.scores(totals).tolist())) == pytest.approx(expected)


@few
@drawn
def test_entities(rows, seed):
    y_true, y_pred = noisy(N_ROWS, seed, ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
    expected = entity_precision_recall_fscore_support(
        [y_true[i] for i in rows], [y_pred[i] for i in rows], average="micro"
    )
    counts = count_rows("entities", y_true, y_pred)
    assert_scores(counts, rows, dict(zip(("precision", "recall", "f1"), expected)))


@few
@drawn
def test_plain_tags(rows, seed):
    y_true, y_pred = noisy(N_ROWS, seed, ["NOUN", "VERB", "DET"])
    expected = tag_f1_score([y_true[i] for i in rows], [y_pred[i] for i in rows])
    counts = count_rows("tagging", y_true, y_pred)
    assert_scores(counts, rows, {"accuracy": expected, "f1": expected})


@pytest.mark.parametrize("classes", LABELS)
@pytest.mark.parametrize("has_pos_label", [False, True])
@few
@given(data=st.data())
def test_labels(classes, has_pos_label, data):
    rows, seed = data.draw(st.tuples(st.lists(st.integers(0, 14), min_size=1), st.integers(0, 999)))
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.choice(classes, 15), rng.choice(classes, 15)
    pos_label = classes[0] if has_pos_label else None
    precision, recall, f1, _ = precision_recall_fscore_support(
        y_true[rows],
        y_pred[rows],
        labels=[pos_label] if has_pos_label else None,
        average="macro",
        zero_division=0.0,
    )
    pairs = count_rows("pairs", y_true, y_pred, pos_label)
    assert_scores(pairs, rows, {"precision": precision, "recall": recall, "f1": f1})
    texts = count_rows("texts", y_true, y_pred, pos_label)
    accuracy = accuracy_score(y_true[rows], y_pred[rows])
    assert_scores(texts, rows, {"accuracy": accuracy, "f1": f1})


@few
@drawn
def test_questions(rows, seed):
    rng = np.random.default_rng(seed)
    y_true = [{"text": rng.choice(ANSWERS, rng.integers(3)).tolist()} for _ in range(N_ROWS)]
    y_pred = rng.choice(ANSWERS, N_ROWS).astype(object)
    true_rows, pred_rows = [y_true[i] for i in rows], y_pred[rows]
    expected = {
        "exact_match": squad_exact_match(true_rows, pred_rows),
        "f1": squad_f1_score(true_rows, pred_rows),
    }
    assert_scores(count_rows("questions", y_true, y_pred), rows, expected)
