"""Text classification, with one label or several."""

from typing import Annotated, Any, Literal

from .._parameters import option, parametrised
from ..tasks import ClassifyingTexts
from ._classifier import TextClassifier


@parametrised
class DiceTextClassifier(TextClassifier):
    """Classify texts with a fine-tuned transformer.

    X is a list, Series or object array of str, or a table of one column; y has a label for each
    row, or is a 0/1 indicator matrix (multi-label, one sigmoid per label). ``score`` is accuracy,
    multi-label micro F1.

    If a logistic regression on the mean states of the encoder says something of the training texts,
    the fit begins with it. ``choices_`` has this as ``head``. transformers then loads the encoder
    of a saved classifier alone.

    %(containers)s

    Parameters
    ----------
    truncation
        Longer texts lose their end, with a warning that counts them, or are an error. A fitted
        classifier keeps what it was fitted with.

    Attributes
    ----------
    %(attributes)s

    See Also
    --------
    skdice.DicePairClassifier : The same for pairs of texts.

    Notes
    -----
    Multi-label, a set loss pools all labels of a step (a soft micro F1;
    ``DiceLoss(average="macro")`` takes each by itself), and ``class_weight={label: weight}`` weighs
    the rows with that label.

    ``predict_proba`` is a softmax for any loss. A set loss makes scores, not calibrated
    probabilities; sklearn's ``CalibratedClassifierCV`` works on top.

    Examples
    --------
    >>> from skdice import DiceTextClassifier
    >>> classifier = DiceTextClassifier(random_state=0)
    >>> classifier.fit(texts, labels)  # doctest: +SKIP
    >>> classifier.predict(["You have won a prize! Call now."])  # doctest: +SKIP
    array(['spam'], dtype=object)
    """

    _task_class = ClassifyingTexts

    truncation: Annotated[Literal["longest_first", "error"], option()] = "longest_first"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
