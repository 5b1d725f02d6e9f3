"""The network of a fit as a skorch net, which trains on steps of ragged text.

skorch runs the training: its ``fit``, its loop over epochs, its callbacks in its order and its
history. The data are a :class:`StepSampler`; a batch, to skorch, is an optimiser step, which is a
list of padded batches. These methods of skorch are replaced:

- ``train_step``: the gradient of a step is that of one large batch, however the step is cut.
- ``run_single_epoch``: a loss is read at every step only if a callback may ask for it, since that
  waits for a GPU. If a callback ends the fit, the epoch ends at that step.
- ``notify``: if a callback ends the fit, the other ones still hear of the end of the epoch.
- ``partial_fit``: Ctrl-C and errors are raised, after ``on_train_end``; skorch swallows Ctrl-C.
"""

import copy
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EpochTimer
from skorch.utils import TeeGenerator
from torch import Tensor
from tqdm.auto import tqdm

from ..exceptions import warn
from ..losses import Loss
from ._batching import Batch, Batcher, LogitsOf, StepSampler, to_device
from ._runtime import ALONE, autocast
from ._speedups import compact_embedding, own_attention
from ._step import Steps
from ._train import HIDES_BARS, FitProgress, named_callbacks, time_shown

# A prediction shows its bar after this time.
_BAR_SECONDS = 5.0


class _EndOfFit(BaseException):
    """A callback has ended the fit."""


class _CtrlC(KeyboardInterrupt):
    """Ctrl-C. A callback that ends a fit raises a plain KeyboardInterrupt, as skorch's do."""


def features_of(
    module: Any, batcher: Batcher, windows: np.ndarray, precision: str, device: str
) -> np.ndarray:
    """Return what the head of a MeanModule or PairModule reads of some windows."""
    module.eval()
    found: dict[int, np.ndarray] = {}
    with torch.inference_mode(), autocast(precision, device):
        for part, batch in batcher.by_length(windows):
            features = module.features(to_device(module.prepare(batch), device))
            found.update(zip(part.tolist(), features.float().cpu().numpy()))
    return np.stack([found[window] for window in windows.tolist()])


