"""The decisions of classifiers: values that turn the logits of rows into classes or labels."""

import math
from abc import ABC, abstractmethod
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
class Decision(ABC):
    """How a classifier decides. One that is impossible is a ValueError when it is made."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """The number of classes or labels."""

    def values(self, logits: np.ndarray) -> np.ndarray:
        """Return what is compared with cuts, from logits of shape (n_rows, n_classes)."""
        return logits

    @abstractmethod
    def predict(self, values: np.ndarray) -> np.ndarray:
        """Return the class number of each row or, of several labels, a matrix of 0 and 1."""

    @abstractmethod
    def tuned(self, values: np.ndarray, score: Callable[[Self], float]) -> Self:
        """Return the decision with the highest score; of equals, one whose cuts are near 0."""

    @property
    @abstractmethod
    def threshold(self) -> float | np.ndarray:
        """The decision as probabilities, which is ``threshold_`` of the estimators."""

    @abstractmethod
    def with_threshold(self, threshold: Any, owner: str) -> Self:
        """Return the decision with other probabilities; errors name the ``owner``."""


@dataclass(frozen=True, eq=False)
class BinaryThreshold(Decision):
    """The second one of two classes is predicted where its log-odds exceed the cut."""

    cut: float
    positive: int  # the class whose probability the threshold is

    def __post_init__(self) -> None:
        if not isinstance(self.cut, float) or math.isnan(self.cut) or self.positive not in (0, 1):
            raise ValueError(f"A decision between two classes needs a number; got {self}.")

    @property
    def n_classes(self) -> int:
        return 2

    def values(self, logits: np.ndarray) -> np.ndarray:
        log_odds: np.ndarray = logits[:, 1] - logits[:, 0]
        return log_odds

    def predict(self, values: np.ndarray) -> np.ndarray:
        is_second: np.ndarray = (values > self.cut).astype(np.int64)
        return is_second

    def tuned(self, values: np.ndarray, score: Callable[[Self], float]) -> Self:
        return replace(self, cut=best_cut(values, lambda cut: score(replace(self, cut=cut)))[0])

    @property
    def threshold(self) -> float:
        p = float(expit(self.cut if self.positive else -self.cut))
        return float(f"{p:.15g}")  # The probability that was given, not one next to it.

    def with_threshold(self, threshold: Any, owner: str) -> Self:
        log_odds = float(logit(_read_thresholds(threshold, owner)))
        return replace(self, cut=log_odds if self.positive else -log_odds)


@dataclass(frozen=True, eq=False)
class _SeveralCuts(Decision):
    """The base of decisions with a cut for each class or label."""

    cuts: np.ndarray  # (n_classes,)

    is_one_class: ClassVar[bool]  # whether a row has one class, and not several labels

    def __post_init__(self) -> None:
        is_row = isinstance(self.cuts, np.ndarray) and self.cuts.ndim == 1
        may_be = np.isfinite if self.is_one_class else lambda cuts: ~np.isnan(cuts)
        if not is_row or self.cuts.dtype.kind != "f" or not np.all(may_be(self.cuts)):
            raise ValueError(f"A decision needs a number for each class or label; got {self}.")

    @property
    def n_classes(self) -> int:
        return len(self.cuts)

    @abstractmethod
    def margin(self, values: np.ndarray, k: int) -> np.ndarray:
        """Return by how much each row exceeds the k-th cut if that is 0."""

    def with_cut(self, k: int, cut: float) -> Self:
        cuts = self.cuts.copy()
        cuts[k] = cut
        return replace(self, cuts=cuts)

    def tuned(self, values: np.ndarray, score: Callable[[Self], float]) -> Self:
        most = max(_FEWEST_CALLS_PER_CUT, _MOST_CALLS // self.n_classes)
        best = replace(self, cuts=np.zeros(self.n_classes))
        reached = score(best)
        for _ in range(_MOST_ROUNDS):
            before = reached
            for k in range(self.n_classes):  # One cut is changed after the other.

                def score_of(cut: float, k: int = k, now: Self = best) -> float:
                    return score(now.with_cut(k, cut))

                start = float(best.cuts[k])
                cut, reached = best_cut(best.margin(values, k), score_of, start, most)
                best = best.with_cut(k, cut)
            if reached <= before:
                break
        return best


@dataclass(frozen=True, eq=False)
class ShiftedArgmax(_SeveralCuts):
    """The class is predicted whose logit exceeds its cut by most."""

    is_one_class = True

    def predict(self, values: np.ndarray) -> np.ndarray:
        number: np.ndarray = (values - self.cuts).argmax(axis=1)
        return number

    def margin(self, values: np.ndarray, k: int) -> np.ndarray:
        others = np.delete(values - self.cuts, k, axis=1)
        above: np.ndarray = values[:, k] - others.max(axis=1)
        return above

    @property
    def threshold(self) -> np.ndarray:
        p: np.ndarray = softmax(self.cuts)
        return p

    def with_threshold(self, threshold: Any, owner: str) -> Self:
        # All classes with the threshold 0 would be infinitely more probable than it.
        given = _read_thresholds(threshold, owner, self.n_classes, "classes", closed="right")
        return replace(self, cuts=np.log(given))


@dataclass(frozen=True, eq=False)
class LabelThresholds(_SeveralCuts):
    """Every label is predicted whose logit exceeds its cut."""

    is_one_class = False

    def predict(self, values: np.ndarray) -> np.ndarray:
        is_predicted: np.ndarray = (values > self.cuts).astype(np.int64)
        return is_predicted

    def margin(self, values: np.ndarray, k: int) -> np.ndarray:
        return values[:, k]

    @property
    def threshold(self) -> np.ndarray:
        p: np.ndarray = expit(self.cuts)
        return p

    def with_threshold(self, threshold: Any, owner: str) -> Self:
        given = _read_thresholds(threshold, owner, self.n_classes, "labels")
        return replace(self, cuts=logit(given))


def _read_thresholds(
    threshold: Any, owner: str, n: int | None = None, kind: str = "", closed: str = "both"
) -> np.ndarray:
    """Return checked probabilities: one, or one for each of ``n`` classes or labels."""
    given = np.asarray(threshold, dtype=object)
    if given.ndim and given.shape != (n,):
        each = "" if n is None else f", or an array of {n}, one for each of the {kind}"
        got = f"{len(given)} of them" if given.ndim == 1 else f"an array of shape {given.shape}"
        raise ValueError(
            f"The 'threshold_' of this {owner} must be one float in the range [0, 1]{each}. Got "
            f"{got} instead."
        )
    for value in given.ravel().tolist():
        check_number(owner, "threshold_", value, low=0, high=1, closed=closed)
    return np.broadcast_to(given.astype(np.float64), given.shape if n is None else (n,))


def best_cut(
    values: np.ndarray,
    score: Callable[[float], float],
    start: float = 0.0,
    most: int = _MOST_CALLS,
) -> tuple[float, float]:
    """Return the cut with the highest score, and that score.

    Tried are ``start`` and a cut between any two neighbouring values, the nearest to 0 first. If
    these are more than ``most``, half of them are taken in equal steps of rank, half in equal steps
    of value. Of equally good cuts the first one is taken.
    """
    candidates = np.empty(0)
    if len(values := np.unique(values)):
        inner = (values[1:] + values[:-1]) / 2
        candidates = np.concatenate([[values[0] - 1], inner, [values[-1] + 1]])
    if len(candidates) > most:
        by_rank = np.linspace(0, len(candidates) - 1, most // 2).round().astype(np.int64)
        steps = np.linspace(candidates[0], candidates[-1], most // 2)
        by_value = np.searchsorted(candidates, steps).clip(max=len(candidates) - 1)
        candidates = candidates[np.union1d(by_rank, by_value)]
    ordered = candidates[np.argsort(np.abs(candidates), kind="stable")].tolist()
    tried = ((cut, score(cut)) for cut in [start, *ordered])
    return max(tried, key=lambda found: found[1])
