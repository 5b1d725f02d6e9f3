"""TrainingCurveDisplay: curves of one and of several estimators."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdice import DiceTextClassifier, DiceTokenTagger
from skdice.inspection import TrainingCurveDisplay

from ..corpora import easy_corpus, easy_texts

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FAST = {"max_epochs": 4, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def plain(tiny_bert):
    return DiceTokenTagger(tiny_bert, **FAST).fit(*easy_corpus(16))


@pytest.fixture(scope="module")
def validated(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, validation_fraction=0.25, patience=3, **FAST)
    return tagger.fit(*easy_corpus(24))


def texts_of_legend(display):
    legends = [ax.get_legend() for ax in display.figure_.axes if ax.get_legend()]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


def test_training_loss(plain):
    display = TrainingCurveDisplay.from_estimator(plain)
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
    np.testing.assert_array_equal(line.get_ydata(), plain.history_["train_loss"])
    assert display.score_ax_ is None
    assert display.score_lines_ == []
    assert texts_of_legend(display) == ["Training loss", "Epoch kept"]
    (point,) = display.best_epoch_points_
    assert point.axes is display.ax_
    assert list(point.get_xdata()) == [plain.best_epoch_]
    assert list(point.get_ydata()) == [plain.history_["train_loss"][4]]
    assert display.ax_.get_xlabel() == "Epoch"
    assert display.ax_.get_ylabel() == "Training loss"


def test_validation_score(validated):
    display = TrainingCurveDisplay.from_estimator(validated)
    (line,) = display.score_lines_
    np.testing.assert_array_equal(line.get_ydata(), validated.history_["valid_score"])
    assert line.axes is display.score_ax_
    assert "Validation score" in display.score_ax_.get_ylabel()
    (point,) = display.best_epoch_points_
    assert point.axes is display.score_ax_
    assert list(point.get_xdata()) == [validated.best_epoch_]
    assert list(point.get_ydata()) == [validated.history_["valid_score"].max()]
    assert texts_of_legend(display) == ["Training loss", "Validation score", "Epoch kept"]


def test_several_estimators(plain, validated):
    display = TrainingCurveDisplay.from_estimator({"all rows": plain, "some rows": validated})
    assert len(display.lines_) == len(display.best_epoch_points_) == 2
    (score,) = display.score_lines_
    first, second = display.lines_
    assert first.get_color() != second.get_color() == score.get_color()
    assert score.get_linestyle() != second.get_linestyle()
    assert texts_of_legend(display)[:2] == ["all rows", "some rows"]
    assert display.best_epoch_points_[0].axes is display.ax_
    assert display.best_epoch_points_[1].axes is display.score_ax_


def test_epochs_are_whole_numbers(plain):
    display = TrainingCurveDisplay.from_estimator(plain)
    ticks = display.ax_.get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))


def test_classifiers_and_pipelines(tiny_bert):
    X, y = easy_texts(16)
    classifier = DiceTextClassifier(tiny_bert, **FAST)
    pipeline = make_pipeline(FunctionTransformer(), classifier).fit(X, y)
    display = TrainingCurveDisplay.from_estimator({"a": pipeline, "b": pipeline[-1]})
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), display.lines_[1].get_ydata())


def test_axes_of_ones_own(validated):
    _, (left, right) = plt.subplots(1, 2)
    display = TrainingCurveDisplay.from_estimator(validated, ax=left)
    assert display.ax_ is left
    assert display.figure_ is left.figure
    assert display.plot(right) is display
    assert display.ax_ is right
    assert len(display.lines_) == 1
    assert display.plot().ax_ not in (left, right)


def test_interrupted_fit_may_have_kept_no_epoch():
    history = pd.DataFrame(
        {"train_loss": [0.5, 0.4], "valid_score": [np.nan, np.nan]}, index=[1, 2]
    )
    display = TrainingCurveDisplay(histories={"": history}, best_epochs={"": 0}).plot()
    (point,) = display.best_epoch_points_
    assert not len(point.get_xdata())


class TestErrors:
    def test_not_fitted(self, tiny_bert, plain):
        tagger = DiceTokenTagger(tiny_bert)
        for estimator in (tagger, make_pipeline(tagger), {"a": plain, "b": tagger}):
            with pytest.raises(NotFittedError, match="This DiceTokenTagger instance is not fitted"):
                TrainingCurveDisplay.from_estimator(estimator)

    @pytest.mark.parametrize(
        "estimator",
        [None, "tagger", LogisticRegression(), SGDClassifier(), DiceTokenTagger, 3, {"a": None}],
    )
    def test_other_things(self, estimator):
        with pytest.raises(TypeError, match="takes fitted estimators of skdice"):
            TrainingCurveDisplay.from_estimator(estimator)

    def test_list(self, plain):
        with pytest.raises(TypeError, match="takes fitted estimators of skdice"):
            TrainingCurveDisplay.from_estimator([plain, plain])

    def test_none_at_all(self):
        with pytest.raises(ValueError, match="got an empty dict"):
            TrainingCurveDisplay.from_estimator({})

    @pytest.mark.parametrize("rows", [[], [{"lr": 1e-3}]])
    def test_stopped_in_the_first_epoch(self, rows):
        tagger = DiceTokenTagger()
        tagger.history_ = pd.DataFrame(rows)
        with pytest.raises(ValueError, match="stopped before the end of its first epoch"):
            TrainingCurveDisplay.from_estimator(tagger)
