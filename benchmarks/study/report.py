"""The tables of the study, made from its finished runs."""

import numpy as np
import pandas as pd
from scipy import stats

from .plan import ENCODERS, PARTS, TUNED
from .runs import Run

LEVEL = 0.95
# The parts that choose rules: F1 on dev rows, and optimiser steps in brackets.
_TITLES = {
    "length": "Length: loss and epochs, 250 sentences",
    "sizes": "More sentences: loss and epochs",
    "teacher": "A teacher that labels other sentences",
    "continued": "A tagger of CoNLL03 in place of the encoder",
    "shapes": "Word shapes without a table of token types",
}


def runs_of(done: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return the finished runs of a part."""
    wanted = pd.DataFrame(PARTS[part](), columns=list(Run._fields)).drop_duplicates()
    return wanted.merge(done, on=list(Run._fields))


def interval(values: pd.Series) -> str:
    """Write a mean, with its t interval if there are several values."""
    text = f"{values.mean():+.1f}" if len(values) else ""
    if len(values) > 1:
        half = stats.sem(values) * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)
        text += f" [{values.mean() - half:+.1f}, {values.mean() + half:+.1f}]"
    return text


def table_of(done: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return F1 (and steps) of each fit of a part that chooses, a column for each way to train."""
    runs = runs_of(done, part)
    epochs = runs["epochs"].astype(str).where(runs["epochs"] > 0, "")
    way = (runs["contender"] + " " + epochs).str.strip()
    cell = runs["f1"].map("{:.1f}".format) + " (" + runs["n_steps"].astype(str) + ")"
    rows = ["sentences", "encoder", "corpus"]
    return (
        runs.assign(way=way, cell=cell, sentences=runs["regime"].astype(int))
        .pivot(index=rows, columns="way", values="cell")
        .fillna("")
        .reset_index()
    )


def differences(done: pd.DataFrame, is_tuned: bool) -> pd.DataFrame:
    """Return the F1 of the defaults less that of cross-entropy, a row for each pair of fits."""
    runs = pd.concat([runs_of(done, "primary"), runs_of(done, "tuned")])
    setting = {e: TUNED[e] if is_tuned and e == "MiniLM" else (0.0, 30) for e in ENCODERS}
    is_other = [setting[e] == (lr, n) for e, lr, n in zip(runs.encoder, runs.lr, runs.epochs)]
    other = runs[(runs["contender"] == "ce") & np.array(is_other, dtype=bool)]
    shared = ["encoder", "corpus", "draw"]
    pairs = runs[runs["contender"] == "auto"].merge(other, on=shared, suffixes=("", "_other"))
    return pairs.assign(difference=pairs["f1"] - pairs["f1_other"])


def of_corpora(pairs: pd.DataFrame) -> str:
    """Write the mean over corpora and its interval; a corpus counts once for each encoder."""
    means = pairs.groupby(["corpus", "encoder"])["difference"].mean().groupby("corpus")
    corpora, weight = means.mean(), means.size()
    mean = (corpora * weight).sum() / weight.sum()
    if len(corpora) < 2:
        return f"{mean:+.1f}"
    share = weight / weight.sum()
    # Each corpus is one observation, whose part of the mean goes by its number of encoders.
    error = ((share * (corpora - mean)) ** 2).sum() * len(corpora) / (len(corpora) - 1)
    half = error**0.5 * stats.t.ppf((1 + LEVEL) / 2, len(corpora) - 1)
    return f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"


def primary(done: pd.DataFrame) -> pd.DataFrame:
    """Return the two contrasts on new draws, for all encoders and for each."""
    lines = []
    for name, is_tuned in {"cross-entropy, 30 epochs": False, "tuned cross-entropy": True}.items():
        pairs = differences(done, is_tuned)
        for encoder in ("all", *ENCODERS):
            cell = pairs if encoder == "all" else pairs[pairs["encoder"] == encoder]
            if len(cell):
                line = {"the defaults to": name, "encoders": encoder, "pairs": len(cell)}
                line["of them positive"] = int((cell["difference"] > 0).sum())
                lines.append(line | {"F1": of_corpora(cell)})
    return pd.DataFrame(lines)


def cells(done: pd.DataFrame) -> pd.DataFrame:
    """Return the means over draws of each cell of the contrasts."""
    lines = []
    for (encoder, corpus), cell in differences(done, False).groupby(["encoder", "corpus"]):
        line = {"encoder": encoder, "corpus": corpus, "draws": len(cell)}
        line |= {"F1": f"{cell.f1.mean():.1f}", "steps": f"{cell.n_steps.mean():.0f}"}
        line |= {"cross-entropy, 30 epochs": interval(cell["difference"])}
        times = cell["n_steps"].mean() / cell["n_steps_other"].mean()
        tuned = differences(done, True).query("encoder == @encoder and corpus == @corpus")
        line |= {"tuned cross-entropy": interval(tuned["difference"])}
        lines.append(line | {"its steps": f"{cell.n_steps_other.mean():.0f} ({times:.2f})"})
    return pd.DataFrame(lines)


def report(done: pd.DataFrame) -> str:
    """Return all tables in Markdown."""
    found = [part for part in _TITLES if runs_of(done, part)["contender"].nunique() > 1]
    tables = {_TITLES[part]: table_of(done, part) for part in found}
    if len(differences(done, is_tuned=False)):
        tables["New draws"] = primary(done)
        tables["Cells of the new draws: the defaults, and less cross-entropy"] = cells(done)
    texts = []
    for title, table in tables.items():
        # A sign before a number is kept.
        markdown = table.to_markdown(index=False, disable_numparse=True)
        texts.append(f"### {title}\n\n{markdown}")
    hours = done["cpu_seconds"].sum() / 3600
    return "\n\n".join([*texts, f"{len(done)} runs in {hours:.1f} hours of a core."])
