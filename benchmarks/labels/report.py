"""The tables of the study, from the rows of its runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from ..study.figures import COLORS, finish, plt
from .runs import N_BUDGET, SECONDS

COSTS = ((0.3, 3.0), (0.15, 3.0), (0.6, 3.0), (0.3, 1.5), (0.3, 6.0))


def f1_at(run: pd.Series, seconds: Sequence[float] = SECONDS, share: float = 1.0) -> float:
    """Return the F1 after a share of the budget, on a line between two rounds.

    A curve that ends before has its last F1. A run that is scored at its end alone has that F1 at
    the budget, and NaN before.
    """
    curve = np.array(json.loads(run["curve"]), dtype=float)
    spent = curve[:, 1:3] @ np.array(seconds)
    budget = N_BUDGET * (run["mean_words"] * seconds[0] + run["mean_marks"] * seconds[1])
    is_scored = ~np.isnan(curve[:, 3])
    before = curve[-1, 3] if share == 1 else np.nan
    return float(np.interp(share * budget, spent[is_scored], curve[is_scored, 3], left=before))


def gains(runs: pd.DataFrame, contender: str, baseline: str, **when: Any) -> pd.Series:
    """Return by how much F1 exceeds that of the baseline, as the mean over draws of each corpus."""
    f1 = runs.assign(f1=runs.apply(f1_at, axis=1, **when))
    table = f1.pivot(index=["corpus", "draw"], columns="contender", values="f1")
    return (table[contender] - table[baseline]).dropna().groupby("corpus").mean()


def interval(values: np.ndarray) -> str:
    """Return a mean with its 95 % interval, if there are several values."""
    if len(values) < 2:
        return "".join(map("{:+.1f}".format, values))
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():+.1f} ({values.mean() - half:+.1f} to {values.mean() + half:+.1f})"


def draw_curves(runs: pd.DataFrame, file: Path) -> None:
    """Draw F1 over minutes of labelling, a panel for each corpus and a line for each draw."""
    corpora = runs["corpus"].unique()
    colors = {"random": "ce", "least confident": "dice"}
    figure, axes = plt.subplots(
        1, len(corpora), figsize=(1 + 2.5 * len(corpora), 2.8), layout="constrained", squeeze=False
    )
    for ax, corpus in zip(axes[0], corpora):
        cells = runs[(runs["corpus"] == corpus) & runs["contender"].isin(colors)]
        for run in cells.drop_duplicates(["contender", "draw"]).itertuples():
            curve = np.array(json.loads(run.curve), dtype=float)
            label = run.contender if run.draw == cells["draw"].min() else None
            how = {"color": COLORS[colors[run.contender]], "label": label}
            ax.plot(curve[:, 1:3] @ SECONDS / 60, curve[:, 3], "o-", ms=3, **how)
        ax.set(title=corpus, xlabel="minutes of labelling")
    axes[0, 0].set_ylabel("F1, %")
    finish(figure, axes, file)


def report(runs: pd.DataFrame) -> str:
    """Return the tables: gains over random rows at equal time, and what each run found."""
    names, rows = runs["contender"].unique().tolist(), []
    for name in (name for name in names if not name.startswith("random")):
        baseline = "random, for MPNet" if name.endswith("for MPNet") else "random"
        if baseline not in names:
            continue
        row: dict[str, str] = {"contender": name}
        for seconds in COSTS:
            by_corpus = gains(runs, name, baseline, seconds=seconds)
            row[f"{seconds[0]:g} s a word, {seconds[1]:g} s a mark"] = interval(
                by_corpus.to_numpy()
            )
            if seconds == SECONDS:
                half = gains(runs, name, baseline, share=0.5)
                row["after half of the time"] = interval(half.to_numpy())
                row |= {corpus: f"{gain:+.1f}" for corpus, gain in by_corpus.items()}
        rows.append(row)
    types = runs["types"].map(json.loads)
    found = runs[["corpus", "draw", "contender", "precision", "confidence"]].assign(
        f1=runs.apply(f1_at, axis=1),
        f1_in_half_the_time=runs.apply(f1_at, axis=1, share=0.5),
        minutes=runs["budget"] / 60,
        entities=[sum(of_run.values()) for of_run in types],
        of_the_rarest_type=[min(of_run.values(), default=0) for of_run in types],
    )
    # A sign before a number is kept.
    gained = pd.DataFrame(rows).fillna("").to_markdown(index=False, disable_numparse=True)
    return (
        f"F1 less that of random rows at equal time, by its cost, and by corpus:\n\n{gained}\n\n"
        f"What each run found:\n\n{found.round(1).to_markdown(index=False)}"
    )
