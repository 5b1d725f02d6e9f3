"""Text among columns of numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdice import DicePairClassifier, DiceTextClassifier, DiceTextEncoder

from ..corpora import easy_labels, easy_pairs, easy_texts

FAST = {"max_epochs": 2, "lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
X, Y = easy_texts(24)


def test_rows_are_scored_by_networks_that_have_not_seen_them(tiny_bert):
    classifier = DiceTextClassifier(tiny_bert, **FAST)
    encoder = DiceTextEncoder(classifier, cv=3)
    scores = encoder.fit_transform(X, Y)
    expected = cross_val_predict(classifier, X, Y, cv=3, method="decision_function")
    np.testing.assert_array_equal(scores[:, 0], expected)
    whole = clone(classifier).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(encoder.transform(X)[:, 0], whole)
    assert not np.allclose(whole, expected)


@pytest.mark.parametrize("y", [[1, 2], ["a", "b"]])
def test_folds_learn_the_labels_as_they_are(y, tiny_bert):
    """Positive class and class weights are named by them."""
    labels = np.array([y[label != Y[0]] for label in Y])
    weight = {y[0]: 10.0, y[1]: 1.0}
    classifier = DiceTextClassifier(
        tiny_bert, loss="ce", pos_label=y[0], class_weight=weight, **FAST
    )
    scores = DiceTextEncoder(classifier, cv=KFold(2)).fit_transform(X, labels)
    for train, test in KFold(2).split(X):
        part = clone(classifier).fit([X[i] for i in train], labels[train])
        expected = part.decision_function([X[i] for i in test])
        np.testing.assert_array_equal(scores[test, 0], expected)


def test_class_that_a_fold_has_not_seen(tiny_bert):
    texts, labels = easy_texts(24, n_classes=3)
    rows = np.argsort(labels, kind="stable")
    texts, labels = [texts[i] for i in rows], np.asarray(labels)[rows]
    encoder = DiceTextEncoder(DiceTextClassifier(tiny_bert, **FAST), cv=KFold(3))
    scores = encoder.fit_transform(texts, labels)
    assert scores.shape == (24, 3)
    unseen = labels == encoder.estimator_.classes_[0]
    assert (scores[unseen].argmin(1) == 0).all()


def test_folds_that_leave_rows_out(tiny_bert):
    encoder = DiceTextEncoder(DiceTextClassifier(tiny_bert, **FAST), cv=TimeSeriesSplit(2))
    with pytest.raises(ValueError, match=r"in exactly one test part of cv; row 0 is in 0"):
        encoder.fit_transform(X, Y)


@pytest.mark.parametrize(
    "rows, names",
    [
        (easy_texts(24), ["place"]),
        (easy_texts(24, n_classes=3), ["neither", "person", "place"]),
        (easy_labels(24), None),
    ],
)
def test_names(rows, names, tiny_bert):
    encoder = DiceTextEncoder(DiceTextClassifier(tiny_bert, **FAST), cv=2)
    scores = encoder.fit_transform(*rows)
    found = encoder.get_feature_names_out().tolist()
    assert found == (names or list(map(str, encoder.estimator_.classes_)))
    assert scores.shape == encoder.transform(rows[0]).shape == (24, len(found))
    encoder.set_output(transform="pandas")
    assert encoder.transform(rows[0]).columns.tolist() == found


@pytest.mark.parametrize("columns", ["text", ["text"], ["text", "other"]])
def test_among_other_columns(columns, tiny_bert):
    pairs = columns == ["text", "other"]
    if pairs:
        rows, y = easy_pairs(24)
        text, other = zip(*rows)
        cls = DicePairClassifier
    else:
        (text, y), other, cls = (X, Y), X, DiceTextClassifier
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"text": text, "other": other, "price": rng.normal(size=24), "kind": list("ab") * 12}
    )
    model = make_pipeline(
        ColumnTransformer(
            [
                ("text", DiceTextEncoder(cls(tiny_bert, **FAST), cv=2), columns),
                ("number", StandardScaler(), ["price"]),
                ("kind", OneHotEncoder(), ["kind"]),
            ]
        ),
        LogisticRegression(),
    )
    assert model.fit(table, y).predict(table).shape == (24,)
    names = model[0].get_feature_names_out().tolist()
    assert names[1:] == ["number__price", "kind__kind_a", "kind__kind_b"]
    assert model[-1].coef_.shape == (1, 4)


def test_parameters_are_searched(tiny_bert):
    model = make_pipeline(
        DiceTextEncoder(DiceTextClassifier(tiny_bert, **FAST), cv=2), LogisticRegression()
    )
    grid = {"dicetextencoder__estimator__max_epochs": [1, 2]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_not_fitted(tiny_bert):
    encoder = DiceTextEncoder(DiceTextClassifier(tiny_bert))
    for ask in (encoder.transform, encoder.get_feature_names_out):
        with pytest.raises(NotFittedError):
            ask(X)
