"""The tables and the picture of the study: differences to cross-entropy over draws."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from .plan import ENTITIES, PARTS, SETTINGS, TUNED, best_setting, tuning_scores
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
DECISIONS = {
    "own": "as fitted",
    "tuned": "decision tuned",
    "crossed": "as fitted, to ce with a tuned one",
}
# The decision of a fit and of cross-entropy.
COMPARED = {"own": ("own", "own"), "tuned": ("tuned", "tuned"), "crossed": ("own", "tuned")}
CONTROL = re.compile(r"ce(, resampled|, \d+ epochs)?")
# What else is compared over the corpora of A and C: the control, and what is compared with it.
COMPARISONS = {
    "Differences to tuned cross-entropy": (CONTROL, ".*"),
    "To cross-entropy as called": (re.compile("ce, as called"), "auto|recommended(, crf)?"),
    '"recommended" with `crf` to without': (re.compile("recommended"), "recommended, crf"),
    "With `crf`, dice to cross-entropy": (re.compile("ce, crf"), "dice, crf"),
}
LEVEL = 0.95


def differences(done: pd.DataFrame, control: re.Pattern[str] = CONTROL) -> pd.DataFrame:
    """Return a row for every contender, cell and decision: scores and differences by draw.

    A contender is compared with cross-entropy on the same rows, with the same initial weights and
    decision ("own", "tuned"), and as fitted with cross-entropy whose decision is tuned ("crossed").
    Where a cell has several controls, it is compared with the one whose mean on the test rows is
    best, which is kind to cross-entropy.
    """
    final = done[done["draw"] >= FIRST_FINAL_DRAW]
    rows = []
    for (corpus, regime), cell in final.groupby(["corpus", "regime"], sort=False):
        for test, scores in _long(cell).groupby("test", sort=False):
            tables = {
                decision: part.pivot(index="draw", columns="contender", values="score")
                for decision, part in scores.groupby("decision")
            }
            for decision, (own, other) in COMPARED.items():
                if own not in tables or other not in tables:
                    continue
                baseline = _best_control(tables[other], control)
                for name in scores["contender"].unique():
                    found = tables[own][name].dropna()
                    apart = found[:0] if baseline is None else found - tables[other][baseline]
                    rows.append(
                        {
                            "corpus": corpus,
                            "regime": regime,
                            "test": test,
                            "decision": decision,
                            "contender": name,
                            "is_baseline": name == baseline and own == other,
                            "scores": found.to_numpy(),
                            "differences": apart.dropna().to_numpy(),
                        }
                    )
    columns = ["corpus", "regime", "test", "decision", "contender", "is_baseline"]
    table = pd.DataFrame(rows, columns=[*columns, "scores", "differences"])
    return table.astype({"is_baseline": bool})


def _best_control(by_draw: pd.DataFrame, control: re.Pattern[str]) -> str | None:
    """Return the name of cross-entropy, or of the best of its controls."""
    controls = [name for name in by_draw if control.fullmatch(name)]
    if len(controls) < 2:
        return controls[0] if controls else None
    return str(by_draw[controls].dropna().mean().idxmax())


def _of_cells(found: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    is_there = [cell in cells for cell in zip(found["corpus"], found["regime"])]
    return found.loc[np.array(is_there, dtype=bool)]


def _long(cell: pd.DataFrame) -> pd.DataFrame:
    """Return a row for every score; longer fits are contenders of their own.

    Where cross-entropy has several numbers of epochs, fits with more than its fewest have them in
    their name.
    """
    epochs = cell.loc[cell["contender"] == BASELINE, "epochs"]
    is_longer = (cell["epochs"] > epochs.min()) & (epochs.nunique() > 1)
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
        cells = _cells(done, part)
        table = part_table(found, cells)
        if len(table):
            parts.append(f"## {title}\n\n{_markdown(table)}")
    if tables := comparisons(done):
        parts += ["## All corpora with 250 rows", *tables]
    table = left_out_table(found, _cells(done, "AC"))
    if len(table):
        parts.append(f"## Chosen by the other corpora\n\n{_markdown(table)}")
    has_interval = (found["differences"].map(len) > 1) & ~found["is_baseline"]
    parts.append(
        f"{has_interval.sum()} differences to tuned cross-entropy have an interval, which is not "
        "corrected for their number."
    )
    return "\n\n".join(parts)


def _cells(done: pd.DataFrame, parts: str) -> list[tuple[str, str]]:
    """Return the corpora and regimes of parts."""
    return list({(run.corpus, run.regime): None for part in parts for run in PARTS[part](done)})


def settings_table(done: pd.DataFrame) -> str:
    """Return the means over the tuning draws, with their number; the chosen one is bold."""
    rows = []
    for corpus in ENTITIES:
        for loss in dict.fromkeys(TUNED.values()):
            cell = tuning_scores(done, corpus, loss)
            row = {"corpus": corpus, "fit": loss}
            for lr, epochs in SETTINGS:
                scores = cell.loc[(cell["lr"] == lr) & (cell["epochs"] == epochs), "tuned"]
                text = f"{scores.mean():.1f} ({len(scores)})" if len(scores) else ""
                if best_setting(done, corpus, loss) == (lr, epochs):
                    text = f"**{text}**"
                row[f"{lr:g}, {epochs} epochs"] = text
            rows.append(row)
    return f"## Settings\n\n{_markdown(pd.DataFrame(rows))}"


def part_table(found: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return a row for each contender of each cell."""
    rows = []
    for corpus, regime in cells:
        cell = _of_cells(found, [(corpus, regime)])
        where = corpus if regime == "250" else f"{corpus}, {regime}"
        for (test, name), scores in cell.groupby(["test", "contender"], sort=False):
            row = {
                "corpus": where if test == "natural" else f"{where}, test rows as rare",
                "fit": name,
                "draws": str(len(scores["scores"].iloc[0])),
            }
            for _, score in scores.iterrows():
                label = DECISIONS[score["decision"]]
                if score["decision"] != "crossed":
                    row[label] = f"{score['scores'].mean():.1f}"
                    if nothing := int((score["scores"] == 0).sum()):
                        row[label] += f" ({nothing} found nothing)"
                row[f"Δ, {label}"] = "" if score["is_baseline"] else _difference(score)
            rows.append(row)
    return pd.DataFrame(rows).fillna("")


