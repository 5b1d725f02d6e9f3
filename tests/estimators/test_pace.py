"""What "auto" makes of the learning rate and the epochs."""

import numpy as np
import pytest

from skdice import DiceTextClassifier, DiceTokenTagger
from skdice.estimators._lesson import Lesson
from skdice.estimators._open_parameters import Pace, choose_pace, open_epochs, open_lr
from skdice.model_selection import DiceSearchCV, compare_losses

from ..corpora import easy_corpus, easy_texts
from ..io.conftest import CASES, make

AUTO = {"lr": "auto", "max_epochs": "auto"}


@pytest.mark.parametrize(
    "n_steps, n_positive, epochs",
    [
        (1, 16, 150),  # Tiny sets: 150 steps.
        (2, 20, 75),
        (7, 100, 29),  # 200 steps
        (16, 250, 13),
        (63, 1000, 4),
        (125, 2000, 3),
        (625, 10_000, 3),
        (16, 100, 13),
        (19, 100, 12),  # 1,200 presentations of texts with positives
        (63, 100, 12),
        (10, 53, 23),
        (2000, 10, 30),
    ],
)
def test_epochs_count_steps_and_texts_with_positives(n_steps, n_positive, epochs):
    assert open_epochs(n_steps, 1200 / n_positive) == epochs


@pytest.mark.parametrize(
    "size, lr", [(32, 5e-4), (384, 2e-4), (768, 5e-5), (1024, 2.8e-5), (4096, 1e-5)]
)
def test_rate_goes_by_the_size_of_the_encoder(size, lr):
    assert open_lr(size) == pytest.approx(lr)


@pytest.mark.parametrize(
    "params, expected",
    [
        ({"lr": "auto", "max_epochs": 3}, Pace(3, 5e-5, 2.5e-4)),
        ({"lr": "auto", "head_lr": 1e-3, "max_epochs": 3}, Pace(3, 5e-5, 1e-3)),
        ({"lr": 1e-4, "max_epochs": 3}, Pace(3, 1e-4, 1e-4)),
        ({"lr": 1e-4, "head_lr": 1e-3, "max_epochs": "auto"}, Pace(7, 1e-4, 1e-3)),
    ],
)
def test_what_is_given_stays(params, expected):
    assert choose_pace(DiceTokenTagger(**params), 7, 768) == expected


@pytest.mark.parametrize("case", CASES)
def test_every_estimator_takes_it(tiny_models, tmp_path, case):
    estimator, X, y = make(case, tiny_models("bert"), lr="auto")
    estimator.fit(X, y)
    assert estimator.lr_ == 5e-4
    assert estimator.max_epochs_ == 1
    assert estimator.lr == "auto"
    assert (estimator.net_.lr, estimator.net_.head_lr) == pytest.approx((5e-4, 2.5e-3))
    estimator.save_pretrained(tmp_path / "saved")
    loaded = type(estimator).from_pretrained(tmp_path / "saved")
    assert (loaded.lr, loaded.lr_, loaded.max_epochs_) == ("auto", 5e-4, 1)


def test_epochs_are_those_of_the_training_rows(tiny_models, monkeypatch):
    """A fold has fewer rows and takes more epochs; accumulated batches are one step."""
    for name, value in {"_STEPS": 48, "_FEWEST_STEPS": 1}.items():
        monkeypatch.setattr(f"skdice.estimators._open_parameters.{name}", value)
    monkeypatch.setattr(Lesson, "n_passes", 4.0)
    X, y = easy_texts(48, n_classes=2)
    one = DiceTextClassifier(tiny_models("bert"), batch_size=4, verbose=0, random_state=0)
    assert one.fit(X, y).max_epochs_ == 4  # 12 steps, 24 rows of the rarer class
    assert len(one.history_) == 4
    one.set_params(validation_fraction=0.25, accumulate=2)
    assert one.fit(X, y).max_epochs_ == 10  # 5 steps


def test_tools_that_ask_for_the_numbers(tiny_models):
    X, y = easy_corpus(24)
    tagger = DiceTokenTagger(
        tiny_models("bert"), verbose=0, random_state=0, batch_size=12, lr="auto", max_epochs=1
    )
    search = DiceSearchCV(tagger, n_trials=2, cv=2, random_state=0).fit(X, y)
    rates = np.asarray(search.cv_results_["param_lr"], float)
    assert np.all((rates >= 5e-4 / 4) & (rates <= 5e-4 * 4))
    tagger.set_params(max_epochs="auto")
    table = compare_losses(tagger, X, y, X, y, losses=["ce"], seeds=[0])
    assert "'auto' epochs" in table.to_markdown()
