"""The settings of a fit: the parameters that all estimators share, each stated once."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np
import torch
from sklearn.base import clone

from .._inputs import list_some
from .._parameters import (
    Parameter,
    check_number,
    check_option,
    check_parameters,
    not_allowed,
    number,
    option,
    parameters_of,
)
from .._random_state import RandomState, make_rng
from ..losses import LOSS_NAMES, LOSS_PARAMETERS, Loss, LossName, check_named, loss_parameters
from ..nn import Runtime, check_peft_config, digests_of_trainers


def _check_path(owner: str, name: str, value: Any) -> None:
    is_path = isinstance(value, str | os.PathLike) and bool(os.fspath(value))
    if name == "model" and not is_path:
        raise not_allowed(owner, name, "a hub id or a directory (str or PathLike)", value)
    if not is_path and value is not None:
        raise not_allowed(owner, name, "a directory (str or PathLike) or None", value)


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


_MODEL = """
Hub id, or directory with a model that transformers can load. The default has 22 million parameters,
reads English and ignores case. The guide's page "Which encoder?" compares others.
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
"auto", "cv", ``"ce"``, ``"wce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, a preset
(``"dsc-paper"``, ``"dsc-official"``) or a loss object. "auto" follows our measurements. In a token
tagger it is "dice" if entities are so rare that epochs are sampled (``negative_ratio``), or if the
training data has at most 800 of them; in a query tagger it is "dice"; otherwise it is "ce". "cv"
takes cross-entropy or dice, whichever has the better mean score in five folds of the rows: ten more
models are fitted. ``loss_`` is the loss that was used, ``choices_`` says why.
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
Passes over the training rows with positives (``negative_ratio``). With "auto", up to 250 sentences
with entities get 30, and four times as many sentences half of that. Where entities are rare, and
with texts of other kinds, it shows texts with positives about 1,200 times and takes at least about
200 optimiser steps, in 3 to 30 passes. A tiny set gets 150 steps and pairs of texts four passes.
``max_epochs_`` is the number used.
"""
_NEGATIVE_RATIO = """
How many texts without a positive an epoch has for each text with one; they are drawn at random in
every epoch. A positive is a word inside an entity, a row of the smaller class (of several, each has
at most so many times the rows of all smaller ones), a question with an answer, a sentence and query
with a match. Set losses weight sampled texts up to represent those left out. Other losses correct
for the changed shares of the classes, so that probabilities are those of all rows. None takes all
texts. "auto" takes all, too, or two if more than four times as many are without a positive; in a
query tagger it takes one (``negative_ratio_``).
"""
_LR = """
Learning rate after the warm-up. "auto" takes what suits the encoder (``lr_``): the rate falls with
its width and its depth, and is lower for DeBERTa. It is 2e-4 for 6 layers of 384 hidden units, 1e-4
for 12 of these, 5e-5 for 12 layers of 768, and 1.9e-5 for 24 layers of 1024. If the training loss
has not fallen when the fit ends, or is not finite, it starts again once with a third of that rate.
"""
_HEAD_LR = """
Learning rate of the head; by default ``lr``. If that is "auto", a new head learns five times as
fast as the encoder, and a head that the checkpoint brings as fast as the encoder.
"""
_BATCH_SIZE = """
Texts per batch and process; a text that is read in n windows counts as n texts. It also affects
set losses: their smoothing ``gamma`` is on the scale of one optimiser step.
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
0 freezes the embeddings only, and k > 0 also the first k layers; None trains everything. Frozen
layers run without dropout. Models whose layers cannot be told apart (ALBERT, XLM) are refused.
"""
_PEFT = """
Adapters to train in place of the encoder, which is frozen: a configuration of ``peft`` (the extra
``peft``), such as ``LoraConfig(r=8)``, whose adapters lie inside the layers. The head is trained as
a whole. Adapters need a larger learning rate: "auto" takes five times the usual one.
``peft_config__r`` and other fields can be set by themselves, also in grids.
"""
_DEVICE = 'A torch device; "auto" is a GPU if there is one.'
_MEMBERS = """
Size of an ensemble: networks that are trained from different seeds, whose logits are averaged. With
few rows it is better than most single networks. Everything takes ``n_members`` times as long.
"""
_PRECISION = """
"auto" trains in bf16 on a CUDA GPU (in fp16 if it has no bf16) and on a CPU that has instructions
for bf16 (AMX or AVX-512), otherwise in fp32; it predicts in fp32. ``choices_`` says what was used.
Any other value is used for training and predictions. "bf16" then predicts faster where "auto"
trains in it, but the scores of a text depend slightly on the other texts in its batch.
"""
_RUNTIME = """
What computes predictions; it can be set on a fitted estimator, too. "onnx" and "onnx-int8" use ONNX
Runtime (the extra ``onnx``) on the CPU, in fp32 or int8, whatever ``device`` and ``precision`` are.
The first prediction exports the network, which takes some seconds; models that torch cannot export
(XLNet) are a ValueError. "onnx" gives the scores of "torch" within 1e-4. "onnx-int8" is 1.8 to 4.2
times as fast as "torch" on a CPU; its scores are less exact, and depend slightly on the other texts
in the batch. ``fit``, with its validation and tuning, and an interrupted fit always use torch.
"""
_VERBOSE = """
0 shows nothing. Otherwise a fit shows its epochs, and long steps (also ``predict``) show a bar; if
stderr is no terminal, a fit writes a line an epoch.
"""
_RANDOM_STATE = """
Seed of everything random in a fit. The global generators are not changed; fits in threads run one
after the other.
"""
_CHECKPOINT = """
Directory in which the state of a fit is saved after every epoch. After a crash the same call (same
data, parameters, files of the base model and int ``random_state``) resumes after the last finished
epoch and ends with the weights of an uninterrupted fit; a finished fit is not run again. Each fit
has its own subdirectory, whose weights stay; delete it when you are done. Callbacks are only called
for the epochs that are left. Several processes, always as many, all have to see the directory.
"""
_CALLBACKS = """
Callbacks of skorch (``skorch.callbacks.Callback``), called at every step and epoch: objects, or
tuples (name, object); ``callbacks__<name>__<parameter>`` sets a parameter of one. One that raises
KeyboardInterrupt, as ``EarlyStopping`` does, ends the fit after this step or, if several processes
train together, after this epoch. Those that need arrays or set the learning rate are refused. A
clone gets copies: in cross-validation, what they collect is in ``net_.callbacks_`` of the fitted
estimators. A checkpoint, a study or a cache serves only fits with callbacks of the same classes and
attributes, except for attributes that end in ``_``. Loggers and progress bars of skorch are not
compared, nor classes with ``only_watches = True``.
"""


@dataclass(eq=False, repr=False)
class Settings:
    """The parameters that all estimators share."""

    # The order is that of the documentation, which has the rare ones in a section of their own:
    # the model, the task, the training, the machine.
    model: Annotated[
        str | os.PathLike[str],
        Parameter("str or PathLike", _MODEL, _check_path, on_card=False),
    ] = "sentence-transformers/all-MiniLM-L6-v2"
    _: KW_ONLY
    max_length: Annotated[int | None, number(_MAX_LENGTH, low=1, integer=True, optional=True)] = (
        None
    )
    loss: Annotated[
        Literal["auto", "cv"] | LossName | Loss,
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
            _check_path,
            counts="never",
            on_card=False,
            rare=True,
        ),
    ] = None


def check_settings(settings: Settings) -> None:
    """Raise a ValueError unless all parameters of an estimator are allowed, also together."""
    check_parameters(settings)
    if settings.checkpoint_dir is not None and settings.random_state is None:
        raise ValueError(
            f"checkpoint_dir={os.fspath(settings.checkpoint_dir)!r} needs a random_state, best an "
            f"int: with None every fit has other random numbers, and none can resume."
        )
    if settings.peft_config is not None and settings.n_frozen_layers is not None:
        raise ValueError(
            f"n_frozen_layers must be None with peft_config, which freezes the whole encoder. "
            f"Got {settings.n_frozen_layers!r}."
        )
    loss, given = settings.loss, loss_values(settings)
    if isinstance(loss, Loss):
        _check_loss_object(settings, loss, [*given])
        return
    usable = loss_parameters(loss)
    for name, value in given.items():
        if name not in usable:
            takers = [known for known in LOSS_NAMES if name in loss_parameters(known)]
            first = ""
            if loss in ("auto", "cv"):
                first = f"Set loss={takers[0]!r}, or another one that has {name}. "
            raise ValueError(
                f"{first}{name}={value!r} cannot be used with loss={loss!r}; it is a parameter of "
                f"{list_some(takers)}. To search over several losses, give each its own grid: "
                f"[{{'loss': [{loss!r}]}}, {{'loss': [{takers[0]!r}], {name!r}: [{value!r}]}}]."
            )
    check_named(loss, type(settings).__name__, given)
    if settings.K is not None and settings.class_weight not in (None, "log"):
        raise ValueError(
            f"K={settings.K!r} means class_weight='log'; got "
            f"class_weight={settings.class_weight!r}. Drop one."
        )


def settings_of(instance: Settings) -> Settings:
    """Return the settings that an estimator has, as a value of their own."""
    return Settings(**{known.name: getattr(instance, known.name) for known in fields(Settings)})


def learned_with(settings: Settings, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the parameters that decide what is learned, or the part of each that does."""
    return {
        name: getattr(settings, name)
        if part.counted is None
        else part.counted(getattr(settings, name))
        for name, part in parameters_of(Settings).items()
        if part.counts == "in fits" and name not in without
    }


