"""Which runs there are, in which order, and how long they take."""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from .corpora import CORPORA, N_DEV, N_TEST, REGIMES, has_regime, n_rows
from .losses import (
    BASELINE,
    CONTENDERS,
    FITS,
    Contender,
    Setting,
    settings,
)
from .runs import Run

TUNING_SEED = 100
# A question costs five to thirty times as much as a row of the other tasks.
MOST_SEEDS = {"questions": 2}
MOST_SETTINGS = {"questions": 2}
# Pieces per second of one core until there are measured runs; predicting is faster by the factor.
PIECES_PER_SECOND = 1500.0
PREDICTION_SPEED = 2.0
# Shorter fits say more about how long it takes to start.
FEWEST_PIECES = 50_000
SECONDS_TO_START = 3.0


class Cell(NamedTuple):
    """A column of the tables."""

    regime: str
    corpus: str


class Task(NamedTuple):
    """A run whose setting may be known only when others are done.

    Attributes
    ----------
    cell : Cell
    contender : Contender
    setting : int or None
        The number of the setting to score on dev rows; None is the best one, for the test rows.
    seed : int
    """

    cell: Cell
    contender: Contender
    setting: int | None
    seed: int


class Choice(NamedTuple):
    """What was best on dev rows: a setting, and the decision as fitted or tuned."""

    setting: Setting
    decision: str

    def __str__(self) -> str:
        return f"{self.setting}, decision" if self.decision == "tuned" else str(self.setting)


