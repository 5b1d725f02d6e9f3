"""``threshold`` of predict_spans and predict_entities: fewer entities, and never another one."""

import numpy as np
import pytest

from skdice import DiceQueryTagger, DiceTokenTagger

from ..corpora import easy_corpus

FAST = {"lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0, "max_epochs": 5}


@pytest.fixture(scope="module", params=["words", "queries", "nested queries"])
def fitted(request, tiny_bert):
    if request.param == "words":
        return DiceTokenTagger(tiny_bert, **FAST).fit(*easy_corpus(48))
    queries = {"PER": "john mary", "LOC": "oslo paris"}
    decode = "nested" if "nested" in request.param else "flat"
    return DiceQueryTagger(tiny_bert, **FAST, queries=queries, decode=decode).fit(*easy_corpus(48))


@pytest.fixture(scope="module")
def X():
    return easy_corpus(30, seed=1)[0]


class TestTaggers:
    def test_what_is_left_are_the_entities_above(self, fitted, X):
        found = fitted.predict_spans(X)
        scores = sorted(entity.score for row in found for entity in row)
        assert len(scores) > 10
        for threshold in (0.0, scores[0], scores[len(scores) // 2], scores[-1], 1.0):
            left = fitted.predict_spans(X, threshold=threshold)
            expected = [[entity for entity in row if entity.score >= threshold] for row in found]
            assert left.tolist() == expected
        assert fitted.predict_spans(X, threshold=scores[-1])[0].__class__ is list

    def test_of_one_label(self, fitted, X):
        found = fitted.predict_spans(X)
        left = fitted.predict_spans(X, threshold={"PER": 1.0})
        expected = [[e for e in row if e.label == "LOC" or e.score == 1.0] for row in found]
        assert left.tolist() == expected
        assert any(row for row in expected)
        assert left.tolist() != found.tolist()

    def test_raw_text(self, fitted):
        texts = ["john went to oslo", "mary"]
        found = fitted.predict_entities(texts)
        best = max(entity.score for row in found for entity in row)
        left = fitted.predict_entities(texts, threshold=best)
        assert left.tolist() == [[e for e in row if e.score >= best] for row in found]
        assert all(texts[i][e.start : e.end] for i, row in enumerate(left) for e in row)

    @pytest.mark.parametrize(
        "threshold, message",
        [
            (1.5, r"'threshold of LOC' parameter of predict_spans must be a float .*\[0, 1\]"),
            ("high", "Got 'high' instead"),
            (True, "Got True instead"),
            (np.nan, "Got nan instead"),
            ({"PER": -0.1}, r"'threshold of PER'.*Got -0\.1 instead"),
            ({"ORG": 0.5}, r"threshold has 'ORG', which is no label .* it has 'LOC', 'PER'\."),
        ],
    )
    def test_errors(self, fitted, X, threshold, message):
        with pytest.raises(ValueError, match=message):
            fitted.predict_spans(X, threshold=threshold)
        with pytest.raises(ValueError, match=message):
            fitted.predict_entities(["oslo"], threshold=threshold)
