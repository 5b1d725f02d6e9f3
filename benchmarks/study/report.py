"""The tables of the study, made from its finished runs."""

import json
from collections.abc import Callable

import pandas as pd
from scipy import stats

from .corpora import RATIO, WHOLE, parse
from .plan import PARTS
from .runs import BIASES, Run, f1_at

LEVEL = 0.95
SCORED = ["f1", "precision", "recall"]
BY_ITSELF = 7.3  # words outside entities of BC5CDR for each one inside
# Training rows that were not drawn are a corpus more, as dev and test rows are of other users.
SAME = {"BTC": "BTC, same users"}


# Averages, one network with as many steps, and other ways of one network.
GAINS = [("ce+ce, 15 and 15", "ce"), ("ce, 43 epochs", "ce")]
GAINS += [("ce+dice", "ce"), ("dice, 13 epochs", "ce"), ("dice, 30 epochs", "ce")]
GAINS += [("ce, lr 1e-4", "ce"), ("ce, CRF and shapes", "ce")]


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


def thousand(done: pd.DataFrame) -> pd.DataFrame:
    """Return F1 of cross-entropy and dice, as means over draws, and what dice gains."""
    runs = runs_of(done, "thousand")
    same = runs[runs["corpus"].isin(SAME) & runs["counts_same"].notna()]
    same = same.assign(
        corpus=same["corpus"].map(SAME),
        f1=[f1_at(counts)[BIASES == 0].item() for counts in same["counts_same"]],
    )
    runs = pd.concat([runs, same])
    f1 = runs.pivot(index=["corpus", "draw"], columns="contender", values="f1")
    f1 = f1.reindex(columns=["ce", "dice"]).dropna()
    if not len(f1):
        return f1
    table, n_draws = f1.groupby("corpus", sort=False).mean(), f1.groupby("corpus").size()
    gains = pd.DataFrame({"dice less ce": table["dice"] - table["ce"]})
    lines = pd.concat([table.map("{:.1f}".format), gains.map("{:+.1f}".format)], axis=1)
    lines.index = [f"{corpus} ({n_draws[corpus]})" for corpus in lines.index]
    lines.loc["mean"] = pd.concat([table.mean().map("{:.1f}".format), gains.apply(interval)])
    steps = runs.groupby("contender")["n_steps"].mean()
    lines.loc["steps"] = (steps / steps["ce"]).map("{:.2f}".format)
    return lines.astype(object).fillna("").reset_index(names="corpus")


def simplest(done: pd.DataFrame) -> pd.DataFrame:
    """Return by how much ways to learn from few entities exceed others, ``GAINS``, in F1.

    A cell is a draw and a seed of a corpus; those that have both ways count, and a number in
    brackets says how many they are. A mean is that over corpora.
    """
    runs = runs_of(done, "simplest")
    runs = runs[runs["encoder"] == "MiniLM"]
    ways = runs["contender"] + [f", {n} epochs" if n else "" for n in runs["epochs"]]
    cells = ["corpus", "draw", "seed"]
    f1 = runs.assign(way=ways).pivot(index=cells, columns="way", values="f1")
    pairs = [(a, b) for a, b in GAINS if {a, b} <= {*f1}]
    gains = pd.DataFrame({f"{a} less {b}": f1[a] - f1[b] for a, b in pairs})
    groups = gains.groupby("corpus", sort=False)
    means, counts = groups.mean(), groups.count()
    lines = means.map("{:+.1f}".format) + counts.map(" ({})".format)
    lines.loc["mean"] = means.apply(interval)
    return lines.reset_index(names="corpus")


def whole(done: pd.DataFrame) -> pd.DataFrame:
    """Return F1, precision and recall on whole corpora, means over seeds."""
    runs = runs_of(done, "whole", "length", "larger")
    runs = runs[runs["regime"] == "all"]
    keys = ["encoder", "corpus", "epochs"]
    groups = runs.groupby(keys, sort=False)
    table = groups.agg(
        seeds=("draw", "nunique"), seconds=("seconds", "mean"), MiB=("peak_mib", "max")
    )
    table["seconds"] = table["seconds"].map("{:.0f}".format)
    means = runs.groupby([*keys, "contender"], sort=False)[SCORED].mean()
    texts = means.apply(lambda row: "{:.1f} ({:.1f}, {:.1f})".format(*row), axis=1)
    f1 = runs.pivot(index=[*keys, "draw"], columns="contender", values="f1")
    f1 = f1.reindex(columns=["ce", "dice"])
    gains = (f1["dice"] - f1["ce"]).dropna().groupby(keys)
    shown = gains.agg(lambda x: f"{x.mean():+.1f} ({', '.join(map('{:+.1f}'.format, x))})")
    whole = texts.unstack("contender").assign(**{"dice less ce": shown})
    lines = whole.astype(object).fillna("").join(table).reset_index()
    others = [f", {name}" if name != "MiniLM" else "" for name in lines.pop("encoder")]
    return lines.assign(corpus=lines["corpus"] + others)


