"""The network of a fit as a skorch net: its module, optimiser, history and callbacks."""

import copy
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from torch import Tensor

from ..losses import Loss
from ._batching import Batch, Batcher, to_device
from ._callbacks import CtrlC
from ._modules import module_inputs
from ._progress import with_progress
from ._runtime import ALONE, autocast
from ._speedups import own_attention
from ._training_state import Progress

# Numbers that are collected on a GPU before they are copied: each copy waits for it.
_COLLECTED = 2**24


class TextNet(NeuralNet):
    """A skorch net of a transformer, to be read and to be given skorch's callbacks.

    :func:`skdice.nn._train.train` trains it, on steps of ragged text, and :meth:`predict_logits`
    predicts with it; skorch's own ``fit`` and ``predict`` know neither. Its parameters are those of
    the estimators and of skorch. ``module`` is a class, since a clone must not share weights; of
    the ``loss``, which is always computed in float32, ``criterion_`` is a copy. ``pads`` says
    whether a batch may hold windows of several lengths.
    """

    # While it is trained, the processes that do so together.
    ranks_ = ALONE
    # Whether its steps are CUDA graphs.
    uses_graphs = False

    def __init__(
        self,
        module: type,
        loss: Loss,
        *,
        head_lr: float | None = None,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        clip_norm: float | None = 1.0,
        precision: str = "fp32",
        predict_precision: str = "fp32",
        pads: bool = True,
        **kwargs: Any,
    ) -> None:
        self.loss = loss
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.clip_norm = clip_norm
        self.precision = precision
        self.predict_precision = predict_precision
        self.pads = pads
        # A clone passes them itself.
        fixed = {"optimizer": torch.optim.AdamW, "train_split": None, "verbose": 0}
        # What skorch's progress bar counts: a step is one batch.
        fixed["iterator_train__batch_size"] = 1
        super().__init__(module, **{"criterion": type(loss), **fixed, **kwargs})

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        return [("epoch_timer", EpochTimer())]

    def initialize_criterion(self) -> "TextNet":
        """Copy the loss to the device, with its class weights."""
        self.criterion_ = copy.deepcopy(self.loss).to(self.device)
        return self

    def initialize_optimizer(self, *args: Any, **kwargs: Any) -> "TextNet":
        """Set up fused AdamW, without weight decay on biases and norms."""
        head = self.module_.head_parameters()
        groups: dict[tuple[bool, bool], list[Any]] = {}
        for parameter in self.module_.parameters():
            if parameter.requires_grad:
                key = (parameter in head, parameter.ndim > 1)
                groups.setdefault(key, []).append(parameter)
        head_lr = self.lr if self.head_lr is None else self.head_lr
        self.optimizer_ = self.optimizer(
            [
                {
                    "params": parameters,
                    "lr": head_lr if in_head else self.lr,
                    "weight_decay": self.weight_decay if decays else 0.0,
                }
                for (in_head, decays), parameters in groups.items()
            ],
            fused=torch.device(self.device).type in ("cpu", "cuda"),
        )
        return self

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Tell all callbacks; one that raises KeyboardInterrupt, as skorch's do, ends the fit."""
        getattr(self, method_name)(self, **cb_kwargs)
        for _, callback in self.callbacks_:
            try:
                getattr(callback, method_name)(self, **cb_kwargs)
            except CtrlC:
                raise
            except KeyboardInterrupt:
                self.progress_.is_stopped = True

    def initialize(self) -> "TextNet":
        """Draw new weights; nothing has been learned yet."""
        self.progress_ = Progress()
        return super().initialize()  # type: ignore[no-any-return]

    def predict_logits(
        self,
        batcher: Batcher,
        network: Callable[[Batch], np.ndarray] | None = None,
        *,
        verbose: bool = False,
    ) -> np.ndarray:
        """Return float32 logits of all items, of shape (n_items, n_outputs), in their order.

        A ``network`` gives the logits of a batch in place of the module. The processes that train
        together share out the windows, and all get all logits; if ``verbose``, the first one shows
        how far it is.
        """
        self._set_training(False)
        windows = self.ranks_.own(np.arange(len(batcher.dataset)))
        shape = (batcher.dataset.n_items, self.module_.n_outputs)
        logits = torch.zeros(shape)
        is_on_gpu = network is None and torch.device(self.device).type == "cuda"
        batcher = replace(batcher, device=str(self.device) if is_on_gpu else "cpu")
        attention = own_attention(self.module_) if is_on_gpu else nullcontext()
        found: list[tuple[Tensor, Tensor]] = []
        n_found = 0
        with torch.inference_mode(), autocast(self.predict_precision, self.device), attention:
            batches: Iterable[tuple[np.ndarray, Batch]] = batcher.by_length(windows)
            if verbose and self.ranks_.is_first:
                batches = with_progress(batches, batcher.lengths, windows)
            for _, batch in batches:
                part = self._run(batch) if network is None else torch.from_numpy(network(batch))
                found.append((batch["item"], part))
                n_found += part.numel()
                if n_found >= _COLLECTED:
                    _collect(found, logits)
                    n_found = 0
            _collect(found, logits)
        self.ranks_.add_up([logits])
        return logits.numpy()

    def send(self, batch: Batch) -> Batch:
        """Return a batch on the device, prepared for the module."""
        return to_device(self.module_.prepare(batch), self.device)

    def _run(self, batch: Batch) -> Tensor:
        logits: Tensor = self.module_(**module_inputs(self.send(batch)))
        return logits

    def drop_training_state(self) -> None:
        """Drop what only the next step would need, so that a pickle is as large as the weights."""
        self.module_.zero_grad(set_to_none=True)
        self.optimizer_ = None


def _collect(found: list[tuple[Tensor, Tensor]], logits: Tensor) -> None:
    """Copy the rows that were found, with their numbers, into all logits."""
    if found:
        items, parts = zip(*found)
        logits[torch.cat(items)] = torch.cat(parts).cpu()
        found.clear()
