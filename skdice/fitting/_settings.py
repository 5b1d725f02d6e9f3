"""The settings of a fit: the parameters that all estimators share, each stated once."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np

from .._parameters import (
    Parameter,
    RandomState,
    check_number,
    check_option,
    check_parameters,
    check_random_state,
    check_verbose,
    not_allowed,
    number,
    option,
)
from ..losses import LOSS_PARAMETERS, Loss, LossName, check_loss
from ..nn import Runtime, check_peft_config, digests_of_trainers, resolve_device


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


@dataclass(eq=False, repr=False)
class Settings:
    """The parameters that all estimators share.

    Parameters
    ----------
    model
        Hub id, or directory with a model that transformers can load. The default has 22 million
        parameters, reads English and ignores case. The guide's page "Which encoder?" compares
        others.
    loss
        "auto", "cv", ``"ce"``, ``"wce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, a
        preset (``"dsc-paper"``, ``"dsc-official"``) or a loss object. "auto" takes "dice" for rare
        entities, for 5,000 and more, and for query taggers, and otherwise "ce" (the guide's page
        "Losses"). "cv" takes "ce" or "dice", whichever has the better mean score in five folds of
        the rows: ten more models are fitted. ``loss_`` is the loss that was used.
    max_epochs
        Passes over the training rows with positives (``negative_ratio``). "auto" makes 3 to 30
        passes, and more of tiny sets: it goes by the number of texts (the guide's page "Which
        settings?"). ``max_epochs_`` is the number used.
    time_limit
        Seconds that the fit may take, about, with its loading, scores, folds and teachers. If
        ``max_epochs`` do not fit in, the schedule of the rates is made for the optimiser steps that
        do, counted on the first ones and again as the fit goes on; a warning says how many these
        are. No such fit can be repeated exactly. None sets no limit.
    random_state
        Seed of everything random in a fit. The global generators are not changed; fits in threads
        run one after the other.
    max_length
        Longest text in pieces, special ones and the question or query included; the model's limit
        by default. Longer sentences and contexts are read in several windows; classifiers cut
        longer texts.
    class_weight
        Weight of each gold class, from the counts of the training data (words of a tagger, rows of
        a classifier, positions of an extractor). "log" is ``log10((n - n_t) / n_t + K)``. Labels of
        a dict that do not occur in the training data, as may happen in a fold, are ignored.
    negative_ratio
        How many texts without a positive an epoch has for each text with one; they are drawn at
        random in every epoch, and the loss corrects for it. A positive is a word inside an entity,
        a row of the smaller class (of several, each has at most so many times the rows of all
        smaller ones), a question with an answer, a sentence and query with a match. None takes all
        texts. "auto" takes all, too, or two if more than four times as many are without a positive;
        in a query tagger it takes one (``negative_ratio_``).
    batch_size
        Texts per batch and process; a text that is read in n windows counts as n texts. It also
        affects set losses: their smoothing ``gamma`` is on the scale of one optimiser step.
    lr
        Learning rate after the warm-up. "auto" takes what suits the encoder (``lr_``): the rate
        falls with its width and its depth. If the training loss of a new head has not fallen when
        the fit ends, or is not finite, it starts again once with a third of that rate. A
        first try whose training loss is clearly lower is kept.
    validation_fraction
        Share of the rows that is held out and scored after every epoch.
    verbose
        0 shows nothing. Otherwise a fit says how many steps it makes, and a bar shows how far it
        is; if stderr is no terminal, it writes a line an epoch and how long the rest will take.
        Long predictions show a bar.
    n_members
        Size of an ensemble: networks that are trained from different seeds, whose logits are
        averaged. Everything takes ``n_members`` times as long.
    peft_config
        Adapters to train in place of the encoder, which is frozen: a configuration of ``peft`` (the
        extra ``peft``), such as ``LoraConfig(r=8)``, whose adapters lie inside the layers. The head
        is trained as a whole. Adapters need a larger learning rate: "auto" takes five times the
        usual one.
    n_frozen_layers
        0 freezes the embeddings only, and k > 0 also the first k layers; None trains everything.
        Frozen layers run without dropout. Models whose layers cannot be told apart (ALBERT, XLM)
        are refused.
    alpha
        Tversky: weight of false positives. DSC: exponent that reduces the weight of easy items.
        None takes the default of the named loss.
    beta
        Tversky: weight of false negatives. None takes the default of the named loss.
    gamma
        Set losses: smoothing. Focal loss: focusing exponent. None takes the default of the named
        loss.
    memory
        About how many optimiser steps the sums of a set loss given by name are taken over
        (:class:`skdice.losses.SumsMemory`); 0 uses each step alone. By default as many as have
        about 40 positives, at most a quarter of an epoch.
    ce_weight
        Weight of cross-entropy that is mixed into a set loss. None takes the default of the named
        loss.
    K
        Constant of the "log" class weights, which it selects; 3 by default.
    head_lr
        Learning rate of the head; by default ``lr``. If that is "auto", a new head learns five
        times as fast as the encoder, and a head that the checkpoint brings as fast as the encoder.
    weight_decay
        Of AdamW; not applied to biases, norms, and the embeddings of pieces that do not occur in
        the training texts.
    warmup
        Warm-up as a share of all optimiser steps (float) or in steps (int). Then the rates fall on
        a line to 0.
    clip_norm
        Largest norm of the gradient.
    accumulate
        Batches per optimiser step; the loss is that of one large batch, exactly.
    patience
        Stop after this many epochs without a better validation score, and restore the best weights.
    callbacks
        Callbacks of skorch (``skorch.callbacks.Callback``), called at every step and epoch:
        objects, or tuples (name, object). One that raises KeyboardInterrupt, as ``EarlyStopping``
        does, ends the fit. Those that need arrays or set the learning rate are refused. A clone
        gets copies: what they collect is in ``net_.callbacks_``. A checkpoint, a study or a cache
        serves only fits with callbacks of the same classes and attributes (the guide's page
        "Callbacks").
    precision
        "auto" trains in bf16 on a CUDA GPU (in fp16 if it has no bf16) and on a CPU that has
        instructions for bf16 (AMX or AVX-512), otherwise in fp32; it predicts in fp32. Any other
        value is used for training and predictions: "bf16" predicts faster, but the scores of a text
        then depend slightly on the other texts in its batch.
    device
        A torch device; "auto" is a GPU if there is one.
    runtime
        What computes predictions; it can be set on a fitted estimator, too. "onnx" and "onnx-int8"
        use ONNX Runtime (the extra ``onnx``) on the CPU, in fp32 or int8. The first prediction
        exports the network, which takes some seconds; models that torch cannot export (XLNet) are a
        ValueError. "onnx" gives the scores of "torch" within 1e-4. "onnx-int8" is faster; its
        scores are less exact, and depend slightly on the other texts in the batch. ``fit`` always
        uses torch.
    checkpoint_dir
        Directory in which the state of a fit is saved after every epoch. After a crash the same
        call (same data, parameters, base model and int ``random_state``) resumes after the last
        finished epoch and ends with the weights of an uninterrupted fit; a finished fit is not run
        again. Each fit has its own subdirectory; delete it when you are done. Callbacks are only
        called for the epochs that are left. All processes of a job have to see the directory.
    """

    # The order is that of signatures and the documentation: first those that most fits set; the
    # rare ones, in a section of their own, by model, task, training and machine.
    model: Annotated[
        str | os.PathLike[str], Parameter("str or PathLike", check=_check_path, on_card=False)
    ] = "sentence-transformers/all-MiniLM-L6-v2"
    _: KW_ONLY
    loss: Annotated[
        Literal["auto", "cv"] | LossName | Loss,
        Parameter("str or skdice.losses.Loss", on_card=False),
    ] = "auto"
    max_epochs: Annotated[int | Literal["auto"], number(low=1, integer=True, words=("auto",))] = (
        "auto"
    )
    time_limit: Annotated[float | None, number(low=0, closed="neither", optional=True)] = None
    random_state: Annotated[
        RandomState, Parameter("int, RandomState or Generator", check=check_random_state)
    ] = None
    max_length: Annotated[int | None, number(low=1, integer=True, optional=True)] = None
    class_weight: Annotated[
        Literal["balanced", "log"] | Mapping[Any, float] | None,
        Parameter('{"balanced", "log"} or dict', check=_check_class_weight),
    ] = None
    negative_ratio: Annotated[
        float | Literal["auto"] | None,
        number(low=0, closed="neither", optional=True, words=("auto",)),
    ] = "auto"
    batch_size: Annotated[int, number(low=1, integer=True)] = 16
    lr: Annotated[float | Literal["auto"], number(low=0, closed="neither", words=("auto",))] = (
        "auto"
    )
    validation_fraction: Annotated[
        float | None, number(low=0, high=1, closed="neither", optional=True)
    ] = None
    verbose: Annotated[
        int, Parameter("int", check=check_verbose, counts="never", on_card=False)
    ] = 1

    n_members: Annotated[int, number(low=1, integer=True, rare=True)] = 1
    peft_config: Annotated[
        Any, Parameter("peft.PeftConfig", check=check_peft_config, rare=True)
    ] = None
    n_frozen_layers: Annotated[
        int | None, number(low=0, integer=True, optional=True, rare=True)
    ] = None

    alpha: Annotated[float | None, Parameter("float", rare=True)] = None
    beta: Annotated[float | None, Parameter("float", rare=True)] = None
    gamma: Annotated[float | None, Parameter("float", rare=True)] = None
    memory: Annotated[float | None, Parameter("float", rare=True)] = None
    ce_weight: Annotated[float | None, Parameter("float", rare=True)] = None
    K: Annotated[float | None, number(optional=True, rare=True)] = None

    head_lr: Annotated[float | None, number(low=0, closed="neither", optional=True, rare=True)] = (
        None
    )
    weight_decay: Annotated[float, number(low=0, rare=True)] = 0.01
    warmup: Annotated[float, Parameter("float or int", rare=True)] = 0.1
    clip_norm: Annotated[
        float | None, number(low=0, closed="neither", optional=True, rare=True)
    ] = 1.0
    accumulate: Annotated[int, number(low=1, integer=True, rare=True)] = 1
    patience: Annotated[int | None, number(low=1, integer=True, optional=True, rare=True)] = None
    callbacks: Annotated[
        Sequence[Any] | None,
        Parameter(
            "list of skorch callbacks", counted=digests_of_trainers, on_card=False, rare=True
        ),
    ] = None

    precision: Annotated[Literal["auto", "fp32", "bf16", "fp16"], option(rare=True)] = "auto"
    device: Annotated[str, Parameter("str", counts="never", on_card=False, rare=True)] = "auto"
    runtime: Annotated[Runtime, option(counts="in predictions", on_card=False, rare=True)] = "torch"
    checkpoint_dir: Annotated[
        str | os.PathLike[str] | None,
        Parameter("str or PathLike", check=_check_path, counts="never", on_card=False, rare=True),
    ] = None

    def check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed, also together."""
        check_parameters(self)
        resolve_device(self.device)  # It raises an error if the device is not there.
        owner, given = type(self).__name__, loss_values(self)
        is_count = isinstance(self.warmup, int | np.integer)
        most = np.inf if is_count else 1
        check_number(owner, "warmup", self.warmup, low=0, high=most, integer=is_count)
        if self.checkpoint_dir is not None and self.random_state is None:
            raise ValueError(
                f"checkpoint_dir={os.fspath(self.checkpoint_dir)!r} needs a random_state, best an "
                f"int: with None every fit has other random numbers, and none can resume."
            )
        if self.peft_config is not None and self.n_frozen_layers is not None:
            raise ValueError(
                f"n_frozen_layers must be None with peft_config, which freezes the whole encoder. "
                f"Got {self.n_frozen_layers!r}."
            )
        check_loss(self.loss, given, owner, class_weight=self.class_weight, K=self.K)


def settings_of(instance: Settings) -> Settings:
    """Return the settings that an estimator has, as a value of their own."""
    return Settings(**{known.name: getattr(instance, known.name) for known in fields(Settings)})


def loss_values(settings: Settings) -> dict[str, Any]:
    """Return the parameters of a loss by name that are not None."""
    values = {name: getattr(settings, name) for name in LOSS_PARAMETERS}
    return {name: value for name, value in values.items() if value is not None}
