"""The tables and pictures of the study: what nothing set gains, over draws and test rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from .plan import ENTITIES, PARTS, SETTINGS, TUNED, best_setting, tuning_scores
from .runs import Run, f1_of, file_name

TITLES = {
    "A": "250 sentences",
    "B": "Rare entities",
    "D": "1,000 sentences and all",
    "E": "Rows without labels",
}
COMPARED = "auto"
BASELINES = {"ce": "tuned cross-entropy", "ce, else auto": "loss='ce', else equal"}
REGIMES = [
    ("A", ["250"], "250 sentences"),
    ("D", ["1000"], "1,000 sentences"),
    ("D", ["all"], "all sentences"),
    ("B", ["ratio-80"], "2,000 sentences, 80 to 1"),
    ("B", ["ratio-160"], "2,000 sentences, 160 to 1"),
    ("B", ["ratio-80", "ratio-160"], "2,000 sentences, both"),
]
# Decisions and test rows.
SCORES = {
    "own": "F1",
    "own, as rare": "F1, test rows as rare",
    "own, lower case": "F1, test rows in lower case",
    "tuned": "F1, decision tuned",
}
# What an interval of a difference is given for.
DIFFERENCES = {"own": "nothing set to it", "own, as rare": "the same, as rare"}
LEVEL = 0.95
_N_RESAMPLED = 500


class Difference(NamedTuple):
    """A mean difference of two fits over draws.

    Attributes
    ----------
    values : ndarray of shape (n_draws,)
    rows_error : float
        Standard error that comes from the test rows, which all draws share; 0 if not known.
    """

    values: np.ndarray
    rows_error: float

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def draws_error(self) -> float:
        """Standard error that comes from the draws; nan of one draw."""
        return float(stats.sem(self.values)) if len(self.values) > 1 else float("nan")


def runs_of(done: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return the finished runs of a part."""
    wanted = pd.DataFrame(PARTS[part](done), columns=list(Run._fields)).drop_duplicates()
    return wanted.merge(done, on=list(Run._fields))


def difference(
    cell: pd.DataFrame, name: str, other: str, score: str, rows: Path
) -> Difference | None:
    """Return the difference of two fits on the draws that both have."""
    pairs = cell[cell["contender"] == name].merge(
        cell[cell["contender"] == other], on="draw", suffixes=("", " of other")
    )
    pairs = pairs.dropna(subset=[score, f"{score} of other"])
    if pairs.empty:
        return None
    values = (pairs[score] - pairs[f"{score} of other"]).to_numpy()
    by_draw = cell.set_index(["contender", "draw"])
    files = [
        [rows / file_name(_run(by_draw.loc[(which, draw)], which, draw)) for draw in pairs["draw"]]
        for which in (name, other)
    ]
    has_counts = score == "own" and all(file.exists() for side in files for file in side)
    return Difference(values, _rows_error(*files) if has_counts else 0.0)


def _run(row: pd.Series, contender: str, draw: int) -> Run:
    fields = {**row.to_dict(), "contender": contender, "draw": draw}
    return Run(**{name: fields[name] for name in Run._fields})


def _rows_error(files: Sequence[Path], others: Sequence[Path]) -> float:
    """Return the standard error of a mean difference when test rows are drawn again."""
    counts = [[np.load(file)["counts"].astype(float) for file in side] for side in (files, others)]
    rng, n_rows = np.random.default_rng(0), len(counts[0][0])
    means = []
    for _ in range(_N_RESAMPLED):
        weight = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        f1, other = (np.mean([f1_of(part, weight) for part in side]) for side in counts)
        means.append(100 * (f1 - other))
    return float(np.std(means, ddof=1))


def interval(parts: Sequence[Difference]) -> tuple[float, float, float]:
    """Return the mean over corpora as given, and its t-interval (Welch, Satterthwaite).

    Draws and test rows both have an error; that of the test rows has many degrees of freedom.
    """
    mean = float(np.mean([part.mean for part in parts]))
    of_draws = np.array([part.draws_error**2 for part in parts]) / len(parts) ** 2
    error = of_draws.sum() + sum(part.rows_error**2 for part in parts) / len(parts) ** 2
    degrees = np.inf
    if of_draws.sum() > 0:
        n_draws = np.array([len(part.values) for part in parts])
        degrees = error**2 / (of_draws**2 / np.maximum(n_draws - 1, 1)).sum()
    half = np.sqrt(error) * stats.t.ppf((1 + LEVEL) / 2, degrees)
    return mean, mean - float(half), mean + float(half)


def corpora_interval(parts: Sequence[Difference]) -> tuple[float, float]:
    """Return the t-interval of the mean for corpora like these, which are then a sample."""
    means = np.array([part.mean for part in parts])
    half = stats.sem(means) * stats.t.ppf((1 + LEVEL) / 2, len(means) - 1)
    return float(means.mean() - half), float(means.mean() + half)