def comparisons(done: pd.DataFrame) -> list[str]:
    """Return a table for each of COMPARISONS, of what has been run."""
    tables = []
    for title, (control, names) in COMPARISONS.items():
        found = differences(done, control)
        found = found[found["contender"].str.fullmatch(names) & ~found["is_baseline"]]
        table = across_table(found, _cells(done, "A"), _cells(done, "C"))
        if len(table):
            tables.append(f"{title}:\n\n{_markdown(table)}")
    return tables


def across_table(
    found: pd.DataFrame, seen: Sequence[tuple[str, str]], unseen: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Return the differences by corpus, with the means over those seen and over all.

    Parameters
    ----------
    found : DataFrame
        Of ``differences``.
    seen, unseen : sequence of (corpus, regime)
    """
    cells = [*seen, *unseen]
    here = _of_cells(found[found["decision"].isin(("own", "tuned"))], cells)
    rows = []
    for decision in ("own", "tuned"):
        for name, scores in here[here["decision"] == decision].groupby("contender", sort=False):
            by_cell = {(row["corpus"], row["regime"]): row for _, row in scores.iterrows()}
            row = {"fit": name, "decision": DECISIONS[decision]}
            row |= {cell[0]: _difference(by_cell[cell]) for cell in cells if cell in by_cell}
            for which in (seen, cells):
                groups = [by_cell[cell]["differences"] for cell in which if cell in by_cell]
                if len(groups) == len(which) > 1 and all(len(group) > 1 for group in groups):
                    mean, low, high = mean_interval(groups)
                    row[f"mean of {len(which)}"] = f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
            rows.append(row)
    return pd.DataFrame(rows).fillna("")


def left_out_table(found: pd.DataFrame, cells: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return for each corpus what the others would choose for it, and what that gives.

    The choice is the fit with the best mean difference, decision tuned; cross-entropy if none is
    above 0.
    """
    here = _of_cells(found, cells)
    here = here[(here["decision"] == "tuned") & (here["differences"].map(len) > 0)]
    gains = here.assign(gain=here["differences"].map(np.mean))
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
    """Draw the differences and their intervals, a panel for each part with three draws or more."""
    from matplotlib.figure import Figure

    found = differences(done)
    found = found[~found["is_baseline"] & (found["differences"].map(len) > 2)]
    found = found[(found["decision"] == "tuned") & (found["test"] == "natural")]
    panels = {part: _of_cells(found, _cells(done, part)) for part in TITLES}
    panels = {part: rows for part, rows in panels.items() if len(rows)}
    if not panels:
        raise ValueError("There is nothing to draw yet: no part has three draws.")
    heights = [1 + rows["contender"].nunique() for rows in panels.values()]
    figure = Figure(figsize=(7, 1 + 0.4 * sum(heights)), layout="constrained")
    all_axes = figure.subplots(len(panels), height_ratios=heights, squeeze=False)[:, 0]
    for axes, (part, rows) in zip(all_axes, panels.items()):
        names = rows["contender"].unique()[::-1]
        cells = rows.groupby(["corpus", "regime"], sort=False)
        for number, ((corpus, regime), cell) in enumerate(cells):
            place = np.array([list(names).index(name) for name in cell["contender"]])
            place = place + 0.6 * ((cells.ngroups - number - 0.5) / cells.ngroups - 0.5)
            means = cell["differences"].map(np.mean)
            half = means - [interval(values)[0] for values in cell["differences"]]
            label = corpus if regime == "250" else f"{corpus}, {regime}"
            axes.errorbar(means, place, xerr=half, fmt="o", markersize=4, lw=1.2, label=label)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.axvline(0, color="0.5", linewidth=0.8, zorder=0)
        axes.set_title(TITLES[part], loc="left", fontsize="medium")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    all_axes[-1].set_xlabel(
        "points over cross-entropy, both decisions tuned (95 % t-interval over draws)"
    )
    figure.savefig(file, dpi=120)


_RARE_FITS = ("ce, 4 epochs", "ce, 12 epochs", "ce, sampled", "dice, sampled", "auto")


def cost_plot(done: pd.DataFrame, file: Path) -> None:
    """Draw F1 on test rows as rare over the seconds of a fit, a panel for each cell of part B."""
    from matplotlib.figure import Figure

    final = done[done["draw"] >= FIRST_FINAL_DRAW]
    cells = [(c, r) for c, r in _cells(done, "B") if len(_rare_fits(final, c, r))]
    figure = Figure(figsize=(3.6 * len(cells), 3.2), layout="constrained")
    for axes, (corpus, regime) in zip(figure.subplots(1, len(cells), squeeze=False)[0], cells):
        fits_of = dict(list(_rare_fits(final, corpus, regime).groupby("fit")))
        for number, name in enumerate(_RARE_FITS):
            if name in fits_of:
                f1, cost = fits_of[name]["own, as rare"], fits_of[name]["cost"]
                axes.errorbar(
                    cost.mean(),
                    f1.mean(),
                    f1.std(),
                    fmt="o",
                    capsize=3,
                    color=f"C{number}",
                    label=name,
                )
        axes.set_title(f"{corpus}, {regime.removeprefix('ratio-')} to 1", fontsize="medium")
        axes.set_xlabel("seconds of one core")
        axes.set_xlim(left=0)
    figure.axes[0].legend(loc="lower right", fontsize="small")
    figure.axes[0].set_ylabel("F1, mean ± sd over draws")
    figure.savefig(file, dpi=120)


def _rare_fits(final: pd.DataFrame, corpus: str, regime: str) -> pd.DataFrame:
    cell = final[(final["corpus"] == corpus) & (final["regime"] == regime)]
    cell = cell[cell["contender"].isin(("ce", "dice, sampled", "ce, sampled", "auto"))]
    epochs = cell["epochs"].map(lambda n: f", {n} epochs" if n else "")
    # Fits have one thread, so that seconds are seconds of a core where these were not kept.
    cost = cell["cpu_seconds"].fillna(cell["seconds"])
    return cell.assign(fit=cell["contender"] + epochs, cost=cost)


def _difference(row: pd.Series) -> str:
    values = row["differences"]
    if not len(values):
        return ""
    low, high = interval(values)
    return f"{values.mean():+.1f}" + ("" if np.isnan(low) else f" [{low:+.1f}, {high:+.1f}]")


def _markdown(table: pd.DataFrame) -> str:
    return table.to_markdown(index=False, disable_numparse=True)
