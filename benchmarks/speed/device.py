"""One device against the CPU, a bare loop and transformers; Markdown tables.

    python -m benchmarks.speed --device cuda [--encoder path/to/encoder path/to/another]

The texts are made, so that no corpus is needed. For every encoder, these are printed:

- equality: the largest differences between the device and the CPU, in fp32 and without dropout;
- training, by batch size: real tokens per second of skdice, of a bare loop over the same batches
  and of transformers' Trainer with default and with its best settings; the peak of the memory; the
  host share, the part of the time after which the last step was handed over to the device;
- waits: how often a step waits for the device and how long the device computes, by the profiler;
- prediction: words per second of skdice, of a bare loop and of transformers' pipeline.

A part or a contender that fails shows its error, and the others are measured. The rounds are
written to ``speed_<device>.csv`` after each part.
"""

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from transformers.utils import logging

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.datasets import make_pairs, make_tagging
from skdice.nn._runtime import denormals_flushed, resolve_device, resolve_precision

from ._alternate import alternate, table_of_rates
from ._memory import measured
from ._steps import StepClock
from ._tasks import TASKS, Setup, dense_step
from .contenders import bare, library, pipeline, trainer
from .prediction import timed

TASK = TASKS["tagger, NCBI-disease"]  # For its classes; the texts are made.
PIPELINE_SIZES = (8, 32, 128)
BUDGETS = {
    "tokens/s": {"bare loop": 0.97, "Trainer, best": 1.5},
    "words/s": {f"pipeline, batches of {size}": 3.0 for size in PIPELINE_SIZES},
}
CHAIN: dict[str, Any] = {"loss": "dice", "crf": True}
MOST_DIFFERENCE = 1e-3
_N_WARMUP = 20
_WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")

Runs = dict[str, Callable[..., StepClock]]


def choose_gpu(device: str) -> str:
    """Hide all GPUs but the asked one, since the Trainer takes all; return its name from then on.

    This has to be called before CUDA starts.
    """
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return device
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(64)))).split(",")
    os.environ["CUDA_VISIBLE_DEVICES"] = "".join(seen[int(number or 0) :][:1])
    return kind


def run(
    models: Sequence[str],
    device: str,
    out: Path,
    *,
    rounds: int = 3,
    sizes: Sequence[int] = (16, 64, 256),
    n_steps: int = 30,
    n_predicted: int = 2000,
) -> pd.DataFrame:
    """Measure everything, print the tables, and return all rounds.

    ``sizes`` are the texts of a step, and a run has ``n_steps`` timed steps.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    out.mkdir(parents=True, exist_ok=True)
    file, found = out / f"speed_{device.replace(':', '_')}.csv", []
    device = resolve_device(choose_gpu(device))
    name = torch.cuda.get_device_name() if device == "cuda" else device
    print(f"{name}, torch {torch.__version__}, transformers {transformers.__version__}, ", end="")
    print(f"{torch.get_num_threads()} threads; training in {resolve_precision('auto', device)}")
    for model in models:
        setup = Setup(model, device=device)
        parts = {"equality": partial(_differences, setup)}
        for size in sizes:
            of_size = setup._replace(batch_size=size)
            parts[f"training, batch {size}"] = partial(_speeds, of_size, n_steps)
            parts[f"waits, batch {size}"] = partial(_waits, of_size, n_steps)
        parts["prediction"] = partial(_prediction, setup, n_predicted)
        for part, measure in parts.items():
            try:
                rows = measure(rounds)
                table = _table(rows).to_markdown(index=False, disable_numparse=True)
            except Exception as error:  # What comes next may work, and nobody is there to start it.
                table = _told(error)
                rows = pd.DataFrame({"error": [table]})
            found.append(rows.assign(encoder=Path(model).name, part=part))
            pd.concat(found).to_csv(file, index=False)
            print(f"\n## {Path(model).name}: {part}\n\n{table}", flush=True)
    return pd.concat(found, ignore_index=True)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _alternated(contenders: Mapping[str, Callable[[], Any]], rounds: int) -> pd.DataFrame:
    def safe(contender: Callable[[], Any]) -> Any:
        try:
            return contender()
        except Exception as error:  # The others still can be compared.
            return {"error": _told(error)}

    return alternate({name: partial(safe, each) for name, each in contenders.items()}, rounds)


def _table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rates and the medians of what else was measured; other rows as they are."""
    rate = next((name for name in BUDGETS if name in rows), None)
    if rate is None:
        return rows
    table = table_of_rates(rows, rate, "skdice", BUDGETS[rate]).set_index("contender")
    of_each = rows.groupby("contender")
    for name in {"host share", "peak MB"} & {*rows}:
        table[name] = of_each[name].median().round(2).astype(str)
    if "error" in rows:
        table["error"] = of_each["error"].first().fillna("")
    return table.reset_index()


