"""The Trainer of transformers, with default settings and with its best ones."""

import tempfile
from collections.abc import Sequence
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from skdice import DiceSpanExtractor, DiceTokenTagger

from .._steps import StepClock
from .._tasks import DEFAULT, INPUTS, LR, Batch, Setup, Step, Task, n_classes, rows_of


def best_settings(precision: str) -> dict[str, Any]:
    """Return the settings that are fastest where the hardware computes in this precision."""
    mixed = {} if precision == "fp32" else {precision: True}
    return {"train_sampling_strategy": "group_by_length", **mixed}


class _Watch(TrainerCallback):
    def __init__(self, clock: StepClock) -> None:
        self.clock = clock

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.clock.tick()


def train(
    task: Task, steps: Sequence[Step], n_warmup: int, *, setup: Setup = DEFAULT, **settings: Any
) -> StepClock:
    """Train for an epoch on the rows of the given steps, which are shuffled anew.

    Parameters
    ----------
    **settings
        Of the ``TrainingArguments``, other than default.
    """
    rows = [_features(task, row) for row in rows_of(steps)]
    clock = StepClock(-(-len(rows) // setup.batch_size), n_warmup)
    tokenizer = AutoTokenizer.from_pretrained(setup.model)
    is_tagger = task.estimator is DiceTokenTagger
    collate = (DataCollatorForTokenClassification if is_tagger else DataCollatorWithPadding)(
        tokenizer
    )

    def collate_and_count(features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        batch = collate(features)
        clock.tokens.append(int(batch["attention_mask"].sum()))
        return batch

    if not torch.cuda.is_available() or setup.device == "cpu":
        settings["use_cpu"] = True
    with tempfile.TemporaryDirectory() as directory:
        trainer = Trainer(
            task.auto_class.from_pretrained(
                setup.model, num_labels=n_classes(task, steps), dtype=torch.float32
            ),
            TrainingArguments(
                directory,
                num_train_epochs=1,
                per_device_train_batch_size=setup.batch_size,
                learning_rate=LR,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                **settings,
            ),
            data_collator=collate_and_count,
            train_dataset=rows,
            callbacks=[_Watch(clock)],
        )
        precision = next((name for name in ("bf16", "fp16") if settings.get(name)), "no")
        if trainer.accelerator.mixed_precision != precision:
            raise RuntimeError(
                f"The Trainer computes in {trainer.accelerator.mixed_precision!r}, not in "
                f"{precision!r}: settings of another Trainer were kept."
            )
        trainer.pop_callback(PrinterCallback)  # Prints a summary whatever the settings say.
        trainer.train()
    return clock


def _features(task: Task, row: Batch) -> dict[str, Any]:
    """Return a row as a data set of transformers has it."""
    features: dict[str, Any] = {name: row[name].tolist() for name in INPUTS}
    if task.estimator is DiceSpanExtractor:
        start, end = row["labels"].tolist()
        return features | {"start_positions": start, "end_positions": end}
    return features | {"labels": row["labels"].tolist()}
