"""One device, one encoder, one JSON: training and prediction against what transformers has.

    python -m benchmarks.speed --device cuda --encoder path/to/encoder --json speed_cuda.json

Runs unattended, in less time than ``--minutes`` says: rounds that would not fit are left out, and
what fails is written down. (Of several GPUs the Trainer takes all: set CUDA_VISIBLE_DEVICES.) The
texts are made, so that no corpus is needed. In the JSON:

- equality: largest differences between the device and the CPU, in fp32 without dropout: of the loss
  of a step relative to it, and of the probabilities of words after these steps;
- training, for sentences and for windows of 256 pieces: real tokens per second of skdice, of a bare
  loop over the same batches in the same precision, and of transformers' Trainer with default and
  with its best settings; the peak of the memory; the host share, which is when the last step was
  handed over to the device, as a share of the time until it was done (1: the device waited for the
  host, or the host for the device in every step); the utilisation, which is the time of kernels (on
  a CPU, of torch's operators) in a step by the time of a step; how often a step waits for the
  device;
- prediction: words per second of skdice, of a bare loop and of transformers' pipeline.

The medians of the rounds are compared.
"""

import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import transformers
from torch.autograd import DeviceType
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile
from transformers.utils import logging

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.nn._runtime import denormals_flushed, resolve_device, resolve_precision

from ._memory import measured
from ._steps import StepClock
from ._tasks import TASKS, Setup, Step, dense_step
from .contenders import bare, library, pipeline, trainer

TASK = TASKS["tagger, NCBI-disease"]  # For its classes; the texts are made.
# Words of a text, on the mean.
TEXTS = {"sentences": 28, "windows of 256 pieces": 190}
PIPELINE_SIZES = (1, 8, 32, 128)
BUDGETS = {"bare loop": 0.97, "Trainer, best": 1.5, "pipeline": 3.0}
MOST_DIFFERENCE = 1e-3

_N_WARMUP = 4
_MOST_ROUNDS = 3
_SECONDS_OF_A_RUN = 4.0
_N_WATCHED, _N_COMPARED = 10, 8
# Of the time, when a section has to be done.
_SHARES = {"equality": 0.15, "sentences": 0.45, "windows of 256 pieces": 0.75, "prediction": 0.95}

Texts = tuple[list[list[str]], list[list[str]]]


class Results:
    """What was found so far, which is always on disk, and how much time is left."""

    def __init__(self, path: Path, minutes: float) -> None:
        self.path = path
        self.found: dict[str, Any] = {}
        self._start, self._seconds = time.perf_counter(), 60 * minutes

    def keep(self, name: str, find: Callable[[], Any]) -> Any:
        """Write down what a call finds; an error is a finding."""
        try:
            self.found[name] = find()
        except Exception as error:  # What comes next may work, and nobody is there to start it.
            self.found[name] = {"error": f"{type(error).__name__}: {error}"}
        self.found["minutes"] = round((time.perf_counter() - self._start) / 60, 2)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.found, indent=2) + "\n", encoding="utf-8")
        print(f"\n## {name}\n\n{json.dumps(self.found[name], indent=2)}", flush=True)

    def seconds_until(self, section: str) -> float:
        """Return how many seconds a section has left."""
        return self._start + _SHARES[section] * self._seconds - time.perf_counter()


