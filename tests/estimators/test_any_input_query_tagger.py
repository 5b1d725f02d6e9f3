"""DiceQueryTagger on any words: entities inside the sentence, or an error that says why."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdice import DiceQueryTagger

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

SETTINGS = {**ONE_EPOCH, "queries": {"PER": "john mary", "LOC": "oslo paris"}, "max_length": 16}
X, TAGS = easy_corpus(16)
SPANS = [[(i % 3, i % 3 + 1, ["PER", "LOC"][i % 2])] for i in range(16)]


@pytest.fixture(scope="module")
def fitted(tiny_models):
    """Return a tagger of a family, fitted once; its low threshold lets it find many entities."""
    taggers = {}

    def get(family, decode):
        if family not in taggers:
            taggers[family] = DiceQueryTagger(tiny_models(family), **SETTINGS).fit(X, TAGS)
            taggers[family].threshold_ = -1.0
        return taggers[family].set_params(decode=decode)

    return get


@pytest.fixture(scope="module")
def tagger(fitted):
    return fitted("bert", "flat")


@pytest.mark.parametrize("family", ["bert", "roberta"])
@cases(0.15)
@given(X=sentences)
def test_predict(fitted, family, X):
    tagger = fitted(family, "flat")
    predicted = tagger.predict(X)
    assert predicted.shape == (len(X),)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    possible = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"}
    assert all(type(row) is list and possible.issuperset(row) for row in predicted)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("decode", ["flat", "nested"])
@cases(0.075)
@given(X=sentences)
def test_spans(fitted, family, decode, X):
    for entities, row in zip(fitted(family, decode).predict_spans(X), X, strict=True):
        check_entities(entities, len(row))
        if decode == "flat":
            assert all(before.end <= after.start for before, after in pairwise(entities))


def test_there_are_entities_to_check(fitted):
    nested = [len(row) for row in fitted("bert", "nested").predict_spans(X)]
    flat = [len(row) for row in fitted("bert", "flat").predict_spans(X)]
    assert sum(nested) > sum(flat) > 0


@cases(0.05)
@given(texts=st.lists(text(80), max_size=4))
def test_entities_of_raw_text(tagger, texts):
    for entities, raw in zip(tagger.predict_entities(texts), texts, strict=True):
        check_entities(entities, len(raw))


def check_entities(entities, length):
    assert list(entities) == sorted(entities)
    for start, end, label, score in entities:
        assert 0 <= start < end <= length
        assert label in ("PER", "LOC")
        assert 0 < score <= 1


@st.composite
def sentences_with_spans(draw):
    """Draw sentences with entities, flat or not, in some of them."""
    X = draw(st.lists(st.lists(words, max_size=12), min_size=1, max_size=4))
    y = []
    for row in X:
        places = st.tuples(st.integers(0, len(row)), st.integers(0, len(row))).map(sorted)
        labels = st.sampled_from(["A", "B"]) | text(6)
        drawn = draw(st.lists(st.tuples(places, labels), max_size=3))
        y.append([(start, end, label) for (start, end), label in drawn if start < end and label])
    return X, y


@cases(0.1)
@given(rows=sentences_with_spans(), decode=st.sampled_from(["flat", "nested"]))
def test_fit_on_spans(tiny_bert, rows, decode):
    X, y = rows
    tagger = DiceQueryTagger(tiny_bert, **ONE_EPOCH, max_length=32, decode=decode)
    error = attempt(lambda: tagger.fit(X, y))
    if not any(y):
        assert "needs an entity" in str(error)
    elif decode == "flat" and any(overlap(row) for row in y):
        assert "overlapping entities" in str(error)
    else:
        assert error is tagger
        assert set(tagger.labels_) == {label for row in y for _, _, label in row}
        assert [len(row) for row in tagger.predict(X)] == [len(row) for row in X]


def overlap(spans):
    ordered = sorted(set(spans))
    return any(after[0] < before[1] for before, after in pairwise(ordered))


@cases(0.05)
@given(data=st.data(), X=sentences)
def test_fit_on_tags(tiny_bert, data, X):
    tags = st.sampled_from(["O", "B-PER", "I-PER", "E-LOC", "B-\ud800", "U-", "L-x"]) | words
    y = [data.draw(st.lists(tags, min_size=len(row), max_size=len(row))) for row in X]
    tagger = DiceQueryTagger(tiny_bert, **ONE_EPOCH)
    if attempt(lambda: tagger.fit(X, y)) is tagger:
        assert [len(row) for row in tagger.predict(X)] == [len(row) for row in X]


@cases(0.05)
@given(bad=one_bad_row(X, junk | text(9)))
def test_rows_of_junk(tagger, bad):
    for call in (tagger.predict, tagger.predict_spans):
        fails(lambda call=call: call(bad[0]), bad[1])
    fails(lambda: DiceQueryTagger(**SETTINGS).fit(bad[0], SPANS), bad[1])


bad_spans = st.tuples(st.integers(-2, 9), st.integers(-2, 9), st.just("")) | st.sampled_from(
    [(0, 99, "PER"), (-1, 1, "PER"), (1, 1, "PER"), (0, 1), (0.0, 1, "PER"), (0, 10**400, "PER")]
)


@cases(0.1)
@given(bad=one_bad_row(SPANS, junk | bad_spans | st.lists(bad_spans | junk, min_size=1)))
def test_spans_of_junk(tagger, bad):
    fails(lambda: DiceQueryTagger(**SETTINGS).fit(X, bad[0]), bad[1])
    fails(lambda: tagger.score(X, bad[0]), bad[1])


@cases(0.05)
@given(bad=one_bad_row(TAGS, junk | text(9) | st.just(["O"] * 9)))
def test_tags_of_junk(tagger, bad):
    fails(lambda: DiceQueryTagger(**SETTINGS).fit(X, bad[0]), bad[1])
    fails(lambda: tagger.score(X, bad[0]), bad[1])


@pytest.mark.parametrize("kind", NO_ROWS)
def test_no_rows(tagger, kind):
    bad = NO_ROWS[kind]
    fails(lambda: tagger.predict(bad))
    fails(lambda: tagger.predict_spans(bad))
    fails(lambda: tagger.predict_entities(bad))
    fails(lambda: DiceQueryTagger(**SETTINGS).fit(bad, TAGS))
    fails(lambda: DiceQueryTagger(**SETTINGS).fit(X, bad))


@pytest.mark.parametrize("row", range(0, 16, 5))
def test_generators(tagger, row):
    fails(lambda: tagger.predict(generator_of(X)))
    fails(lambda: tagger.predict(with_row(X, row, generator_of(X[row]))), row)
    fails(lambda: DiceQueryTagger(**SETTINGS).fit(X, generator_of(SPANS)))
    fails(
        lambda: DiceQueryTagger(**SETTINGS).fit(X, with_row(SPANS, row, generator_of(SPANS[row]))),
        row,
    )


@pytest.mark.parametrize("n_rows", [0, 1, 15, 17])
@pytest.mark.parametrize("y", [TAGS, SPANS], ids=["tags", "spans"])
def test_wrong_number_of_rows(n_rows, y):
    fails(lambda: DiceQueryTagger(**SETTINGS).fit(X, (y * 2)[:n_rows]))