class TextNet(NeuralNet):
    """A skorch net of a transformer.

    ``fit`` and ``partial_fit`` take a :class:`StepSampler`, :meth:`predict_logits` a
    :class:`Batcher`. Its parameters are those of the estimators and of skorch. ``module`` is a
    class, since a clone must not share weights. ``criterion_`` is a copy of the ``loss``.
    ``best_epoch_`` is the epoch of the weights that a :class:`Training` has kept.
    """

    steps_: Steps | None = None  # while it is trained
    best_epoch_, best_score_ = 0, math.nan

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
        **kwargs: Any,
    ) -> None:
        self.loss = loss
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.clip_norm = clip_norm
        self.precision = precision
        self.predict_precision = predict_precision
        # A clone passes these itself. To skorch's progress bar, a step is one batch.
        fixed = {"optimizer": torch.optim.AdamW, "train_split": None, "verbose": 0}
        fixed["iterator_train__batch_size"] = 1
        super().__init__(module, **{"criterion": type(loss), **fixed, **kwargs})

    @property
    def _default_callbacks(self) -> list[tuple[str, Callback]]:
        return [("epoch_timer", EpochTimer())]

    def initialize_criterion(self) -> "TextNet":
        """Copy the loss to the device, with its class weights."""
        self.criterion_ = copy.deepcopy(self.loss).to(self.device)
        return self

    def initialize_optimizer(self, *args: Any, **kwargs: Any) -> "TextNet":
        """Set up fused AdamW, without weight decay on biases and norms."""
        head = self.module_.head_parameters()
        head_lr = self.lr if self.head_lr is None else self.head_lr
        groups: dict[tuple[bool, bool], dict[str, Any]] = {}
        for parameter in self.module_.parameters():
            if parameter.requires_grad:
                in_head, decays = parameter in head, parameter.ndim > 1
                lr, decay = head_lr if in_head else self.lr, self.weight_decay if decays else 0.0
                group: dict[str, Any] = {"params": [], "lr": lr, "weight_decay": decay}
                groups.setdefault((in_head, decays), group)["params"].append(parameter)
        is_fused = torch.device(self.device).type in ("cpu", "cuda")
        self.optimizer_ = self.optimizer([*groups.values()], fused=is_fused)
        return self

    def get_iterator(self, dataset: StepSampler, training: bool = False) -> StepSampler:
        """Return the sampler, whose items are optimiser steps."""
        return dataset

    def partial_fit(
        self, X: StepSampler, y: None = None, classes: None = None, **fit_params: Any
    ) -> "TextNet":
        """Train the net until it has been trained for ``max_epochs``, from the weights that it has.

        All processes of a job have to call it, with the same weights. A loss or gradient that is
        not finite raises a NotFiniteError; the weights are those before that step.
        """
        if not self.initialized_:
            self.initialize()
        module = self.module_
        # The piece for padding is looked up, too.
        pieces = np.append(X.batcher.dataset.input_ids.values, X.batcher.pad_id)
        try:
            with _ctrl_c_told_apart(), compact_embedding(module, pieces), own_attention(module):
                self.initialize_optimizer()  # The parameters may be others than before.
                self.steps_ = steps = Steps(
                    module=module,
                    criterion=self.criterion_,
                    optimizer=self.optimizer_,
                    sampler=X,
                    device=self.device,
                    precision=self.precision,
                    clip_norm=math.inf if self.clip_norm is None else self.clip_norm,
                    warmup=self.warmup,
                    n_steps=X.n_steps * self.max_epochs,
                )
                self.notify("on_train_begin", X=X, y=y)
                n_done = len(self.history)  # epochs of a saved state
                # A fit that a callback ends before its first step still takes that step.
                n_left = 0 if steps.is_stopped and n_done else self.max_epochs - n_done
                try:
                    with suppress(_EndOfFit):
                        self.fit_loop(X, y, epochs=n_left, **fit_params)
                finally:
                    self.notify("on_train_end", X=X, y=y)
                if (n_over := steps.n_planned - steps.n_steps) and steps.is_stopped:
                    each = (time.monotonic() - steps.began) / steps.n_taken
                    warn(
                        f"For time_limit, the schedule was made for {steps.n_steps:,} steps, those "
                        f"that fit in, of {steps.n_planned:,}. All would have taken about "
                        f"{time_shown(each * n_over)} more."
                    )
        finally:  # A pickle of the net is as large as its weights.
            module.zero_grad(set_to_none=True)
            self.optimizer_ = self.steps_ = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        # A pickle that a callback makes has no training data.
        return {**super().__getstate__(), "steps_": None}

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Tell all callbacks; one that raises KeyboardInterrupt, as skorch's do, ends the fit."""
        getattr(self, method_name)(self, **cb_kwargs)
        assert self.steps_ is not None
        for _, callback in self.callbacks_:
            try:
                getattr(callback, method_name)(self, **cb_kwargs)
            except _CtrlC:
                raise
            except KeyboardInterrupt:
                self.steps_.is_stopped = True
        if method_name == "on_epoch_end" and self.steps_.is_stopped:
            raise _EndOfFit

    def run_single_epoch(
        self,
        iterator: StepSampler | None,
        training: bool,
        prefix: str,
        step_fn: Callable[..., dict[str, Tensor]],
        **fit_params: Any,
    ) -> None:
        """Run the steps of an epoch; its history has their mean loss and learning rate."""
        if iterator is None:  # The task metric is scored at the end of the epoch.
            return
        assert self.steps_ is not None
        self._set_training(training)
        steps, history, losses, rates = self.steps_, self.history, [], []
        named = named_callbacks(self.callbacks)
        reads_losses = not all(isinstance(callback, FitProgress) for _, callback in named)
        groups = steps.optimizer.param_groups
        n_done = sum(row.get(f"{prefix}_batch_count", 0) for row in history)
        steps.set_rates(n_done)
        history.record("lr", groups[0]["lr"])
        history.record("n_texts", iterator.n_texts)
        for step in iterator:
            self.notify("on_batch_begin", batch=step, training=training)
            rates.append(groups[0]["lr"])
            outcome = step_fn(step, **fit_params)
            losses.append(outcome["loss"])
            steps.set_rates(n_done + len(losses))
            if reads_losses:  # This waits for a GPU.
                history.record_batch(f"{prefix}_loss", losses[-1].item())
                history.record_batch(f"{prefix}_batch_size", 1)
            self.notify("on_batch_end", batch=step, training=training, **outcome)
            is_late = steps.n_planned > steps.n_steps <= n_done + len(losses)
            steps.is_stopped |= is_late
            if is_late or (steps.is_stopped and steps.ranks.count == 1):
                break
        steps.guard.look()
        history.record("lr", sum(rates) / len(rates))
        history.record(f"{prefix}_batch_count", len(losses))
        name, loss = f"{prefix}_loss", torch.stack(losses).mean().item()
        history.record(name, loss)
        history.record(f"{name}_best", all(loss < row[name] for row in history[:-1]))

    def train_step(self, batch: list[Batch], **fit_params: Any) -> dict[str, Any]:
        """Take an optimiser step with the gradient of a list of batches."""
        assert self.steps_ is not None
        row, n_steps = self.history[-1], self.steps_.sampler.n_steps
        where = f"epoch {row['epoch']}, batch {len(row['batches'])} of {n_steps}"
        named = TeeGenerator(self.get_all_learnable_params())
        tell = partial(self.notify, "on_grad_computed", named_parameters=named, training=True)
        return {"loss": self.steps_.take(batch, where, tell), "y_pred": None}

    def predict_logits(
        self, batcher: Batcher, network: LogitsOf | None = None, *, verbose: bool = False
    ) -> np.ndarray:
        """Return float32 logits of all items, of shape (n_items, n_outputs), in their order.

        A ``network`` gives the logits of a batch in place of the module. During training, the
        processes of a job share the windows, and each gets all logits. If ``verbose``, the first
        process shows a bar or, outside of terminals and of training, a line after five seconds.
        """
        self._set_training(False)
        lengths = batcher.dataset.input_ids.lengths
        ranks = ALONE if self.steps_ is None else self.steps_.ranks
        windows = np.arange(len(lengths))[ranks.index :: ranks.count]
        device = "cpu" if network is not None else str(self.device)
        # Logits are copied from a GPU once, since each copy waits for it.
        n_items = int(batcher.dataset.item_offsets[-1])
        logits = torch.zeros((n_items, self.module_.n_outputs), device=device)
        is_on_gpu = torch.device(device).type == "cuda"
        how: dict[str, Any] = {"desc": "predict", "unit": "piece", "unit_scale": True}
        hides = HIDES_BARS if verbose and ranks.index == 0 else True
        n_all, n_read, begin = int(lengths[windows].sum()), 0, time.monotonic()
        bar = tqdm(total=n_all, delay=_BAR_SECONDS, disable=hides, leave=False, **how)
        tells = verbose and bar.disable and self.steps_ is None
        attention = own_attention(self.module_) if is_on_gpu else nullcontext()
        precision = autocast(self.predict_precision, self.device)
        with bar, torch.inference_mode(), precision, attention:
            for part, batch in batcher.by_length(windows, is_on_gpu):
                if network is None:
                    batch = to_device(self.module_.prepare(batch), self.device)
                    logits[batch["item"]] = self.module_(**batch)
                else:
                    logits[batch["item"]] = torch.from_numpy(network(batch))
                bar.update(n := int(lengths[part].sum()))
                n_read, seconds = n_read + n, time.monotonic() - begin
                if tells and n_read < n_all and seconds > _BAR_SECONDS:
                    tells, left = False, seconds * (n_all / n_read - 1)
                    tqdm.write(f"predict: about {time_shown(left)} more", file=sys.stderr)
        logits = logits.cpu()
        return (logits if ranks.count == 1 else ranks.sum(logits)).numpy()


@contextmanager
def _ctrl_c_told_apart() -> Iterator[None]:
    """Raise :class:`_CtrlC` for Ctrl-C inside the block, if Python's own handler is set."""

    def stop(*args: object) -> None:
        raise _CtrlC

    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    with ExitStack() as stack:
        if is_main and before is signal.default_int_handler:
            stack.callback(signal.signal, signal.SIGINT, before)
            signal.signal(signal.SIGINT, stop)
        yield
