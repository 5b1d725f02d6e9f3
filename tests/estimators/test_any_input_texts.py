"""DiceTextClassifier on any texts: known labels, or an error that says why."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skdice import DiceTextClassifier

from ..corpora import easy_labels, easy_texts
from .hypothesis_inputs import (
    NO_ROWS,
    ONE_EPOCH,
    as_array,
    as_series,
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
X, Y = easy_texts(12, n_classes=3)
rows = st.lists(texts, max_size=5)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*are longer than max_length"),
    pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def fitted(request, tiny_models):
    return DiceTextClassifier(tiny_models(request.param), **SETTINGS).fit(X, Y)


@pytest.fixture(scope="module")
def classifier(tiny_bert):
    return DiceTextClassifier(tiny_bert, **SETTINGS).fit(X, Y)


@pytest.fixture(scope="module")
def multilabel(tiny_bert):
    return DiceTextClassifier(tiny_bert, **SETTINGS).fit(*easy_labels(12))


@cases(0.15)  # Twice: with WordPiece and with byte-level BPE.
@given(X=rows, contain=st.sampled_from([list, tuple, as_array, as_series]))
def test_predict(fitted, X, contain):
    predicted = fitted.predict(contain(X))
    assert predicted.shape == (len(X),)
    assert set(predicted.tolist()) <= {"person", "place", "neither"}


@cases(0.15)
@given(X=rows)
def test_predict_proba(fitted, X):
    p = fitted.predict_proba(X)
    assert p.shape == (len(X), 3)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[p.argmax(1)])


@cases(0.15)
@given(X=rows)
def test_predict_several_labels(multilabel, X):
    p = multilabel.predict_proba(X)
    assert p.shape == (len(X), 2)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_array_equal(multilabel.predict(X), p > 0.5)


@cases(0.1)
@given(data=st.data(), X=rows)
def test_fit(tiny_bert, data, X):
    labels, y = data.draw(labels_for(len(X)))
    classifier = DiceTextClassifier(tiny_bert, **SETTINGS)
    if len(set(labels)) < 2:
        with pytest.raises(ValueError, match="two classes" if labels else "no row to train on"):
            classifier.fit(X, y)
        return
    predicted = classifier.fit(X, y).predict(X)
    assert classifier.classes_.tolist() == sorted(set(labels))
    assert predicted.shape == (len(X),)
    assert set(predicted.tolist()) <= set(labels)
    assert 0 <= classifier.score(X, y) <= 1


@cases(0.05)
@given(data=st.data(), X=st.lists(texts, min_size=1, max_size=5), n_labels=st.integers(2, 4))
def test_fit_several_labels(tiny_bert, data, X, n_labels):
    row = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)
    rows = data.draw(st.lists(row, min_size=len(X), max_size=len(X)))
    contain = st.sampled_from([list, np.array, pd.DataFrame, sparse.csr_matrix])
    y = data.draw(contain)(rows)
    classifier = DiceTextClassifier(tiny_bert, **SETTINGS)
    if not np.any(rows):
        with pytest.raises(ValueError, match="needs a row with a label"):
            classifier.fit(X, y)
        return
    predicted = classifier.fit(X, y).predict(X)
    assert predicted.shape == (len(X), n_labels)
    assert set(predicted.ravel().tolist()) <= {0, 1}
    assert 0 <= classifier.score(X, y) <= 1


@cases(0.1)
@given(bad=one_bad_row(X, junk))
def test_rows_of_junk(classifier, bad):
    for call in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        fails(lambda call=call: call(bad[0]), bad[1])
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(bad[0], Y), bad[1])


@cases(0.1)
@given(bad=one_bad_row(Y, no_labels.filter(lambda label: not isinstance(label, str))))
def test_labels_of_junk(classifier, bad):
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(X, bad[0]), bad[1])
    fails(lambda: classifier.score(X, bad[0]), bad[1])


@cases(0.05)
@given(cell=junk.filter(lambda cell: cell is not True), i=st.integers(0, 11))
def test_matrices_of_junk(cell, i):
    rows = [[0, 1] for _ in X]
    rows[i] = [cell, 1]
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(X, rows), i)


@cases(0.05)
@given(
    row=junk | st.lists(st.integers(0, 1)).filter(lambda row: len(row) != 2), i=st.integers(1, 11)
)
def test_rows_of_matrices_of_junk(row, i):
    rows = with_row([[0, 1] for _ in X], i, row)
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(X, rows), i)


@pytest.mark.parametrize("kind", NO_ROWS)
def test_no_rows(classifier, kind):
    bad = NO_ROWS[kind]
    for call in (classifier.predict, classifier.predict_proba, classifier.decision_function):
        fails(lambda call=call: call(bad))
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(bad, Y))
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(X, bad))


@pytest.mark.parametrize("n_columns", [0, 2, 3])
def test_tables_of_other_widths(classifier, n_columns):
    array = np.full((12, n_columns), "john", dtype=object)
    fails(lambda: classifier.predict(array))
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(pd.DataFrame(array), Y))


@pytest.mark.parametrize("shape", [(12, 0), (12, 2, 2), (11, 2), (13, 2), (0, 2)], ids=str)
def test_matrices_of_other_shapes(tiny_bert, shape):
    fails(lambda: DiceTextClassifier(tiny_bert, **SETTINGS).fit(X, np.ones(shape)))


@pytest.mark.parametrize("row", [0, 5, 11])
def test_generators(classifier, row):
    fails(lambda: classifier.predict(generator_of(X)))
    fails(lambda: classifier.predict(with_row(X, row, generator_of(X[row]))), row)
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(X, generator_of(Y)))


@pytest.mark.parametrize("n_rows", [0, 1, 11, 13])
def test_wrong_number_of_rows(n_rows):
    fails(lambda: DiceTextClassifier(**SETTINGS).fit(X, (Y * 2)[:n_rows]))
