"""The network of a fit as a skorch net: its module, optimiser, history and callbacks."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from torch import Tensor

from ..losses import Loss
from ._batching import Batch, Batcher, to_device
from ._callbacks import CtrlC
from ._progress import with_progress
from ._runtime import ALONE, autocast
from ._training_state import Progress

_MODULE_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "row", "column")


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
        """Copy the loss; its buffers go to the device."""
        self.criterion_ = copy.deepcopy(self.loss)
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
        network = self._run_module if network is None else network
        self._set_training(False)
        windows = self.ranks_.own(np.arange(len(batcher.dataset)))
        shape = (batcher.dataset.n_items, self.module_.n_outputs)
        logits = np.zeros(shape, dtype=np.float32)
        with torch.inference_mode(), autocast(self.predict_precision, self.device):
            batches: Iterable[tuple[np.ndarray, Batch]] = batcher.by_length(windows)
            if verbose and self.ranks_.is_first:
                batches = with_progress(batches, batcher.lengths, windows)
            for _, batch in batches:
                logits[batch["item"].numpy()] = network(batch)
        self.ranks_.add_up([torch.from_numpy(logits)])
        return logits

    def _run_module(self, batch: Batch) -> np.ndarray:
        part = self.module_(**module_inputs(to_device(batch, self.device)))
        logits: np.ndarray = part.cpu().numpy()
        return logits

    def drop_training_state(self) -> None:
        """Drop what only the next step would need, so that a pickle is as large as the weights."""
        self.module_.zero_grad(set_to_none=True)
        self.optimizer_ = None


def module_inputs(batch: Batch) -> dict[str, Tensor]:
    return {name: batch[name] for name in _MODULE_INPUTS if name in batch}
