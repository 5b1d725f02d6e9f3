"""What a decision is tuned for, F1 or a floor under precision or recall, and the search for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._parameters import check_number, check_option
from ..exceptions import warn
from ..metrics import count_by_label, divide
from ..text import Threshold

# Numbers of entities, rows or labels, or sums of their weights.
Counts: TypeAlias = np.ndarray | float

# The relative error of a sum of weights.
_ROUNDING = 1e-9
# Parts of the held-out rows. A bias is the mean of those that are best without one of the parts.
_N_FOLDS = 5
# Shrinkage: a label with this many entities takes the mean of its own decision and the shared one.
_HALF_TRUSTED = 20
# Labels that a warning names.
_MOST_NAMED = 5
# Passes over all labels, and the step from one candidate that is tried to the next.
_N_ROUNDS = 2
_STEP = 4


@dataclass(frozen=True)
class Goal:
    """What a decision is tuned for."""

    per_label: bool = False  # Whether each label has a bias or threshold of its own.
    # A floor for one of them: the other is maximised. Without a floor, F1 is.
    min_precision: float | None = None
    min_recall: float | None = None
    metric: Callable[[Any], float] | None = None  # of predictions, in place of all this

    def check(self) -> None:
        """Raise a ValueError unless the parts go together."""
        check_option("tune_decision", "per_label", self.per_label, (True, False))
        for name in ("min_precision", "min_recall"):
            value = getattr(self, name)
            check_number("tune_decision", name, value, low=0, high=1, closed="both", optional=True)
        taken = ("metric", "min_precision", "min_recall")
        names = [name for name in taken if getattr(self, name) is not None]
        if len(names) > 1:
            raise ValueError(f"tune_decision takes one of {', '.join(taken)}; got {names}.")
        if self.per_label and names:
            raise ValueError(
                f"per_label=True tunes the bias of each label for F1, so {names[0]} must be None; "
                f"got {getattr(self, names[0])!r}."
            )

    @property
    def has_floor(self) -> bool:
        """Whether precision or recall must reach something."""
        return self.min_precision is not None or self.min_recall is not None

    def value(self, correct: Counts, predicted: Counts, actual: Counts) -> np.ndarray:
        """Return the value of counts that is maximised: above 1 where a floor is reached."""
        precision, recall = divide(correct, predicted), divide(correct, actual)
        if self.min_precision is not None:
            return np.where(_reaches(precision, self.min_precision), 1 + recall, precision)
        if self.min_recall is not None:
            return np.where(_reaches(recall, self.min_recall), 1 + precision, recall)
        return divide(2 * np.asarray(correct), np.asarray(predicted) + actual)

    def safe_value(self, correct: Counts, predicted: Counts, actual: Counts) -> np.ndarray:
        """Return the value of entities that is maximised: above 2 where a floor has a margin.

        The margin is a standard error: the lower end of Wilson's interval (1927) for one. Among
        many decisions, those that just reach a floor were lucky. A value is above 1 where the floor
        is reached without a margin, and higher the surer it is reached. Below the floor, the
        nearest decision has the highest value.
        """
        floor: Any = self.min_precision
        total, other = predicted, actual
        if floor is None:
            floor, total, other = self.min_recall, actual, predicted
        share = divide(correct, total)
        spread = np.sqrt(total * share * (1 - share) + 0.25)
        lower = (correct + 0.5 - spread) / (total + 1)
        reached = np.where(_reaches(share, floor), 1 + lower, share)
        return np.where(_reaches(lower, floor), 2 + divide(correct, other), reached)

    def warn_if_missed(self, reached: Mapping[str, tuple[float, float]]) -> None:
        """Warn if the floor is not reached.

        For each thing that is looked for, such as "an entity", there are the value of the decision
        that was taken, and how many of it the rows have.
        """
        missed = {what: found for what, found in reached.items() if found[0] < 1}
        if self.has_floor and missed:
            name = "min_precision" if self.min_precision is not None else "min_recall"
            parts = [
                f"it reaches {value:.3f} for {what}" if n_actual else f"no row has {what}"
                for what, (value, n_actual) in missed.items()
            ]
            more = f", and so on for {len(parts)} labels" if len(parts) > _MOST_NAMED else ""
            warn(
                f"{name}={getattr(self, name)} is not reached on these rows by the decision taken: "
                f"{', '.join(parts[:_MOST_NAMED])}{more}."
            )


F1 = Goal()


def _reaches(share: np.ndarray, floor: float) -> np.ndarray:
    """Tell where shares reach a floor; sums of weights are inexact in their last digits."""
    return np.asarray(share >= floor * (1 - _ROUNDING))


def choose_decision(
    gold: Sequence[Sequence[Any]],
    decide: Callable[[Threshold], Sequence[Sequence[Any]]],
    candidates: Sequence[float],
    labels: Sequence[str],
    goal: Goal,
    weight: np.ndarray | None = None,
) -> float | dict[str, float]:
    """Return the bias or threshold that serves the goal best, or one for each label.

    For F1, the decision of all labels is the mean of five, each the best without one fifth of the
    rows. It is shrunk towards 0, if 0 finds any entity, and more so with few entities. Labels
    compete for words, so the decisions of labels are changed one after the other as long as the F1
    of all labels rises. That of a label with few entities is shrunk towards the shared one.

    A floor must be reached by the decision that is taken, so nothing is averaged or shrunk. Of the
    decisions that reach it with a margin of a standard error, the one with the highest precision,
    or recall, is taken. If there is none, it is the one that reaches the floor most surely or comes
    nearest, with a warning.

    ``gold`` has the (start, end, label) of each row, and ``decide`` gives the same from a candidate
    or one for each label. A weight of a row counts as repetition. Of equally good candidates the
    first is taken.
    """

    def count(value: Threshold) -> np.ndarray:
        """Return the counts of each row and label, (n_rows, 3, n_labels)."""
        rows = [({e[:3] for e in a}, {e[:3] for e in b}) for a, b in zip(gold, decide(value))]
        counts = count_by_label(rows, labels)
        return counts if weight is None else counts * weight[:, None, None]

    counts = np.array([count(value) for value in candidates])
    if goal.has_floor:
        total = counts.sum((1, 3))
        surest = int(np.argmax(goal.safe_value(*total.T)))
        value, n_actual = float(goal.value(*total[surest])), float(total[surest, 2])
        goal.warn_if_missed({"an entity": (value, n_actual)})
        return candidates[surest]
    shared = _shared_decision(counts.sum(-1), candidates)
    if not goal.per_label:
        return shared
    best = dict.fromkeys(labels, shared)
    for _ in range(_N_ROUNDS):
        before = dict(best)
        for label in labels:

            def f1_with(value: float, label: str = label) -> float:
                return float(F1.value(*count({**best, label: value}).sum((0, 2))))

            best[label] = max([best[label], *sorted(candidates)[::_STEP]], key=f1_with)
        if best == before:
            break
    n_actual = counts[0, :, 2].sum(0)
    trust = dict(zip(labels, (n_actual / (n_actual + _HALF_TRUSTED)).tolist()))
    return {label: shared + trust[label] * (best[label] - shared) for label in labels}


def _shared_decision(counts: np.ndarray, candidates: Sequence[float]) -> float:
    """Return the best decision for all labels from counts of shape (n_candidates, n_rows, 3)."""
    total = counts.sum(1)
    parts = [counts[:, k::_N_FOLDS].sum(1) for k in range(_N_FOLDS)]
    best = [int(np.argmax(F1.value(*(total - part).T))) for part in parts]
    shared = float(np.mean([candidates[i] for i in best]))
    n_found, _, n_actual = total[candidates.index(0)]
    return float(n_actual / (n_actual + _HALF_TRUSTED)) * shared if n_found else shared
