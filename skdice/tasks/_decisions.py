"""The decisions of classifiers: values that turn the logits of rows into classes or labels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, logit, softmax

from .._parameters import check_number

# Calls of the score, shared out among the cuts that are tuned.
_MOST_CALLS = 1000
_FEWEST_CALLS_PER_CUT = 40
_MOST_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Decision:
    """How a classifier decides: it compares values of a row, made of its logits, with cuts.

    A class or label is predicted where its value exceeds its cut, unless a decision says more. A
    decision that is impossible is a ValueError when it is made.
    """

    cuts: np.ndarray  # one, or one for each class or label

    of_each: ClassVar[str] = ""  # what has a cut of its own
    closed: ClassVar[str] = "both"  # whether 0 and 1 are thresholds

    def __post_init__(self) -> None:
        is_row = isinstance(self.cuts, np.ndarray) and self.cuts.ndim == 1
        may_be = np.isfinite if self.closed == "right" else lambda cuts: ~np.isnan(cuts)
        if not is_row or self.cuts.dtype.kind != "f" or not np.all(may_be(self.cuts)):
            raise ValueError(f"A decision needs cuts that are numbers; got {self}.")

    def values(self, logits: np.ndarray) -> np.ndarray:
        """Return what is compared with cuts, from logits of shape (n_rows, n_classes)."""
        return logits

    def predict(self, values: np.ndarray) -> np.ndarray:
        """Return the class number of each row or, of several labels, a matrix of 0 and 1."""
        return np.asarray(values > self.cuts, dtype=np.int64)

    def margin(self, values: np.ndarray, k: int) -> np.ndarray:
        """Return the lowest k-th cut with which each row would not get the k-th class or label."""
        return values if values.ndim == 1 else values[:, k]

    @property
    def threshold(self) -> float | np.ndarray:
        """The decision as probabilities, which is ``threshold_`` of the estimators."""
        return np.asarray(expit(self.cuts))

    def cuts_of(self, p: np.ndarray) -> np.ndarray:
        """Return the cuts of a decision as probabilities, of the shape of ``cuts``."""
        return np.asarray(logit(p))

    def with_threshold(self, threshold: Any, owner: str) -> Self:
        """Return the decision with other probabilities, one or several; errors name the owner."""
        given, shape = np.asarray(threshold, dtype=object), self.cuts.shape
        if given.ndim and (not self.of_each or given.shape != shape):
            each = f", or an array of {shape[0]}, one for each of the {self.of_each}"
            got = f"{len(given)} of them" if given.ndim == 1 else f"an array of shape {given.shape}"
            raise ValueError(
                f"The 'threshold_' of this {owner} must be one float in the range [0, 1]"
                f"{each if self.of_each else ''}. Got {got} instead."
            )
        for value in given.ravel().tolist():
            check_number(owner, "threshold_", value, low=0, high=1, closed=self.closed)
        return replace(self, cuts=self.cuts_of(np.broadcast_to(given.astype(np.float64), shape)))

    def with_cut(self, k: int, cut: float) -> Self:
        cuts = self.cuts.copy()
        cuts[k] = cut
        return replace(self, cuts=cuts)

    def tuned(self, values: np.ndarray, score: Callable[[Self], float]) -> Self:
        """Return the decision with the highest score that changes of single cuts lead to.

        Of decisions with equal scores it is one whose cuts are near 0.
        """
        n_cuts = len(self.cuts)
        most = max(_FEWEST_CALLS_PER_CUT, _MOST_CALLS // n_cuts)
        best = replace(self, cuts=np.zeros(n_cuts))
        reached = score(best)
        for _ in range(_MOST_ROUNDS if n_cuts > 1 else 1):
            before = reached
            for k in range(n_cuts):

                def score_of(cut: float, k: int = k, now: Self = best) -> float:
                    return score(now.with_cut(k, cut))

                start = float(best.cuts[k])
                cut, reached = best_cut(best.margin(values, k), score_of, start, most)
                best = best.with_cut(k, cut)
            if reached <= before:
                break
        return best


@dataclass(frozen=True, eq=False)
class BinaryThreshold(Decision):
    """The second one of two classes is predicted where its log-odds exceed the cut."""

    positive: int  # the class whose probability the threshold is

    def values(self, logits: np.ndarray) -> np.ndarray:
        return np.asarray(logits[:, 1] - logits[:, 0])

    @property
    def threshold(self) -> float:
        p = expit(self.cuts if self.positive else -self.cuts).item()
        return float(f"{p:.15g}")  # The probability that was given, not one next to it.

    def cuts_of(self, p: np.ndarray) -> np.ndarray:
        return np.asarray(logit(p) if self.positive else -logit(p))


@dataclass(frozen=True, eq=False)
class ShiftedArgmax(Decision):
    """The class is predicted whose logit exceeds its cut by most."""

    of_each = "classes"
    closed = "right"  # A class with the threshold 0 would always be predicted.

    def predict(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((values - self.cuts).argmax(axis=1))

    def margin(self, values: np.ndarray, k: int) -> np.ndarray:
        others = np.delete(values - self.cuts, k, axis=1)
        return np.asarray(values[:, k] - others.max(axis=1))

    @property
    def threshold(self) -> np.ndarray:
        return np.asarray(softmax(self.cuts))

    def cuts_of(self, p: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(p))


@dataclass(frozen=True, eq=False)
class LabelThresholds(Decision):
    """Every label is predicted whose logit exceeds its cut."""

    of_each = "labels"


def best_cut(
    values: np.ndarray, score: Callable[[float], float], start: float = 0.0, most: int = _MOST_CALLS
) -> tuple[float, float]:
    """Return the cut with the highest score, and that score.

    Tried are ``start`` and a cut between any two neighbouring values, the nearest to 0 first. If
    these are more than ``most``, half of them are taken in equal steps of rank, half in equal steps
    of value. Of equally good cuts the first one is taken.
    """
    values = np.unique(values)
    inner = (values[1:] + values[:-1]) / 2
    candidates = np.concatenate([values[:1] - 1, inner, values[-1:] + 1])
    if len(candidates) > most:
        by_rank = np.linspace(0, len(candidates) - 1, most // 2).round().astype(np.int64)
        steps = np.linspace(candidates[0], candidates[-1], most // 2)
        by_value = np.searchsorted(candidates, steps).clip(max=len(candidates) - 1)
        candidates = candidates[np.union1d(by_rank, by_value)]
    ordered = candidates[np.argsort(np.abs(candidates), kind="stable")].tolist()
    return max(((cut, score(cut)) for cut in [start, *ordered]), key=lambda found: found[1])
