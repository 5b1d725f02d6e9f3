"""What a fit has learned, as one value."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from ..losses import Loss
from ..nn import TextNet
from ..tasks import Task
from ..text import TextReader

_COLUMNS = 100  # of characters, in which a table of choices is printed


class ChoiceTable(pd.DataFrame):
    """The choices of a fit: a DataFrame that is printed with the whole of its last column."""

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame  # What is made of the table is a plain DataFrame.

    def __repr__(self) -> str:
        if self.empty:
            return "DataFrame without rows: no parameter was left open."
        before = self.iloc[:, :-1].to_string().splitlines()
        indent = " " * (len(before[0]) + 2)
        last = [self.columns[-1], *self.iloc[:, -1]]
        width = max(_COLUMNS, len(indent) + 40)
        wrap = partial(textwrap.fill, subsequent_indent=indent, break_on_hyphens=False)
        lines = [wrap(str(x), width, initial_indent=f"{row}  ") for row, x in zip(before, last)]
        return "\n".join(lines)

    def _repr_html_(self) -> str | None:
        with pd.option_context("display.max_colwidth", None):
            html: str | None = super()._repr_html_()  # type: ignore[misc]
        return html


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """What a fit has learned: all that predictions, saving and model cards go by.

    Another decision makes another value, which shares the network: ``replace(fitted, task=...)``.
    """

    task: Task  # with its classes and the decision
    reader: TextReader
    net: TextNet  # all members in one; it predicts in net.predict_precision
    loss: Loss  # with all parameters set; of several that are kept, the first
    runs: pd.DataFrame  # a row per network, as runs_ of the estimators
    score: float  # of what is kept, on the rows to validate on; NaN without any
    choices: pd.DataFrame  # parameter, value and why, for each parameter that was left open
    history: pd.DataFrame  # a row per network and epoch
    negative_ratio: float | None  # None if every epoch had all texts
    n_rows: int  # training rows with labels
    n_unlabeled: int
    feature_names: np.ndarray | None  # the columns of X, if it was a table with names
    interrupted: bool  # whether an error ended the fit before its end

    @property
    def choice_table(self) -> pd.DataFrame:
        """The choices as a user sees them."""
        return ChoiceTable(self.choices)

    @property
    def best_epoch(self) -> int:
        """The epoch of the weights that are kept; of several networks, of the first."""
        return int(self.runs.loc[self.runs["is_kept"], "best_epoch"].iloc[0])
