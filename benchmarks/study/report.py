"""The tables of the study, made from its finished runs."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from .plan import ENCODERS, PARTS, best_setting, tuning_scores
from .runs import Run, f1_of, file_name

LEVEL = 0.95
_N_RESAMPLED = 500
RARE = [
    ("dice to ce, both sampled", "dice, sampled", "ce, sampled"),
    ("ce sampled to ce on all rows, as many steps", "ce, sampled", "ce, all rows"),
]
SCORED = ("f1", "f1_as_rare")
FACTORIAL = ("dice", "ce", "dice, plain", "ce, plain")
# What the defaults are compared with in the primary contrasts.
BASELINES = {"loss='ce', else equal": False, "tuned cross-entropy": True}


def runs_of(done: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return the finished runs of a part."""
    wanted = pd.DataFrame(PARTS[part](done), columns=list(Run._fields)).drop_duplicates()
    return wanted.merge(done, on=list(Run._fields))


def differences(done: pd.DataFrame, is_tuned: bool) -> pd.DataFrame:
    """Return the F1 of the defaults less that of cross-entropy, a row for each pair of fits.

    Both fits of a pair ran on the same device.
    """
    cell = done[(done["regime"] == "250") & done["draw"].ge(700)]
    ours = cell[(cell["contender"] == "auto") & (cell["lr"] == 0)]
    settings = {encoder: best_setting(done, encoder) for encoder in ENCODERS}
    if is_tuned:
        wanted = pd.Series(
            [settings[e] == (lr, n) for e, lr, n in zip(cell.encoder, cell.lr, cell.epochs)],
            index=cell.index,
            dtype=bool,
        )
    else:
        wanted = (cell["lr"] == 0) & (cell["epochs"] == 0)
    theirs = cell[(cell["contender"] == "ce") & wanted]
    shared = ["encoder", "corpus", "draw", "device"]
    pairs = ours.merge(theirs, on=shared, suffixes=("", "_other"))
    return pairs.assign(difference=pairs["f1"] - pairs["f1_other"])


def corpora_interval(pairs: pd.DataFrame) -> tuple[float, float, float, float]:
    """Return the mean over corpora, its t interval, and the two-sided p value; nan of one corpus.

    A corpus has the mean of its encoders, an encoder that of its draws, a draw that of its devices.
    """
    means = pairs.set_index(["corpus", "encoder", "draw"])["difference"]
    for levels in (["corpus", "encoder", "draw"], ["corpus", "encoder"], ["corpus"]):
        means = means.groupby(level=levels).mean()
    if len(means) < 2:
        return float(means.mean()), float("nan"), float("nan"), float("nan")
    error, degrees = stats.sem(means), len(means) - 1
    half = error * stats.t.ppf((1 + LEVEL) / 2, degrees)
    p = 2 * stats.t.sf(abs(means.mean()) / error, degrees)
    return float(means.mean()), float(means.mean() - half), float(means.mean() + half), float(p)


def draws_interval(values: pd.Series) -> str:
    """Write a mean over draws, with its t interval if there are several."""
    text = f"{values.mean():+.1f}"
    if len(values) > 1:
        half = stats.sem(values) * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)
        text += f" [{values.mean() - half:+.1f}, {values.mean() + half:+.1f}]"
    return text


def rows_error(runs: tuple[Run, Run], device: str, rows: Path) -> float:
    """Return the standard error of a difference of F1 when the test rows are drawn again."""
    files = [rows / file_name(run, device) for run in runs]
    counts = [np.load(file)["counts"].astype(float) for file in files]
    rng, n = np.random.default_rng(0), len(counts[0])
    found = []
    for _ in range(_N_RESAMPLED):
        weight = np.bincount(rng.integers(n, size=n), minlength=n)
        found.append(100 * (f1_of(counts[0], weight) - f1_of(counts[1], weight)))
    return float(np.std(found, ddof=1))


def holm(p_values: list[float]) -> list[float]:
    """Return p values corrected for their number."""
    order = np.argsort(p_values)
    corrected = np.empty(len(p_values))
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected.tolist()


