"""A progress bar over a whole fit."""

from typing import Any

from skorch.callbacks import Callback


class FitProgress(Callback):
    """One tqdm bar over all optimiser steps, with epoch, loss and task metric.

    Parameters
    ----------
    description : str
    metric : str
        Name of the score of the validation part.
    """

    def __init__(self, description: str, metric: str) -> None:
        self.description = description
        self.metric = metric

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        from tqdm.auto import tqdm

        # Epochs that an earlier process trained count as done.
        n_done = net.n_steps_ // net.max_epochs * len(net.history)
        self.bar_ = tqdm(
            total=net.n_steps_, initial=n_done, desc=self.description, unit="step", leave=True
        )

    def on_batch_end(self, net: Any, training: bool = True, **kwargs: Any) -> None:
        if training:
            self.bar_.update()

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        row = net.history[-1]
        shown = {"epoch": f"{row['epoch']}/{net.max_epochs}", "loss": f"{row['train_loss']:.4f}"}
        if "valid_score" in row:
            shown[self.metric] = f"{row['valid_score']:.4f}"
        self.bar_.set_postfix(shown)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        self.bar_.close()
        del self.bar_
