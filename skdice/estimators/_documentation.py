"""The documentation of what several estimators share, written once."""

from typing import Any

_SHARED_PARAMETERS = """\
    model : str or PathLike, default="bert-base-cased"
        Hub id, or directory with a model that transformers can load.
    loss : str or skdice.losses.Loss, default="dsc"
        ``"ce"``, ``"wce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, a preset
        (``"dsc-paper"``, ``"dsc-official"``, ``"recommended"``) or a loss object. "recommended" is
        what our study found best: in a token tagger "wce" if 40 words or more are outside entities
        for one inside, else dice if there are at most 800 entities to learn from; in a query tagger
        dice; else cross-entropy. ``loss_`` is what it was.
    alpha, beta, gamma, memory, ce_weight : float, optional
        Parameters of a loss given by name; None is the loss's own default. ``memory`` is about how
        many optimiser steps a set loss is formed over (0: each step alone), by default as many as
        have about 40 positives, 10 at most; see :class:`skdice.losses.SumsMemory`.
    class_weight : {"balanced", "log"} or dict of label to weight, optional
        Weight of each gold class, from the counts of the training data (words of a tagger, rows of
        a classifier, positions of an extractor). "log" is ``log10((n - n_t) / n_t + K)``.
        Labels of a dict that the training data lacks, as in a fold, are passed over.
    K : float, optional
        Constant of the "log" class weight, which it implies; 3 by default.
    max_epochs : int, default=3
    batch_size : int, default=16
        Texts per batch, and process. The smoothing ``gamma`` of a set loss is on the scale
        of one optimiser step, so this is a parameter of the loss too.
    batch_tokens : int, optional
        Pieces per batch, and process, instead of ``batch_size`` texts: all steps are about as
        large, whatever the lengths of the texts.
    lr : float, default=5e-5
        Learning rate after the warm-up.
    head_lr : float, optional
        Learning rate of the new head; ``lr`` by default.
    weight_decay : float, default=0.01
        Of AdamW; not applied to biases, norms, and the embeddings of pieces that do not occur in
        the training texts.
    warmup : float or int, default=0.1
        Warm-up as a share of all optimiser steps (float) or in steps (int).
    schedule : {"linear", "cosine", "constant"}, default="linear"
        How the learning rate goes on after the warm-up.
    clip_norm : float, optional, default=1.0
        Largest norm of the gradient.
    accumulate : int, default=1
        Batches per optimiser step; the loss is that of one large batch, exactly.
    n_frozen_layers : int, optional
        Freeze the embeddings and the first so many layers, which then run without dropout; None
        trains everything, 0 freezes the embeddings only. A ValueError for models whose layers
        cannot be told apart (ALBERT, XLM).
    validation_fraction : float, optional
        Share of the rows that is kept from training and scored after every epoch.
    patience : int, optional
        Stop after so many epochs without a better validation score and restore the best weights.
    precision : {"auto", "fp32", "bf16", "fp16"}, default="auto"
        "auto" trains in bf16 on a CUDA GPU (in fp16 if it has no bf16) and on a CPU with AMX,
        elsewhere in fp32, and predicts in fp32. What is named is used for both: "bf16" predicts
        faster where "auto" is bf16, but then a text gets slightly other scores among other texts,
        or with another ``batch_size``.
    device : str, default="auto"
        A torch device; "auto" is a GPU if there is one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of everything random in a fit. Global generators are neither used nor changed.
    checkpoint_dir : str or PathLike, optional
        Where the state of a fit is kept after every epoch. After a crash the same call (same data,
        parameters, files of the base model and int ``random_state``) goes on from the last finished
        epoch and ends with the weights of an uninterrupted fit. Every fit has a place of its own
        there, also those of a cross-validation; finished ones keep their weights, so that they are
        not run again. Delete it when the work is done. Callbacks see the epochs that are left. Of
        several processes the first one writes, all have to see the directory, and their number has
        to be the same.
    verbose : int, default=1
        0 shows nothing.
    callbacks : list of skorch callbacks, optional
"""

_CLASSIFIER_ATTRIBUTES = """\
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted. Multi-label: the names of the columns of y, or their numbers.
    threshold_ : float or ndarray of shape (n_classes,)
        What the decision function is held against: 0 after ``fit``, see
        :func:`skdice.model_selection.tune_decision`.
    feature_names_in_ : ndarray of shape (n_columns,), object
        Only if X was a DataFrame.
    loss_ : Loss
        What was trained with, all parameters set.
    history_ : DataFrame
        A row per epoch: training loss, validation score, learning rate, seconds.
    best_epoch_ : int
        Epoch of the weights that are kept.
    interrupted_ : bool
        Whether ``fit`` ended before its end, by Ctrl-C or an error; predictions then warn.
    max_length_ : int
    net_ : skorch net
"""

_TEXTS = {
    "    %(shared_parameters)s\n": _SHARED_PARAMETERS,
    "    %(classifier_attributes)s\n": _CLASSIFIER_ATTRIBUTES,
}


def documented(cls: Any) -> Any:
    """Put the shared documentation where a class docstring asks for it."""
    if cls.__doc__:  # None under python -OO.
        for mark, text in _TEXTS.items():
            cls.__doc__ = cls.__doc__.replace(mark, text)
    return cls
