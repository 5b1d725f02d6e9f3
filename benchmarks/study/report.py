"""The tables of the study, made from its finished runs."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .plan import PARTS
from .runs import BIASES, Run, f1_at

LEVEL = 0.95
CELL = ["encoder", "corpus", "regime", "draw"]
LOSSES = ("dice", "ce")
SCORED = ["f1", "precision", "recall"]
# Scored on training rows that were not drawn as well, as its dev rows are of other users and times.
SAME = {"BTC": {"BTC, same users": "_same"}}
SIZES = {"up to 200": (0, 200), "201 to 400": (201, 400), "more": (401, np.inf)}


def runs_of(done: pd.DataFrame, *parts: str) -> pd.DataFrame:
    """Return the finished runs of some parts."""
    runs = dict.fromkeys(run for part in parts for run in PARTS[part]())
    declared = pd.DataFrame(list(runs), columns=list(Run._fields))
    return declared.merge(done, on=list(Run._fields))


def interval(values: pd.Series) -> str:
    """Write a mean, with its t interval if there are several values."""
    text = f"{values.mean():+.1f}" if len(values) else ""
    if len(values) > 1:
        half = stats.sem(values) * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)
        text += f" [{values.mean() - half:+.1f}, {values.mean() + half:+.1f}]"
    return text


def rules_of(dice: Any, ce: Any, where: str) -> Iterator[tuple[str, float, float]]:
    """Yield each rule with its F1 and its steps, from the two runs of a cell.

    ``where`` is "" for the scored rows, "_same" for training rows that were not drawn.
    """
    at, steps = f1_at(dice[f"counts{where}"]), {"dice": dice.n_steps, "ce": ce.n_steps}
    yield "dice", at[BIASES == 0].item(), steps["dice"]
    yield "dice at +.5", at[BIASES == 0.5].item(), steps["dice"]
    yield "dice at +1", at[BIASES == 1].item(), steps["dice"]
    half = float(np.interp(float(dice.bias_2_short) / 2, BIASES, at))
    yield "dice, half of the bias of 2 short folds", half, steps["dice"] + dice.n_steps_2_short
    for kind in ("2_short", "2", "3"):
        steps[kind] = dice[f"n_steps_{kind}"]
        name = f"dice, {kind[0]} {kind[2:]} folds".replace("  ", " ")
        yield name, dice[f"f1_bias_{kind}{where}"], steps["dice"] + steps[kind]
    name = "dice, 3 folds, a bias for each label"
    yield name, dice[f"f1_biases_3{where}"], steps["dice"] + steps["3"]
    yield "ce", f1_at(ce[f"counts{where}"])[BIASES == 0].item(), steps["ce"]
    yield "ce, 2 folds", ce[f"f1_bias_2{where}"], steps["ce"] + ce.n_steps_2
    for kind in ("2_short", "2"):
        best = dice if f1_at(dice[f"counts_{kind}"]).max() > f1_at(ce.counts_2).max() else ce
        loss, found = ("dice", kind) if best is dice else ("ce", "2")
        took = steps[loss] + steps[kind] + ce.n_steps_2
        name = f"loss and bias, 2 {kind[2:]} folds".replace("  ", " ")
        yield name, best[f"f1_bias_{found}{where}"], took


def rules(done: pd.DataFrame, *parts: str) -> pd.DataFrame:
    """Return F1 and steps of each rule in each cell of which both losses are finished."""
    lines = []
    for cell, runs in runs_of(done, *parts).groupby(CELL):
        found = runs.set_index("contender")
        if len(found) == len(LOSSES):
            dice, ce = (found.loc[f"{loss}, folds"] for loss in LOSSES)
            kinds = {dice.corpus: ""} | SAME.get(dice.corpus, {})
            for corpus, where in kinds.items():
                for rule, f1, steps in rules_of(dice, ce, where):
                    line = {"rule": rule, "f1": f1, "steps": steps / ce.n_steps}
                    line |= {"n_entities": dice.n_entities, "corpus": corpus}
                    lines.append(dict(zip(CELL, cell)) | line)
    return pd.DataFrame(lines, columns=[*CELL, "rule", "f1", "steps", "n_entities"])


def of_corpora(found: pd.DataFrame) -> pd.DataFrame:
    """Return the mean F1 of each rule and corpus: over draws, then over encoders."""
    means = found.groupby(["rule", "corpus", "encoder"], sort=False)["f1"].mean()
    return means.groupby(["rule", "corpus"], sort=False).mean().unstack("corpus")


def decision(done: pd.DataFrame) -> pd.DataFrame:
    """Return each rule: F1 by corpus, mean, and the most that it is behind the better loss."""
    found = rules(done, "decide", "more")
    table = of_corpora(found)
    better = table.loc[list(LOSSES)].max()
    cells = found.groupby("corpus")["rule"].value_counts().groupby("corpus").max()
    shown = table.map("{:.1f}".format).rename(columns=lambda name: f"{name} ({cells[name]})")
    shown["mean"] = table.mean(axis=1).map("{:.2f}".format)
    shown["less ce"] = (table - table.loc["ce"]).apply(interval, axis=1)
    shown["to the better"] = (table - better).min(axis=1).map("{:+.1f}".format)
    shown["steps"] = found.groupby("rule", sort=False)["steps"].mean().map("{:.2f}".format)
    return shown.reset_index()


def by_entities(done: pd.DataFrame) -> pd.DataFrame:
    """Return what a bias of folds gains over none, by the number of entities."""
    found = rules(done, "decide", "more", "few")
    zero = found[found["rule"].isin(LOSSES)].set_index([*CELL, "rule"])["f1"]
    lines = []
    for rule, cells in found[found["rule"].str.contains(r"^(?:dice|ce), ")].groupby("rule"):
        loss = rule.partition(",")[0]
        before = zero.loc[[(*key, loss) for key in cells[CELL].itertuples(index=False)]]
        gain = cells["f1"].to_numpy() - before.to_numpy()
        line = {"bias": rule}
        for name, (low, high) in SIZES.items():
            part = pd.Series(gain[cells["n_entities"].between(low, high).to_numpy()])
            line[name] = f"{interval(part)} ({len(part)})"
        lines.append(line)
    return pd.DataFrame(lines)


def variants(done: pd.DataFrame) -> pd.DataFrame:
    """Return F1 of variants less that of their loss, at 0 and each with its best bias."""
    runs = runs_of(done, "variants")
    base = done.assign(base=done["contender"].str.removesuffix(", folds"))
    base = base[base["contender"].str.endswith(", folds")]
    pairs = runs.assign(base=runs["contender"].str.partition(",")[0])
    pairs = pairs.merge(base, on=[*CELL, "base"], suffixes=("", "_base"))
    epochs = pairs["epochs"].map(lambda n: f", {n} epochs" if n else "")
    best = [f1_at(a).max() - f1_at(b).max() for a, b in zip(pairs.counts, pairs.counts_base)]
    pairs = pairs.assign(
        way=pairs["contender"] + epochs, gain=pairs["f1"] - pairs["f1_base"], best=best
    )
    lines = []
    for way, cell in pairs.groupby("way", sort=False):
        gains = cell.groupby("corpus", sort=False)["gain"].mean().map("{:+.1f}".format)
        line = {"variant": way, "fits": len(cell), **gains}
        lines.append(
            line
            | {"all": interval(cell["gain"]), "at the best bias": f"{cell['best'].mean():+.1f}"}
        )
    return pd.DataFrame(lines).fillna("")


def confirmed(done: pd.DataFrame) -> pd.DataFrame:
    """Return the defaults on draws that chose nothing, and what they gain over both losses."""
    runs = runs_of(done, "confirm")
    f1 = runs.pivot(index=["encoder", "corpus", "draw"], columns="contender", values="f1")
    f1 = f1.reindex(columns=["auto", "ce", "dice"]).dropna()
    means = (
        f1.groupby(["corpus", "encoder"], sort=False).mean().groupby("corpus", sort=False).mean()
    )
    lines = [
        {"corpus": corpus, **{name: f"{value:.1f}" for name, value in row.items()}}
        | {f"less {name}": f"{row['auto'] - row[name]:+.1f}" for name in ("ce", "dice")}
        for corpus, row in means.iterrows()
    ]
    total = {"corpus": "mean"} | {name: f"{value:.1f}" for name, value in means.mean().items()}
    total |= {f"less {name}": interval(means["auto"] - means[name]) for name in ("ce", "dice")}
    return pd.DataFrame([*lines, total])


def whole(done: pd.DataFrame) -> pd.DataFrame:
    """Return F1, precision and recall of all losses on whole corpora, means over seeds."""
    runs = runs_of(done, "defaults", "whole", "length", "larger")
    runs = runs[runs["regime"] == "all"].drop(columns="epochs")
    runs = runs.rename(columns={"took_epochs": "epochs"})
    groups = runs.groupby(["encoder", "corpus", "epochs"], sort=False)
    table = groups.agg(
        seeds=("draw", "nunique"), seconds=("seconds", "mean"), MiB=("peak_mib", "max")
    )
    table["seconds"] = table["seconds"].map("{:.0f}".format)
    means = runs.groupby(["encoder", "corpus", "epochs", "contender"], sort=False)[SCORED].mean()
    texts = means.apply(lambda row: "{:.1f} ({:.1f}, {:.1f})".format(*row), axis=1)
    return texts.unstack("contender").fillna("").join(table).reset_index()


def imbalance(done: pd.DataFrame) -> pd.DataFrame:
    """Return F1 of each loss and imbalance, means over seeds."""
    runs = runs_of(done, "imbalance", "larger")
    runs = runs[runs["regime"].str.startswith("ratio")]
    outside = runs["regime"].str.removeprefix("ratio-").astype(int)
    loss = runs["contender"].str.partition(",")[0]
    cells = runs.assign(loss=loss, **{"words outside": outside}).groupby(
        ["encoder", "corpus", "words outside", "loss"]
    )["f1"]
    texts = cells.mean().map("{:.1f}".format) + cells.size().map(" ({})".format)
    return texts.unstack("loss").fillna("").reset_index()


TABLES: dict[str, tuple[tuple[str, ...], Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "Which loss and which bias": (("decide", "more"), decision),
    "What a bias of folds gains, by entities": (("decide", "more", "few"), by_entities),
    "Variants": (("variants",), variants),
    "Draws that chose nothing": (("confirm",), confirmed),
    "Whole corpora": (("whole",), whole),
    "Imbalance": (("imbalance",), imbalance),
}


def report(done: pd.DataFrame) -> str:
    """Return all tables in Markdown; a table of which no cell is finished is left out."""
    texts = []
    for title, (parts, make) in TABLES.items():
        table = make(done) if len(runs_of(done, *parts)) else pd.DataFrame()
        if len(table):
            # A sign before a number is kept.
            markdown = table.to_markdown(index=False, disable_numparse=True)
            texts.append(f"### {title}\n\n{markdown}")
    hours = done[done["device"] == "cpu"].filter(like="seconds").sum().sum() / 3600
    return "\n\n".join([*texts, f"{len(done)} runs in {hours:.1f} hours of a core."])
