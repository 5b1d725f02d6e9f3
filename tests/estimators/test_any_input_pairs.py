"""DicePairClassifier on any pairs: a known label each, or an error that says why."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdice import DicePairClassifier

from ..corpora import easy_pairs
from .hypothesis_inputs import (
    NAN,
    NO_ROWS,
    ONE_EPOCH,
    attempt,
    cases,
    fails,
    generator_of,
    junk,
    one_bad_row,
    texts,
    with_row,
)
from .hypothesis_labels import labels_for, no_labels

SETTINGS = {**ONE_EPOCH, "max_length": 24}
X, Y = easy_pairs(12)
rows = st.lists(st.tuples(texts, texts), max_size=5)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*are longer than max_length"),
    pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def fitted(request, tiny_models):
    return DicePairClassifier(tiny_models(request.param), **SETTINGS).fit(X, Y)


@pytest.fixture(scope="module")
def classifier(tiny_bert):
    return DicePairClassifier(tiny_bert, **SETTINGS).fit(X, Y)


@cases(0.15)  # Twice: with WordPiece and with byte-level BPE.
@given(X=rows)
def test_predict(fitted, X):
    predicted = fitted.predict(X)
    assert predicted.shape == (len(X),)
    assert set(predicted.tolist()) <= {0, 1}


@cases(0.15)
@given(X=rows)
def test_predict_proba(fitted, X):
    p = fitted.predict_proba(X)
    assert p.shape == (len(X), 2)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)
    np.testing.assert_array_equal(fitted.predict(X), p.argmax(1))


@pytest.mark.parametrize("truncation", ["second", "error"])
@cases(0.05)
@given(X=rows)
def test_rows_that_are_too_long(classifier, truncation, X):
    classifier.set_params(truncation=truncation)
    labels = attempt(lambda: classifier.predict(X))
    classifier.set_params(truncation="longest_first")
    if isinstance(labels, ValueError):
        assert "pieces, and" in str(labels)
    else:
        assert len(labels) == len(X)


@cases(0.1)
@given(data=st.data(), X=rows)
def test_fit(tiny_bert, data, X):
    labels, y = data.draw(labels_for(len(X)))
    classifier = DicePairClassifier(tiny_bert, **SETTINGS)
    if len(set(labels)) < 2:
        with pytest.raises(ValueError, match="two classes" if labels else "no row to train on"):
            classifier.fit(X, y)
        return
    predicted = classifier.fit(X, y).predict(X)
    assert classifier.classes_.tolist() == sorted(set(labels))
    assert predicted.shape == (len(X),)
    assert set(predicted.tolist()) <= set(labels)
    assert 0 <= classifier.score(X, y) <= 1


bad_rows = st.sampled_from(
    [
        "ab",
        ("a",),
        ("a", "b", "c"),
        ("a", None),
        (NAN, "b"),
        (1, "b"),
        (["a"], "b"),
        ("a", b"b"),
        {"a", "b"},
        {"a": 1, "b": 2},
        np.array(["a", 1], dtype=object),
    ]
)


@cases(0.15)
@given(bad=one_bad_row(X, junk | bad_rows))
def test_rows_of_junk(classifier, bad):
    for call in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        fails(lambda call=call: call(bad[0]), bad[1])
    fails(lambda: DicePairClassifier(**SETTINGS).fit(bad[0], Y), bad[1])


@cases(0.05)
@given(cell=junk, column=st.integers(0, 1))
def test_tables_with_junk(classifier, cell, column):
    array = np.array(X, dtype=object)
    array[7, column] = cell
    fails(lambda: classifier.predict(array), 7)
    fails(lambda: classifier.predict(pd.DataFrame(array)), 7)


@cases(0.1)
@given(bad=one_bad_row(Y, no_labels))
def test_labels_of_junk(classifier, bad):
    fails(lambda: DicePairClassifier(**SETTINGS).fit(X, bad[0]), bad[1])
    fails(lambda: classifier.score(X, bad[0]), bad[1])


@pytest.mark.parametrize("kind", NO_ROWS)
def test_no_rows(classifier, kind):
    bad = NO_ROWS[kind]
    for call in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        fails(lambda call=call: call(bad))
    fails(lambda: DicePairClassifier(**SETTINGS).fit(bad, Y))
    fails(lambda: DicePairClassifier(**SETTINGS).fit(X, bad))


@pytest.mark.parametrize("n_columns", [0, 1, 3])
def test_tables_of_other_widths(classifier, n_columns):
    array = np.full((12, n_columns), "john", dtype=object)
    fails(lambda: classifier.predict(array))
    fails(lambda: DicePairClassifier(**SETTINGS).fit(pd.DataFrame(array), Y))


@pytest.mark.parametrize("y", [np.eye(12), [[0, 1]] * 12, np.zeros((12, 1, 1))], ids=len)
def test_several_labels_per_row(y):
    fails(lambda: DicePairClassifier(**SETTINGS).fit(X, y))


@pytest.mark.parametrize("row", [0, 5, 11])
def test_generators(classifier, row):
    fails(lambda: classifier.predict(generator_of(X)))
    fails(lambda: classifier.predict(with_row(X, row, generator_of(X[row]))), row)
    fails(lambda: DicePairClassifier(**SETTINGS).fit(X, generator_of(Y)))


@pytest.mark.parametrize("n_rows", [0, 1, 11, 13])
def test_wrong_number_of_rows(n_rows):
    fails(lambda: DicePairClassifier(**SETTINGS).fit(X, (Y * 2)[:n_rows]))
