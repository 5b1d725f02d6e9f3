import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.svm import LinearSVC

from skdice import DiceTextClassifier, DiceTokenTagger
from skdice.model_selection import StratifiedTagKFold, cross_val_predict_proba

from ..corpora import easy_corpus, easy_texts

FAST = {"max_epochs": 1, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def data():
    return make_classification(90, n_informative=4, n_classes=3, random_state=0)


@pytest.fixture
def tagger(tiny_bert):
    return DiceTokenTagger(tiny_bert, loss="ce", **FAST)


def names(y):
    return np.array(["c", "a", "b"])[y]


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("cv", [
        None,
        StratifiedKFold(4, shuffle=True, random_state=0),
        [(train.tolist(), test.tolist()) for train, test in KFold(3).split(range(90))],
        [(np.arange(90) < 45, np.arange(90) >= 45), (np.arange(90) >= 45, np.arange(90) < 45)],
    ])  # fmt: skip
    @pytest.mark.parametrize("convert", [np.asarray, names, lambda y: pd.Series(names(y)), list])
    def test_classifiers(self, data, convert, cv):
        X, y = data[0], convert(data[1])
        estimator = LogisticRegression()
        if isinstance(cv, list):  # scikit-learn takes row numbers as arrays only.
            splits = [tuple(np.arange(90)[part] for part in split) for split in cv]
        else:
            splits = cv
        np.testing.assert_allclose(
            cross_val_predict_proba(estimator, X, y, cv=cv),
            cross_val_predict(estimator, X, y, cv=splits, method="predict_proba"),
        )

    def test_several_labels_are_in_the_order_of_their_columns(self, quick_bert):
        X, y = easy_texts(12)
        y = pd.DataFrame({"sport": np.arange(12) % 2, "art": 1, "war": 0})
        y.iloc[::5, 1:] = 1 - y.iloc[::5, 1:]
        classifier, cv = DiceTextClassifier(quick_bert, **FAST), KFold(2)
        expected = cross_val_predict(classifier, X, y, cv=cv, method="predict_proba")
        found = cross_val_predict_proba(classifier, X, y, cv=cv)
        np.testing.assert_allclose(found, expected, atol=1e-6)

    def test_class_that_a_fold_lacks(self, data):
        X, y = data
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order] - 1
        expected_warning = r"3 of 3 folds lack some classes.* fold 0 .* has no -1\."
        with pytest.warns(RuntimeWarning, match=expected_warning) as caught:
            got = cross_val_predict_proba(LogisticRegression(), X, y, cv=KFold(3))
        assert caught[0].filename == __file__
        with pytest.warns(RuntimeWarning):
            expected = cross_val_predict(
                LogisticRegression(), X, y, cv=KFold(3), method="predict_proba"
            )
        np.testing.assert_allclose(got, expected)
        assert not got[y == -1, 0].any()


class TestTaggers:
    def test_rows_are_of_the_fold_that_has_not_seen_them(self, tagger):
        X, y = easy_corpus(24)
        cv = StratifiedTagKFold(2, shuffle=True, random_state=0)
        proba = cross_val_predict_proba(tagger, X, y, cv=cv)
        assert proba.shape == (24,)
        assert proba.dtype == object
        for train, test in cv.split(X, y):
            fold = tagger.fit([X[i] for i in train], [y[i] for i in train])
            for row, expected in zip(test, fold.predict_proba([X[i] for i in test])):
                np.testing.assert_allclose(proba[row], expected, atol=1e-6)
        assert [row.shape for row in proba] == [(len(words), 3) for words in X]

    def test_tag_that_a_fold_lacks(self, tagger):
        X, y = easy_corpus(12)
        y[0] = ["B-AAA" if tag != "O" else tag for tag in y[0]]
        with pytest.warns(RuntimeWarning, match="1 of 3 folds .* fold 0 .* has no 'B-AAA'"):
            proba = cross_val_predict_proba(tagger, X, y, cv=KFold(3))
        # Sorted: B-AAA, B-LOC, B-PER, O.
        for row, p in enumerate(proba):
            assert p.shape == (len(X[row]), 4)
            np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
            assert (p[:, 0] == 0).all() == (row < 4)
            assert (p[:, 1:] > 0).all()


class TestErrors:
    @pytest.mark.parametrize("estimator", [LinearSVC(), LogisticRegression, None])
    def test_no_probabilities(self, data, estimator):
        with pytest.raises(TypeError, match="takes an estimator with predict_proba"):
            cross_val_predict_proba(estimator, *data)

    def test_no_y(self, data):
        with pytest.raises(ValueError, match="needs y, the tags or labels"):
            cross_val_predict_proba(LogisticRegression(), data[0], None)

    @pytest.mark.parametrize("cv, row", [
        (ShuffleSplit(2, test_size=0.5, random_state=0), ""),
        ([([2, 3], [0, 1]), ([0, 1], [2])], "row 3 is in 0"),
        ([([2, 3], [0, 1]), ([0, 1], [2, 3, 0])], "row 0 is in 2"),
    ])  # fmt: skip
    def test_no_partition(self, cv, row):
        with pytest.raises(ValueError, match=f"partition.*{row}"):
            cross_val_predict_proba(DummyClassifier(), [[0], [1], [2], [3]], [0, 1, 0, 1], cv=cv)
