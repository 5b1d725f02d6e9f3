"""The tables and the picture of the study: differences to cross-entropy over draws."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from .plan import ENTITIES, PARTS, TUNED, best_setting
from .runs import FIRST_FINAL_DRAW

BASELINE = "ce"
TITLES = {
    "A": "250 rows",
    "B": "Rare entities",
    "C": "A corpus that chose nothing",
    "D": "1,000 rows",
    "E": "MRPC, the loss and its recipe",
    "F": "Other tasks",
}
DECISIONS = {"own": "as fitted", "tuned": "decision tuned"}
LEVEL = 0.95


def differences(done: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every contender, cell and decision: scores and differences by draw.

    A contender is compared with cross-entropy on the same rows, with the same initial weights and
    decision; where a cell has it with several numbers of epochs, with that of the fewest.
    """
    final = done[done["draw"] >= FIRST_FINAL_DRAW]
    rows = []
    for (corpus, regime), cell in final.groupby(["corpus", "regime"], sort=False):
        scores = _long(cell)
        for (test, decision), part in scores.groupby(["test", "decision"], sort=False):
            by_draw = part.pivot_table("score", "draw", "contender", sort=False)
            for name in by_draw:
                found = by_draw[name].dropna()
                apart = (found - by_draw[BASELINE]).dropna() if BASELINE in by_draw else found[:0]
                rows.append(
                    {
                        "corpus": corpus,
                        "regime": regime,
                        "test": test,
                        "decision": decision,
                        "contender": name,
                        "scores": found.to_numpy(),
                        "differences": apart.to_numpy(),
                    }
                )
    names = ["corpus", "regime", "test", "decision", "contender", "scores", "differences"]
    return pd.DataFrame(rows, columns=names)


