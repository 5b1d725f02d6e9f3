"""Whatever the words: one tag each, or a ValueError that says why. All of Unicode, any lengths.

The number of cases comes from SKDICE_HYPOTHESIS_EXAMPLES: few here, thousands for a release.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skdice import DiceTokenTagger

from ..corpora import easy_corpus

N_EXAMPLES = int(os.environ.get("SKDICE_HYPOTHESIS_EXAMPLES", "40"))
CASES = settings(
    max_examples=N_EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
FEW_CASES = settings(CASES, max_examples=max(10, N_EXAMPLES // 10))

# Lone surrogates, unassigned code points and control characters included.
words = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=12),
    st.sampled_from(["", " ", "\u200b", "\x00", "\ufeff", "[CLS]", "<s>", "\ud800", "a" * 200]),
)
sentences = st.lists(st.lists(words, max_size=40), max_size=5)


@pytest.fixture(scope="module", params=["bert", "roberta"])
def fitted(request):
    model = request.getfixturevalue(f"tiny_{request.param}")
    return DiceTokenTagger(
        model, max_epochs=1, lr=1e-2, max_length=16, random_state=0, verbose=0
    ).fit(*easy_corpus(16))


@CASES
@given(X=sentences)
def test_predict(fitted, X):
    tags = set(fitted.classes_.tolist())
    predicted = fitted.predict(X)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    assert all(tag in tags for row in predicted for tag in row)


@FEW_CASES
@given(X=sentences)
def test_predict_proba(fitted, X):
    for p, row in zip(fitted.predict_proba(X), X, strict=True):
        assert p.shape == (len(row), len(fitted.classes_))
        np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)


@FEW_CASES
@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=80), max_size=4))
def test_entities_of_raw_text(fitted, texts):
    for entities, text in zip(fitted.predict_entities(texts), texts, strict=True):
        before = 0
        for start, end, label, score in entities:
            assert before <= start < end <= len(text)
            assert label in ("PER", "LOC")
            assert 0 < score <= 1
            before = end


@FEW_CASES
@given(data=st.data(), X=sentences)
def test_fit(tiny_bert, data, X):
    tags = st.one_of(st.sampled_from(["O", "B-PER", "I-PER", "B-LOC"]), words)
    y = [data.draw(st.lists(tags, min_size=len(row), max_size=len(row))) for row in X]
    classes = {tag for row in y for tag in row}
    tagger = DiceTokenTagger(tiny_bert, max_epochs=1, max_length=16, random_state=0, verbose=0)
    if len(classes) < 2:
        reason = "no word to train on" if not classes else "at least two different tags"
        with pytest.raises(ValueError, match=reason):
            tagger.fit(X, y)
        return
    predicted = tagger.fit(X, y).predict(X)
    assert tagger.classes_.tolist() == sorted(classes)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    assert {tag for row in predicted for tag in row} <= classes


@pytest.mark.parametrize("n_words", [0, 1, 13, 14, 15, 1000, 100_000])
def test_sentences_of_any_length(fitted, n_words):
    fitted.set_params(batch_size=512)
    X = [(["john", "went", "to", "oslo"] * (n_words // 4 + 1))[:n_words]]
    assert [len(row) for row in fitted.predict(X)] == [n_words]


@pytest.mark.parametrize("max_length", [16, 33, 64])
def test_windows_do_not_change_what_fits(tiny_bert, max_length):
    X, y = easy_corpus(16)
    parameters = {"max_epochs": 1, "lr": 1e-2, "random_state": 0, "verbose": 0}
    windowed = DiceTokenTagger(tiny_bert, max_length=max_length, **parameters).fit(X, y)
    whole = DiceTokenTagger(tiny_bert, **parameters).fit(X, y)
    for p, q in zip(windowed.predict_proba(X), whole.predict_proba(X)):
        np.testing.assert_array_equal(p, q)
