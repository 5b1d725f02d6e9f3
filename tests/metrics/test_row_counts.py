import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from skdice import metrics

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
def test_tags(rows, seed):
    kinds = {"entities": ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"], "tagging": ["NN", "VB"]}
    for kind, tags in kinds.items():
        y_true, y_pred = noisy(N_ROWS, seed, tags)
        drawn_rows = [y_true[i] for i in rows], [y_pred[i] for i in rows]
        if kind == "entities":
            scores = metrics.entity_precision_recall_fscore_support(*drawn_rows, average="micro")
            expected = dict(zip(("precision", "recall", "f1"), scores))
        else:
            expected = dict.fromkeys(("accuracy", "f1"), metrics.tag_f1_score(*drawn_rows))
        assert_scores(metrics.count_rows(kind, y_true, y_pred), rows, expected)


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
        y_true[rows], y_pred[rows], labels=[pos_label] if has_pos_label else None, average="macro",
        zero_division=0.0,
    )  # fmt: skip
    pairs = metrics.count_rows("pairs", y_true, y_pred, pos_label)
    assert_scores(pairs, rows, {"precision": precision, "recall": recall, "f1": f1})
    texts = metrics.count_rows("texts", y_true, y_pred, pos_label)
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
        "exact_match": metrics.squad_exact_match(true_rows, pred_rows),
        "f1": metrics.squad_f1_score(true_rows, pred_rows),
    }
    assert_scores(metrics.count_rows("questions", y_true, y_pred), rows, expected)


TAGS = ["O", "B-PER", "I-PER", "B-LOC"]


def noisy(n_rows, seed=0, tags=TAGS):
    """Return rows of tags, some of them empty, and of predictions that are mostly right."""
    rng = np.random.default_rng(seed)
    y_true = [rng.choice(tags, rng.integers(0, 8)).tolist() for _ in range(n_rows)]
    y_pred = [[str(rng.choice(tags)) if rng.random() < 0.3 else t for t in row] for row in y_true]
    return y_true, y_pred
