"""What is run, part by part. Draws come before settings, so that a part may end at any time."""

from collections.abc import Callable

import pandas as pd

from .runs import FIRST_FINAL_DRAW, Run

ENTITIES = ("CoNLL03", "NCBI-disease", "BC5CDR")
# Learning rate and epochs that are tried with 250 rows.
SETTINGS = ((1e-4, 12), (2e-4, 12), (4e-4, 12), (5e-5, 30), (1e-4, 30), (2e-4, 30))
# All settings on the first of these draws, the best two on the others as well.
TUNING_DRAWS = (300, 301, 302)
N_KEPT = 2
# Whose settings a contender takes.
TUNED = {
    "ce": "ce",
    "ce, crf": "ce",
    "ce, word_shapes": "ce",
    "wce": "ce",
    "dice": "dice",
    "dice, crf": "dice",
    "dice, memory": "dice",
}
MAIN = (
    "ce",
    "auto",
    "ce, as called",
    "dice",
    "ce, crf",
    "dice, crf",
)
MORE = ("wce", "dice, memory")
N_DRAWS = 4
DEFAULT_RATE = 2e-4


def final_draws(n: int) -> range:
    """Return draws that choose nothing."""
    return range(FIRST_FINAL_DRAW, FIRST_FINAL_DRAW + n)


def tuning(done: pd.DataFrame) -> list[Run]:
    """Settings of each loss on each corpus, scored on dev rows."""
    runs = []
    for corpus in ENTITIES:
        for loss in dict.fromkeys(TUNED.values()):
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


def tuning_scores(done: pd.DataFrame, corpus: str, loss: str) -> pd.DataFrame:
    """Return the rows of the tuning draws."""
    is_tuning = done["draw"].isin(TUNING_DRAWS) & (done["regime"] == "250")
    return done[is_tuning & (done["corpus"] == corpus) & (done["contender"] == loss)]


def few_rows(done: pd.DataFrame) -> list[Run]:
    """250 rows of three corpora."""
    return _few_rows(done, [(draw, name) for draw in final_draws(N_DRAWS) for name in MAIN])


def more_draws(done: pd.DataFrame) -> list[Run]:
    """The same with other losses, and with as many draws again."""
    fits = [(draw, name) for draw in final_draws(N_DRAWS) for name in MORE]
    fits += [(draw, name) for draw in final_draws(2 * N_DRAWS)[N_DRAWS:] for name in MAIN]
    return _few_rows(done, fits)


def _few_rows(done: pd.DataFrame, fits: list[tuple[int, str]]) -> list[Run]:
    return [
        Run(corpus, "250", name, *setting, draw, draw)
        for draw, name in fits
        for corpus in ENTITIES
        if (setting := _own(done, corpus, name)) is not None
    ]


def _own(done: pd.DataFrame, corpus: str, name: str) -> tuple[float, int] | None:
    """Return the setting of a contender that is best on a corpus."""
    return best_setting(done, corpus, TUNED[name]) if name in TUNED else (0.0, 0)


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
        for draw in final_draws(N_DRAWS)
        for corpus, ratio in cells
        for name, epochs in fits
    ]


def unseen(done: pd.DataFrame) -> list[Run]:
    """The corpus that chose nothing, with the settings that are best on average over the others."""
    return [
        Run("WikiGold", "250", name, *setting, draw, draw)
        for draw in final_draws(N_DRAWS)
        for name in (*MAIN, "ce, word_shapes")
        if (setting := _usual(done, name)) is not None
    ]


def _usual(done: pd.DataFrame, name: str) -> tuple[float, int] | None:
    """Return the setting of a contender with the best mean over the corpora.

    That of the first tuning draw, which has all settings.
    """
    if name not in TUNED:
        return 0.0, 0
    if any(best_setting(done, corpus, TUNED[name]) is None for corpus in ENTITIES):
        return None
    first = done[
        (done["draw"] == TUNING_DRAWS[0])
        & (done["contender"] == TUNED[name])
        & done["corpus"].isin(ENTITIES)
    ]
    lr, epochs = first.groupby(["lr", "epochs"])["tuned"].mean().idxmax()
    return float(lr), int(epochs)


def more_rows(done: pd.DataFrame) -> list[Run]:
    """1,000 rows."""
    return [
        Run(corpus, "1000", name, DEFAULT_RATE if name in TUNED else 0.0, epochs, draw, draw)
        for draw in final_draws(3)
        for corpus in ("CoNLL03", "NCBI-disease")
        for name, epochs in [
            ("ce", 5),
            ("ce", 12),
            ("dice", 5),
            ("dice, crf", 5),
            ("auto", 0),
        ]
    ]


def released(done: pd.DataFrame) -> list[Run]:
    """MRPC: the loss, and the epochs and dropout that the released scripts gave it."""
    return [
        Run("MRPC", "all", name, 5e-5, epochs, draw, draw)
        for draw in final_draws(3)
        for name, epochs in [("ce", 3), ("dice", 3), ("ce, dropout .2", 5), ("dice, dropout .2", 5)]
    ]


def others(done: pd.DataFrame) -> list[Run]:
    """Other tasks, one or two draws."""
    fits = {
        "tweets": ("all", DEFAULT_RATE, 5, ("ce", "wce", "dice, macro")),
        "EWT": ("1000", DEFAULT_RATE, 5, ("ce", "wce", "dice, macro")),
        "Amazon-Google": ("1000", DEFAULT_RATE, 5, ("ce", "wce", "dice", "dice, memory")),
        "SQuAD 1.1": ("1000", DEFAULT_RATE, 3, ("ce", "dice")),
        "Quoref": ("450", DEFAULT_RATE, 3, ("ce", "dice")),
        "NCBI-disease": ("all", DEFAULT_RATE, 3, ("ce", "dice", "dice, crf")),
    }
    runs = []
    for draw in final_draws(2):
        for corpus, (regime, lr, epochs, names) in fits.items():
            runs += [Run(corpus, regime, name, lr, epochs, draw, draw) for name in names]
            runs.append(Run(corpus, regime, "auto", 0.0, 0, draw, draw))
    return runs


PARTS: dict[str, Callable[[pd.DataFrame], list[Run]]] = {
    "tuning": tuning,
    "A": few_rows,
    "B": rare,
    "C": unseen,
    "D": more_rows,
    "E": released,
    "F": others,
    "more": more_draws,
}
