"""The parameters that all estimators share, and the attributes that every fit sets."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch

from .._parameters import (
    Parameter,
    check_number,
    check_option,
    check_parameters,
    number,
    option,
)
from .._random_state import RandomState, make_rng
from ..losses import Loss, LossName
from ..nn import (
    Runtime,
    changed,
    check_peft_config,
    digests_of_trainers,
    fields_of,
    named_callbacks,
)
from ._loss import check_loss
from ._sklearn import BaseEstimator


def _check_model(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a hub id or a directory (str or PathLike). "
            f"Got {value!r} instead."
        )


def _check_class_weight(owner: str, name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        for label, weight in value.items():
            check_number(name, str(label), weight, low=0)
    elif value is not None:
        check_option(owner, name, value, (None, "balanced", "log"))


def _check_warmup(owner: str, name: str, value: Any) -> None:
    is_count = isinstance(value, int | np.integer)
    check_number(owner, name, value, low=0, high=np.inf if is_count else 1, integer=is_count)


def _check_device(owner: str, name: str, value: Any) -> None:
    try:
        if value != "auto":
            torch.device(value)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be 'auto' or a torch device, such as 'cpu' or "
            f"'cuda:0'. Got {value!r} instead."
        ) from error


def _check_random_state(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, np.random.RandomState | np.random.Generator):
        make_rng(value, owner)


def _check_directory(owner: str, name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, str | os.PathLike) or not os.fspath(value)):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a directory (str or PathLike) or None. Got "
            f"{value!r} instead."
        )


_ADAPTERS = "peft_config__"
_OF_CALLBACKS = "callbacks__"

_MODEL = """
Hub id, or directory with a model that transformers can load. The default has 22 million parameters,
reads English and does not see case; the figures of the documentation are its. These have none
there: "answerdotai/ModernBERT-base" for large data and long texts (windows of 8,192 pieces),
"sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2" for other languages.
"""
_OWN_DEFAULT = "None takes the default of the named loss."
_ALPHA = f"""
Tversky: weight of false positives. DSC: exponent that reduces the weight of easy items.
{_OWN_DEFAULT}
"""
_BETA = f"Tversky: weight of false negatives. {_OWN_DEFAULT}"
_GAMMA = f"Set losses: smoothing. Focal loss: focusing exponent. {_OWN_DEFAULT}"
_CE_WEIGHT = f"Weight of cross-entropy that is mixed into a set loss. {_OWN_DEFAULT}"
_K = 'Constant of the "log" class weights, which it selects; 3 by default.'
_LOSS = """
"auto", ``"ce"``, ``"wce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, a preset
(``"dsc-paper"``, ``"dsc-official"``) or a loss object. "auto" follows our measurements. In a token
tagger it is "dice" if entities are so rare that epochs are sampled (``negative_ratio``), or if the
training data has at most 800 of them; in a query tagger it is "dice"; otherwise it is "ce".
``loss_`` is the loss that was used, ``loss_reason_`` why.
"""
_MEMORY = """
About how many optimiser steps the sums of a set loss given by name are taken over
(:class:`skdice.losses.SumsMemory`); 0 uses each step alone. By default as many as have about 40
positives, at most 10 or a quarter of an epoch.
"""
_CLASS_WEIGHT = """
Weight of each gold class, from the counts of the training data (words of a tagger, rows of a
classifier, positions of an extractor). "log" is ``log10((n - n_t) / n_t + K)``. Labels of a dict
that do not occur in the training data, as may happen in a fold, are ignored.
"""
_MAX_EPOCHS = """
Passes over the training rows with positives (``negative_ratio``). "auto" shows such texts about
1,200 times and makes at least about 200 optimiser steps, in 3 to 30 passes; of tiny sets as many as
make 150 steps; pairs of texts, four; of entities that are not rare, with cross-entropy, eight if
these are no more than 512 steps. ``max_epochs_`` is how many.
"""
_NEGATIVE_RATIO = """
How many texts without a positive an epoch has for each text with one; those are drawn anew in every
epoch. A positive is a word inside an entity, a row of the smaller class (of several, each has at
most so many times the rows of all smaller ones), a question with an answer, a sentence and query
with a match. Set losses count each one for all that it stands for; other losses are corrected by
the change of the classes' shares, so that probabilities stay those of all rows. None takes all
texts; "auto" does so unless there are more than four times as many without a positive, and then
takes two; in a query tagger it takes one (``negative_ratio_``).
"""
_LR = """
Learning rate after the warm-up. "auto" takes what suits the size of the encoder: 2e-4 for 384
hidden units, 5e-5 for 768, 2.8e-5 for 1024 (``lr_``).
"""
_HEAD_LR = 'Learning rate of the new head; by default ``lr``, or with "auto" five times that.'
_BATCH_SIZE = """
Texts per batch and process; one that is read in n windows counts as n. It also affects set losses:
their smoothing ``gamma`` is on the scale of one optimiser step.
"""
_VALIDATION = "Share of the rows that is held out and scored after every epoch."
_PATIENCE = """
Stop after this many epochs without a better validation score, and restore the best weights.
"""
_ACCUMULATE = "Batches per optimiser step; the loss is that of one large batch, exactly."
_WARMUP = """
Warm-up as a share of all optimiser steps (float) or in steps (int). Then the rates fall on a line
to 0.
"""
_WEIGHT_DECAY = """
Of AdamW; not applied to biases, norms, and the embeddings of pieces that do not occur in the
training texts.
"""
_MAX_LENGTH = """
Longest text in pieces, special ones and the question or query included; the model's limit by
default. Longer sentences and contexts are read in several windows; classifiers cut longer texts.
"""
_FROZEN = """
How many of the first layers to freeze, together with the embeddings. Frozen layers run without
dropout. 0 freezes the embeddings only, None trains everything. It is a ValueError for models whose
layers cannot be told apart (ALBERT, XLM).
"""
_PEFT = """
Adapters to train in place of the encoder, which is frozen: a configuration of ``peft`` (the extra
``peft``), such as ``LoraConfig(r=8)``, of those that lie inside the layers; the head is trained as
a whole. They want a larger learning rate, and "auto" takes five times the usual one.
``peft_config__r`` and other fields can be set by themselves, also in grids.
"""
_DEVICE = 'A torch device; "auto" is a GPU if there is one.'
_MEMBERS = """
Networks that are fitted from other seeds and predict together, by the mean of their logits: of few
rows it is better than most of them, and takes so many times as long, also in predictions.
``joblib.parallel_config(n_jobs=2)`` around ``fit`` trains two at a time.
"""
_PRECISION = """
"auto" trains in bf16 on a CUDA GPU (in fp16 if it has no bf16) and on a CPU that is measured to be
faster in bf16, otherwise in fp32; it predicts in fp32. ``net_.precision`` and the model card say
what was used. Any other value is used for training and predictions. "bf16" then predicts faster
where "auto" trains in bf16, but the scores of a text depend slightly on the other texts in its
batch.
"""
_RUNTIME = """
What computes predictions; it can be set on a fitted estimator, too. "onnx" and "onnx-int8" use ONNX
Runtime (the extra ``onnx``) on the CPU, in fp32 or int8, whatever ``device`` and ``precision`` are.
The first prediction exports the network, which takes some seconds, and ``save_pretrained`` keeps
what was exported; for models that torch cannot export (XLNet) it raises a ValueError. "onnx" gives
the scores of "torch" within 1e-4. "onnx-int8" is about 4 times as fast as "torch" on a CPU; its
scores are less exact, and depend slightly on the other texts in the batch:
:func:`skdice.inspection.compare_runtimes` shows by how much. ``fit``, with its validation and
tuning, always uses torch, and so do predictions after an interrupted fit.
"""
_VERBOSE = """
0 shows nothing. Else a fit shows its epochs, and what takes longer (also ``predict``) how far it is
and the time left: in a bar or, where stderr is no terminal, in a line every half minute.
"""
_RANDOM_STATE = """
Seed of everything random in a fit. Global generators are as before afterwards; fits in threads take
turns.
"""
_CHECKPOINT = """
Directory in which the state of a fit is saved after every epoch. After a crash the same call (same
data, parameters, files of the base model and int ``random_state``) resumes after the last finished
epoch and ends with the weights of an uninterrupted fit. Each fit has its own subdirectory, whose
weights stay, so that finished fits are not run again; delete it when you are done. Callbacks are
only called for the epochs that are left. Several processes all have to see the directory, and their
number has to be the same.
"""

_CALLBACKS = """
Callbacks of skorch (``skorch.callbacks.Callback``), which are called at every step and epoch. Each
is an object or a tuple (name, object); ``callbacks__<name>__<parameter>`` sets a parameter of it.
One that raises KeyboardInterrupt, as ``EarlyStopping`` does, ends the fit after this step or, if
several processes train together, after this epoch. Those that need arrays or set the learning rate
are refused. A clone gets copies of the callbacks: in cross-validation, what they collect is in
``net_.callbacks_`` of the fitted estimators. What is kept of a fit (``checkpoint_dir``, a study, a
cache) is of its callbacks, too: their classes and attributes, but those that end in ``_``. Loggers
and progress bars of skorch do not count, nor any whose class says ``only_watches = True``.
"""

CONTAINERS = """\
    X and y may be lists, arrays, tensors, or columns and tables of pandas, polars, pyarrow and
    Hugging Face datasets, of whose ``ClassLabel`` the names are learned, not the numbers.
