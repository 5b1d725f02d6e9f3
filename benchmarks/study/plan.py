"""What is run, part by part, as PLAN.md declares it."""

import math
from collections.abc import Callable, Iterable

import pandas as pd

from .corpora import FIRST_DRAW
from .runs import BATCH_SIZE, Run

ENCODERS = ("MiniLM", "E5", "MPNet")
CORPORA = ("CoNLL03", "BC5CDR", "NCBI-disease", "WikiGold")
# What lr="auto" takes.
RATES = {"MiniLM": 2e-4, "E5": 1e-4, "MPNet": 5e-5}
# Cross-entropy is tuned on dev rows of a draw that is scored nowhere else, over both corpora.
TUNING_DRAW, TUNING_CORPORA = 500, ("CoNLL03", "BC5CDR")
EPOCHS, OTHER_EPOCHS = 30, (15, 60)
N_DRAWS = 4


def draws(n: int) -> range:
    """Return draws that choose nothing."""
    return range(FIRST_DRAW, FIRST_DRAW + n)


def corpora(encoder: str) -> tuple[str, ...]:
    """Return the corpora of an encoder; only E5 reads Chinese."""
    return (*CORPORA, "MSRA") if encoder == "E5" else CORPORA


def tuning(done: pd.DataFrame) -> list[Run]:
    """Cross-entropy at three rates with 30 epochs, then the best rate with other epochs.

    A best rate at the edge of the three is followed by the next one.
    """
    runs = []
    for encoder in ENCODERS:
        rates = [RATES[encoder] * share for share in (0.5, 1, 2)]
        runs += [_tuned(encoder, corpus, lr, EPOCHS) for lr in rates for corpus in TUNING_CORPORA]
        scores = tuning_scores(done, encoder)
        if all((lr, EPOCHS) in scores for lr in rates):
            best = max(rates, key=lambda lr: scores[lr, EPOCHS])
            if best in (rates[0], rates[-1]):
                rates.append(best / 2 if best == rates[0] else best * 2)
                more = [_tuned(encoder, corpus, rates[-1], EPOCHS) for corpus in TUNING_CORPORA]
                runs += more
            if all((lr, EPOCHS) in scores for lr in rates):
                best = max(rates, key=lambda lr: scores[lr, EPOCHS])
                runs += [
                    _tuned(encoder, corpus, best, epochs)
                    for epochs in OTHER_EPOCHS
                    for corpus in TUNING_CORPORA
                ]
    return runs


def _tuned(encoder: str, corpus: str, lr: float, epochs: int) -> Run:
    return Run(encoder, corpus, "250", "ce", lr, epochs, TUNING_DRAW)


def tuning_scores(done: pd.DataFrame, encoder: str) -> dict[tuple[float, int], float]:
    """Return the mean over the corpora of each setting that both have."""
    cell = done[(done["draw"] == TUNING_DRAW) & (done["encoder"] == encoder)]
    by_setting = cell.groupby(["lr", "epochs"])["f1"].agg(["mean", "count"])
    by_setting = by_setting[by_setting["count"] == len(TUNING_CORPORA)]
    return {(float(lr), int(n)): float(row["mean"]) for (lr, n), row in by_setting.iterrows()}


def best_setting(done: pd.DataFrame, encoder: str) -> tuple[float, int] | None:
    """Return the best learning rate and epochs of cross-entropy, None before tuning is done."""
    finished = set(zip(*(done[name] for name in Run._fields)))
    if any(run not in finished for run in tuning(done)):
        return None
    scores = tuning_scores(done, encoder)
    return max(scores, key=lambda setting: scores[setting])


def first_draw(done: pd.DataFrame) -> list[Run]:
    """The first contrast on one draw of every encoder and corpus."""
    return _defaults(done, draws(1))


def few_rows(done: pd.DataFrame) -> list[Run]:
    """Both primary contrasts on all draws."""
    return [
        run
        for draw in draws(N_DRAWS)
        for runs in (_defaults(done, [draw]), _tuned_cross_entropy(done, draw))
        for run in runs
    ]


def _defaults(done: pd.DataFrame, wanted: Iterable[int]) -> list[Run]:
    return [
        Run(encoder, corpus, "250", name, 0.0, 0, draw)
        for draw in wanted
        for encoder in ENCODERS
        for corpus in corpora(encoder)
        for name in ("auto", "ce")
    ]


def _tuned_cross_entropy(done: pd.DataFrame, draw: int) -> list[Run]:
    return [
        Run(encoder, corpus, "250", "ce", *setting, draw)
        for encoder in ENCODERS
        if (setting := best_setting(done, encoder)) is not None
        for corpus in corpora(encoder)
    ]


def factorial(done: pd.DataFrame) -> list[Run]:
    """Both losses with and without word shapes or CRF; those with them are in the first part."""
    return [
        Run(encoder, corpus, "250", name, 0.0, 0, draw)
        for draw in draws(2)
        for encoder in ("MiniLM", "MPNet")
        for corpus in TUNING_CORPORA
        for name in ("dice", "dice, plain", "ce, plain")
    ]


def rare(done: pd.DataFrame) -> list[Run]:
    """Dice and cross-entropy on sampled epochs, and cross-entropy on all rows in as many steps."""
    runs = []
    for draw in draws(2):
        for encoder in ("MiniLM", "E5"):
            for regime in ("ratio-80", "ratio-160"):
                sampled = Run(encoder, "CoNLL03", regime, "ce, sampled", 0.0, 0, draw)
                runs += [sampled._replace(contender="dice, sampled"), sampled]
                is_sampled = (done[list(Run._fields)] == list(sampled)).all(axis=1)
                if is_sampled.any():
                    n_steps = done.loc[is_sampled, "n_steps"].iloc[0]
                    epochs = math.ceil(n_steps / math.ceil(2000 / BATCH_SIZE))
                    runs.append(sampled._replace(contender="ce, all rows", epochs=epochs))
    return runs


def more_rows(done: pd.DataFrame) -> list[Run]:
    """1,000 sentences, where the defaults take cross-entropy on most corpora."""
    return [
        Run(encoder, corpus, "1000", name, 0.0, 0, draw)
        for draw in draws(2)
        for encoder in ENCODERS
        for corpus in TUNING_CORPORA
        for name in ("dice", "ce")
    ]


def passes(done: pd.DataFrame) -> list[Run]:
    """F1 over epochs of both losses at the rate of the defaults."""
    return [
        Run(encoder, "BC5CDR", "250", name, RATES[encoder], epochs, draws(1)[0])
        for encoder in ("MiniLM", "MPNet")
        for epochs in (5, 10, 20, 40, 80)
        for name in ("dice", "ce")
    ]


def without_labels(done: pd.DataFrame) -> list[Run]:
    """2,000 rows without labels, against an ensemble of three."""
    return [
        Run("MiniLM", corpus, "250", name, 0.0, 0, draw)
        for draw in draws(2)
        for corpus in ("CoNLL03", "BC5CDR", "NCBI-disease")
        for name in ("auto, unlabeled", "auto, ensemble")
    ]


PARTS: dict[str, Callable[[pd.DataFrame], list[Run]]] = {
    "first draw": first_draw,
    "tuning": tuning,
    "250 sentences": few_rows,
    "factorial": factorial,
    "rare": rare,
    "1,000 sentences": more_rows,
    "passes": passes,
    "without labels": without_labels,
}
