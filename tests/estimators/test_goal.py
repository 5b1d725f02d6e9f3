"""What a decision is tuned for: floors, and biases of labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdice.estimators._goal import Goal, choose_bias, count_by_label

CANDIDATES = sorted((np.arange(-40, 41) / 10).tolist(), key=abs)
LABELS = ["LOC", "PER"]


def made_counts(n_rows=400, n_gold=1.0, seed=0, best=(-1.0, 2.0)):
    """Counts by which the F1 of each label is best at its own bias."""
    rng = np.random.default_rng(seed)
    actual = rng.poisson(n_gold, (n_rows, 2))
    counts = np.zeros((len(CANDIDATES), n_rows, 3, 2), dtype=int)
    for i, bias in enumerate(CANDIDATES):
        for k, place in enumerate(best):
            share = 1 / (1 + np.exp(bias - place))  # The higher, the fewer are found.
            correct = rng.binomial(actual[:, k], 0.95 * share)
            wrong = rng.poisson(n_gold * 3 * share**4, n_rows)
            counts[i, :, :, k] = np.stack([correct, correct + wrong, actual[:, k]], axis=1)
    return counts


def scores(counts, bias):
    """Return precision and recall at the candidate nearest to a bias."""
    correct, predicted, actual = counts[int(np.argmin(np.abs(np.array(CANDIDATES) - bias)))].sum(0)
    return correct / np.maximum(predicted, 1), correct / actual


class TestValue:
    @given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 20), st.floats(0.01, 1))
    def test_a_floor_comes_first(self, correct, wrong, missed, floor):
        predicted, actual = correct + wrong, correct + missed
        precision = correct / predicted if predicted else 0.0
        recall = correct / actual
        value = Goal(min_precision=floor).value(correct, predicted, actual)
        assert value == (1 + recall if precision >= floor else precision)
        value = Goal(min_recall=floor).value(correct, predicted, actual)
        assert value == (1 + precision if recall >= floor else recall)

    def test_without_one_it_is_f1(self):
        np.testing.assert_allclose(Goal().value([2, 0, 0], [4, 0, 3], [4, 5, 0]), [0.5, 0, 0])


class TestChoice:
    def test_one_bias_for_all(self):
        counts = made_counts()
        bias = choose_bias(counts, CANDIDATES, LABELS, Goal())
        assert isinstance(bias, float)
        total = counts.sum((1, 3))
        f1 = 2 * total[:, 0] / (total[:, 1] + total[:, 2])
        assert f1[int(np.argmin(np.abs(np.array(CANDIDATES) - bias)))] > f1.max() - 0.02

    def test_each_label_has_its_own(self):
        counts = made_counts()
        biases = choose_bias(counts, CANDIDATES, LABELS, Goal(per_label=True))
        assert list(biases) == LABELS
        for k, label in enumerate(LABELS):
            of_label = counts[..., k].sum(1)
            f1 = 2 * of_label[:, 0] / (of_label[:, 1] + of_label[:, 2])
            at = int(np.argmin(np.abs(np.array(CANDIDATES) - biases[label])))
            assert f1[at] > f1.max() - 0.02

    def test_few_entities_are_drawn_to_the_shared_bias(self):
        counts = made_counts()
        counts[..., 1] = 0
        few = made_counts(n_rows=4, seed=1, best=(-1.0, 4.0))[..., 1]
        counts[:, :4, :, 1] = few
        n = few[0, :, 2].sum()
        shared = choose_bias(counts, CANDIDATES, LABELS, Goal())
        biases = choose_bias(counts, CANDIDATES, LABELS, Goal(per_label=True))
        alone = choose_bias(counts[..., 1:], CANDIDATES, ["PER"], Goal())
        expected = shared + n / (n + 20) * (alone - shared)
        assert biases["PER"] == pytest.approx(expected)
        assert biases["LOC"] == pytest.approx(shared, abs=0.2)

    @pytest.mark.parametrize("per_label", [False, True])
    def test_floors_are_reached(self, per_label):
        counts = made_counts(n_rows=3000)
        goal = Goal(per_label=per_label, min_precision=0.9)
        bias = choose_bias(counts, CANDIDATES, LABELS, goal)
        if not per_label:
            correct, predicted, _ = counts[CANDIDATES.index(round(bias, 1))].sum((0, 2))
            assert correct / predicted > 0.885
            return
        for k, label in enumerate(LABELS):
            precision, recall = scores(counts[..., k], bias[label])
            assert precision > 0.885
            assert recall > 0.3
        goal = Goal(per_label=True, min_recall=0.8)
        for k, (label, value) in enumerate(choose_bias(counts, CANDIDATES, LABELS, goal).items()):
            assert label == LABELS[k]
            assert scores(counts[..., k], value)[1] > 0.785

    def test_a_floor_out_of_reach(self):
        counts = made_counts()
        counts[:, :, 1] += 5
        with pytest.warns(UserWarning, match=r"min_precision=0.9 is not reached .* reaches 0\.\d"):
            choose_bias(counts, CANDIDATES, LABELS, Goal(min_precision=0.9))
        with pytest.warns(UserWarning, match=r"not reached for 'LOC' on these rows"):
            choose_bias(counts, CANDIDATES, LABELS, Goal(per_label=True, min_precision=0.9))

    def test_a_label_without_entities(self):
        counts = made_counts()
        counts[..., 1] = 0
        biases = choose_bias(counts, CANDIDATES, LABELS, Goal(per_label=True))
        shared = choose_bias(counts, CANDIDATES, LABELS, Goal())
        assert biases["PER"] == shared


def test_counts():
    gold = [[(0, 1, "PER"), (2, 4, "LOC")], []]
    found = [[(0, 1, "PER"), (2, 3, "LOC")], [(0, 1, "LOC"), (1, 2, "NEW")]]
    counts = count_by_label(gold, found, LABELS)
    np.testing.assert_array_equal(counts[0], [[0, 1], [1, 1], [1, 1]])
    np.testing.assert_array_equal(counts[1], [[0, 0], [1, 0], [0, 0]])


@pytest.mark.parametrize(
    "parts, metric, message",
    [
        ({"min_precision": 90}, None, r"'min_precision' parameter of tune_decision .*\[0.*1.*\]"),
        ({"min_recall": "high"}, None, "Got 'high' instead"),
        ({"per_label": 1}, None, "'per_label' parameter"),
        ({"min_precision": 0.9, "min_recall": 0.9}, None, "takes one of metric, min_precision"),
        ({"min_precision": 0.9}, max, "takes one of metric, min_precision"),
        ({"per_label": True}, max, "per_label=True needs metric=None"),
    ],
)
def test_errors(parts, metric, message):
    with pytest.raises(ValueError, match=message):
        Goal(**parts).check(metric)