def primary(done: pd.DataFrame) -> pd.DataFrame:
    """Return the primary contrasts, and below them those of each encoder."""
    pairs = {name: differences(done, is_tuned) for name, is_tuned in BASELINES.items()}
    found = {name: corpora_interval(part) for name, part in pairs.items() if len(part)}
    p_values = dict(zip(found, holm([p for *_, p in found.values()])))
    lines = []
    for name, (mean, low, high, _) in found.items():
        line = {"the defaults to": name, "encoders": "all", "pairs": str(len(pairs[name]))}
        line["F1"] = f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
        lines.append(line | {"p (Holm)": f"{p_values[name]:.3f}"})
        for encoder, part in pairs[name].groupby("encoder", sort=False):
            mean, low, high, _ = corpora_interval(part)
            line = {"the defaults to": name, "encoders": str(encoder), "pairs": str(len(part))}
            interval = f"{mean:+.1f}" if np.isnan(low) else f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
            lines.append(line | {"F1": interval, "p (Holm)": ""})
    return pd.DataFrame(lines)


def cells_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the F1 and the seconds of each fit of a part on a CPU, means over draws."""
    lines = []
    keys = ["encoder", "corpus", "regime", "contender", "lr", "epochs"]
    runs = runs[runs["device"] == "cpu"]
    for (encoder, corpus, regime, name, lr, epochs), fits in runs.groupby(keys, sort=False):
        how = f", lr {lr:g}, {epochs} epochs" if lr else f", {epochs} epochs" if epochs else ""
        line = {"encoder": encoder, "corpus": f"{corpus}, {regime}", "fit": f"{name}{how}"}
        line |= {"draws": str(len(fits)), "F1": f"{fits['f1'].mean():.1f}"}
        if fits.get("f1_as_rare", pd.Series(dtype=float)).notna().any():
            line["F1, test rows as rare"] = f"{fits['f1_as_rare'].mean():.1f}"
        lines.append(line | {"CPU s": f"{fits['cpu_seconds'].mean():.0f}"})
    return pd.DataFrame(lines).fillna("")


def _runs(pair: pd.Series) -> tuple[Run, Run]:
    """Return the two runs of a row of :func:`differences`."""
    ours = Run(*(pair[name] for name in Run._fields))
    return ours, ours._replace(contender="ce", lr=pair["lr_other"], epochs=pair["epochs_other"])


def pairs_table(done: pd.DataFrame, rows: Path) -> pd.DataFrame:
    """Return the differences of each cell of the primary contrasts; a standard error in brackets.

    It is that of drawing the test rows again.
    """
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for name, is_tuned in BASELINES.items():
        pairs = differences(done, is_tuned)
        for (encoder, corpus), cell in pairs.groupby(["encoder", "corpus"], sort=False):
            error = np.mean(
                [rows_error(_runs(pair), pair["device"], rows) for _, pair in cell.iterrows()]
            )
            by_draw = cell.groupby("draw")[["f1", "difference"]].mean()
            on_cpu = cell.loc[cell["device"] == "cpu", ["cpu_seconds", "cpu_seconds_other"]].mean()
            ours, theirs = on_cpu.map(lambda seconds: "" if np.isnan(seconds) else f"{seconds:.0f}")
            first = {
                "encoder": encoder,
                "corpus": corpus,
                "draws": str(len(by_draw)),
                "F1": f"{by_draw['f1'].mean():.1f}",
                "CPU s": ours,
            }
            line = lines.setdefault((encoder, corpus), first)
            line[f"to {name}"] = f"{draws_interval(by_draw['difference'])} ({error:.1f})"
            line[f"its CPU s{' ' * is_tuned}"] = theirs
    return pd.DataFrame(lines.values()).fillna("")


def effects_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the main effects of the factorial and their interaction, over cells and draws."""
    keys = ["encoder", "corpus", "draw", "contender"]
    runs = runs[(runs["device"] == "cpu") & (runs["lr"] == 0)]
    f1 = runs.groupby(keys)["f1"].mean().unstack().reindex(columns=list(FACTORIAL)).dropna()
    if f1.empty:
        return pd.DataFrame()
    dice, ce, plain_dice, plain_ce = (f1[name] for name in FACTORIAL)
    effects = {
        "dice, without shapes and CRF": plain_dice - plain_ce,
        "dice, with them": dice - ce,
        "dice, mean of both": (plain_dice - plain_ce + dice - ce) / 2,
        "shapes or CRF, with cross-entropy": ce - plain_ce,
        "shapes or CRF, with dice": dice - plain_dice,
    }
    columns: dict[str, pd.Series] = {"all": pd.Series(True, index=f1.index)}
    of_encoder = f1.index.get_level_values("encoder")
    columns |= {e: pd.Series(of_encoder == e, index=f1.index) for e in of_encoder.unique()}
    lines = [
        {"gain of": name, **{kind: draws_interval(effect[on]) for kind, on in columns.items()}}
        for name, effect in effects.items()
    ]
    return pd.DataFrame(
        [*lines, {"gain of": "cells", **{k: str(on.sum()) for k, on in columns.items()}}]
    )


