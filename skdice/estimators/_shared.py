"""The parameters of estimators as scikit-learn sees them, and texts of all docstrings."""

from typing import Any, Self

from ..fitting import Settings
from ..nn import changed, fields_of, named_callbacks
from ._sklearn import BaseEstimator

_ADAPTERS = "peft_config__"
_OF_CALLBACKS = "callbacks__"

CONTAINERS = """\
    X and y may be lists, arrays, columns and tables of pandas, or anything that has ``to_list``,
    ``tolist`` or ``to_pandas``, such as those of polars, pyarrow and Hugging Face datasets.
"""
FITTED_ATTRIBUTES = """\
    loss_ : Loss
        The loss that was used, with all parameters set.
    choices_ : DataFrame
        A row for each parameter that was left open: ``parameter``, the ``value`` that was taken,
        and ``why``, in a sentence.
    history_ : DataFrame
        A row per epoch: training loss, validation score, learning rate, number of texts, seconds;
        of an ensemble, the mean of its networks and the sum of their seconds.
    negative_ratio_ : float or None
        The ``negative_ratio`` that was used; None if every epoch has all texts.
    max_epochs_, lr_ : int, float
        The ``max_epochs`` and ``lr`` that were used.
    best_epoch_ : int
        Epoch of the weights that are kept; of an ensemble, the latest one.
    interrupted_ : bool
        Whether ``fit`` ended before its end, by Ctrl-C or an error; predictions then warn.
    max_length_ : int
    net_ : skorch net
        To be read only: ``net_.history``, ``net_.module_`` (the torch module),
        ``net_.callbacks_``.
"""


class SharedParameters(BaseEstimator, Settings):
    """The parameters of all estimators, with those of nested objects."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if deep, also those of loss, adapters and callbacks."""
        params: dict[str, Any] = super().get_params(deep)
        for name, value in fields_of(self.peft_config).items() if deep else ():
            params[f"{_ADAPTERS}{name}"] = value
        for name, callback in self._named_callbacks().items() if deep else ():
            for key, value in callback.get_params().items():
                params[f"{_OF_CALLBACKS}{name}__{key}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of a loss object (``loss__gamma``), adapters or a callback.

        Those of adapters are ``peft_config__<field>``. Those of a callback are
        ``callbacks__<name>__<parameter>``; its name is the one given with it, or that of its class.

        Raises
        ------
        ValueError
            If a parameter is unknown, or ``loss__...`` is set while ``loss`` is a name, or
            ``peft_config__...`` while ``peft_config`` is None.
        """
        of_callbacks = _pop_prefixed(params, _OF_CALLBACKS)
        of_adapters = _pop_prefixed(params, _ADAPTERS)
        loss = params.get("loss", self.loss)
        nested = [name.removeprefix("loss__") for name in params if name.startswith("loss__")]
        if nested and isinstance(loss, str):
            raise ValueError(
                f"'loss__{nested[0]}' needs a loss object, as loss=DiceLoss() of skdice.losses; "
                f"loss={loss!r} is a name. Set {nested[0]!r} on the estimator."
            )
        super().set_params(**params)
        if of_adapters:
            self.peft_config = changed(self.peft_config, **of_adapters)
        callbacks = self._named_callbacks()
        for key, value in of_callbacks.items():
            name, _, parameter = key.partition("__")
            if name not in callbacks or not parameter:
                raise ValueError(
                    f"'{_OF_CALLBACKS}{key}' is no parameter of a callback: they are named "
                    f"callbacks__<name>__<parameter>, and the callbacks here {list(callbacks)}."
                )
            callbacks[name].set_params(**{parameter: value})
        return self

    def _named_callbacks(self) -> dict[str, Any]:
        """Return the callbacks that have parameters."""
        named = named_callbacks(self.callbacks)
        return {name: callback for name, callback in named if hasattr(callback, "get_params")}


def _pop_prefixed(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Take the parameters with a prefix out of a dict, and return them without it."""
    names = [name for name in params if name.startswith(prefix)]
    return {name.removeprefix(prefix): params.pop(name) for name in names}
