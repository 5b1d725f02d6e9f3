"""Classification of pairs of texts: paraphrases, duplicates, records of one thing."""

from typing import Annotated, Literal

from .._parameters import option, parametrised
from ..tasks import ClassifyingPairs
from ._classifier import TextClassifier


@parametrised
class DicePairClassifier(TextClassifier):
    """Classify pairs of texts with a fine-tuned transformer.

    The transformer reads both texts together. If its tokenizer puts a token between them, it also
    reads each text by itself; the fit begins with a logistic regression on the states of these, if
    they tell the labels.
    What the texts share in characters, words and numbers gives a share of the log-odds, in training
    and in prediction. The training pairs decide how large it is; ``choices_`` has it as
    ``similarities``.

    X is a list, Series or object array of 2-tuples of str, a table of two columns or an (n, 2)
    object array; y has a label for each pair. ``score`` is F1: of ``pos_label`` if there are two
    classes, else the macro average.

    %(containers)s

    Parameters
    ----------
    truncation
        Longer pairs lose the end of the longer text ("longest_first") or of the second one, with a
        warning that counts them, or are an error. A fitted classifier keeps what it was fitted
        with.

    Attributes
    ----------
    %(attributes)s

    See Also
    --------
    skdice.DiceTextClassifier : The same for single texts.
    skdice.datasets.read_pairs : Reads MRPC, QQP and entity resolution pairs.

    Notes
    -----
    A set loss of two classes is a soft F1 of the positive one over the texts of a step.
    ``VotingClassifier``, ``StackingClassifier`` and ``BaggingClassifier`` encode y as 0, 1, ...
    before they fit: leave ``pos_label`` None inside them.

    Examples
    --------
    >>> from skdice import DicePairClassifier
    >>> classifier = DicePairClassifier(random_state=0)
    >>> classifier.fit(pairs, labels)  # doctest: +SKIP
    >>> classifier.predict([("Is it cold?", "Is it warm?")])  # doctest: +SKIP
    array([0])
    """

    _task_class = ClassifyingPairs

    truncation: Annotated[Literal["longest_first", "second", "error"], option()] = "longest_first"
