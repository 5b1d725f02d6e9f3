"""Classifiers and extractor inside scikit-learn's and imbalanced-learn's tools, unchanged."""

import joblib
import matplotlib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay, PrecisionRecallDisplay, f1_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier
from skdice.losses import DiceLoss
from skdice.metrics import squad_f1_score

from ..corpora import easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions

matplotlib.use("Agg")

FAST = {"max_epochs": 1, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
KINDS = ["pairs", "pairs of str", "texts", "texts of str"]


@pytest.fixture(params=KINDS)
def case(request, tiny_bert):
    """A classifier of two classes with its rows."""
    if "pairs" in request.param:
        estimator, (X, y) = DicePairClassifier(tiny_bert, **FAST), easy_pairs(24)
        y = np.array(y)
    else:
        estimator, (X, y) = DiceTextClassifier(tiny_bert, **FAST), easy_texts(24)
        y = (np.array(y) == "place").astype(int)
    if "str" in request.param:
        y = np.array(["no", "yes"], dtype=object)[y]
    return estimator, X, y


def check_predictions(fitted, X, y):
    predicted = fitted.predict(X)
    assert predicted.shape == (len(y),)
    assert set(predicted) <= set(y)
    assert 0 <= fitted.score(X, y) <= 1
    if hasattr(fitted, "predict_proba"):
        p = fitted.predict_proba(X)
        assert p.shape == (len(y), 2)
        np.testing.assert_allclose(p.sum(1), 1)


@pytest.mark.parametrize("case", ["pairs of str", "texts"], indirect=True)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda estimator, y: TunedThresholdClassifierCV(
            estimator, cv=2, scoring="balanced_accuracy", random_state=0
        ),
        lambda estimator, y: FixedThresholdClassifier(
            estimator, threshold=0.3, pos_label=max(y), response_method="predict_proba"
        ),
        lambda estimator, y: FixedThresholdClassifier(
            estimator, threshold=-0.5, pos_label=max(y), response_method="decision_function"
        ),
        lambda estimator, y: CalibratedClassifierCV(estimator, cv=2),
        lambda estimator, y: CalibratedClassifierCV(
            estimator, cv=2, ensemble=False, method="isotonic"
        ),
        lambda estimator, y: VotingClassifier([("a", estimator), ("b", estimator)], voting="soft"),
        lambda estimator, y: VotingClassifier([("a", estimator), ("b", estimator)]),
        lambda estimator, y: StackingClassifier(
            [("a", estimator), ("b", estimator)], LogisticRegression(), cv=2
        ),
        lambda estimator, y: Pipeline([("same", FunctionTransformer()), ("classify", estimator)]),
        lambda estimator, y: GridSearchCV(
            estimator,
            [{"loss": ["ce"]}, {"loss": ["dice"], "gamma": [0.1, 1.0]}],
            cv=2,
            scoring="f1_macro",
        ),
        lambda estimator, y: GridSearchCV(
            estimator.set_params(loss=DiceLoss()), {"loss__gamma": [0.1, 1.0]}, cv=2
        ),
    ],
    ids=[
        "TunedThreshold",
        "FixedThreshold of probabilities",
        "FixedThreshold of the decision",
        "Calibrated",
        "Calibrated once",
        "Voting soft",
        "Voting hard",
        "Stacking",
        "Pipeline",
        "GridSearch",
        "GridSearch over a loss object",
    ],
)
def test_meta_estimators(case, wrap):
    estimator, X, y = case
    check_predictions(wrap(estimator, y).fit(X, y), X, y)


def test_tuned_threshold_scores_the_given_metric(tiny_bert):
    X, y = easy_pairs(48)
    classifier = DicePairClassifier(tiny_bert, **{**FAST, "loss": "ce"}).fit(X, y)
    tuned = TunedThresholdClassifierCV(
        FrozenEstimator(classifier), scoring="f1", cv="prefit", refit=False
    ).fit(X, y)
    assert f1_score(y, tuned.predict(X)) > f1_score(y, classifier.predict(X))


def test_cross_validation(case):
    estimator, X, y = case
    cv = StratifiedKFold(2, shuffle=True, random_state=0)
    assert cross_val_score(estimator, X, y, cv=cv).shape == (2,)
    p = cross_val_predict(estimator, pd.Series(X), y, cv=cv, method="predict_proba")
    assert p.shape == (len(X), 2)
    sizes, train, test = learning_curve(
        estimator, X, y, cv=2, train_sizes=[0.5, 1.0], shuffle=True, random_state=0
    )
    assert sizes.tolist() == [6, 12]
    assert np.isfinite(train).all()
    assert np.isfinite(test).all()


