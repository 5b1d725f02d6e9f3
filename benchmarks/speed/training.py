"""Training throughput: skdice against a bare loop, transformers' Trainer and padding.

Real tokens (pieces with special tokens, without padding) per second of the timed steps of an epoch;
loading and tokenisation come before. All contenders train on the same texts with the same batch
size and learning rate, with cross-entropy where nothing else is said; they differ in how batches
are made up, in precision and in the optimiser's implementation:

- skdice: as it is, with its default loss, and in bf16 or fp32, whichever "auto" is not;
- bare loop: plain PyTorch over the very batches that skdice's sampler made, in the same precision,
  with fused AdamW: the limit;
- Trainer: with default settings, and with half precision (where the hardware has it) and batches
  of similar length;
- padding: the bare loop in fp32, with every text padded to 256 pieces and the default AdamW.

Before the first round the losses of all steps of the bare loop are compared with those of skdice.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from skorch.callbacks import Callback
from transformers.utils import logging

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.datasets import read_squad
from skdice.nn._runtime import denormals_flushed, resolve_device, resolve_precision

from ..study.corpora import read_corpus
from ._alternate import Contender, alternate, table_of_rates
from ._steps import StepClock
from ._tasks import BATCH_SIZE, MAX_LENGTH, MODEL, TASKS, Step, Task, dense_step, draw, widen
from .contenders import bare, library, trainer

TITLE = "Training, real tokens per second"
PADDING = f"padding to {MAX_LENGTH}, fp32"
BUDGETS = {"bare loop": 0.95, "Trainer, default": 2.0, "Trainer, best": 1.0, PADDING: 8.0}
# The largest difference of the losses of a step, relative to the loss.
_TOLERANCE = {"fp32": 1e-4, "bf16": 0.02, "fp16": 0.02}
# Sentences of the fits whose time is told, and the steps that are timed of each.
FIT_ROWS, FIT_STEPS = (250, 1000, 5000), 25
FITS = {
    "CoNLL03": DiceTokenTagger,
    "SST-2": DiceTextClassifier,
    "Amazon-Google": DicePairClassifier,
    "SQuAD": DiceSpanExtractor,
}
H200_STEP = 0.0026  # seconds of a steady step of 16 texts: RESULTS.md, "On a GPU"


def run(
    rounds: int,
    data: Path | None,
    out: Path,
    *,
    tasks: Mapping[str, Task] = TASKS,
    n_warmup: int = 2,
    n_steps: int | None = None,
    skip: tuple[str, ...] = (),
) -> pd.DataFrame:
    """Measure all tasks, write ``speed_training.csv`` and return the table.

    The first ``n_warmup`` steps of a run are not timed; ``n_steps`` that follow are, by default the
    task's own number. ``skip`` names contenders to leave out.
    """
    if data is None:
        raise ValueError("The training benchmark needs the directory of the corpora.")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    results, tables = [], []
    for name, task in tasks.items():
        n_texts = BATCH_SIZE * (n_warmup + (n_steps or task.n_steps))
        contenders = _contenders(task, *draw(task, data, n_texts), n_warmup)
        measured = alternate({k: v for k, v in contenders.items() if k not in skip}, rounds)
        _check_tokens(measured)
        # What padding costs depends on the lengths: the budgets are for these sentences.
        budgets = BUDGETS if name.startswith("tagger") else {}
        table = table_of_rates(measured, "tokens/s", "skdice", budgets)
        results.append(measured.assign(task=name))
        tables.append(table.assign(task=name))
        out.mkdir(parents=True, exist_ok=True)
        pd.concat(results).to_csv(out / "speed_training.csv", index=False)
    table = pd.concat(tables, ignore_index=True)
    return table[["task", *table.columns.drop("task")]]


def _contenders(task: Task, X: Any, y: Any, n_warmup: int) -> dict[str, Contender]:
    device = resolve_device("auto")
    precision = resolve_precision("auto", device)
    other = "bf16" if precision == "fp32" else "fp32"
    ours = partial(library.train, task, X, y, n_warmup, precision=precision)
    clock, recorded = ours()
    steps = [dense_step(task, step) for step in recorded]
    _check_same_work(task, clock, steps, precision, device)
    padded = [widen(step, MAX_LENGTH) for step in steps]

    def limit() -> StepClock:
        with denormals_flushed():
            return bare.train(task, steps, n_warmup, precision=precision, device=device, fused=True)

    runs: dict[str, Callable[[], StepClock]] = {
        "skdice": lambda: ours()[0],
        "skdice, loss='dsc'": lambda: ours(loss="dsc")[0],
        f"skdice, {other}": lambda: ours(precision=other)[0],
        "bare loop": limit,
        "Trainer, default": partial(trainer.train, task, steps, n_warmup),
        "Trainer, best": partial(
            trainer.train, task, steps, n_warmup, **trainer.best_settings(precision)
        ),
        PADDING: partial(
            bare.train, task, padded, n_warmup, precision="fp32", device=device, fused=False
        ),
    }
    return {name: partial(_measured, train) for name, train in runs.items()}


def _measured(train: Callable[[], StepClock]) -> dict[str, Any]:
    return train().measured() | {"threads": torch.get_num_threads()}


def _check_same_work(
    task: Task, ours: StepClock, steps: list[Step], precision: str, device: str
) -> None:
    """Raise if the losses of the bare loop are not those of skdice."""
    with denormals_flushed():
        theirs = bare.train(
            task, steps, ours.n_warmup, precision=precision, device=device, fused=True
        )
    np.testing.assert_allclose(
        torch.stack(theirs.losses).cpu().numpy(),
        torch.stack(ours.losses).cpu().numpy(),
        rtol=_TOLERANCE[precision],
        err_msg="The bare loop does not do the same work as skdice: the losses differ.",
    )


def _check_tokens(measured: pd.DataFrame) -> None:
    tokens = measured.groupby("contender")["tokens"].unique()
    if len(np.unique(np.concatenate(tokens.tolist()))) > 1:
        raise RuntimeError(f"The contenders trained on different texts:\n{tokens}")


class _Clock(Callback):
    """Ends a fit after some steps, if it has so many; tells how long a step takes."""

    def on_train_begin(self, net: Any, X: Any = None, **kwargs: Any) -> None:
        self.steps_per_epoch, self.times = X.n_steps, list[float]()

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        self.times.append(time.thread_time())
        if len(self.times) > FIT_STEPS:
            raise KeyboardInterrupt

    @property
    def seconds(self) -> float:
        """The first steps are slower than others, and are left out."""
        return (self.times[-1] - self.times[4]) / (len(self.times) - 5)


def time_fits(data: Path) -> pd.DataFrame:
    """Return how long fits of n rows of each task take with the defaults.

    A fit is planned in full and ended after some steps: the rest is extrapolated. The seconds are
    those that the main thread computed for, so that other work on the machine does not count.
    """
    torch.set_num_threads(1)
    table = []
    for (name, kind), n in product(FITS.items(), FIT_ROWS):
        if name == "SQuAD":
            X, y = read_squad(data / "mrc/squad_v1.1/train_subset.json.xz")
        else:
            X, y = map(pd.Series, read_corpus(name, data).train)
        rows = np.random.default_rng(0).permutation(np.resize(np.arange(len(y)), max(FIT_ROWS)))[:n]
        clock, began = _Clock(), time.thread_time()
        how = {"random_state": 0, "verbose": 0, "device": "cpu", "callbacks": [clock]}
        estimator = kind(MODEL, **how).fit(X.iloc[rows], np.asarray(y)[rows])
        n_epochs = sum(estimator.runs_["max_epochs"])
        n_steps = clock.steps_per_epoch * n_epochs
        seconds = clock.times[0] - began + clock.seconds * n_steps
        found = {"task": f"{kind.__name__} ({name})", "rows": f"{n:,}", "epochs": n_epochs}
        found |= {"steps": f"{n_steps:,}", "CPU, one thread": f"{seconds / 60:.1f} min"}
        # A GPU was measured with sentences only.
        found["H200"] = f"{H200_STEP * n_steps:.0f} s" if kind is DiceTokenTagger else ""
        table.append(found)
    return pd.DataFrame(table)
