"""Bare PyTorch: the loops that one would write for one task and no other."""

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from skdice.nn._speedups import own_attention

from .._steps import StepClock
from .._tasks import (
    CLIP_NORM,
    DEFAULT,
    IGNORED,
    INPUTS,
    LR,
    WARMUP,
    WEIGHT_DECAY,
    Batch,
    Setup,
    Step,
    Task,
    n_classes,
)

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def train(
    task: Task,
    steps: Sequence[Step],
    n_warmup: int,
    *,
    precision: str,
    device: str,
    fused: bool,
    setup: Setup = DEFAULT,
    watch: AbstractContextManager[Any] | None = None,
) -> StepClock:
    """Train with cross-entropy on the given batches; attention has dropout as in skdice."""
    from transformers import get_linear_schedule_with_warmup

    torch.manual_seed(0)
    model = task.auto_class.from_pretrained(
        setup.model, num_labels=n_classes(task, steps), dtype=torch.float32
    )
    model.to(device).train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=LR,
        fused=fused,
    )
    schedule = get_linear_schedule_with_warmup(optimizer, round(WARMUP * len(steps)), len(steps))
    clock = StepClock(len(steps), n_warmup, watch)
    with own_attention(model):
        for step in steps:
            optimizer.zero_grad(set_to_none=True)
            losses = []
            for batch in step.batches:
                batch = {name: value.to(device, non_blocking=True) for name, value in batch.items()}
                loss = _loss(task, model, batch, precision) / step.n_labels
                loss.backward()
                losses.append(loss.detach())
            nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
            optimizer.step()
            schedule.step()
            clock.tick()
            clock.losses.append(torch.stack(losses).sum())
            clock.tokens.append(step.n_tokens)
    return clock


def _loss(task: Task, model: Any, batch: Batch, precision: str) -> torch.Tensor:
    device = batch["input_ids"].device.type
    with _autocast(precision, device):
        logits = task.logits(model(**{name: batch[name] for name in _inputs(model)}))
    logits = logits.float()
    if "candidates" in batch:
        logits = logits.masked_fill(~batch["candidates"][:, :, None], -torch.inf)
    return F.cross_entropy(logits, batch["labels"], ignore_index=IGNORED, reduction="sum")


def _inputs(model: Any) -> list[str]:
    """Return the names of what a model takes; some have no token types."""
    return [name for name in INPUTS if name in inspect.signature(model.forward).parameters]


def predict_tags(
    model: Any,
    tokenizer: Any,
    classes: np.ndarray,
    sentences: Sequence[Sequence[str]],
    *,
    batch_size: int,
    precision: str,
) -> list[list[str]]:
    """Tag sentences with the best tag of each word, as its first piece has it."""
    encoded = tokenizer(sentences, is_split_into_words=True, add_special_tokens=True)
    ids, names = encoded["input_ids"], _inputs(model)
    types = encoded.get("token_type_ids") or [[0] * len(row) for row in ids]
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    tags: list[list[str]] = [[] for _ in ids]
    device = model.device
    model.eval()
    with torch.inference_mode(), _autocast(precision, device.type):
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            input_ids = _padded([ids[i] for i in rows])
            lengths = torch.tensor([len(ids[i]) for i in rows])
            mask = torch.arange(input_ids.shape[1]) < lengths[:, None]
            batch = {
                "input_ids": input_ids,
                "token_type_ids": _padded([types[i] for i in rows]),
                "attention_mask": mask.long(),
            }
            best = model(**{name: batch[name].to(device) for name in names}).logits.argmax(2)
            for i, row in zip(rows, best.cpu().numpy()):
                tags[i] = classes[row[_first_pieces(encoded.word_ids(i))]].tolist()
    return tags


def _padded(rows: list[list[int]]) -> torch.Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def _first_pieces(words: list[int | None]) -> list[int]:
    before = [None, *words]
    return [i for i, word in enumerate(words) if word is not None and word != before[i]]


def _autocast(precision: str, device: str) -> AbstractContextManager[Any]:
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device, dtype=_DTYPES[precision])
