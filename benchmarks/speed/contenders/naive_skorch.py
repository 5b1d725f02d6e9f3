"""skorch around a model of transformers, with all texts padded to the longest of them.

skorch indexes arrays and so cannot hold rows of different lengths.
"""

from collections.abc import Sequence
from typing import Any

import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

from .._steps import StepClock
from .._tasks import (
    BATCH_SIZE,
    IGNORED,
    INPUTS,
    LR,
    MODEL,
    WEIGHT_DECAY,
    Step,
    Task,
    n_classes,
    widen,
)


class _Module(nn.Module):
    def __init__(self, task: Task, n_classes: int) -> None:
        super().__init__()
        self.model = task.auto_class.from_pretrained(MODEL, num_labels=n_classes)
        self.logits = task.logits

    def forward(self, **inputs: Any) -> torch.Tensor:
        return self.logits(self.model(**inputs))


class _Watch(Callback):
    def __init__(self, clock: StepClock) -> None:
        self.clock = clock

    def on_batch_end(self, net: Any, batch: Any = None, **kwargs: Any) -> None:
        self.clock.tick()
        self.clock.tokens.append(int(batch[0]["attention_mask"].sum()))


def train(task: Task, steps: Sequence[Step], n_warmup: int, *, device: str) -> StepClock:
    """Fit for an epoch on the rows of the given steps, which are shuffled anew."""
    longest = max(batch["input_ids"].shape[1] for step in steps for batch in step.batches)
    batches = [batch for step in steps for batch in widen(step, longest).batches]
    inputs = {name: torch.cat([batch[name] for batch in batches]).numpy() for name in INPUTS}
    labels = torch.cat([batch["labels"] for batch in batches]).numpy()
    clock = StepClock(-(-len(labels) // BATCH_SIZE), n_warmup)
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        _Module,
        module__task=task,
        module__n_classes=n_classes(task, steps),
        criterion=nn.CrossEntropyLoss,
        criterion__ignore_index=IGNORED,
        optimizer=torch.optim.AdamW,
        optimizer__weight_decay=WEIGHT_DECAY,
        lr=LR,
        max_epochs=1,
        batch_size=BATCH_SIZE,
        iterator_train__shuffle=True,
        train_split=None,
        callbacks=[_Watch(clock)],
        device=device,
        verbose=0,
    )
    net.fit(inputs, labels)
    return clock
