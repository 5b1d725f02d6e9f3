"""What a decision is tuned for: floors, biases of labels, and thresholds of classes."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdice.metrics import count_by_label
from skdice.tasks import Goal, choose_decision
from skdice.text import by_label

CANDIDATES = sorted((np.arange(-40, 41) / 10).tolist(), key=abs)
LABELS = ["LOC", "PER"]


class Rows:
    """Entities with scores: ``decide`` gives those above a number, or one for each label."""

    def __init__(self, n_rows=300, n_gold=1.0, seed=0, best=(-1.0, 2.0)):
        rng = np.random.default_rng(seed)
        self.gold, self.scored = [], []
        for _ in range(n_rows):
            gold, scored, word = [], [], 0
            for label, place in zip(LABELS, best, strict=True):
                kinds = [(True, 1.0)] * rng.poisson(n_gold) + [(False, -1.5)] * rng.poisson(n_gold)
                for is_gold, shift in kinds:
                    span = (word, word + 1, label)
                    word += 1
                    scored.append((place + shift + rng.logistic(scale=0.5), span))
                    gold += [span] if is_gold else []
            self.gold.append(gold)
            self.scored.append(scored)

    def decide(self, lowest):
        lowest = by_label(lowest, LABELS)
        return [[s for x, s in row if x > lowest[s[2]]] for row in self.scored]

    def choose(self, goal, decide=None):
        return choose_decision(self.gold, decide or self.decide, CANDIDATES, LABELS, goal)

    def totals(self, decision):
        """Correct, predicted and actual entities, (3, n_labels)."""
        rows = zip(map(set, self.gold), map(set, self.decide(decision)), strict=True)
        return count_by_label(list(rows), LABELS).sum(0)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 20), st.floats(0.01, 1))
def test_a_floor_comes_first(correct, wrong, missed, floor):
    predicted, actual = correct + wrong, correct + missed
    precision = correct / predicted if predicted else 0.0
    recall = correct / actual
    value = Goal(min_precision=floor).value(correct, predicted, actual)
    assert value == (1 + recall if precision >= floor else precision)
    value = Goal(min_recall=floor).value(correct, predicted, actual)
    assert value == (1 + precision if recall >= floor else recall)
    f1 = 2 * correct / (predicted + actual)
    np.testing.assert_allclose(Goal().value(correct, predicted, actual), f1)


class TestChoice:
    @pytest.mark.parametrize("kind", ["min_precision", "min_recall"])
    def test_the_decision_taken_reaches_the_floor_or_is_reported(self, kind):
        """Few rows, of which precision is anything but monotone in the threshold."""
        n_missed = 0
        for seed in range(40):
            rows, floor = Rows(n_rows=12, n_gold=0.7, seed=seed), (0.7, 0.8, 0.9)[seed % 3]
            with warnings.catch_warnings(record=True, action="always") as caught:
                decision = rows.choose(Goal(**{kind: floor}))
            correct, predicted, actual = rows.totals(decision).sum(1)
            reached = correct / max(predicted if kind == "min_precision" else actual, 1)
            said = [float(str(w.message).split(" reaches ")[1][:5]) for w in caught]
            assert said == ([round(reached, 3)] if reached < floor else [])
            n_missed += len(said)
        assert n_missed < 40


@pytest.mark.parametrize("parts, metric, message", [
    ({"min_precision": 90}, None, r"'min_precision' parameter of tune_decision .*\[0.*1.*\]"),
    ({"min_recall": "high"}, None, "Got 'high' instead"),
    ({"per_label": 1}, None, "'per_label' parameter"),
    ({"min_precision": 0.9, "min_recall": 0.9}, None, "takes one of metric, min_precision"),
    ({"min_precision": 0.9}, max, "takes one of metric, min_precision"),
    ({"per_label": True}, max, "so metric must be None"),
    ({"per_label": True, "min_recall": 0.9}, None, "so min_recall must be None; got 0.9"),
])  # fmt: skip
def test_errors(parts, metric, message):
    with pytest.raises(ValueError, match=message):
        Goal(**parts, metric=metric).check()