@lru_cache(1)
def _runs(setup: Setup, n_steps: int) -> Runs:
    """Return contenders that train on the same steps, which skdice has made."""
    precision = resolve_precision("auto", setup.device)
    X, y = make_tagging(setup.batch_size * (_N_WARMUP + n_steps), random_state=0)
    ours = partial(library.train, TASK, X, y, _N_WARMUP, precision=precision, setup=setup)
    steps = [dense_step(TASK, step) for step in ours()[1]]
    theirs = partial(trainer.train, TASK, steps, _N_WARMUP, setup=setup)

    def bare_loop(**watch: Any) -> StepClock:
        options = {"precision": precision, "device": setup.device, "setup": setup, **watch}
        with denormals_flushed():
            return bare.train(TASK, steps, _N_WARMUP, fused=True, **options)

    return {
        "skdice": lambda **watch: ours(steps=steps, **watch)[0],
        "skdice, dice, chain": lambda **watch: ours(steps=steps, **CHAIN, **watch)[0],
        "bare loop": bare_loop,
        "Trainer, default": theirs,
        "Trainer, best": partial(theirs, **trainer.best_settings(precision)),
    }


def _speeds(setup: Setup, n_steps: int, rounds: int) -> pd.DataFrame:
    def speed(train: Callable[[], StepClock]) -> dict[str, Any]:
        if is_gpu := setup.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        clock, _, extra = measured(train)
        peak = torch.cuda.max_memory_allocated() if is_gpu else extra
        return clock.measured() | {"peak MB": peak / 1e6}

    runs = _runs(setup, n_steps).items()
    return _alternated({name: partial(speed, train) for name, train in runs}, rounds)


def _waits(setup: Setup, n_steps: int, rounds: int) -> pd.DataFrame:
    """Return what the profiler saw of the timed steps of one run."""

    def watched(train: Callable[..., StepClock]) -> dict[str, Any]:
        is_gpu = setup.device == "cuda"
        profiler = profile(activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * is_gpu])
        train(watch=profiler)
        events = profiler.events() or []
        on_gpu = [e for e in events if e.device_type != DeviceType.CPU and not e.is_user_annotation]
        totals = {
            "waits/step": sum(e.name in _WAITS for e in events)
            - is_gpu,  # The clock's, at the end.
            "operators/step": sum(e.name.startswith("aten::") for e in events),
            "kernel ms/step": sum(e.time_range.elapsed_us() for e in on_gpu) / 1e3,
        }
        return {name: round(total / n_steps, 2) for name, total in totals.items()}

    runs = {name: run for name, run in _runs(setup, n_steps).items() if "Trainer" not in name}
    return _alternated({name: partial(watched, train) for name, train in runs.items()}, 1)


def _prediction(setup: Setup, n: int, rounds: int) -> pd.DataFrame:
    X, y = make_tagging(max(n, 128), random_state=1)
    tagger = _fitted(DiceTokenTagger, setup, X[:128], y[:128], loss="ce", crf=False)
    model, X = tagger.net_.module_.transformer, X[:n]
    # Byte-level BPE takes words only so; other tokenizers do not mind.
    tokenizer = transformers.AutoTokenizer.from_pretrained(setup.model, add_prefix_space=True)
    bare_loop = partial(bare.predict_tags, model, tokenizer, tagger.classes_, precision="fp32")
    predictors: dict[str, Callable[[Any], Any]] = {"skdice": tagger.predict}
    for size in PIPELINE_SIZES:
        predictors[f"bare loop, batches of {size}"] = partial(bare_loop, batch_size=size)
        tag = pipeline.tagging_pipeline(model, tokenizer, size)
        predictors[f"pipeline, batches of {size}"] = tag
    tagger.predict(X[:32])
    return _alternated({name: partial(timed, p, X) for name, p in predictors.items()}, rounds)


def _differences(setup: Setup, rounds: int) -> pd.DataFrame:
    """Return how far fits on the device are from those on the CPU, and predictions of them."""

    def difference(kind: type, make: Callable[..., Any], parameters: Any) -> dict[str, Any]:
        X, y = make(8 * setup.batch_size, random_state=0)
        places = [setup._replace(model=str(model), device=d) for d in ("cpu", setup.device)]
        fits = [_fitted(kind, place, X, y, **parameters) for place in places]
        losses = [fit.history_["train_loss"].iloc[-1] for fit in fits]
        scores = [np.concatenate(list(fit.predict_proba(X))) for fit in fits]
        loss, score = abs(losses[1] / losses[0] - 1), np.abs(scores[1] - scores[0]).max()
        return {"loss": loss, "probability": score, "met": max(loss, score) <= MOST_DIFFERENCE}

    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # An epoch of a few steps learns little.
        # Other random numbers on other devices would drop other values.
        model = shutil.copytree(setup.model, Path(directory, "encoder"))
        config = (model / "config.json").read_text(encoding="utf-8")
        config = re.sub(r'("\w*(?:dropout|pdrop)\w*": )[\d.]+', r"\g<1>0.0", config)
        (model / "config.json").write_text(config, encoding="utf-8")
        tagger = partial(difference, DiceTokenTagger, make_tagging)
        fits = {
            "tagger, ce": partial(tagger, {"loss": "ce", "crf": False}),
            "tagger, dice, chain": partial(tagger, CHAIN),
            "pairs, dice": partial(difference, DicePairClassifier, make_pairs, {"loss": "dice"}),
        }
        return _alternated(fits, 1)


def _fitted(kind: type, setup: Setup, X: Any, y: Any, **parameters: Any) -> Any:
    shapes = {"word_shapes": False} if kind is DiceTokenTagger else {}
    options = {"batch_size": setup.batch_size, "device": setup.device, **shapes, **parameters}
    fixed = {"max_epochs": 1, "lr": 5e-5, "precision": "fp32", "random_state": 0, "verbose": 0}
    return kind(setup.model, negative_ratio=None, **fixed, **options).fit(X, y)