def loss_values(settings: Settings) -> dict[str, Any]:
    """Return the parameters of a loss by name that are not None."""
    values = {name: getattr(settings, name) for name in LOSS_PARAMETERS}
    return {name: value for name, value in values.items() if value is not None}


def _check_loss_object(settings: Settings, loss: Loss, given: list[str]) -> None:
    if settings.K is not None:
        given = [*given, "K"]
    if given:
        raise ValueError(
            f"{given[0]!r} must be None with a loss object, got {getattr(settings, given[0])!r}: "
            f"set it on the object, for instance loss={type(loss).__name__}(...), or with "
            f"set_params(loss__...=...)."
        )
    if loss.reduction != "mean":
        raise ValueError(
            f"A loss to train with must have reduction='mean', got {loss.reduction!r}."
        )
    owner, ignored = type(loss).__name__, loss.ignore_index
    check_number(owner, "ignore_index", ignored, integer=True)
    if ignored >= 0:
        raise ValueError(
            f"A loss to train with must have a negative ignore_index, for classes are numbered 0, "
            f"1, ...; got ignore_index={ignored!r}. Leave it at -100: {owner}()."
        )
    if settings.class_weight is not None and loss.class_weight is not None:
        raise ValueError(
            "class_weight is given on the estimator and on the loss object; set one of them to "
            "None."
        )
    if settings.class_weight is not None:
        loss = clone(loss).set_params(class_weight=1.0)
    loss.check_parameters()
