import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import FixedTrial

from skdice import DiceTokenTagger
from skdice.losses import LOSS_NAMES, loss_parameters
from skdice.model_selection import suggest_loss

ALL = {"alpha", "beta", "gamma", "memory", "ce_weight", "K"}
SEARCHED = {
    "ce": set(), "wce": {"K"}, "focal": {"gamma"}, "dice": {"gamma", "memory", "ce_weight"},
    "tversky": {"alpha", "beta", "gamma", "memory", "ce_weight"},
    "dsc": {"alpha", "gamma", "memory", "ce_weight"}, "dsc-paper": set(), "dsc-official": set(),
    "auto": set(),
}  # fmt: skip


def draws(n, *arguments, **parameters):
    """Random draws from the space, all of one study."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [suggest_loss(study.ask(), *arguments, **parameters) for _ in range(n)]


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_names(loss):
    for parameters in draws(20, [loss]):
        assert set(parameters) == ALL | {"loss"}
        assert parameters["loss"] == loss
        assert {name for name in ALL if parameters[name] is not None} == SEARCHED[loss]
        assert SEARCHED[loss] <= {*loss_parameters(loss), "K"}


@pytest.mark.parametrize("loss, name, low, high, scale", [
    ("wce", "K", 1, 10, np.log), ("focal", "gamma", 0.5, 5, np.asarray),
    ("dice", "gamma", 0.01, 10, np.log), ("dice", "ce_weight", 0, 0.5, np.asarray),
    ("dice", "memory", 1, 100, np.log), ("tversky", "alpha", 0.1, 0.9, np.asarray),
    ("tversky", "beta", 0.1, 0.9, np.asarray), ("dsc", "alpha", 0.001, 1, np.log),
])  # fmt: skip
def test_ranges(loss, name, low, high, scale):
    values = [parameters[name] for parameters in draws(300, [loss])]
    share = (scale(values) - scale(low)) / (scale(high) - scale(low))
    assert -1e-12 <= share.min() < 0.03
    assert 0.97 < share.max() <= 1 + 1e-12
    assert 0.4 < np.median(share) < 0.6


def test_all_draws_are_valid_for_an_estimator():
    seen = set()
    for parameters in draws(100, LOSS_NAMES):
        DiceTokenTagger(alpha=0.5, gamma=0.1).set_params(**parameters).check_parameters()
        seen.add(parameters["loss"])
    assert seen == set(LOSS_NAMES)


def test_names_in_the_study_are_of_one_loss_each():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(60):
        suggest_loss(study.ask())
    distributions = {}
    for trial in study.trials:
        for name, distribution in trial.distributions.items():
            assert distributions.setdefault(name, distribution) == distribution
            assert name == "loss" or name.startswith(f"{trial.params['loss']}_")
    assert set(distributions["dsc_alpha"]._asdict().values()) != set(
        distributions["tversky_alpha"]._asdict().values()
    )
    assert isinstance(distributions["loss"], CategoricalDistribution)


def test_prefix():
    trial = FixedTrial({"tagger__loss": "focal", "tagger__focal_gamma": 1.0})
    parameters = suggest_loss(trial, prefix="tagger__")
    assert parameters["tagger__gamma"] == 1.0
    assert all(name.startswith("tagger__") for name in parameters)


@pytest.mark.parametrize("losses, message", [
    (("ce", "dize"), "must be one of .*'dice'.* Got 'dize' instead"),
    ((), "at least one loss"),
    ((None,), "Got None instead"),
])  # fmt: skip
def test_errors(losses, message):
    with pytest.raises(ValueError, match=message):
        suggest_loss(FixedTrial({}), losses)
