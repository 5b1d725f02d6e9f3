"""Work that fits share: it changes how often things are computed, not what comes out."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skdice import DiceTextClassifier
from skdice.exceptions import TruncationWarning
from skdice.model_selection import reuse_work
from skdice.text._tokenizer import WordTokenizer

from ..corpora import easy_texts
from ..io import conftest
from ..io.conftest import CASES, scores


def make(case, model, **params):
    return conftest.make(case, model, max_epochs=2, precision="fp32", loss="dice", **params)


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_without_reuse(tiny_bert, case, monkeypatch):
    estimator, X, y = make(case, tiny_bert, validation_fraction=0.25)
    expected = clone(estimator).fit(X, y)
    n_texts = []
    encode = WordTokenizer.encode
    monkeypatch.setattr(
        WordTokenizer,
        "encode",
        lambda self, texts: n_texts.append(len(texts)) or encode(self, texts),
    )
    with reuse_work():
        clone(estimator).fit(X, y)
        n_texts.clear()
        got = clone(estimator).fit(X, y)
        again = sum(n_texts)
        np.testing.assert_array_equal(scores(got, X), scores(expected, X))
    assert again == 0, "nothing is encoded again"
    assert got.history_["train_loss"].tolist() == expected.history_["train_loss"].tolist()


def test_new_targets_and_weights_do_not_meet_old_ones(tiny_bert):
    classifier, X, y = make("texts", tiny_bert)
    other = ["place" if label == "person" else "person" for label in y]
    expected = [
        scores(clone(classifier).fit(X, *rest), X)
        for rest in ((y,), (other,), (y, [0, 1, 1] * 5 + [0]))
    ]
    with reuse_work():
        for rest, score in zip(((y,), (other,), (y, [0, 1, 1] * 5 + [0])), expected):
            np.testing.assert_allclose(scores(clone(classifier).fit(X, *rest), X), score, atol=1e-5)


def test_cut_texts_are_said_once(tiny_bert):
    X, y = easy_texts(12)
    fast = {"max_epochs": 1, "max_length": 4, "random_state": 0, "verbose": 0}
    with warnings.catch_warnings(record=True, action="always") as record, reuse_work():
        for _ in range(2):
            DiceTextClassifier(tiny_bert, **fast).fit(X, y).predict(X)
    cut = [str(w.message) for w in record if w.category is TruncationWarning]
    assert len(cut) == 1
    with pytest.warns(TruncationWarning, match=r"of 12 texts are longer.*: rows? [\d, .]+$"):
        DiceTextClassifier(tiny_bert, **fast).fit(X, y)
