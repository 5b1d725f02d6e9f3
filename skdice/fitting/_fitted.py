"""What a fit has learned, as one value."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..losses import Loss
from ..nn import TextNet
from ..tasks import Task
from ..text import TextReader


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """What a fit has learned: all that predictions, saving and model cards go by.

    Another decision makes another value, which shares the network: ``replace(fitted, task=...)``.
    """

    task: Task  # with its classes and the decision
    reader: TextReader
    net: TextNet  # all members in one; it predicts in net.predict_precision
    loss: Loss  # with all parameters set
    choices: pd.DataFrame  # parameter, value and why, for each parameter that was left open
    history: pd.DataFrame  # a row per epoch; of an ensemble, the mean of its members
    best_epoch: int  # of the weights that were kept; of an ensemble, the latest one
    negative_ratio: float | None  # None if every epoch had all texts
    n_rows: int  # training rows with labels
    n_unlabeled: int
    feature_names: np.ndarray | None  # the columns of X, if it was a table with names
    interrupted: bool  # whether an error ended the fit before its end


@dataclass(frozen=True, eq=False, kw_only=True)
class FitResult:
    """How a fit ended: what was learned until then, and the error that ended it, if one did."""

    fitted: Fitted
    error: BaseException | None = None

    def complete(self) -> Fitted:
        """Return the fitted value; the error is raised if there is one."""
        if self.error is not None:
            raise self.error
        return self.fitted