def _of_cells(found: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    is_there = [cell in cells for cell in zip(found["corpus"], found["regime"])]
    return found[np.array(is_there, dtype=bool)]


def _long(cell: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every score; longer fits with cross-entropy are contenders."""
    is_baseline = cell["contender"] == BASELINE
    is_longer = is_baseline & (cell["epochs"] > cell.loc[is_baseline, "epochs"].min())
    name = cell["contender"].where(
        ~is_longer, cell["contender"] + ", " + cell["epochs"].astype(str) + " epochs"
    )
    columns = [column for column in cell if column.split(", ")[0] in DECISIONS]
    scores = cell.assign(contender=name).melt(
        ["draw", "contender"], columns, var_name="column", value_name="score"
    )
    scores[["decision", "test"]] = [
        (column.split(", ") + ["natural"])[:2] for column in scores["column"]
    ]
    return scores.dropna(subset="score")


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return the t-interval of the mean over draws."""
    if len(values) < 2:
        return float("nan"), float("nan")
    half = stats.sem(values) * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)
    return float(values.mean() - half), float(values.mean() + half)


def mean_interval(groups: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """Return the mean of the means of corpora and its t-interval (Welch, Satterthwaite)."""
    means = [group.mean() for group in groups]
    squares = np.array([stats.sem(group) ** 2 for group in groups]) / len(groups) ** 2
    error, mean = squares.sum(), float(np.mean(means))
    if error == 0:
        return mean, mean, mean
    degrees = error**2 / sum(s**2 / (len(g) - 1) for s, g in zip(squares, groups))
    half = np.sqrt(error) * stats.t.ppf((1 + LEVEL) / 2, degrees)
    return mean, mean - float(half), mean + float(half)


def report(done: pd.DataFrame) -> str:
    """Return all tables of what is finished."""
    found = differences(done)
    parts = [settings_table(done)]
    for part, title in TITLES.items():
        cells = {(run.corpus, run.regime): None for run in PARTS[part](done)}
        table = part_table(found, list(cells))
        if len(table):
            parts.append(f"## {title}\n\n{_markdown(table)}")
            if part == "A":
                parts.append(
                    f"Mean over the corpora:\n\n{_markdown(mean_table(found, list(cells)))}"
                )
    cells = {(run.corpus, run.regime): None for part in "AC" for run in PARTS[part](done)}
    table = left_out_table(found, list(cells))
    if len(table):
        parts.append(f"## Chosen by the other corpora\n\n{_markdown(table)}")
    n = sum(len(row) > 1 for row in found["differences"])
    parts.append(f"{n} differences with an interval; none is corrected for their number.")
    return "\n\n".join(parts)


def settings_table(done: pd.DataFrame) -> str:
    """Return which settings the tuning draws chose."""
    rows = []
    for corpus in ENTITIES:
        row = {"corpus": corpus}
        for loss in dict.fromkeys(TUNED.values()):
            setting = best_setting(done, corpus, loss)
            row[loss] = f"{setting[0]:g}, {setting[1]} epochs" if setting else "not chosen yet"
        rows.append(row)
    return f"## Settings\n\n{_markdown(pd.DataFrame(rows))}"


def part_table(found: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return a row for each contender of each cell."""
    rows = []
    for corpus, regime in cells:
        cell = _of_cells(found, [(corpus, regime)])
        for (test, name), scores in cell.groupby(["test", "contender"], sort=False):
            where = corpus if regime in ("250", "all") else f"{corpus}, {regime}"
            row = {
                "corpus": where if test == "natural" else f"{where}, test rows as rare",
                "fit": name,
            }
            for _, score in scores.iterrows():
                label = DECISIONS[score["decision"]]
                row[label] = f"{score['scores'].mean():.1f}"
                row[f"Δ, {label}"] = _difference(score["differences"], name)
                row["draws"] = str(len(score["scores"]))
                nothing = int((score["scores"] == 0).sum())
                if nothing:
                    row[label] += f" ({nothing} found nothing)"
            rows.append(row)
    return pd.DataFrame(rows).fillna("")


def mean_table(found: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return the mean difference over several corpora, a row for each contender."""
    here = _of_cells(found, cells)
    rows = []
    for name, scores in here[here["contender"] != BASELINE].groupby("contender", sort=False):
        row = {"fit": name}
        for decision, of_decision in scores.groupby("decision", sort=False):
            groups = [values for values in of_decision["differences"] if len(values) > 1]
            label = f"Δ, {DECISIONS[decision]}"
            if len(groups) == len(cells):
                row[label] = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*mean_interval(groups))
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def left_out_table(found: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return for each corpus what the others would choose for it, and what that gives.

    The choice is the fit with the best mean difference, decision tuned; cross-entropy if none is
    above 0.
    """
    here = _of_cells(found, cells)
    here = here[(here["decision"] == "tuned") & (here["differences"].map(len) > 0)]
    gains = here.assign(gain=here["differences"].map(lambda values: values.mean()))
    # Of what all corpora have.
    means = gains.pivot(index="corpus", columns="contender", values="gain").dropna(axis=1)
    if means.empty or len(means) < len(cells):
        return pd.DataFrame()
    by_name = here.set_index(["corpus", "contender"])["differences"]
    rows = []
    for corpus in means.index:
        chosen = means.drop(index=corpus).mean().idxmax()
        low, high = interval(by_name[corpus, chosen])
        gain = means.loc[corpus, chosen]
        rows.append(
            {"corpus": corpus, "chosen": chosen, "Δ": f"{gain:+.1f} [{low:+.1f}, {high:+.1f}]"}
        )
    return pd.DataFrame(rows)


def forest_plot(done: pd.DataFrame, file: Path) -> None:
    """Draw the differences, decision tuned for both, with their intervals."""
    from matplotlib.figure import Figure

    found = differences(done)
    found = found[(found["contender"] != BASELINE) & (found["differences"].map(len) > 1)]
    found = found[(found["decision"] == "tuned") & (found["test"] == "natural")]
    found = found.sort_values(["regime", "corpus"], kind="stable", ascending=False)
    figure = Figure(figsize=(7, 1 + 0.22 * len(found)), layout="constrained")
    axes = figure.subplots()
    for place, (_, row) in enumerate(found.iterrows()):
        low, high = interval(row["differences"])
        axes.plot([low, high], [place, place], color="C0", linewidth=1.2)
        axes.plot(row["differences"].mean(), place, "o", color="C0", markersize=4)
    labels = [f"{r['corpus']}, {r['regime']}: {r['contender']}" for _, r in found.iterrows()]
    axes.set_yticks(range(len(found)), labels, fontsize=7)
    axes.axvline(0, color="0.5", linewidth=0.8)
    axes.set_xlabel("points over cross-entropy, both decisions tuned (95 % t-interval over draws)")
    figure.savefig(file, dpi=120)


def _difference(values: np.ndarray, name: str) -> str:
    if name == BASELINE or not len(values):
        return ""
    low, high = interval(values)
    return f"{values.mean():+.1f}" + ("" if np.isnan(low) else f" [{low:+.1f}, {high:+.1f}]")


def _markdown(table: pd.DataFrame) -> str:
    return table.to_markdown(index=False, disable_numparse=True)
