"""The contenders, and every setting that is tried for each of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from imblearn.over_sampling import RandomOverSampler

from .corpora import Part

# Tried for every loss in this order; set losses have smaller gradients.
RATES = (2e-4, 4e-4, 1e-4)
# For losses without a parameter of their own, so that all have the same number of settings.
MORE_RATES = (3e-4, 5e-5)


def fit_once(estimator: Any, train: Part) -> Any:
    """Fit in the plain way; a recipe with several stages puts its own function in this place."""
    return estimator.fit(train.X, train.y)


class Fit(NamedTuple):
    """A way to train.

    Attributes
    ----------
    parameters : dict
        What is set on the estimator.
    alternatives : tuple of dict
        Other values of the loss's own parameter, tried with the best rate of those before.
    tasks : tuple of str
    resamples : bool
        Whether the training rows are resampled.
    train : callable
        ``train(estimator, rows)``, returns the fitted estimator.
    """

    parameters: dict[str, Any]
    alternatives: tuple[dict[str, Any], ...] = ()
    tasks: tuple[str, ...] = ("entities", "tags", "pairs", "texts", "questions")
    resamples: bool = False
    train: Callable[[Any, Part], Any] = fit_once


class Setting(NamedTuple):
    """A learning rate, None for the best of those tried before, and changed parameters."""

    lr: float | None
    parameters: dict[str, Any]


class Contender(NamedTuple):
    """A row of the tables: a way to train, and whether its decision is tuned on dev rows."""

    fit: str
    tuned: bool = False

    @property
    def decision(self) -> str:
        return "tuned" if self.tuned else "own"


FITS = {
    "ce": Fit({"loss": "ce"}),
    "ce-resampled": Fit({"loss": "ce"}, tasks=("entities", "pairs", "texts"), resamples=True),
    "wce": Fit({"loss": "wce", "K": 3.0}, ({"K": 1.0}, {"K": 10.0})),
    "focal": Fit({"loss": "focal", "gamma": 2.0}, ({"gamma": 1.0}, {"gamma": 3.0})),
    "dice": Fit({"loss": "dice", "gamma": 1.0}, ({"gamma": 0.1}, {"gamma": 10.0})),
    "tversky": Fit(
        {"loss": "tversky", "alpha": 0.3, "beta": 0.7},
        ({"alpha": 0.5, "beta": 0.5}, {"alpha": 0.2, "beta": 0.8}),
    ),
    "dsc": Fit({"loss": "dsc", "alpha": 0.01}, ({"alpha": 0.1}, {"alpha": 0.5})),
    "dsc-paper": Fit({"loss": "dsc-paper"}),
    "dsc-official": Fit({"loss": "dsc-official"}),
    # Candidates for a recommended setting; a two-stage one brings its own ``train``.
    "dice-resampled": Fit(
        {"loss": "dice", "gamma": 1.0},
        ({"gamma": 0.1}, {"gamma": 10.0}),
        tasks=("entities", "pairs", "texts"),
        resamples=True,
    ),
    "dsc-ce": Fit({"loss": "dsc", "ce_weight": 0.3}, ({"ce_weight": 0.1}, {"ce_weight": 0.5})),
    "tversky-ce": Fit(
        {"loss": "tversky", "alpha": 0.3, "beta": 0.7, "ce_weight": 0.3},
        ({"ce_weight": 0.1}, {"ce_weight": 0.5}),
    ),
}
BASELINE = "ce + decision"
CONTENDERS = {
    "ce": Contender("ce"),
    BASELINE: Contender("ce", tuned=True),
    "ce, resampled": Contender("ce-resampled"),
    "wce": Contender("wce"),
    "focal": Contender("focal"),
    "dice": Contender("dice"),
    "tversky": Contender("tversky"),
    "dsc": Contender("dsc"),
    "dsc-paper": Contender("dsc-paper"),
    "dsc-official": Contender("dsc-official"),
    "dice + decision": Contender("dice", tuned=True),
    "dice, resampled": Contender("dice-resampled"),
    "dsc + decision": Contender("dsc", tuned=True),
    "tversky + decision": Contender("tversky", tuned=True),
    "dsc with ce": Contender("dsc-ce"),
    "tversky with ce": Contender("tversky-ce"),
}
MOST_SETTINGS = len(RATES) + len(MORE_RATES)


def settings(fit: str, n: int) -> list[Setting]:
    """Return the n settings that are tried for a way to train."""
    own = [Setting(None, changed) for changed in FITS[fit].alternatives]
    rest = own or [Setting(lr, {}) for lr in MORE_RATES]
    return ([Setting(lr, {}) for lr in RATES] + rest)[:n]


def resample(train: Part, task: str, seed: int) -> Part:
    """Repeat sentences with entities once, or draw rows of rare classes again until all are equal.

    Parameters
    ----------
    train : Part
    task : {"entities", "pairs", "texts"}
    seed : int
    """
    rows = np.arange(len(train.y))
    if task == "entities":
        has_entity = [any(tag != "O" for tag in tags) for tags in train.y]
        return train.take(np.concatenate([rows, rows[has_entity]]))
    sampler = RandomOverSampler(random_state=seed)
    return train.take(sampler.fit_resample(rows[:, None], train.y)[0].ravel())