def devices_table(done: pd.DataFrame) -> pd.DataFrame:
    """Return how the F1 of a run on a GPU differs from that of the same run on a CPU."""
    on = {device: done[done["device"] == device] for device in ("cuda", "cpu")}
    pairs = on["cuda"].merge(on["cpu"], on=list(Run._fields), suffixes=("", "_cpu"))
    lines = [
        {
            "encoder": encoder,
            "runs": str(len(runs)),
            "F1, GPU less CPU": draws_interval(runs["f1"] - runs["f1_cpu"]),
            "standard deviation": f"{(runs['f1'] - runs['f1_cpu']).std():.1f}",
        }
        for encoder, runs in [("all", pairs), *pairs.groupby("encoder", sort=False)]
        if len(runs)
    ]
    return pd.DataFrame(lines)


def draw(done: pd.DataFrame, file: Path) -> None:
    """Draw the differences of each cell of the primary contrasts, with intervals over draws."""
    from matplotlib import pyplot as plt

    pairs = [differences(done, is_tuned) for is_tuned in BASELINES.values()]
    found = {*zip(pairs[0]["encoder"], pairs[0]["corpus"])}
    # The first one is drawn at the top.
    cells = sorted(found, key=lambda cell: (ENCODERS.index(cell[0]), cell[1]), reverse=True)
    _, ax = plt.subplots(figsize=(8, 6), layout="constrained")
    for offset, color, marker, name, part in zip(
        (0.14, -0.14), ("tab:orange", "tab:blue"), "os", BASELINES, pairs
    ):
        by_draw = part.groupby(["encoder", "corpus", "draw"])["difference"].mean()
        for row, cell in enumerate(cells):
            if cell not in by_draw.index.droplevel("draw"):
                continue
            values = by_draw.loc[cell]
            half = stats.sem(values) * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)
            options = {"fmt": marker, "color": color, "label": name if row == 0 else None}
            ax.errorbar(values.mean(), row + offset, xerr=half, **options)
    ax.axvline(0, color="gray", lw=1)
    ax.set_yticks(range(len(cells)), [", ".join(cell) for cell in cells])
    ax.set_xlabel("F1 of the defaults less that of cross-entropy, 95 % interval over draws")
    ax.legend(title="Cross-entropy", loc="lower right")
    plt.savefig(file, dpi=110)
    plt.close()


