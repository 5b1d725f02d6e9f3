"""What is run, part by part. Draws come before settings, so that a part may end at any time."""

from collections.abc import Callable

import pandas as pd

from .corpora import FIRST_NEW_DRAW
from .runs import FIRST_FINAL_DRAW, Run

ENTITIES = ("CoNLL03", "NCBI-disease", "BC5CDR")
# Learning rate and epochs that are tried with 250 rows.
SETTINGS = ((1e-4, 12), (2e-4, 12), (4e-4, 12), (5e-5, 30), (1e-4, 30), (2e-4, 30))
# All settings on the first of these draws, the best two on the others as well.
TUNING_DRAWS = (300, 301, 302)
N_KEPT = 2
TUNED = ("ce", "dice")
DEFAULT_RATE = 2e-4
# Epochs of cross-entropy with more rows, at the learning rate that suits most corpora.
EPOCHS = {"1000": 12, "all": 5}


def draws(n: int, first: int = FIRST_NEW_DRAW) -> range:
    """Return draws that choose nothing."""
    return range(first, first + n)


def tuning(done: pd.DataFrame) -> list[Run]:
    """Settings of each loss on each corpus, scored on dev rows."""
    runs = []
    for corpus in ENTITIES:
        for loss in TUNED:
            cell = tuning_scores(done, corpus, loss)
            first = cell[cell["draw"] == TUNING_DRAWS[0]]
            tried = [Run(corpus, "250", loss, *how, TUNING_DRAWS[0], 0) for how in SETTINGS]
            runs += tried
            if len(first) >= len(SETTINGS):
                best = first.nlargest(N_KEPT, "tuned")
                runs += [
                    Run(corpus, "250", loss, float(lr), int(epochs), draw, 0)
                    for draw in TUNING_DRAWS[1:]
                    for lr, epochs in zip(best["lr"], best["epochs"])
                ]
    return runs


def best_setting(done: pd.DataFrame, corpus: str, loss: str) -> tuple[float, int] | None:
    """Return the setting with the best mean over all tuning draws, None before they are done."""
    cell = tuning_scores(done, corpus, loss)
    by_setting = cell.groupby(["lr", "epochs"])["tuned"].agg(["mean", "count"])
    finished = by_setting[by_setting["count"] == len(TUNING_DRAWS)]
    if len(finished) < N_KEPT:
        return None
    lr, epochs = finished["mean"].idxmax()
    return float(lr), int(epochs)


def usual_setting(done: pd.DataFrame, loss: str) -> tuple[float, int] | None:
    """Return the setting with the best mean over the corpora, on the draw that has all of them."""
    if any(best_setting(done, corpus, loss) is None for corpus in ENTITIES):
        return None
    first = done[(done["draw"] == TUNING_DRAWS[0]) & (done["contender"] == loss)]
    lr, epochs = first.groupby(["lr", "epochs"])["tuned"].mean().idxmax()
    return float(lr), int(epochs)


def tuning_scores(done: pd.DataFrame, corpus: str, loss: str) -> pd.DataFrame:
    """Return the rows of the tuning draws."""
    is_tuning = done["draw"].isin(TUNING_DRAWS) & (done["regime"] == "250")
    return done[is_tuning & (done["corpus"] == corpus) & (done["contender"] == loss)]


def few_rows(done: pd.DataFrame) -> list[Run]:
    """250 sentences; the contrast that was declared is nothing set to tuned cross-entropy.

    WikiGold chose no setting: its cross-entropy has the one that is best over the others.
    """
    runs = []
    for draw in draws(4):
        for corpus in (*ENTITIES, "WikiGold"):
            tuned = best_setting(done, corpus, "ce") or usual_setting(done, "ce")
            runs += _as_called(corpus, "250", draw, "auto", "ce, else auto")
            if tuned is not None:
                runs.append(Run(corpus, "250", "ce", *tuned, draw, draw))
            # What nothing set takes goes by whether entities are capitalised.
            has_names = corpus in ("CoNLL03", "WikiGold")
            runs += _as_called(corpus, "250", draw, f"auto, no {'shapes' if has_names else 'crf'}")
    return runs


def more_rows(done: pd.DataFrame) -> list[Run]:
    """1,000 sentences of two corpora, then all, of which nothing set takes cross-entropy.

    The contrast is that of 250.
    """
    corpora = ("CoNLL03", "NCBI-disease")
    cells = [("1000", corpus, draw) for draw in draws(3) for corpus in corpora]
    cells += [("all", corpus, draws(1)[0]) for corpus in ("NCBI-disease", "BC5CDR")]
    runs = []
    for regime, corpus, draw in cells:
        runs += _as_called(corpus, regime, draw, "auto")
        runs.append(Run(corpus, regime, "ce", DEFAULT_RATE, EPOCHS[regime], draw, draw))
    return runs


def rare(done: pd.DataFrame) -> list[Run]:
    """2,000 sentences with rare entities.

    The contrast that was declared before the runs: "dice, sampled" to "ce" with 12 epochs, on test
    rows as rare as the training rows.
    """
    cells = [("CoNLL03", 160), ("CoNLL03", 80), ("NCBI-disease", 80)]
    in_turn = (
        [("dice, sampled", 0), ("ce", 12)],
        [("auto", 0)],
        [("ce, sampled", 0), ("dsc, sampled", 0), ("wce, sampled", 0)],
    )
    return [
        Run(corpus, f"ratio-{ratio}", name, DEFAULT_RATE if epochs else 0.0, epochs, draw, draw)
        for fits in in_turn
        for draw in draws(4, FIRST_FINAL_DRAW)
        for corpus, ratio in cells
        for name, epochs in fits
    ]


def without_labels(done: pd.DataFrame) -> list[Run]:
    """250 rows, and 2,000 without labels (WikiGold has 446); the contrast is to nothing set."""
    return [
        run
        for draw in draws(1)
        for corpus in (*ENTITIES, "WikiGold", "SST-2", "SMS")
        for run in _as_called(corpus, "250", draw, "auto, unlabeled", "auto")
    ]


def decisions(done: pd.DataFrame) -> list[Run]:
    """As many labels for three decisions: as fitted, out of fold, and tuned on spare rows.

    The last is the decision tuned on 100 rows of a fit of 250. The contrast is nothing set to the
    best of the others.
    """
    runs = []
    for draw in draws(3):
        for corpus in ("Amazon-Google", "QQP", "SMS"):
            runs += _as_called(corpus, "250", draw, "auto")
            runs += _as_called(corpus, "350", draw, "auto", "out of fold")
    return runs


def _as_called(corpus: str, regime: str, draw: int, *contenders: str) -> list[Run]:
    return [Run(corpus, regime, name, 0.0, 0, draw, draw) for name in contenders]


PARTS: dict[str, Callable[[pd.DataFrame], list[Run]]] = {
    "tuning": tuning,
    "A": few_rows,
    "B": rare,
    "C": decisions,
    "D": more_rows,
    "E": without_labels,
}
