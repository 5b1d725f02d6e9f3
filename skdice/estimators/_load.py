"""Loading of fitted estimators of any class."""

import os

from ._base import TextEstimator
from ._pair import DicePairClassifier
from ._persistence import load_estimator
from ._query import DiceQueryTagger
from ._span import DiceSpanExtractor
from ._tagger import DiceTokenTagger
from ._text import DiceTextClassifier

_ESTIMATORS: dict[str, type[TextEstimator]] = {
    cls.__name__: cls
    for cls in (
        DicePairClassifier,
        DiceQueryTagger,
        DiceSpanExtractor,
        DiceTextClassifier,
        DiceTokenTagger,
    )
}


def load_pretrained(
    directory: str | os.PathLike[str],
    *,
    device: str | None = None,
    revision: str | None = None,
    model: str | os.PathLike[str] | None = None,
) -> TextEstimator:
    """Load the estimator that a directory holds, of whatever class it is.

    Parameters
    ----------
    directory : str or PathLike
        What ``save_pretrained`` of an estimator wrote; or an id of the hub, of what
        ``push_to_hub`` did.
    device : str, optional
        The ``device`` of the estimator; by default the one it was saved with.
    revision : str, optional
        Branch, tag or commit on the hub.
    model : str or PathLike, optional
        Where the base model is, if it is not where it was when the estimator was fitted.

    Returns
    -------
    estimator
        Fitted, as it was saved.

    Raises
    ------
    ImportError
        If it was fitted with ``peft_config``, and peft is not installed.
    ValueError
        If there is no directory of skdice, or it is damaged, newer than this skdice, or has a
        class that skdice does not have, or the base model of adapters is not there or is another
        one.

    Examples
    --------
    >>> from skdice.estimators import load_pretrained
    >>> tagger.save_pretrained("tagger")  # doctest: +SKIP
    >>> load_pretrained("tagger").predict([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    """

    def find_class(shown: str, name: str) -> type[TextEstimator]:
        if name not in _ESTIMATORS:
            raise ValueError(
                f"The directory {shown} holds a {name}, which this skdice does not have; it has "
                f"{', '.join(_ESTIMATORS)}. Upgrade it, or call {name}.from_pretrained if the "
                f"class is your own."
            )
        return _ESTIMATORS[name]

    estimator: TextEstimator = load_estimator(
        directory, find_class, device=device, revision=revision, model=model
    )
    return estimator