def rare_table(done: pd.DataFrame, rows: Path) -> pd.DataFrame:
    """Return what the loss gains with rare entities, and what sampled epochs gain.

    In brackets is the standard error of drawing the test rows again, which are as they are. False
    positives are counted in sentences without an entity, and in those with one.
    """
    runs = runs_of(done, "rare").query("device == 'cpu'").set_index("contender")
    lines = []
    for (encoder, regime, draw), fits in runs.groupby(["encoder", "regime", "draw"], sort=False):
        line = {"encoder": encoder, "regime": regime, "draw": str(draw)}
        for name, first, second in RARE:
            if first in fits.index and second in fits.index:
                pair = fits.loc[[first, second]]
                keys = pair.reset_index()[list(Run._fields)].itertuples(index=False, name=None)
                error = rows_error(tuple(Run(*key) for key in keys), "cpu", rows)
                f1, as_rare = (pair[column].iloc[0] - pair[column].iloc[1] for column in SCORED)
                line[name] = f"{f1:+.1f} ({error:.1f}), as rare {as_rare:+.1f}"
        for name in ("dice, sampled", "ce, sampled"):
            if name in fits.index:
                (key,) = fits.loc[[name]].reset_index()[list(Run._fields)].to_numpy().tolist()
                counts = np.load(rows / file_name(Run(*key), "cpu"))["counts"].astype(int)
                wrong, is_empty = counts[:, 1] - counts[:, 0], counts[:, 2] == 0
                text = f"{wrong[is_empty].sum()} and {wrong[~is_empty].sum()}"
                line[f"false positives of {name}"] = text
        lines.append(line)
    return pd.DataFrame(lines).fillna("")


def encoders_table(done: pd.DataFrame) -> pd.DataFrame:
    """Return the F1 of the defaults with each encoder, over draws and devices that all have."""
    cell = done[(done["regime"] == "250") & (done["contender"] == "auto") & (done["lr"] == 0)]
    f1 = cell.set_index(["corpus", "draw", "device", "encoder"])["f1"].unstack()
    f1 = f1.reindex(columns=list(ENCODERS)).dropna().groupby(level=["corpus", "draw"]).mean()
    lines = []
    for corpus, draws in f1.groupby(level="corpus"):
        line = {"corpus": str(corpus), "draws": str(len(draws))}
        line |= {encoder: f"{draws[encoder].mean():.1f}" for encoder in ENCODERS}
        for encoder in ENCODERS[1:]:
            difference = draws[encoder] - draws[ENCODERS[0]]
            line[f"{encoder} to {ENCODERS[0]}"] = draws_interval(difference)
        lines.append(line)
    return pd.DataFrame(lines)


def settings_table(done: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of the settings of cross-entropy; the chosen one is bold."""
    lines = []
    for encoder in ENCODERS:
        for (lr, epochs), f1 in sorted(tuning_scores(done, encoder).items()):
            is_best = best_setting(done, encoder) == (lr, epochs)
            text = f"**{f1:.1f}**" if is_best else f"{f1:.1f}"
            line = {"encoder": encoder, "lr": f"{lr:g}", "epochs": str(epochs)}
            lines.append(line | {"mean dev F1": text})
    return pd.DataFrame(lines)


def report(done: pd.DataFrame, rows: Path) -> str:
    """Return all tables of what is finished; ``rows`` is the directory of the counts."""
    tables = {
        "The primary contrasts": primary(done),
        "Cells of the primary contrasts": pairs_table(done, rows),
        "The defaults with each encoder": encoders_table(done),
        "Tuned cross-entropy": settings_table(done),
        "The same runs on two devices": devices_table(done),
    }
    tables |= {f"Part: {part}": cells_table(runs_of(done, part)) for part in list(PARTS)[3:]}
    both = pd.concat([runs_of(done, "factorial"), runs_of(done, "250 sentences")])
    tables["Effects in the factorial"] = effects_table(both)
    tables["Rare entities, what does what"] = rare_table(done, rows)
    shown = [
        f"### {title}\n\n{table.to_markdown(index=False, disable_numparse=True)}"
        for title, table in tables.items()
        if len(table)
    ]
    is_cpu = done["device"] == "cpu"
    hours = done.loc[is_cpu, "cpu_seconds"].sum() / 3600
    total = f"{len(done)} runs: {is_cpu.sum()} on a CPU in {hours:.1f} hours of a core"
    return "\n\n".join([*shown, f"{total}, {(~is_cpu).sum()} on a GPU."])
