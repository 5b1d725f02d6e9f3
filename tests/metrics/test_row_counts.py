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


def test_of_counts_is_that_of_rows():
    y_true, y_pred = noisy(60)
    by_counts = metrics.bootstrap_interval(y_true, y_pred, n_resamples=4000)
    by_rows = metrics.bootstrap_interval(
        y_true, y_pred, metric=lambda y, z: metrics.entity_f1_score(y, z), n_resamples=1000
    )
    assert by_counts == pytest.approx(by_rows, abs=0.015)


def test_covers_the_score_of_the_population():
    """95 % intervals of samples hold the score of all rows in about 95 of 100 samples."""
    y_true, y_pred = noisy(4000, seed=1)
    whole = metrics.entity_f1_score(y_true, y_pred)
    rng = np.random.default_rng(0)
    n_covered = 0
    for _ in range(100):
        rows = rng.integers(4000, size=150)
        low, high = metrics.bootstrap_interval(
            [y_true[i] for i in rows], [y_pred[i] for i in rows], n_resamples=500
        )
        n_covered += low <= whole <= high
    assert 88 <= n_covered <= 99


def test_narrows_with_rows_and_confidence():
    few, many = (np.ptp(metrics.bootstrap_interval(*noisy(n))) for n in (50, 800))
    assert few / many == pytest.approx(4, rel=0.35)
    y_true, y_pred = noisy(100)
    wide = metrics.bootstrap_interval(y_true, y_pred, confidence_level=0.99)
    narrow = metrics.bootstrap_interval(y_true, y_pred, confidence_level=0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert wide == metrics.bootstrap_interval(y_true, y_pred, confidence_level=0.99)
    assert wide != metrics.bootstrap_interval(y_true, y_pred, confidence_level=0.99, random_state=1)


@pytest.mark.parametrize("y_true, y_pred, options, message", [
    ([["O"]], [["O"], ["O"]], {}, "got 1 and 2"),
    ([], [], {}, "got none"),
    ([["O"]], [["O"]], {"confidence_level": 95}, r"'confidence_level' .*\(0, 1\)"),
    ([["O"]], [["O"]], {"n_resamples": 0}, "'n_resamples' parameter"),
])  # fmt: skip
def test_errors(y_true, y_pred, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.bootstrap_interval(y_true, y_pred, **options)
