"""What a fit has learned, as one value."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..losses import Loss
from ..nn import TextNet
from ..tasks import Logits, Task
from ..text import Reader
from ._network import logits_of
from ._settings import Settings


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """What a fit has learned: all that predictions, saving and model cards go by.

    Another decision makes another value, which shares the network: ``replace(fitted, task=...)``.

    Attributes
    ----------
    task : Task
        With its classes and the decision.
    reader : Reader
        The tokenizer, and the longest window.
    net : TextNet
        All members of the ensemble in one; ``net.predict_precision`` is what it predicts in.
    loss : Loss
        The loss that was trained with, all parameters set.
    choices : DataFrame
        Parameter, value and why, for each parameter that was left open.
    history : DataFrame
        A row per epoch; of an ensemble, the mean of its members.
    best_epoch : int
        Epoch of the weights that were kept; of an ensemble, the latest one.
    negative_ratio : float or None
        None if every epoch had all texts.
    n_rows, n_unlabeled : int
        Training rows with labels, and without.
    feature_names : ndarray of shape (n_columns,), object, or None
        The columns of X, if it was a table with names.
    interrupted : bool
        Whether an error ended the fit before its end.
    """

    task: Task
    reader: Reader
    net: TextNet
    loss: Loss
    choices: pd.DataFrame
    history: pd.DataFrame
    best_epoch: int
    negative_ratio: float | None
    n_rows: int
    n_unlabeled: int
    feature_names: np.ndarray | None
    interrupted: bool

    def logits(self, settings: Settings, runtime: str = "torch") -> Logits:
        """Return the network as the task sees it.

        Of the settings only ``batch_size`` and ``verbose`` count, which may change after a fit.
        """
        return logits_of(self.task, self.net, self.reader, settings, runtime)


@dataclass(frozen=True, eq=False, kw_only=True)
class FitResult:
    """How a fit ended: what was learned until then, and the error that ended it, if one did."""

    fitted: Fitted
    error: BaseException | None = None

    def complete(self) -> Fitted:
        """Return what was learned; the error is raised if there is one."""
        if self.error is not None:
            raise self.error
        return self.fitted
