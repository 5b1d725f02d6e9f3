"""An estimator says itself what counts in training, whatever its loss object ignores."""

import numpy as np
import pytest

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.losses import CrossEntropyLoss, DiceLoss

from ..corpora import easy_corpus, easy_pairs, easy_texts
from .test_span import easy_questions

MULTILABEL = (easy_texts(8)[0], np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 2))
CASES = {
    "tagger": (DiceTokenTagger, easy_corpus(8), {}),
    "extractor": (DiceSpanExtractor, easy_questions(8), {}),
    "pairs": (DicePairClassifier, easy_pairs(8), {}),
    "texts": (DiceTextClassifier, easy_texts(8), {}),
    "multi-label": (DiceTextClassifier, MULTILABEL, {}),
    "query tagger": (DiceQueryTagger, easy_corpus(8), {"queries": {"PER": "a", "LOC": "b"}}),
}
each_case = pytest.mark.parametrize("case", CASES)


def make(model, case, loss):
    cls, rows, parameters = CASES[case]
    estimator = cls(
        model, loss=loss, max_epochs=1, lr=1e-2, batch_size=4, random_state=0, verbose=0
    )
    return estimator.set_params(precision="fp32", **parameters), rows


@each_case
@pytest.mark.parametrize("loss", [CrossEntropyLoss, DiceLoss])
def test_any_negative_number_gives_the_same_fit(tiny_bert, case, loss):
    losses = []
    for ignore_index in (-100, -1, np.int64(-7)):
        given = loss(ignore_index=ignore_index)
        estimator, rows = make(tiny_bert, case, given)
        losses.append(estimator.fit(*rows).history_.train_loss.tolist())
        assert given.ignore_index == ignore_index, "the loss of the user is left alone"
    assert losses[0] == losses[1] == losses[2]


@each_case
@pytest.mark.parametrize("ignore_index", [0, 1, 255])
def test_the_number_of_a_class_is_refused_before_anything_is_loaded(case, ignore_index):
    estimator, rows = make("no such model", case, DiceLoss(ignore_index=ignore_index))
    with pytest.raises(
        ValueError, match=rf"negative ignore_index.*got ignore_index={ignore_index}"
    ):
        estimator.fit(*rows)


@pytest.mark.parametrize("ignore_index", [None, -1.5, "O"])
def test_what_is_no_number_is_refused(ignore_index):
    estimator, rows = make("no such model", "tagger", DiceLoss(ignore_index=ignore_index))
    with pytest.raises(ValueError, match="'ignore_index' parameter of DiceLoss"):
        estimator.fit(*rows)


def test_windows_with_a_part_of_the_answer_are_ignored(tiny_bert):
    """They are all that an estimator marks: the answer is longer than what windows share."""
    answer = "in the new city near the old market"
    X, y = [("city ?", f"{'the small company ' * n}{answer} today") for n in range(4)], [answer] * 4
    losses = []
    for ignore_index in (-100, -1):
        extractor, _ = make(tiny_bert, "extractor", DiceLoss(ignore_index=ignore_index))
        with pytest.warns(UserWarning, match="lie in no window as a whole"):
            extractor.set_params(max_length=12, stride=1).fit(X, y)
        losses.append(extractor.history_.train_loss.tolist())
    assert losses[0] == losses[1]