def test_displays(case):
    estimator, X, y = case
    estimator.fit(X, y)
    curve = PrecisionRecallDisplay.from_estimator(estimator, X, y, pos_label=max(y))
    assert curve.precision[-1] == 1
    matrix = ConfusionMatrixDisplay.from_estimator(estimator, X, y).confusion_matrix
    assert matrix.shape == (2, 2)
    assert matrix.sum() == len(y)


def test_several_labels(tiny_bert):
    X, Y = easy_labels(24)
    estimator = DiceTextClassifier(tiny_bert, **FAST)
    assert cross_val_score(estimator, X, Y, cv=3).shape == (3,)
    assert cross_val_predict(estimator, X, Y, cv=3).shape == Y.shape
    search = GridSearchCV(estimator, {"loss": ["ce", "dice"]}, cv=2, scoring="f1_micro").fit(X, Y)
    assert search.predict(X).shape == Y.shape


def test_sample_weight_is_routed(tiny_bert):
    X, y = easy_pairs(24)
    weight = np.ones(24)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = DicePairClassifier(tiny_bert, **FAST)
        estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_val_score(estimator, X, y, cv=2, params={"sample_weight": weight})
    assert scores.shape == (2,)


class TestExtractor:
    @pytest.fixture(params=["table", "dicts", "pairs", "Series"])
    def rows(self, request):
        X, y = easy_questions(24, unanswerable=0.3)
        table = pd.DataFrame(X, columns=["question", "context"], index=range(24, 0, -1))
        dicts = table.to_dict("records")
        X = {"table": table, "dicts": dicts, "pairs": X, "Series": pd.Series(dicts)}[request.param]
        return X, y

    @pytest.fixture
    def extractor(self, tiny_bert):
        return DiceSpanExtractor(tiny_bert, **FAST)

    def check(self, fitted, X, y):
        predicted = fitted.predict(X)
        assert predicted.dtype == object
        assert predicted.shape == (24,)
        assert fitted.score(X, y) == squad_f1_score(y, predicted)

    def test_cross_validation(self, extractor, rows):
        X, y = rows
        scores = cross_val_score(extractor, X, y, cv=2)
        predicted = cross_val_predict(extractor, X, y, cv=2)
        # Folds of equal size: the mean of their means is that of all rows.
        assert scores.mean() == pytest.approx(squad_f1_score(y, predicted))

    def test_grid_search(self, extractor, rows):
        X, y = rows
        grid = [{"loss": ["ce"]}, {"loss": ["dice"], "gamma": [0.1, 1.0]}]
        search = GridSearchCV(extractor, grid, cv=2, error_score="raise").fit(X, y)
        assert len(search.cv_results_["params"]) == 3
        assert search.best_score_ == search.cv_results_["mean_test_score"].max()
        self.check(search, X, y)

    def test_grid_over_a_loss_object(self, extractor):
        X, y = easy_questions(24)
        extractor.set_params(loss=DiceLoss())
        search = GridSearchCV(extractor, {"loss__gamma": [0.1, 10.0]}, cv=2, error_score="raise")
        search.fit(X, y)
        assert search.best_estimator_.loss.gamma == search.best_params_["loss__gamma"]

    def test_pipeline(self, extractor, rows):
        X, y = rows
        pipeline = Pipeline([("same", FunctionTransformer()), ("answer", extractor)])
        self.check(pipeline.fit(X, y), X, y)
        assert pipeline.set_params(answer__gamma=2.0)["answer"].gamma == 2.0

    def test_frozen_and_dumped(self, extractor, rows, tmp_path):
        X, y = rows
        frozen = FrozenEstimator(extractor.fit(X, y))
        expected = extractor.predict(X).tolist()
        self.check(frozen.fit(X[:2], y[:2]), X, y)
        joblib.dump(frozen, tmp_path / "frozen")
        assert joblib.load(tmp_path / "frozen").predict(X).tolist() == expected

    def test_thresholds_are_for_classifiers(self, extractor):
        X, y = easy_questions(8)
        for tool in (FixedThresholdClassifier, TunedThresholdClassifierCV):
            with pytest.raises(ValueError, match="implementing 'fit' and 'predict_proba'"):
                tool(extractor).fit(X, y)

    def test_sample_weight_is_routed(self, extractor):
        X, y = easy_questions(24)
        with sklearn.config_context(enable_metadata_routing=True):
            extractor.set_fit_request(sample_weight=True)
            pipeline = Pipeline([("same", FunctionTransformer()), ("answer", extractor)])
            pipeline.fit(X, y, sample_weight=np.arange(24) % 2)
            without = clone(extractor).fit(X[1::2], y[1::2])
        got = pipeline["answer"].no_answer_score(X)
        np.testing.assert_allclose(got, without.no_answer_score(X), atol=1e-4)
