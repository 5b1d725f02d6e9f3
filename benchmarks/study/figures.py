"""The pictures of the study, made from its finished runs."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from .corpora import N_RARE, WHOLE
from .report import operating_points, runs_of, runs_of_imbalance

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLORS = {"ce": "#4c566a", "wce": "#d08770", "dice": "#2a7fb8", "dsc": "#8fb996"}
COLORS |= {"ce, sampled": "#b0b7c6", "dice, sampled": "#9ccbe8"}


def draw_imbalance(done: pd.DataFrame, file: Path) -> None:
    """Draw F1 over words outside entities for each one inside, a panel for each corpus.

    Points are those of the first seed; a bar is the 95 % interval for other test sentences.
    """
    runs = runs_of_imbalance(done)
    is_drawn = (runs["sentences"] == N_RARE) & (runs["draw"] == runs["draw"].min())
    runs = runs[is_drawn & (runs["encoder"] == runs["encoder"].iloc[0])]
    corpora = runs["corpus"].unique()
    figure, axes = plt.subplots(
        1, len(corpora), figsize=(8, 3.4), sharey=True, layout="constrained", squeeze=False
    )
    for ax, corpus in zip(axes[0], corpora):
        for i, loss in enumerate(name for name in COLORS if name in set(runs["loss"])):
            cells = runs[(runs["corpus"] == corpus) & (runs["loss"] == loss)].groupby("outside")
            means = cells[["f1", "f1_error"]].mean()
            # Bars side by side, on a logarithmic axis.
            x = means.index * 1.04 ** (i - 1.5)
            how = {"label": loss, "color": COLORS[loss], "fmt": "o--" if "," in loss else "o-"}
            ax.errorbar(x, means["f1"], 1.96 * means["f1_error"], **how)
        ax.set(xscale="log", xlabel="words outside entities for each one inside", title=corpus)
        outside = sorted(runs.loc[runs["corpus"] == corpus, "outside"].unique())
        ax.set_xticks(outside, map("{:g}".format, outside))
        ax.minorticks_off()
    axes[0, 0].set_ylabel("F1 of entities, %")
    finish(figure, axes, file)


def draw_alpha(done: pd.DataFrame, file: Path) -> None:
    """Draw precision over recall: Tversky by alpha, and cross-entropy whose decision is moved."""
    means = operating_points(runs_of(done, "alpha")).groupby(["contender", "bias"]).mean()
    figure, axes = plt.subplots(figsize=(5.2, 3.8), layout="constrained", squeeze=False)
    ax, moved = axes[0, 0], means.loc["ce"]
    label = "cross-entropy, bias of O from -3 to 4"
    ax.plot(moved["recall"], moved["precision"], "o-", color=COLORS["ce"], label=label, ms=3)
    kept = means.xs(0.0, level="bias").drop("ce")
    label = "Tversky, alpha (beta = 1 - alpha)"
    ax.plot(kept["recall"], kept["precision"], "s-", color=COLORS["dice"], label=label)
    for contender, point in kept.iterrows():
        name = contender.rpartition(" ")[2]
        ax.annotate(name, point[["recall", "precision"]], (4, 4), textcoords="offset points")
    limits = {"xlim": ax.get_xlim(), "ylim": ax.get_ylim()}
    recall, precision = np.meshgrid(*(np.linspace(max(low, 1), up) for low, up in limits.values()))
    f1 = 2 * recall * precision / (recall + precision)
    lines = ax.contour(recall, precision, f1, range(0, 100, 2), colors="#cccccc", linewidths=0.8)
    ax.clabel(lines, fmt="F1 %d", fontsize=7)
    ax.set(**limits, xlabel="recall, %", ylabel="precision, %")
    finish(figure, axes, file)


def draw_whole(done: pd.DataFrame, file: Path) -> None:
    """Draw F1 over minutes of a core, on whole corpora and one seed, beside other libraries."""
    from ..peers.comparison import RESULTS, read_results

    names = {"skdice": "skdice, defaults", "skdice_ce": "skdice, cross-entropy"}
    names |= {"trainer_tuned": "Trainer, tuned", "crfsuite": "sklearn-crfsuite"}
    runs = read_results(RESULTS)
    is_shown = (runs["encoder"] == "MiniLM") & runs["contender"].isin(names)
    runs = runs[(runs["regime"] == WHOLE) & (runs["seed"] == 0) & is_shown]
    corpora = runs.loc[runs["contender"] == "crfsuite", "corpus"].unique()
    figure, axes = plt.subplots(
        1, len(corpora), figsize=(9, 2.8), layout="constrained", squeeze=False
    )
    for ax, corpus in zip(axes[0], corpora):
        cells = runs[runs["corpus"] == corpus].set_index("contender")
        for (name, label), color in zip(names.items(), COLORS.values()):
            minutes = cells.loc[name, "fit_seconds"] / 60
            ax.plot(minutes, cells.loc[name, "score"], "o", label=label, color=color)
        ax.set(title=corpus, xscale="log", xlabel="minutes of a CPU core")
    axes[0, 0].set_ylabel("F1 of entities, %")
    finish(figure, axes, file)


def finish(figure: plt.Figure, axes: np.ndarray, file: Path) -> None:
    """Add a legend to the first panel, and save the figure."""
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    axes.flat[0].legend(loc="best", fontsize=8, frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def draw_figures(done: pd.DataFrame, directory: Path) -> None:
    """Draw the pictures of all parts that have runs."""
    pictures = {"imbalance": draw_imbalance, "alpha": draw_alpha, "whole": draw_whole}
    for part, draw in pictures.items():
        if len(runs_of(done, part)):
            draw(done, directory / f"study_{part}.png")