def report(done: pd.DataFrame, rows: Path) -> str:
    """Return all tables of what is finished; ``rows`` is the directory of the counts."""
    parts = [settings_table(done)]
    n_intervals = 0
    for part, title in TITLES.items():
        table = part_table(runs_of(done, part), rows)
        if len(table):
            columns = [name for name in DIFFERENCES.values() if name in table]
            n_intervals += int(table[columns].map(lambda text: "[" in text).to_numpy().sum())
            parts.append(f"## {title}\n\n{_markdown(table)}")
    parts.append(f"## What nothing set gains\n\n{_markdown(gains_table(done, rows))}")
    parts.append(declared(done, rows))
    parts.append(f"## Decisions at equal labels\n\n{_markdown(decisions_table(done))}")
    parts.append(
        f"{n_intervals} differences have an interval, which is not corrected for their number."
    )
    return "\n\n".join(parts)


def settings_table(done: pd.DataFrame) -> str:
    """Return the means over the tuning draws, with their number; the chosen one is bold."""
    lines = []
    for corpus in ENTITIES:
        for loss in TUNED:
            cell = tuning_scores(done, corpus, loss)
            line = {"corpus": corpus, "fit": loss}
            for lr, epochs in SETTINGS:
                scores = cell.loc[(cell["lr"] == lr) & (cell["epochs"] == epochs), "tuned"]
                text = f"{scores.mean():.1f} ({len(scores)})" if len(scores) else ""
                if best_setting(done, corpus, loss) == (lr, epochs):
                    text = f"**{text}**"
                line[f"{lr:g}, {epochs} epochs"] = text
            lines.append(line)
    return f"## Settings\n\n{_markdown(pd.DataFrame(lines))}"


def part_table(runs: pd.DataFrame, rows: Path) -> pd.DataFrame:
    """Return a row for each fit of each cell."""
    lines = []
    for (corpus, regime), cell in runs.groupby(["corpus", "regime"], sort=False):
        for name, fits in cell.groupby("contender", sort=False):
            line = {"corpus": f"{corpus}, {regime}", "fit": name, "draws": str(len(fits))}
            for score, label in SCORES.items():
                if score in fits and fits[score].notna().any():
                    line[label] = f"{fits[score].mean():.1f}"
                    if nothing := int((fits[score] == 0).sum()):
                        line[label] += f" ({nothing} found nothing)"
            line["CPU s"] = f"{_cost(fits).mean():.0f}"
            for score, label in DIFFERENCES.items():
                apart = difference(cell, COMPARED, name, score, rows) if score in cell else None
                line[label] = "" if apart is None or name == COMPARED else _text([apart])
            lines.append(line)
    table = pd.DataFrame(lines).fillna("")
    return table.loc[:, (table != "").any()] if len(table) else table


def gains_table(done: pd.DataFrame, rows: Path) -> pd.DataFrame:
    """Return a row for each regime: nothing set against cross-entropy, means over the cells."""
    lines = []
    for part, regimes, title in REGIMES:
        runs = runs_of(done, part)
        runs = runs[runs["regime"].isin(regimes)]
        for score, test_rows in (("own", "as they are"), ("own, as rare", "as rare")):
            line = {"training rows": title, "test rows": test_rows}
            for other, label in BASELINES.items():
                cells = [
                    (cell, apart)
                    for _, cell in runs.groupby(["corpus", "regime"], sort=False)
                    if score in cell
                    and (apart := difference(cell, COMPARED, other, score, rows)) is not None
                ]
                if not cells:
                    continue
                apart = [apart for _, apart in cells]
                if "F1" not in line:
                    ours = [cell.loc[cell["contender"] == COMPARED, score] for cell, _ in cells]
                    line["cells, pairs"] = f"{len(apart)}, {sum(len(a.values) for a in apart)}"
                    line["F1"] = f"{np.mean([scores.mean() for scores in ours]):.1f}"
                line[f"over {label}"] = _text(apart)
                if len({cell["corpus"].iloc[0] for cell, _ in cells}) > 2:
                    low, high = corpora_interval(apart)
                    line[f"over {label}"] += f", as a sample of corpora [{low:+.1f}, {high:+.1f}]"
            if "F1" in line:
                lines.append(line)
    return pd.DataFrame(lines).fillna("")


def declared(done: pd.DataFrame, rows: Path) -> str:
    """Say what came out of the contrast of part B that was declared before its runs."""
    cells = [cell for _, cell in runs_of(done, "B").groupby(["corpus", "regime"], sort=False)]
    found = []
    for score in ("own", "own, as rare"):
        parts = [difference(cell, "dice, sampled", "ce", score, rows) for cell in cells]
        found.append(_text([part for part in parts if part is not None]))
    return f"Part B, dice on sampled epochs over cross-entropy: {found[0]}, as rare {found[1]}."


