"""Scores of a cell's contenders with each seed, on the test rows and on resamples of them."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from skdice.metrics._row_counts import METRICS, RowCounts
from skdice.model_selection._comparison._bootstrap import resample_scores

from .corpora import CORPORA
from .losses import BASELINE
from .plan import Cell, Study, Task

N_RESAMPLES = 2000


class Difference(NamedTuple):
    """A difference to the baseline, in points.

    Attributes
    ----------
    mean : float
        Over the seeds that both have.
    resampled : ndarray of shape (n_resamples,)
        The same on resamples of the seeds and of the test rows.
    per_seed : tuple of float
    """

    mean: float
    resampled: np.ndarray
    per_seed: tuple[float, ...] = ()

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval; it covers the test rows and, from two seeds on, the training rows."""
        low, high = np.quantile(self.resampled, [0.025, 0.975])
        return float(low), float(high)


class CellScores:
    """What the finished runs of a cell scored.

    Parameters
    ----------
    study : Study
    cell : Cell

    Attributes
    ----------
    names : tuple of str
        Contenders that the cell can have.
    metrics : tuple of str
    metric : str
        The one that is compared.
    n_failed : dict of str to int
        Runs of each contender that stopped at a loss that is not finite.
    """

    def __init__(self, study: Study, cell: Cell) -> None:
        self.cell = cell
        self.corpus = CORPORA[cell.corpus]
        self.names = tuple(study.contenders_of(cell))
        self.metrics = METRICS[self.corpus.task]
        self.metric = self.corpus.metric
        self.n_failed = dict.fromkeys(self.names, 0)
        self._counts: dict[tuple[str, int], RowCounts] = {}
        self._tuned_counts: dict[tuple[str, int], RowCounts] = {}
        for name in self.names:
            for seed in study.seeds_of(cell):
                self._read(study, name, seed)

    def seeds(self, name: str) -> list[int]:
        """Return the seeds that a contender has scores for."""
        return [seed for other, seed in self._counts if other == name]

    def percent(self, name: str, metric: str) -> np.ndarray:
        """Return a metric of a contender in percent, (n_seeds,)."""
        found = [self._counts[name, seed].of_all_rows()[metric] for seed in self.seeds(name)]
        return 100 * np.array(found)

    def tuned_percent(self, name: str) -> np.ndarray:
        """Return the compared metric of the same fits with a tuned decision, (n_seeds,)."""
        found = [
            counts.of_all_rows()[self.metric]
            for (other, _), counts in self._tuned_counts.items()
            if other == name
        ]
        return 100 * np.array(found)

    def difference(self, name: str) -> Difference | None:
        """Return the difference of the compared metric to the baseline; None without a seed."""
        seeds = [seed for seed in self.seeds(name) if (BASELINE, seed) in self._counts]
        if not seeds:
            return None
        per_seed = [100 * (self._score(name, seed) - self._score(BASELINE, seed)) for seed in seeds]
        resampled = 100 * np.array(
            [self._resampled[name, seed] - self._resampled[BASELINE, seed] for seed in seeds]
        )
        # Each resample of the test rows meets its own draw of the seeds, the same for all names.
        shape = (N_RESAMPLES, len(seeds))
        drawn = np.random.default_rng(0).integers(len(seeds), size=shape)
        means = resampled[drawn, np.arange(N_RESAMPLES)[:, None]].mean(axis=1)
        return Difference(float(np.mean(per_seed)), means, tuple(map(float, per_seed)))

    def _score(self, name: str, seed: int) -> float:
        return self._counts[name, seed].of_all_rows()[self.metric]

    def _read(self, study: Study, name: str, seed: int) -> None:
        contender = study.contenders_of(self.cell)[name]
        choice = study.best(self.cell, contender)
        run = study.resolve(Task(self.cell, contender, None, seed))
        if choice is None or run not in study.results:
            return
        result = study.results[run]
        if result["failed"]:
            self.n_failed[name] += 1
            return
        # Without a decision to tune there is only the one as fitted.
        own, tuned = (result["test"].get(kind, result["test"]["own"]) for kind in ("own", "tuned"))
        self._counts[name, seed] = self._row_counts(tuned if choice.decision == "tuned" else own)
        self._tuned_counts[name, seed] = self._row_counts(tuned)

    def _row_counts(self, counts: list[list[int]]) -> RowCounts:
        return RowCounts(self.corpus.task, np.array(counts))

    @cached_property
    def _resampled(self) -> dict[tuple[str, int], np.ndarray]:
        scores = resample_scores(list(self._counts.values()), N_RESAMPLES)
        return dict(zip(self._counts, scores[:, :, self.metrics.index(self.metric)]))
