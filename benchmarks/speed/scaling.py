"""Time and peak memory of a tagger against texts, length, classes and batch size.

The encoder is a tiny random BERT with windows of 64 pieces, so that the library's own work is what
is seen. Every point is one fit of one epoch and one prediction of the same made sentences, in a
fresh process. Memory is the peak of the resident memory above that before the call, the sentences
not included. Slopes are those of straight lines in log-log: 1 is linear, 2 quadratic. Fixed costs
flatten the lower end, so the slope of the upper half is fitted too, and the larger one is judged.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ._memory import in_fresh_process, measured

TITLE = "Scaling of time and memory"
STEEPEST = 1.2
PICTURE = Path(__file__).parents[1] / "scaling.png"
WINDOW = 64  # pieces

_MIB = 2**20
_SEED = 0


class Setting(NamedTuple):
    """A made corpus and how it is cut into batches."""

    texts: int = 2_000
    words: int = 16  # of each text
    classes: int = 9
    batch_size: int = 32


# What is varied, over which values, with what else set so that the largest takes about a minute.
CURVES: dict[str, tuple[tuple[int, ...], Setting]] = {
    "texts": ((1_000, 3_000, 10_000, 30_000, 100_000), Setting()),
    "words": ((16, 64, 256, 1_024, 4_096), Setting(texts=64, batch_size=16)),
    "classes": ((5, 15, 51, 151, 501), Setting(texts=1_000)),
    "batch_size": ((1, 4, 16, 64, 256), Setting()),
}
_LABELS = {
    "texts": "texts of 16 words",
    "words": "words in each of 64 texts",
    "classes": "classes (O, B-x, I-x)",
    "batch_size": "batch size",
}
_MEASURES = {"fit s": "fit", "predict s": "predict", "fit MiB": "fit", "predict MiB": "predict"}


def run(rounds: int, data: Path | None, out: Path, largest: int = 100_000) -> pd.DataFrame:
    """Measure all curves once, draw them, and return their slopes.

    Parameters
    ----------
    rounds : int
        Not used: a slope over five points needs no repetitions.
    data : Path or None
        Not used.
    out : Path
        Directory of the table.
    largest : int
        Leave out values above it.
    """
    from tests.tiny_models import build_bert

    rows = []
    with TemporaryDirectory() as directory:
        model = build_bert(Path(directory), max_position_embeddings=WINDOW)
        for curve, (values, base) in CURVES.items():
            for value in values:
                if value > largest:
                    continue
                setting = base._replace(**{curve: value})
                row = {"curve": curve, **setting._asdict()}
                rows.append(row | in_fresh_process(_measure, model, setting))
                print(json.dumps(rows[-1]), flush=True)
    points = pd.DataFrame(rows)
    out.mkdir(parents=True, exist_ok=True)
    points.to_csv(out / "speed_scaling.csv", index=False)
    _draw(points, PICTURE)
    return _slopes(points)


def _measure(model: str, setting: Setting) -> dict[str, float]:
    from skdice import DiceTokenTagger

    tagger = DiceTokenTagger(
        model, max_epochs=1, batch_size=setting.batch_size, random_state=_SEED, verbose=0
    )
    warm_up = _sentences(setting._replace(texts=8))
    tagger.fit(*warm_up).predict(warm_up[0])  # Loads what is loaded at first use.
    X, y = _sentences(setting)
    _, fit_seconds, fit_extra = measured(lambda: tagger.fit(X, y))
    _, predict_seconds, predict_extra = measured(lambda: tagger.predict(X))
    return {
        "fit s": fit_seconds,
        "predict s": predict_seconds,
        "fit MiB": fit_extra / _MIB,
        "predict MiB": predict_extra / _MIB,
    }


def _sentences(setting: Setting) -> tuple[list[list[str]], list[list[str]]]:
    """Make sentences of random words; every tag occurs, entities have one or two words."""
    from tests.tiny_models import WORDS

    rng = np.random.default_rng(_SEED)
    shape = (setting.texts, setting.words)
    X = rng.choice(WORDS, shape).tolist()
    n_types = (setting.classes - 1) // 2
    kind = rng.integers(n_types, size=shape)
    kind.flat[: 2 * n_types] = np.arange(2 * n_types) % n_types
    role = rng.choice(["O", "B", "I"], shape, p=[0.8, 0.1, 0.1])
    role.flat[:n_types], role.flat[n_types : 2 * n_types] = "B", "I"
    y = [
        ["O" if r == "O" else f"{r}-{k}" for r, k in zip(roles, kinds)]
        for roles, kinds in zip(role.tolist(), kind.tolist())
    ]
    return X, y


def _slopes(points: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for curve, part in points.groupby("curve", sort=False):
        for measure in _MEASURES:
            x = np.log(part[curve].to_numpy())
            y = np.log(part[measure].clip(lower=1e-3).to_numpy())
            whole, upper = (np.polyfit(x[i:], y[i:], 1)[0] for i in (0, len(x) // 2))
            rows.append(
                {
                    "against": curve,
                    "measure": measure,
                    "smallest": f"{part[measure].iloc[0]:.3g}",
                    "largest": f"{part[measure].iloc[-1]:.3g}",
                    "slope": f"{whole:.2f}",
                    "slope of the upper half": f"{upper:.2f}",
                    "steep": f"above {STEEPEST}" if max(whole, upper) > STEEPEST else "",
                }
            )
    return pd.DataFrame(rows)


def _draw(points: pd.DataFrame, path: Path) -> None:
    """Draw a panel for each curve: seconds on the left axis, memory on the right one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    curves = points.groupby("curve", sort=False)
    for panel, (curve, part) in reversed(list(zip(panels.flat, curves))):
        right = panel.twinx()
        for measure, label in _MEASURES.items():
            is_time = measure.endswith(" s")
            (panel if is_time else right).plot(
                part[curve],
                part[measure],
                marker="o",
                color="C0" if label == "fit" else "C1",
                linestyle="-" if is_time else ":",
                label=f"{label}, {'seconds' if is_time else 'MiB'}",
            )
        if curve != "batch_size":
            _add_linear(panel, part[curve], part["fit s"])
        for axes in (panel, right):
            axes.set(xscale="log", yscale="log")
        panel.set(xlabel=_LABELS[str(curve)], ylabel="seconds")
        right.set_ylabel("MiB above the start")
        right.yaxis.set_major_formatter("{x:g}")
        right.yaxis.set_minor_formatter("")
        handles = panel.get_legend_handles_labels(), right.get_legend_handles_labels()
    lines, labels = (a + b for a, b in zip(*handles))
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels))
    figure.suptitle("DiceTokenTagger with a tiny random encoder: one epoch and one prediction")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _add_linear(axes: Any, x: pd.Series, y: pd.Series) -> None:
    """Add a line of slope 1 through the last point of a curve."""
    last = float(y.iloc[-1]) / float(x.iloc[-1])
    axes.plot(x, x * last, color="0.7", linewidth=1, label="linear", zorder=0)
