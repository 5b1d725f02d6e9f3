"""How long the windows are that a model reads, and how much neighbouring ones share."""

import os
from typing import Any

from ..nn._loading import position_limit
from ..text._tokenizer import Frame, WordTokenizer

# Where neither the model nor its tokenizer says how long a text may be.
_DEFAULT_MAX_LENGTH = 512


def longest_window(estimator: Any, tokenizer: WordTokenizer, frame: Frame) -> int:
    """Return ``max_length_``: the parameter, or the limit of the model.

    Raises
    ------
    ValueError
        If the parameter leaves no room for text, or exceeds the limit.
    """
    model, wanted = os.fspath(estimator.model), estimator.max_length
    limits = (position_limit(model), tokenizer.tokenizer.model_max_length)
    known = [n for n in limits if n and n < 10**9]
    longest = min(known, default=_DEFAULT_MAX_LENGTH)
    if wanted is None:
        return longest
    if frame.n_special < wanted <= min(known, default=wanted):
        return int(wanted)
    raise ValueError(
        f"The 'max_length' parameter of {type(estimator).__name__} must be None or an int in the "
        f"range [{frame.n_special + 1}, {longest}] for {model!r}. Got {wanted!r} instead."
    )


def shared_pieces(estimator: Any, max_length: int, frame: Frame) -> int:
    """Return ``stride_``, the pieces that neighbouring windows share.

    Raises
    ------
    ValueError
        If the parameter is as large as a window.
    """
    capacity = max_length - frame.n_special
    stride = capacity // 4 if estimator.stride is None else estimator.stride
    if stride >= capacity:
        raise ValueError(
            f"The 'stride' parameter of {type(estimator).__name__} must be smaller than the "
            f"{capacity} pieces of text in a window. Got {estimator.stride!r} instead."
        )
    return int(stride)
