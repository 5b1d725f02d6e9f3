"""The tables of the study, made from its finished runs."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from .plan import ENCODERS, PARTS, best_setting, tuning_scores
from .runs import Run, f1_of, file_name

LEVEL = 0.95
_N_RESAMPLED = 500
# Which fits of a part are compared.
CONTRASTS = {
    "factorial": [("dice", "ce"), ("dice, plain", "ce, plain")],
    "rare": [("dice, sampled", "ce, sampled"), ("ce, sampled", "ce, all rows")],
    "1,000 sentences": [("dice", "ce")],
    "passes": [("dice", "ce")],
    "without labels": [
        ("auto, ensemble", "auto"),
        ("auto, unlabeled", "auto"),
        ("auto, unlabeled", "auto, ensemble"),
    ],
}
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


def count_draws(pairs: pd.DataFrame) -> str:
    """Count the pairs; those of one draw on two devices are one."""
    return str(len(pairs.drop_duplicates(["encoder", "corpus", "draw"])))


def primary(done: pd.DataFrame) -> pd.DataFrame:
    """Return the primary contrasts, and below them those of each encoder."""
    pairs = {name: differences(done, is_tuned) for name, is_tuned in BASELINES.items()}
    found = {name: corpora_interval(part) for name, part in pairs.items() if len(part)}
    p_values = dict(zip(found, holm([p for *_, p in found.values()])))
    lines = []
    for name, (mean, low, high, _) in found.items():
        line = {"the defaults to": name, "encoders": "all", "pairs": count_draws(pairs[name])}
        line["F1"] = f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
        lines.append(line | {"p (Holm)": f"{p_values[name]:.3f}"})
        for encoder, part in pairs[name].groupby("encoder", sort=False):
            mean, low, high, _ = corpora_interval(part)
            line = {"the defaults to": name, "encoders": str(encoder), "pairs": count_draws(part)}
            interval = f"{mean:+.1f}" if np.isnan(low) else f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
            lines.append(line | {"F1": interval, "p (Holm)": ""})
    return pd.DataFrame(lines)


def contrasts_table(done: pd.DataFrame, part: str, rows: Path) -> pd.DataFrame:
    """Return the fits of a part side by side, from a CPU, means over draws.

    The difference has its interval over draws if there are several, and in brackets the standard
    error of drawing the test rows again. Seconds are those of a core.
    """
    done = done[done["device"] == "cpu"]
    # Fits whose epochs were given, not chosen, are compared at the same number.
    done = done.assign(at=done["epochs"].where(done["lr"] > 0, 0))
    keys = ["encoder", "corpus", "regime", "at", "lr"]
    lines = []
    for names in CONTRASTS[part]:
        ours, theirs = (done[done["contender"] == name] for name in names)
        ours = ours.merge(runs_of(done, part)[list(Run._fields)])
        pairs = ours.merge(theirs, on=[*keys, "draw"], suffixes=("", "_other"))
        for (encoder, corpus, regime, at, _), fits in pairs.groupby(keys, sort=False):
            f1, seconds = (
                f"{fits[name].mean():.{digits}f} to {fits[f'{name}_other'].mean():.{digits}f}"
                for name, digits in (("f1", 1), ("cpu_seconds", 0))
            )
            error = np.mean([rows_error(_runs(pair), "cpu", rows) for _, pair in fits.iterrows()])
            gain = draws_interval(fits["f1"] - fits["f1_other"])
            line = {"encoder": encoder, "corpus": f"{corpus}, {regime}"}
            line |= {"epochs": str(at)} if at else {}
            line |= {"fits": " to ".join(names), "draws": str(len(fits))}
            line |= {"CPU s": seconds, "F1": f1, "difference": f"{gain} ({error:.1f})"}
            if fits["f1_as_rare"].notna().all():
                line["as rare"] = draws_interval(fits["f1_as_rare"] - fits["f1_as_rare_other"])
            lines.append(line)
    return pd.DataFrame(lines)


def _runs(pair: pd.Series) -> tuple[Run, Run]:
    """Return the two runs of a row that has both."""
    ours = Run(*(pair[name] for name in Run._fields))
    others = {name: pair[f"{name}_other"] for name in Run._fields if f"{name}_other" in pair.index}
    return ours, ours._replace(**others)


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
    """Draw the differences of each cell of the primary contrasts, and F1 over epochs.

    The intervals are over draws.
    """
    from matplotlib import pyplot as plt

    pairs = [differences(done, is_tuned) for is_tuned in BASELINES.values()]
    found = {*zip(pairs[0]["encoder"], pairs[0]["corpus"])}
    # The first one is drawn at the top.
    cells = sorted(found, key=lambda cell: (ENCODERS.index(cell[0]), cell[1]), reverse=True)
    _, (ax, curves) = plt.subplots(1, 2, figsize=(12, 6), layout="constrained", width_ratios=(3, 2))
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
    ax.legend(title="Cross-entropy", loc="upper right")
    for (encoder, name), runs in runs_of(done, "passes").groupby(["encoder", "contender"]):
        color = {"dice": "tab:orange", "ce": "tab:blue"}[name]
        style = {"MiniLM": "o-", "MPNet": "s--"}[encoder]
        ordered = runs.sort_values("epochs")
        curves.plot(ordered["epochs"], ordered["f1"], style, c=color, label=f"{encoder}, {name}")
    curves.set_xscale("log", base=2)
    curves.xaxis.set_major_formatter("{x:g}")
    curves.set_xlabel("Epochs (BC5CDR, 250 sentences, one draw)")
    curves.set_ylabel("F1")
    curves.legend()
    plt.savefig(file, dpi=110)
    plt.close()


def false_positives_table(done: pd.DataFrame, rows: Path) -> pd.DataFrame:
    """Return how many false positives fits with rare entities have, sums over draws.

    The first number is that in sentences without an entity, the second one that in the others.
    """
    lines: dict[tuple[str, str], dict[str, str]] = {}
    runs = runs_of(done, "rare").query("device == 'cpu' and contender != 'ce, all rows'")
    keys = ["encoder", "regime", "contender"]
    for (encoder, regime, name), fits in runs.groupby(keys, sort=False):
        runs_files = fits[list(Run._fields)].itertuples(index=False, name=None)
        counts = [np.load(rows / file_name(Run(*run), "cpu"))["counts"] for run in runs_files]
        right, found, true = np.concatenate(counts).astype(int).T
        is_empty, wrong = true == 0, found - right
        line = {"encoder": encoder, "regime": regime, "draws": str(len(fits))}
        text = f"{wrong[is_empty].sum()} and {wrong[~is_empty].sum()}"
        lines.setdefault((encoder, regime), line)[name] = text
    return pd.DataFrame(lines.values())


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
    tables |= {f"Part: {part}": contrasts_table(done, part, rows) for part in CONTRASTS}
    both = pd.concat([runs_of(done, "factorial"), runs_of(done, "250 sentences")])
    tables["Effects in the factorial"] = effects_table(both)
    tables["False positives with rare entities"] = false_positives_table(done, rows)
    shown = [
        f"### {title}\n\n{table.to_markdown(index=False, disable_numparse=True)}"
        for title, table in tables.items()
        if len(table)
    ]
    is_cpu = done["device"] == "cpu"
    hours = done.loc[is_cpu, "cpu_seconds"].sum() / 3600
    total = f"{len(done)} runs: {is_cpu.sum()} on a CPU in {hours:.1f} hours of a core"
    return "\n\n".join([*shown, f"{total}, {(~is_cpu).sum()} on a GPU."])