def decisions_table(done: pd.DataFrame) -> pd.DataFrame:
    """Return the F1 of three ways to use 350 labels, means over the draws that have all."""
    runs, lines = runs_of(done, "C"), []
    ways = {
        "as fitted": ("350", "auto", "own"),
        "out of fold": ("350", "out of fold", "own"),
        "250, and 100 to tune": ("250", "auto", "tuned"),
    }
    for corpus, cell in runs.groupby("corpus", sort=False):
        by_way = {
            way: cell[(cell["regime"] == regime) & (cell["contender"] == name)].set_index("draw")
            for way, (regime, name, _) in ways.items()
        }
        shared = set.intersection(*(set(fits.index) for fits in by_way.values()))
        if not shared:
            continue
        line = {"corpus": corpus, "draws": str(len(shared))}
        for way, fits in by_way.items():
            fits = fits.loc[sorted(shared)]
            line[way] = f"{fits[ways[way][2]].mean():.1f} ({_cost(fits).mean():.0f} s)"
        lines.append(line)
    return pd.DataFrame(lines).fillna("")


def forest_plot(done: pd.DataFrame, rows: Path, file: Path) -> None:
    """Draw what nothing set gains, a panel for each part with several draws."""
    from matplotlib.figure import Figure

    found = {
        part: [
            (f"{corpus}, {regime}", str(other), apart)
            for (corpus, regime), cell in runs_of(done, part).groupby(
                ["corpus", "regime"], sort=False
            )
            for other in cell["contender"].unique()
            if other.startswith("ce")
            and (apart := difference(cell, COMPARED, other, "own", rows)) is not None
            and len(apart.values) > 1
        ]
        for part in TITLES
    }
    found = {part: lines for part, lines in found.items() if lines}
    if not found:
        raise ValueError("There is nothing to draw yet: no part has two draws.")
    heights = [1 + len(lines) for lines in found.values()]
    figure = Figure(figsize=(7, 1 + 0.32 * sum(heights)), layout="constrained")
    all_axes = figure.subplots(len(found), height_ratios=heights, squeeze=False, sharex=True)[:, 0]
    for axes, (part, lines) in zip(all_axes, found.items()):
        for place, (_, other, apart) in enumerate(reversed(lines)):
            mean, low, high = interval([apart])
            color = "C0" if other == "ce" else "C1"
            axes.errorbar(mean, place, xerr=[[mean - low], [high - mean]], fmt="o", color=color)
        axes.set_yticks(range(len(lines)), [f"{cell}: {other}" for cell, other, _ in lines[::-1]])
        axes.axvline(0, color="0.5", linewidth=0.8, zorder=0)
        axes.set_title(TITLES[part], loc="left", fontsize="medium")
    all_axes[-1].set_xlabel("points of nothing set over it, 95 % interval")
    figure.savefig(file, dpi=120)


_RARE_FITS = ("ce", "dice, sampled", "auto")


def cost_plot(done: pd.DataFrame, file: Path) -> None:
    """Draw F1 on test rows as rare over the seconds of a fit, a panel for each cell of part B."""
    from matplotlib.figure import Figure

    cells = list(runs_of(done, "B").groupby(["corpus", "regime"], sort=False))
    figure = Figure(figsize=(3.6 * len(cells), 3.2), layout="constrained")
    for axes, ((corpus, regime), cell) in zip(
        figure.subplots(1, len(cells), squeeze=False)[0], cells
    ):
        for number, name in enumerate(_RARE_FITS):
            fits = cell[cell["contender"] == name]
            if len(fits):
                axes.errorbar(
                    _cost(fits).mean(),
                    fits["own, as rare"].mean(),
                    fits["own, as rare"].std(),
                    fmt="o",
                    capsize=3,
                    color=f"C{number}",
                    label="ce, 12 epochs" if name == "ce" else name,
                )
        axes.set_title(f"{corpus}, {regime.removeprefix('ratio-')} to 1", fontsize="medium")
        axes.set_xlabel("seconds of one core")
        axes.set_xlim(left=0)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), fontsize="small")
    figure.axes[0].set_ylabel("F1, mean ± sd over draws")
    figure.savefig(file, dpi=120)


def _cost(fits: pd.DataFrame) -> pd.Series:
    """Return seconds of a core: fits have one thread, so where these were not kept, seconds."""
    return fits["cpu_seconds"].fillna(fits["seconds"])


def _text(parts: Sequence[Difference]) -> str:
    """Write a mean difference and its interval, if there are several draws of each."""
    mean, low, high = interval(parts)
    return f"{mean:+.1f}" + ("" if np.isnan(low) else f" [{low:+.1f}, {high:+.1f}]")


def _markdown(table: pd.DataFrame) -> str:
    return table.to_markdown(index=False, disable_numparse=True)
