"""Which texts an epoch has, and what the others count for."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..losses import Loss
from ..nn import Draw
from ..tasks import Task, TrainingSet
from .auto import capped


@dataclass(frozen=True, eq=False)
class SampledTrainingSet:
    """A training set, and the texts that an epoch draws from it."""

    training_set: TrainingSet
    ratio: float | None = None  # what was taken for negative_ratio; None if an epoch has all texts
    draw: Draw | None = None
    # What is added to the logits in training because of the draw, (n_outputs,) or (n_items,
    # n_outputs).
    shift: np.ndarray | None = None
    # What each target counts for because of the draw, besides the weight of its text; of the shape
    # of the targets, with a third column for the matches of queries.
    weight: np.ndarray | None = None

    def corrected(self, task: Task, loss: Loss) -> "SampledTrainingSet":
        """Return the same with a correction of what the draw changes.

        A set loss weighs each drawn text for all texts that it represents, which a ratio forgives.
        Such weights would make the gradient of a mean of single losses noisy; its logits are
        shifted by the change of the classes' shares instead, and weights of about 1 make up for
        what changes within a class.
        """
        if self.draw is None:
            return self
        dataset = self.training_set.dataset
        if loss.separable:
            counts = np.diff(dataset.item_offsets)
            weight = np.repeat(dataset.text_weight, counts)
            share = np.repeat(self.draw.share, counts)
            shift, each = task.correct(self.training_set, loss, weight, share)
            return replace(self, shift=shift, weight=None if (each == 1).all() else each)
        weight = (dataset.text_weight / self.draw.share).astype(np.float32)
        return replace(
            self, training_set=replace(self.training_set, dataset=replace(dataset, weight=weight))
        )


def sample(training_set: TrainingSet, ratio: Any) -> SampledTrainingSet:
    """Return the training set with a draw, unless the ratio leaves no text out."""
    n_texts = training_set.n_texts
    if ratio is None or n_texts is None or (capped(n_texts, ratio) == n_texts).all():
        return SampledTrainingSet(training_set)
    assert training_set.group is not None
    return SampledTrainingSet(
        training_set, float(ratio), Draw(training_set.group, n_texts, capped(n_texts, ratio))
    )
