"""DiceTokenTagger on any words: one tag each, or an error that says why."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdice import DiceTokenTagger

from ..corpora import easy_corpus
from .hypothesis_inputs import (
    NO_ROWS,
    ONE_EPOCH,
    attempt,
    cases,
    fails,
    generator_of,
    junk,
    one_bad_row,
    sentences,
    text,
    with_row,
    words,
)

SETTINGS = {**ONE_EPOCH, "max_length": 16}
X, Y = easy_corpus(16)


@pytest.fixture(scope="module", params=["bert", "roberta"])
def fitted(request, tiny_models):
    return DiceTokenTagger(tiny_models(request.param), **SETTINGS).fit(X, Y)


@pytest.fixture(scope="module")
def tagger(tiny_bert):
    return DiceTokenTagger(tiny_bert, **SETTINGS).fit(X, Y)


@cases(0.2)  # Twice: with WordPiece and with byte-level BPE.
@given(X=sentences)
def test_predict(fitted, X):
    tags = set(fitted.classes_.tolist())
    predicted = fitted.predict(X)
    assert predicted.shape == (len(X),)
    assert all(type(row) is list for row in predicted)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    assert all(tag in tags for row in predicted for tag in row)


@cases(0.1)
@given(X=sentences)
def test_predict_proba(tagger, X):
    for p, row in zip(tagger.predict_proba(X), X, strict=True):
        assert p.shape == (len(row), len(tagger.classes_))
        np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)


@cases(0.1)
@given(X=sentences)
def test_spans(tagger, X):
    check_entities(tagger.predict_spans(X), X)


@cases(0.05)
@given(texts=st.lists(text(80), max_size=4))
def test_entities_of_raw_text(tagger, texts):
    check_entities(tagger.predict_entities(texts), texts)


def check_entities(found, rows):
    for entities, row in zip(found, rows, strict=True):
        before = 0
        for start, end, label, score in entities:
            assert before <= start < end <= len(row)
            assert label in ("PER", "LOC")
            assert 0 < score <= 1
            before = end


@cases(0.1)
@given(data=st.data(), X=sentences)
def test_fit(tiny_bert, data, X):
    tags = st.one_of(st.sampled_from(["O", "B-PER", "I-PER", "B-LOC"]), words)
    y = [data.draw(st.lists(tags, min_size=len(row), max_size=len(row))) for row in X]
    classes = {tag for row in y for tag in row}
    tagger = DiceTokenTagger(tiny_bert, **SETTINGS)
    if len(classes) < 2:
        reason = "no word to train on" if not classes else "at least two different tags"
        with pytest.raises(ValueError, match=reason):
            tagger.fit(X, y)
        return
    predicted = tagger.fit(X, y).predict(X)
    assert tagger.classes_.tolist() == sorted(classes)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    assert {tag for row in predicted for tag in row} <= classes


@cases(0.1)
@given(bad=one_bad_row(X, junk | text(9)))
def test_rows_of_junk(tagger, bad):
    for call in (tagger.predict, tagger.predict_proba, tagger.predict_spans):
        fails(lambda call=call: call(bad[0]), bad[1])
    fails(lambda: DiceTokenTagger(**SETTINGS).fit(bad[0], Y), bad[1])


@cases(0.1)
@given(bad=one_bad_row(Y, junk | text(9) | st.just(["O"] * 9)))
def test_tags_of_junk(tagger, bad):
    fails(lambda: DiceTokenTagger(**SETTINGS).fit(X, bad[0]), bad[1])
    fails(lambda: tagger.score(X, bad[0]), bad[1])


@pytest.mark.parametrize("kind", NO_ROWS)
def test_no_rows(tagger, kind):
    bad = NO_ROWS[kind]
    for call in (tagger.predict, tagger.predict_proba, tagger.predict_spans):
        fails(lambda call=call: call(bad))
    fails(lambda: tagger.predict_entities(bad))
    fails(lambda: DiceTokenTagger(**SETTINGS).fit(bad, Y))
    fails(lambda: DiceTokenTagger(**SETTINGS).fit(X, bad))


@pytest.mark.parametrize("bad", [None, 5, "john", b"john"], ids=str)
def test_no_stream(tagger, bad):
    fails(lambda: tagger.predict_iter(bad))


@pytest.mark.parametrize("row", [0, 5, 600])
def test_streams_with_junk(tagger, row):
    stream = (["john"] if i != row else None for i in range(700))
    fails(lambda: list(tagger.predict_iter(stream)), row)


@pytest.mark.parametrize("row", range(0, 16, 5))
def test_words_and_tags_of_generators(tagger, row):
    fails(lambda: tagger.predict(generator_of(X)))
    fails(lambda: tagger.predict(with_row(X, row, generator_of(X[row]))), row)
    fails(lambda: DiceTokenTagger(**SETTINGS).fit(X, generator_of(Y)))


@pytest.mark.parametrize("n_rows", [0, 1, 15, 17])
def test_wrong_number_of_rows(n_rows):
    fails(lambda: DiceTokenTagger(**SETTINGS).fit(X, (Y * 2)[:n_rows]))


@cases(0.05)
@given(weight=st.lists(junk, min_size=16, max_size=16) | junk)
def test_weights_of_junk(tiny_bert, weight):
    attempt(lambda: DiceTokenTagger(tiny_bert, **SETTINGS).fit(X, Y, sample_weight=weight))


@pytest.mark.parametrize(
    "spans",
    [[3], [None], [(0,)], [(0, 1, 2)], [(0.0, 1.0)], [(1, 0)], [(0, 99)], [("a", "b")], ["ab"]],
    ids=str,
)
def test_splitters_of_junk(tagger, spans):
    fails(lambda: tagger.predict_entities(["john"], lambda text: spans), 0)


@pytest.mark.parametrize("n_words", [0, 1, 13, 14, 15, 1000, 100_000])
def test_sentences_of_any_length(tiny_bert, n_words):
    tagger = DiceTokenTagger(tiny_bert, **SETTINGS).fit(X, Y).set_params(batch_size=512)
    long = (["john", "went", "to", "oslo"] * (n_words // 4 + 1))[:n_words]
    assert [len(row) for row in tagger.predict([long])] == [n_words]


@pytest.mark.parametrize("max_length", [16, 33, 64])
def test_windows_do_not_change_what_fits(tiny_bert, max_length):
    windowed = DiceTokenTagger(tiny_bert, **{**SETTINGS, "max_length": max_length}).fit(X, Y)
    whole = DiceTokenTagger(tiny_bert, **{**SETTINGS, "max_length": None}).fit(X, Y)
    for p, q in zip(windowed.predict_proba(X), whole.predict_proba(X)):
        np.testing.assert_array_equal(p, q)
