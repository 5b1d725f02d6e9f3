"""Metrics from the summed counts of rows are those of the rows, whatever rows they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger
from skdice.metrics import (
    entity_precision_recall_fscore_support,
    squad_exact_match,
    squad_f1_score,
    tag_f1_score,
)
from skdice.metrics._row_counts import RowCounts, count_rows

LABELS = {
    "two int": np.array([0, 1]),
    "two str": np.array(["no", "yes"], dtype=object),
    "four int": np.arange(4),
    "four str": np.array(list("abcd"), dtype=object),
}
ANSWERS = ["", "oslo", "the north sea", "north sea coast", "an"]


def with_classes(estimator, classes, is_multilabel=False):
    estimator.classes_ = classes
    estimator._is_multilabel = is_multilabel
    return estimator


def scores(row_counts, rows):
    totals = row_counts.counts[rows].sum(axis=0, dtype=float)
    return dict(zip(row_counts.metrics, row_counts.scores(totals).tolist()))


def draw_rows(data, n_rows):
    return data.draw(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=2 * n_rows))


def random_tags(rng, n_rows, classes):
    return [rng.choice(classes, rng.integers(0, 6)).tolist() for _ in range(n_rows)]


def other_tags(rng, y, classes):
    return [[str(rng.choice(classes)) if rng.random() < 0.4 else tag for tag in row] for row in y]


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 10**6))
def test_entities(data, seed):
    rng = np.random.default_rng(seed)
    classes = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    y_true = random_tags(rng, 12, classes)
    y_pred = other_tags(rng, y_true, classes)
    counts = count_rows("entities", y_true, y_pred)
    rows = draw_rows(data, 12)
    expected = entity_precision_recall_fscore_support(
        [y_true[i] for i in rows], [y_pred[i] for i in rows], average="micro"
    )
    assert list(scores(counts, rows).values()) == pytest.approx(expected[:3])


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 10**6))
def test_plain_tags(data, seed):
    rng = np.random.default_rng(seed)
    classes = ["NOUN", "VERB", "DET"]
    y_true = random_tags(rng, 12, classes)
    y_pred = other_tags(rng, y_true, classes)
    counts = count_rows("tags", y_true, y_pred)
    rows = draw_rows(data, 12)
    expected = tag_f1_score([y_true[i] for i in rows], [y_pred[i] for i in rows])
    assert scores(counts, rows) == pytest.approx({"accuracy": expected, "f1": expected})


@pytest.mark.parametrize("name", LABELS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6), first_is_positive=st.booleans())
def test_labels(name, data, seed, first_is_positive):
    classes = LABELS[name]
    is_binary = len(classes) == 2
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.choice(classes, 15), rng.choice(classes, 15)
    pos_label = classes[0] if is_binary and first_is_positive else None
    rows = draw_rows(data, 15)
    labels = None
    if is_binary:
        labels = [classes[1] if pos_label is None else pos_label]
    expected = precision_recall_fscore_support(
        y_true[rows], y_pred[rows], labels=labels, average="macro", zero_division=0.0
    )[:3]

    pairs = with_classes(DicePairClassifier(pos_label=pos_label), classes)
    assert pairs._metric(y_true[rows], y_pred[rows]) == pytest.approx(expected[2])
    of_pairs = scores(pairs._task.count_rows(pairs, "pairs", y_true, y_pred), rows)
    assert of_pairs == pytest.approx(dict(zip(("precision", "recall", "f1"), expected)))

    texts = with_classes(DiceTextClassifier(pos_label=pos_label), classes)
    of_texts = scores(texts._task.count_rows(texts, "texts", y_true, y_pred), rows)
    accuracy = texts._metric(y_true[rows], y_pred[rows])
    assert of_texts == pytest.approx({"accuracy": accuracy, "f1": expected[2]})


def test_a_test_label_that_was_never_trained_on():
    pairs = with_classes(DicePairClassifier(), np.array([0, 1]))
    y_true, y_pred = np.array([0, 1, 2, 1]), np.array([1, 1, 1, 0])
    expected = f1_score(y_true, y_pred, labels=[1], average="macro")
    assert (
        scores(pairs._task.count_rows(pairs, "pairs", y_true, y_pred), slice(None))["f1"]
        == expected
    )
    more = with_classes(DicePairClassifier(), np.array([0, 1, 3]))
    expected = f1_score(y_true, y_pred, average="macro")
    found = scores(more._task.count_rows(more, "pairs", y_true, y_pred), slice(None))["f1"]
    assert found == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 10**6))
def test_several_labels(data, seed):
    y_true, y_pred = np.random.default_rng(seed).integers(2, size=(2, 15, 3))
    texts = with_classes(DiceTextClassifier(), np.arange(3), is_multilabel=True)
    rows = draw_rows(data, 15)
    expected = {
        "accuracy": accuracy_score(y_true[rows], y_pred[rows]),
        "f1": f1_score(y_true[rows], y_pred[rows], average="micro", zero_division=0.0),
    }
    assert scores(texts._task.count_rows(texts, "texts", y_true, y_pred), rows) == pytest.approx(
        expected
    )


def test_more_labels_in_a_row_than_a_byte_counts():
    y = np.ones((2, 300), dtype=np.int64)
    texts = with_classes(DiceTextClassifier(), np.arange(300), is_multilabel=True)
    counts = texts._task.count_rows(texts, "texts", y, y)
    assert counts.counts.sum(axis=0).tolist() == [2, 2, 600, 600, 600]


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 10**6))
def test_questions(data, seed):
    rng = np.random.default_rng(seed)
    y_true = [{"text": rng.choice(ANSWERS, rng.integers(3)).tolist()} for _ in range(12)]
    y_pred = rng.choice(ANSWERS, 12).astype(object)
    rows = draw_rows(data, 12)
    true_rows, pred_rows = [y_true[i] for i in rows], y_pred[rows]
    expected = {
        "exact_match": squad_exact_match(true_rows, pred_rows),
        "f1": squad_f1_score(true_rows, pred_rows),
    }
    assert scores(count_rows("questions", y_true, y_pred), rows) == pytest.approx(expected)


def test_scores_of_many_totals_at_once():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(4, size=(2, 30))
    estimator = with_classes(DiceTextClassifier(), np.arange(4))
    counts = estimator._task.count_rows(estimator, "texts", y_true, y_pred)
    weights = rng.integers(3, size=(2, 5, 30)).astype(float)
    totals = weights @ counts.counts
    together = counts.scores(totals)
    assert together.shape == (2, 5, 2)
    one_by_one = [[counts.scores(total) for total in row] for row in totals]
    np.testing.assert_array_equal(together, one_by_one)


def test_nothing_to_divide_by_is_zero():
    empty = RowCounts("entities", np.zeros((3, 3)))
    assert scores(empty, slice(None)) == {"precision": 0, "recall": 0, "f1": 0}


@pytest.mark.parametrize(
    "estimator, y, task",
    [
        (DiceTokenTagger(), [["O", "B-PER"], []], "entities"),
        (DiceTokenTagger(), [["O", "PER"]], "tags"),
        (DicePairClassifier(), [0, 1], "pairs"),
        (DiceTextClassifier(), [0, 1], "texts"),
    ],
)
def test_task(estimator, y, task):
    assert estimator._task.find_measure(y) == task