def run(
    setup: Setup,
    path: Path,
    *,
    minutes: float = 8.0,
    n_steps: int | None = None,
    n_predicted: int = 1000,
) -> dict[str, Any]:
    """Measure everything and return what the JSON holds.

    Parameters
    ----------
    setup : Setup
    path : Path
        Of the JSON.
    minutes : float
        That the run may take. What has begun is finished: a slow encoder may take longer.
    n_steps : int, optional
        Timed steps of a run; as many as take some seconds by default.
    n_predicted : int
        Sentences to predict.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    setup = setup._replace(device=resolve_device(setup.device))
    results = Results(path, minutes)
    results.keep("about", partial(_about, setup))
    results.keep("equality", partial(_differences, setup))
    for name, n_words in TEXTS.items():
        left = partial(results.seconds_until, name)
        results.keep(name, partial(_training, setup, n_words, n_steps, left))
    left = partial(results.seconds_until, "prediction")
    results.keep("prediction", partial(_prediction, setup, n_predicted, left))
    return results.found


def _about(setup: Setup) -> dict[str, Any]:
    config = transformers.AutoConfig.from_pretrained(setup.model)
    is_gpu = setup.device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name(setup.device) if is_gpu else setup.device,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "encoder": Path(setup.model).name,
        "architecture": config.architectures,
        "stored in": str(config.dtype).removeprefix("torch."),
        "precision": resolve_precision("auto", setup.device),
        "batch size": setup.batch_size,
    }


def _texts(n: int, n_words: int) -> Texts:
    """Return made texts of which the lengths are as uneven as those of sentences."""
    X, y = make_tagging(n, random_state=0)
    rng, (X_made, y_made) = np.random.default_rng(0), ([], [])
    for length in n_words * rng.lognormal(-0.1, 0.45, n):
        words: list[str] = []
        tags: list[str] = []
        while len(words) < min(length, 1.1 * TEXTS["windows of 256 pieces"]):
            i = rng.integers(n)
            words, tags = words + X[i], tags + y[i]
        X_made.append(words)
        y_made.append(tags)
    return X_made, y_made


# -- training --------------------------------------------------------------------------------------


def _training(
    setup: Setup, n_words: int, n_steps: int | None, seconds_left: Callable[[], float]
) -> dict[str, Any]:
    precision = resolve_precision("auto", setup.device)
    if n_steps is None:
        few = _texts(setup.batch_size * 2 * _N_WARMUP, n_words)
        clock, _ = library.train(TASK, *few, _N_WARMUP, precision=precision, setup=setup)
        of_step = clock.measured()["seconds"] / _N_WARMUP
        n_steps = int(np.clip(_SECONDS_OF_A_RUN / of_step, _N_WATCHED, 200))
    X, y = _texts(setup.batch_size * (_N_WARMUP + n_steps), n_words)
    _, recorded = library.train(TASK, X, y, _N_WARMUP, precision=precision, setup=setup)
    steps = [dense_step(TASK, step) for step in recorded]
    del recorded
    best = trainer.best_settings(precision)
    contenders: dict[str, Callable[[], StepClock]] = {
        "skdice": partial(_train_skdice, setup, X, y, steps, precision),
        "bare loop": partial(_train_bare, setup, steps, precision),
        "Trainer, default": partial(trainer.train, TASK, steps, _N_WARMUP, setup=setup),
        "Trainer, best": partial(trainer.train, TASK, steps, _N_WARMUP, setup=setup, **best),
    }
    timed = {name: partial(_measured_run, train, setup) for name, train in contenders.items()}
    found = _rounds(timed, seconds_left)
    n_watched = _N_WARMUP + _N_WATCHED
    few = X[: n_watched * setup.batch_size], y[: n_watched * setup.batch_size]
    watched = {
        "skdice": lambda watch: library.train(
            TASK, *few, _N_WARMUP, precision=precision, setup=setup, watch=watch
        ),
        "bare loop": lambda watch: _train_bare(setup, steps[:n_watched], precision, watch),
    }
    for name, train in watched.items():
        if "seconds" in found[name]:
            of_step = found[name]["seconds"] / n_steps
            found[name]["utilisation"] = _busy_seconds(setup, train) / _N_WATCHED / of_step
    if setup.device.startswith("cuda"):
        found["skdice"]["waits of a step"] = _waits(
            lambda watch: _train_skdice(setup, *few, steps[:n_watched], precision, watch)
        )
    return {"timed steps": n_steps, "contenders": _compared(found, "tokens/s")}


def _train_skdice(
    setup: Setup,
    X: list[list[str]],
    y: list[list[str]],
    steps: list[Step],
    precision: str,
    watch: AbstractContextManager[Any] | None = None,
) -> StepClock:
    """Fit without callbacks, for which the loss of every step is waited for."""
    clock = StepClock(len(steps), _N_WARMUP, watch)
    clock.tokens += [step.n_tokens for step in steps]
    tagger = DiceTokenTagger(
        setup.model,
        loss="ce",
        max_epochs=1,
        batch_size=setup.batch_size,
        max_length=256,
        precision=precision,
        device=setup.device,
        random_state=0,
        verbose=0,
    )
    hook = register_optimizer_step_post_hook(lambda *_: clock.tick())
    try:
        tagger.fit(X, y)
    finally:
        hook.remove()
    return clock


def _train_bare(
    setup: Setup,
    steps: list[Step],
    precision: str,
    watch: AbstractContextManager[Any] | None = None,
) -> StepClock:
    with denormals_flushed():
        return bare.train(
            TASK,
            steps,
            _N_WARMUP,
            precision=precision,
            device=setup.device,
            fused=True,
            setup=setup,
            watch=watch,
        )


def _measured_run(train: Callable[[], StepClock], setup: Setup) -> dict[str, float]:
    """Return the speed of a run and the peak of its memory, in MB (of a CPU: above that before)."""
    is_gpu = setup.device.startswith("cuda")
    if is_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    clock, _, extra = measured(train)
    figures = clock.measured()
    kept = {name: figures[name] for name in ("tokens/s", "seconds", "host share")}
    return kept | {"peak MB": (torch.cuda.max_memory_allocated() if is_gpu else extra) / 1e6}


def _busy_seconds(setup: Setup, train: Callable[[AbstractContextManager[Any]], Any]) -> float:
    """Return for how long the device computed in the watched steps."""
    is_gpu = setup.device.startswith("cuda")
    watch = profile(activities=[ProfilerActivity.CUDA if is_gpu else ProfilerActivity.CPU])
    train(watch)
    if is_gpu:  # Kernels and copies; annotations span several of them.
        kernels = (e for e in watch.events() if e.device_type != DeviceType.CPU)
        own = (kernel for kernel in kernels if not kernel.is_user_annotation)
        return sum(kernel.time_range.elapsed_us() for kernel in own) / 1e6
    operators = [event for event in watch.key_averages() if event.key.startswith("aten::")]
    return sum(event.self_cpu_time_total for event in operators) / 1e6


def _waits(train: Callable[[AbstractContextManager[Any]], Any]) -> float:
    """Return how often a step waits for the GPU; that of the clock at the end is none of them."""
    found: list[Any] = []

    @contextmanager
    def watch() -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode("default")
                found.extend(w for w in caught if "synchronizing" in str(w.message))

    train(watch())
    return len(found) / _N_WATCHED


# -- prediction ------------------------------------------------------------------------------------


def _prediction(setup: Setup, n: int, seconds_left: Callable[[], float]) -> dict[str, Any]:
    X, y = _texts(n, TEXTS["sentences"])
    tagger = _tagger(setup, "auto").fit(X[:128], y[:128])
    model = tagger.net_.module_.transformer
    # Byte-level BPE takes words only so; other tokenizers do not mind.
    tokenizer = transformers.AutoTokenizer.from_pretrained(setup.model, add_prefix_space=True)
    precision = tagger.net_.predict_precision
    contenders: dict[str, Callable[[list[list[str]]], Any]] = {
        "skdice": tagger.predict,
        "bare loop": lambda X: bare.predict_tags(
            model, tokenizer, tagger.classes_, X, batch_size=setup.batch_size, precision=precision
        ),
    }
    for size in PIPELINE_SIZES:
        contenders[f"pipeline, batches of {size}"] = pipeline.tagging_pipeline(
            model, tokenizer, size
        )

    def timed(predict: Callable[[list[list[str]]], Any]) -> dict[str, float]:
        predict(X[: setup.batch_size])
        start = time.perf_counter()
        predict(X)
        seconds = time.perf_counter() - start
        return {"words/s": sum(map(len, X)) / seconds, "seconds": seconds}

    found = _rounds({name: partial(timed, p) for name, p in contenders.items()}, seconds_left)
    return {"precision": precision, "contenders": _compared(found, "words/s")}


def _tagger(setup: Setup, precision: str) -> DiceTokenTagger:
    return DiceTokenTagger(
        setup.model,
        loss="ce",
        lr=5e-4,
        max_epochs=1,
        batch_size=setup.batch_size,
        precision=precision,
        device=setup.device,
        random_state=0,
        verbose=0,
    )


# -- the device against the CPU --------------------------------------------------------------------


def _differences(setup: Setup) -> dict[str, Any]:
    X, y = _texts(setup.batch_size * _N_COMPARED, TEXTS["sentences"])
    losses, scores, metrics = [], [], []
    with tempfile.TemporaryDirectory() as directory:
        model = _without_dropout(setup.model, Path(directory, "encoder"))
        for device in ("cpu", setup.device):
            here = setup._replace(model=model, device=device)
            clock, _ = library.train(TASK, X, y, 1, precision="fp32", setup=here)
            losses.append(torch.stack(clock.losses).cpu().numpy())
            tagger = _tagger(here, "fp32").fit(X, y)
            scores.append(np.concatenate(tagger.predict_proba(X)))
            metrics.append(tagger.score(X, y))
    found = {
        "loss": float(np.max(np.abs(losses[1] - losses[0]) / losses[0])),
        "probability": float(np.max(np.abs(scores[1] - scores[0]))),
        "F1": float(abs(metrics[1] - metrics[0])),
    }
    return found | {"met": max(found.values()) <= MOST_DIFFERENCE}


def _without_dropout(model: str, copy: Path) -> str:
    """Copy an encoder; other random numbers on other devices would drop other values."""
    shutil.copytree(model, copy)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    for name, value in config.items():
        if ("dropout" in name or "pdrop" in name) and isinstance(value, float):
            config[name] = 0.0
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(copy)


# -- rounds ----------------------------------------------------------------------------------------


def _rounds(
    contenders: Mapping[str, Callable[[], dict[str, float]]], seconds_left: Callable[[], float]
) -> dict[str, dict[str, Any]]:
    """Let contenders alternate while there is time; return medians, or errors."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in contenders}
    errors: dict[str, dict[str, Any]] = {}
    for _ in range(_MOST_ROUNDS):
        start = time.perf_counter()
        for name, contender in contenders.items():
            if name in errors:
                continue
            try:
                for measure, value in contender().items():
                    found[name].setdefault(measure, []).append(value)
            except Exception as error:  # The others still can be compared.
                errors[name] = {"error": f"{type(error).__name__}: {error}"}
        if seconds_left() < 1.2 * (time.perf_counter() - start):
            break
    medians = {
        name: {measure: median(values) for measure, values in of.items()}
        for name, of in found.items()
    }
    return medians | errors


def _compared(found: dict[str, dict[str, Any]], rate: str) -> dict[str, dict[str, Any]]:
    """Add the ratios of skdice to the others, and whether they are as large as aimed at."""
    ours = found["skdice"].get(rate)
    pipelines = [name for name in found if name.startswith("pipeline") and rate in found[name]]
    best = max(pipelines, key=lambda name: found[name][rate], default=None)
    for name, figures in found.items():
        if ours is None or rate not in figures:
            continue
        figures["skdice by this"] = ratio = ours / figures[rate]
        budget = BUDGETS.get("pipeline" if name == best else name)
        # Of predictions, the bar is the pipeline's alone.
        if budget is not None and (rate == "tokens/s" or name == best):
            figures["aim"] = budget
            figures["met"] = ratio >= budget
    return {
        name: {
            measure: float(f"{value:.4g}") if isinstance(value, float) else value
            for measure, value in figures.items()
        }
        for name, figures in found.items()
    }