def _of_encoders(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table, without the column of the encoder if there is only one."""
    return table if table["encoder"].nunique() > 1 else table.drop(columns="encoder")


def runs_of_imbalance(done: pd.DataFrame) -> pd.DataFrame:
    """Return the finished runs of this part, with loss, sentences, and words outside of each."""
    runs = runs_of(done, "imbalance", "larger")
    # Of whole corpora BC5CDR alone is a cell of this part.
    runs = runs[runs["regime"].str.startswith(RATIO) | (runs["corpus"] == "BC5CDR")]
    is_whole = runs["regime"] == WHOLE
    outside, sentences = zip(*runs["regime"].where(~is_whole, f"{RATIO}0").map(parse))
    has_all = is_whole | runs["contender"].str.endswith(", all rows")
    loss = runs["contender"].str.removesuffix(", all rows")
    runs = runs.assign(outside=outside, sentences=sentences)
    runs["outside"] = runs["outside"].astype(float).mask(is_whole, BY_ITSELF)
    return runs.assign(loss=loss + has_all.map({True: "", False: ", sampled"}))


def imbalance(done: pd.DataFrame) -> pd.DataFrame:
    """Return F1 of each loss and imbalance, for each seed."""
    runs = runs_of_imbalance(done).rename(columns={"outside": "words outside"})
    cells = runs.groupby(["encoder", "corpus", "sentences", "words outside", "loss"])["f1"]
    texts = cells.agg(lambda f1: ", ".join(map("{:.1f}".format, f1)))
    return _of_encoders(texts.unstack("loss").fillna("").reset_index())


def operating_points(done: pd.DataFrame) -> pd.DataFrame:
    """Return precision and recall in percent, for each contender, draw and bias of "O"."""
    points = []
    for run in done.itertuples():
        actual, pairs = json.loads(run.counts)
        for bias, (right, found) in zip(BIASES.tolist(), pairs):
            point = 100 * right / max(found, 1), 100 * right / max(actual, 1)
            points.append((run.contender, run.draw, bias, *point))
    columns = ["contender", "draw", "bias", "precision", "recall"]
    return pd.DataFrame(points, columns=columns).set_index(columns[:3])


def alpha(done: pd.DataFrame) -> pd.DataFrame:
    """Return what each alpha gives, less the precision that cross-entropy has with its recall.

    The decision of cross-entropy is moved to any bias with at least this recall.
    """
    runs = runs_of(done, "alpha")
    has_ce = runs["draw"].isin(runs["draw"][runs["contender"] == "ce"])
    points, lines = operating_points(runs[has_ce]), []
    for contender, kept in points.xs(0.0, level="bias").groupby("contender", sort=False):
        kept = kept.droplevel("contender")
        f1 = (2 * kept["precision"] * kept["recall"] / kept.sum(axis=1)).fillna(0)
        means = pd.DataFrame({**kept, "F1": f1}).mean().map("{:.1f}".format)
        gains = kept["precision"] - [
            _precision_at(point.recall, points.xs(("ce", draw), level=("contender", "draw")))
            for draw, point in kept.iterrows()
        ]
        lines.append(
            {"loss": contender, **means, "precision less that of ce": interval(gains.dropna())}
        )
    return pd.DataFrame(lines)


def _precision_at(recall: float, points: pd.DataFrame) -> float:
    """Return the highest precision with at least this recall; NaN if none has it."""
    return float(points["precision"][points["recall"] >= recall].max())


TABLES: dict[str, tuple[tuple[str, ...], Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "Few entities": (("simplest",), simplest),
    "1,000 sentences": (("thousand",), thousand),
    "Whole corpora": (("whole",), whole),
    "Imbalance": (("imbalance",), imbalance),
    "Alpha, or the decision": (("alpha",), alpha),
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
