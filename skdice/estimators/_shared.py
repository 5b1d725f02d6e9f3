"""The parameters of estimators as scikit-learn sees them, and texts of all docstrings."""

from difflib import get_close_matches
from typing import Any, Self

from ..fitting import Settings
from ._sklearn import BaseEstimator

CONTAINERS = """\
    X and y may be lists, arrays, columns and tables of pandas, or anything that has ``to_list``,
    ``tolist`` or ``to_pandas``, such as those of polars, pyarrow and Hugging Face datasets.
"""
FITTED_ATTRIBUTES = """\
    loss_ : Loss
        The loss that was used, with all parameters set; of two that are kept, the first.
    choices_ : DataFrame
        A row for each parameter that was left open: ``parameter``, the ``value`` that was taken,
        and ``why``, in a sentence.
    runs_ : DataFrame
        A row for each network of the fit, numbered from 1 on: its ``loss``, learning rate ``lr``,
        ``max_epochs``, the ``epochs`` that it made, its ``best_epoch``, the ``score`` of that epoch
        on rows to validate on, and whether it ``began_again`` with a third of the rate,
        ``is_finished``, and ``is_kept``, alone or merged with others.
    history_ : DataFrame
        A row for each network (``run``, from 1 on) and epoch: training loss, validation score,
        learning rate, number of texts, seconds.
    negative_ratio_ : float or None
        The ``negative_ratio`` that was used; None if every epoch has all texts.
    max_epochs_, lr_ : int, float
        The ``max_epochs`` and ``lr`` that were used.
    best_epoch_ : int
        Epoch of the weights that are kept; of several networks, that of the first.
    interrupted_ : bool
        Whether ``fit`` ended before its end, by Ctrl-C or an error; predictions then warn.
    max_length_ : int
    net_ : skorch net
        To be read only: ``net_.history``, ``net_.module_`` (the torch module),
        ``net_.callbacks_``.
"""


class SharedParameters(BaseEstimator, Settings):
    """The parameters of all estimators."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a loss object (``loss__gamma``).

        Raises
        ------
        ValueError
            If a parameter is unknown, or ``loss__...`` is set while ``loss`` is a name.
        """
        loss = params.get("loss", self.loss)
        nested = [name.removeprefix("loss__") for name in params if name.startswith("loss__")]
        if nested and isinstance(loss, str):
            raise ValueError(
                f"'loss__{nested[0]}' needs a loss object, as loss=DiceLoss() of skdice.losses; "
                f"loss={loss!r} is a name. Set {nested[0]!r} on the estimator."
            )
        known = list(self.get_params(deep=False))
        for name in (name.partition("__")[0] for name in params):
            if name not in known and (near := get_close_matches(name, known, n=1)):
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. Did you mean "
                    f"{near[0]!r}? Valid parameters are: {known}."
                )
        return super().set_params(**params)