class Study:
    """What is planned, and what is done of it.

    Parameters
    ----------
    cells : sequence of Cell
    contenders : sequence of str
        Keys of ``CONTENDERS``; the baseline always takes part.
    seeds : sequence of int
    n_settings : int
        Settings that are tried for every way to train.
    data : Path
        Directory of the corpora.
    results : dict of Run to dict
        What came of the runs that are done.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        contenders: Sequence[str],
        seeds: Sequence[int],
        n_settings: int,
        data: Path,
        results: dict[Run, dict[str, Any]],
    ) -> None:
        self.cells = list(cells)
        self.contenders = [name for name in CONTENDERS if name in {BASELINE, *contenders}]
        self.seeds = list(seeds)
        self.n_settings = n_settings
        self.data = data
        self.results = results
        self._rates: dict[str, float] = {}

    def tasks(self) -> list[Task]:
        """Return all tasks; each seed completes the tables for all cells before the next starts."""
        ordered: dict[Task, None] = {}
        for tier in self._tiers():
            for seed in self.seeds_of(tier[0]):
                for cell in tier:
                    contenders = self.contenders_of(cell).values()
                    if seed == self.seeds[0]:
                        ordered |= dict.fromkeys(self._tuning_tasks(cell, contenders))
                    ordered |= dict.fromkeys(
                        Task(cell, contender, None, seed) for contender in contenders
                    )
        return list(ordered)

    def contenders_of(self, cell: Cell) -> dict[str, Contender]:
        """Return the contenders that a cell can have.

        Where there is no decision to tune, those that differ from others in it alone are left out.
        """
        corpus = CORPORA[cell.corpus]
        found = {}
        for name in self.contenders:
            contender = CONTENDERS[name]
            if contender.decision != "own" and not corpus.has_decision and name != BASELINE:
                continue
            if corpus.task in FITS[contender.fit].tasks:
                found[name] = contender
        return found

    def seeds_of(self, cell: Cell) -> list[int]:
        """Return the seeds of the final runs of a cell."""
        return self.seeds[: MOST_SEEDS.get(CORPORA[cell.corpus].task)]

    def settings_of(self, cell: Cell, fit: str) -> list[Setting]:
        """Return the settings that a cell tries for a way to train."""
        most = MOST_SETTINGS.get(CORPORA[cell.corpus].task, self.n_settings)
        return settings(fit, min(most, self.n_settings))

    def resolve(self, task: Task) -> Run | None:
        """Return the run of a task, or None as long as it waits for others."""
        fit = task.contender.fit
        if task.setting is None:
            choice = self.best(task.cell, task.contender)
            setting = None if choice is None else choice.setting
        else:
            setting = self._setting(task.cell, fit, task.setting)
        if setting is None:
            return None
        return _run("final" if task.setting is None else "tune", task.cell, fit, setting, task.seed)

    def best(self, cell: Cell, contender: Contender) -> Choice | None:
        """Return what is best on dev rows, or None until all settings are tried."""
        fit = contender.fit
        n_settings = len(self.settings_of(cell, fit))
        tried = [self._setting(cell, fit, number) for number in range(n_settings)]
        wanted = contender.decision
        return self._best(cell, fit, tried, ("own", "tuned") if wanted == "either" else (wanted,))

    def tuning_scores(self, cell: Cell, fit: str) -> dict[str, dict[str, float]]:
        """Return the dev scores of each setting that is tried: one of each decision."""
        found = {}
        for number in range(len(self.settings_of(cell, fit))):
            setting = self._setting(cell, fit, number)
            scores = None if setting is None else self._dev_scores(cell, fit, setting)
            if setting is not None and scores is not None:
                found[str(setting)] = scores
        return found

    def seconds(self, task: Task) -> float:
        """Estimate how long a task takes on one core."""
        corpus = CORPORA[task.cell.corpus]
        regime = REGIMES[task.cell.regime]
        trained = n_rows(task.cell.corpus, task.cell.regime, self.data) * regime.epochs
        passes_over_dev = 1 + corpus.has_decision - (task.setting is None)
        n_dev, n_test = (regime.n_held_out or n for n in (N_DEV, N_TEST[corpus.task]))
        # With a decision to tune, dev rows are read as a whole and, while settings are tried, by
        # halves.
        predicted = passes_over_dev * n_dev + (n_test if task.setting is None else 0)
        pieces = corpus.pieces * (trained + predicted / PREDICTION_SPEED)
        return SECONDS_TO_START + pieces / self._rate(task.cell.corpus)

    def table(self, jobs: int) -> pd.DataFrame:
        """Count the runs of each regime, those that are done, and the core-hours of the others.

        Contenders that differ in their decision alone share their runs if the same setting is best
        for both; before the tuning is done they are counted as sharing them.
        """
        rows: dict[str, dict[str, Any]] = {}
        seen: set[tuple[Any, ...]] = set()
        for task in self.tasks():
            run = self.resolve(task)
            key = (
                (task.cell, task.contender.fit, task.setting, task.seed) if run is None else (run,)
            )
            if key in seen:
                continue
            seen.add(key)
            name = task.cell.regime
            if CORPORA[task.cell.corpus].task == "questions":
                name += ", questions"
            row = rows.setdefault(name, {"tuning runs": 0, "final runs": 0, "done": 0, "left": 0.0})
            row["tuning runs" if task.setting is not None else "final runs"] += 1
            if run in self.results:
                row["done"] += 1
            else:
                row["left"] += self.seconds(task) / 3600
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.loc["total"] = frame.sum()
        counts = frame.drop(columns="left").astype(int)
        return counts.assign(
            **{
                "core-hours left": frame["left"].round(1),
                f"hours with {jobs} processes": (frame["left"] / jobs).round(1),
            }
        )

    def _tiers(self) -> list[list[Cell]]:
        """Return the cells of each regime, those of questions after all others."""
        tiers: dict[tuple[bool, str], list[Cell]] = {}
        for cell in self.cells:
            is_dear = CORPORA[cell.corpus].task == "questions"
            tiers.setdefault((is_dear, cell.regime), []).append(cell)
        return [tiers[key] for key in sorted(tiers, key=lambda key: key[0])]

    def _tuning_tasks(self, cell: Cell, contenders: Iterable[Contender]) -> list[Task]:
        fits = dict.fromkeys(contender.fit for contender in contenders)
        return [
            Task(cell, Contender(fit), number, TUNING_SEED)
            for number in range(len(self.settings_of(cell, CONTENDERS[BASELINE].fit)))
            for fit in fits
        ]

    def _setting(self, cell: Cell, fit: str, number: int) -> Setting | None:
        """Return a setting with its learning rate, or None as long as that is open."""
        planned = self.settings_of(cell, fit)
        if planned[number].lr is not None:
            return planned[number]
        best = self._best(cell, fit, [s for s in planned if s.lr is not None], ("own",))
        return None if best is None else planned[number]._replace(lr=best.setting.lr)

    def _best(
        self, cell: Cell, fit: str, tried: Sequence[Setting | None], decisions: Sequence[str]
    ) -> Choice | None:
        """Return the best choice, of equally good ones the first; None if a run is missing."""
        best, best_score = None, float("-inf")
        for setting in tried:
            scores = None if setting is None else self._dev_scores(cell, fit, setting)
            if setting is None or scores is None:
                return None
            for decision in decisions:
                if scores[decision] > best_score:
                    best, best_score = Choice(setting, decision), scores[decision]
        return best

    def _dev_scores(self, cell: Cell, fit: str, setting: Setting) -> dict[str, float] | None:
        result = self.results.get(_run("tune", cell, fit, setting, TUNING_SEED))
        # A fit that stopped at a loss that is not finite has no scores.
        return None if result is None else result.get("dev", {"own": 0.0, "tuned": 0.0})

    def _rate(self, corpus: str) -> float:
        """Return the pieces per second of fits of a corpus, the median of what was measured."""
        if corpus not in self._rates:
            measured = []
            for run, result in self.results.items():
                # Dev scores that were restored from a table have no times.
                if (run.stage, run.corpus) != ("tune", corpus) or "fit_seconds" not in result:
                    continue
                pieces = result["n_train"] * result["epochs"] * CORPORA[corpus].pieces
                if pieces >= FEWEST_PIECES:
                    measured.append(pieces / result["fit_seconds"])
            self._rates[corpus] = statistics.median(measured) if measured else PIECES_PER_SECOND
        return self._rates[corpus]


def planned_cells(regimes: Iterable[str], corpora: Iterable[str]) -> list[Cell]:
    """Return the cells of regimes and corpora that the study has."""
    corpora = list(corpora)
    return [Cell(r, c) for r in regimes for c in corpora if has_regime(c, r)]


def _run(stage: str, cell: Cell, fit: str, setting: Setting, seed: int) -> Run:
    assert setting.lr is not None
    parameters = tuple(setting.parameters.items())
    return Run(stage, cell.regime, cell.corpus, fit, setting.lr, parameters, seed)
