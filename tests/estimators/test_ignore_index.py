"""An estimator says itself what counts in training, whatever its loss object ignores."""

import pytest

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.losses import DiceLoss

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions

# An answer longer than what windows share: those with a part of it are ignored.
ANSWER = "in the new city near the old market"
CUT = [("city ?", f"{'the small company ' * n}{ANSWER} today") for n in range(4)], [ANSWER] * 4
CASES = {
    "tagger": (DiceTokenTagger, easy_corpus(8), {"max_length": 6, "stride": 1}),
    "extractor": (DiceSpanExtractor, easy_questions(8), {}),
    "answers that are cut": (DiceSpanExtractor, CUT, {"max_length": 12, "stride": 1}),
    "pairs": (DicePairClassifier, easy_pairs(8), {}),
    "texts": (DiceTextClassifier, easy_texts(8), {}),
    "multi-label": (DiceTextClassifier, easy_labels(8), {}),
    "query tagger": (DiceQueryTagger, easy_corpus(8), {"queries": {"PER": "a", "LOC": "b"}}),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*lie in no window as a whole")


def fit(model, case, loss):
    cls, rows, parameters = CASES[case]
    estimator = cls(model, loss=loss, max_epochs=1, batch_size=4, random_state=0, verbose=0)
    return estimator.set_params(precision="fp32", **parameters).fit(*rows)


@pytest.mark.parametrize("case", CASES)
def test_any_negative_number_gives_the_same_fit(tiny_bert, case):
    losses = []
    for ignore_index in (-100, -1):
        given = DiceLoss(ignore_index=ignore_index)
        losses.append(fit(tiny_bert, case, given).history_.train_loss.tolist())
        assert given.ignore_index == ignore_index, "the loss of the user is left alone"
    assert losses[0] == losses[1]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ignore_index", [0, 255])
def test_the_number_of_a_class_is_refused_before_anything_is_loaded(case, ignore_index):
    with pytest.raises(ValueError, match=f"ignore_index={ignore_index}"):
        fit("no such model", case, DiceLoss(ignore_index=ignore_index))