"""
FITTED_ATTRIBUTES = """\
    loss_ : Loss
        The loss that was used, with all parameters set.
    loss_reason_ : str or None
        Why ``loss="auto"`` took it.
    history_ : DataFrame
        A row per epoch: training loss, validation score, learning rate, number of texts, seconds;
        the mean of the members, and the seconds of all.
    negative_ratio_ : float or None
        What was taken for ``negative_ratio``; None if every epoch has all texts.
    max_epochs_, lr_ : int, float
        ``max_epochs`` and ``lr``, or what was taken for "auto".
    best_epoch_ : int
        Epoch of the weights that are kept, the latest of the members.
    interrupted_ : bool
        Whether ``fit`` ended before its end, by Ctrl-C or an error; predictions then warn.
    max_length_ : int
    net_ : skorch net
        To be read only: ``net_.history``, ``net_.module_`` (the torch module),
        ``net_.callbacks_``.
"""


@dataclass(eq=False, repr=False)
class SharedParameters(BaseEstimator):
    """The parameters of all estimators."""

    # The order is that of the documentation, which has the rare ones in a section of their own:
    # the model, the task, the training, the machine.
    model: Annotated[
        str | os.PathLike[str],
        Parameter("str or PathLike", _MODEL, _check_model, on_card=False),
    ] = "sentence-transformers/all-MiniLM-L6-v2"
    _: KW_ONLY
    max_length: Annotated[int | None, number(_MAX_LENGTH, low=1, integer=True, optional=True)] = (
        None
    )
    loss: Annotated[
        Literal["auto"] | LossName | Loss,
        Parameter("str or skdice.losses.Loss", _LOSS, on_card=False),
    ] = "auto"
    class_weight: Annotated[
        Literal["balanced", "log"] | Mapping[Any, float] | None,
        Parameter('{"balanced", "log"} or dict', _CLASS_WEIGHT, _check_class_weight),
    ] = None
    max_epochs: Annotated[
        int | Literal["auto"], number(_MAX_EPOCHS, low=1, integer=True, words=("auto",))
    ] = "auto"
    negative_ratio: Annotated[
        float | Literal["auto"] | None,
        number(_NEGATIVE_RATIO, low=0, closed="neither", optional=True, words=("auto",)),
    ] = "auto"
    batch_size: Annotated[int, number(_BATCH_SIZE, low=1, integer=True)] = 16
    lr: Annotated[
        float | Literal["auto"], number(_LR, low=0, closed="neither", words=("auto",))
    ] = "auto"
    validation_fraction: Annotated[
        float | None, number(_VALIDATION, low=0, high=1, closed="neither", optional=True)
    ] = None
    random_state: Annotated[
        RandomState,
        Parameter("int, RandomState or Generator", _RANDOM_STATE, _check_random_state),
    ] = None
    verbose: Annotated[int, Parameter("int", _VERBOSE, counts="never", on_card=False)] = 1

    n_members: Annotated[int, number(_MEMBERS, low=1, integer=True, rare=True)] = 1
    peft_config: Annotated[
        Any, Parameter("peft.PeftConfig", _PEFT, check_peft_config, rare=True)
    ] = None
    n_frozen_layers: Annotated[
        int | None, number(_FROZEN, low=0, integer=True, optional=True, rare=True)
    ] = None

    alpha: Annotated[float | None, Parameter("float", _ALPHA, rare=True)] = None
    beta: Annotated[float | None, Parameter("float", _BETA, rare=True)] = None
    gamma: Annotated[float | None, Parameter("float", _GAMMA, rare=True)] = None
    memory: Annotated[float | None, Parameter("float", _MEMORY, rare=True)] = None
    ce_weight: Annotated[float | None, Parameter("float", _CE_WEIGHT, rare=True)] = None
    K: Annotated[float | None, number(_K, optional=True, rare=True)] = None

    head_lr: Annotated[
        float | None, number(_HEAD_LR, low=0, closed="neither", optional=True, rare=True)
    ] = None
    weight_decay: Annotated[float, number(_WEIGHT_DECAY, low=0, rare=True)] = 0.01
    warmup: Annotated[float, Parameter("float or int", _WARMUP, _check_warmup, rare=True)] = 0.1
    clip_norm: Annotated[
        float | None,
        number("Largest norm of the gradient.", low=0, closed="neither", optional=True, rare=True),
    ] = 1.0
    accumulate: Annotated[int, number(_ACCUMULATE, low=1, integer=True, rare=True)] = 1
    patience: Annotated[
        int | None, number(_PATIENCE, low=1, integer=True, optional=True, rare=True)
    ] = None
    callbacks: Annotated[
        Sequence[Any] | None,
        Parameter(
            "list of skorch callbacks",
            _CALLBACKS,
            counted=digests_of_trainers,
            on_card=False,
            rare=True,
        ),
    ] = None

    precision: Annotated[Literal["auto", "fp32", "bf16", "fp16"], option(_PRECISION, rare=True)] = (
        "auto"
    )
    device: Annotated[
        str, Parameter("str", _DEVICE, _check_device, counts="never", on_card=False, rare=True)
    ] = "auto"
    runtime: Annotated[
        Runtime, option(_RUNTIME, counts="in predictions", on_card=False, rare=True)
    ] = "torch"
    checkpoint_dir: Annotated[
        str | os.PathLike[str] | None,
        Parameter(
            "str or PathLike",
            _CHECKPOINT,
            _check_directory,
            counts="never",
            on_card=False,
            rare=True,
        ),
    ] = None

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

    def _check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed, also together."""
        check_parameters(self)
        if self.checkpoint_dir is not None and self.random_state is None:
            raise ValueError(
                f"checkpoint_dir={os.fspath(self.checkpoint_dir)!r} needs a random_state, best an "
                f"int: with None every fit is another one, and none could go on from a checkpoint."
            )
        if self.peft_config is not None and self.n_frozen_layers is not None:
            raise ValueError(
                f"n_frozen_layers must be None with peft_config, which freezes the whole encoder. "
                f"Got {self.n_frozen_layers!r}."
            )
        check_loss(self)


def _pop_prefixed(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Take the parameters with a prefix out of a dict, and return them without it."""
    names = [name for name in params if name.startswith(prefix)]
    return {name.removeprefix(prefix): params.pop(name) for name in names}
