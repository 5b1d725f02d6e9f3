"""Settings that are known to collapse are told."""

import pytest

from skdice import DiceQueryTagger, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger

from ..corpora import easy_corpus, easy_texts
from .test_span import easy_questions

FAST = {"max_epochs": 1, "lr": 3e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


@pytest.mark.parametrize(
    "estimator, rows",
    [
        (DiceTokenTagger, easy_corpus(16)),
        (DiceQueryTagger, easy_corpus(16)),
        (DiceSpanExtractor, easy_questions(16)),
        (DiceTextClassifier, easy_texts(16, n_classes=3)),
    ],
)
def test_a_preset_that_is_known_to_collapse(estimator, rows, tiny_bert):
    with pytest.warns(UserWarning, match="known to collapse") as record:
        estimator(tiny_bert, loss="dsc-paper", **FAST).fit(*rows)
    assert len([w for w in record if "known to collapse" in str(w.message)]) == 1
