"""The contenders, and every setting that is tried for each of them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from imblearn.over_sampling import RandomOverSampler
from skorch.callbacks import Callback

from .corpora import Part

# Tried for every loss in this order; set losses have smaller gradients.
RATES = (2e-4, 4e-4, 1e-4)
# For losses with no or few parameters of their own: all have the same number of settings.
MORE_RATES = (3e-4, 5e-5)


# The share of the epochs that a warm start takes.
WARM_START = 0.25


def fit_once(estimator: Any, train: Part) -> Any:
    """Fit in the plain way; a recipe with several stages puts its own function in this place."""
    return estimator.fit(train.X, train.y)


class CrossEntropyShare(Callback):
    """Sets the share of cross-entropy in the loss at the beginning of each epoch.

    Parameters
    ----------
    share : callable
        From what is over of the training, in [0, 1), to ``ce_weight``.
    """

    def __init__(self, share: Callable[[float], float]) -> None:
        self.share = share

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        net.criterion_.ce_weight = self.share((len(net.history) - 1) / net.max_epochs)


def anneal(over: float) -> float:
    """Go from cross-entropy alone in the first epoch towards the set loss, by equal steps."""
    return 1 - over


def warm_start(over: float) -> float:
    """Begin with cross-entropy alone, then change to the set loss alone."""
    return float(over < WARM_START)


def fit_in_stages(share: Callable[[float], float], estimator: Any, train: Part) -> Any:
    """Fit with a share of cross-entropy that changes from epoch to epoch."""
    return fit_once(estimator.set_params(callbacks=[CrossEntropyShare(share)]), train)


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

    def __str__(self) -> str:
        changed = [f"{name} {value:g}" for name, value in self.parameters.items()]
        return ", ".join([f"{self.lr:g}", *changed])


class Contender(NamedTuple):
    """A row of the tables.

    Attributes
    ----------
    fit : str
        The way to train.
    decision : {"own", "tuned", "either"}
        The decision as fitted, the one that is tuned on dev rows, or whichever of the two had the
        better dev score.
    """

    fit: str
    decision: str = "own"


# The set losses of the first edition are those of the step alone.
FITS = {
    "ce": Fit({"loss": "ce"}),
    "ce-resampled": Fit({"loss": "ce"}, tasks=("entities", "pairs", "texts"), resamples=True),
    "wce": Fit({"loss": "wce", "K": 3.0}, ({"K": 1.0}, {"K": 10.0})),
    "focal": Fit({"loss": "focal", "gamma": 2.0}, ({"gamma": 1.0}, {"gamma": 3.0})),
    "dice": Fit({"loss": "dice", "memory": 0, "gamma": 1.0}, ({"gamma": 0.1}, {"gamma": 10.0})),
    "tversky": Fit(
        {"loss": "tversky", "memory": 0, "alpha": 0.3, "beta": 0.7},
        ({"alpha": 0.5, "beta": 0.5}, {"alpha": 0.2, "beta": 0.8}),
    ),
    "dsc": Fit({"loss": "dsc", "memory": 0, "alpha": 0.01}, ({"alpha": 0.1}, {"alpha": 0.5})),
    "dsc-paper": Fit({"loss": "dsc-paper"}),
    "dsc-official": Fit({"loss": "dsc-official"}),
    "dice-memory": Fit({"loss": "dice", "memory": 10}, ({"memory": 30},)),
    "dice-memory-K": Fit({"loss": "dice", "memory": 10, "K": 3.0}, ({"memory": 30}, {"K": 10.0})),
    "recommended": Fit({"loss": "recommended"}),
    # Candidates for a recommended setting; a two-stage one brings its own ``train``.
    "dice-resampled": Fit(
        {"loss": "dice", "memory": 0, "gamma": 1.0},
        ({"gamma": 0.1}, {"gamma": 10.0}),
        tasks=("entities", "pairs", "texts"),
        resamples=True,
    ),
    # The batch is the set that the loss is of.
    "dice-8": Fit({"loss": "dice", "memory": 0, "gamma": 1.0, "batch_size": 8}, ({"gamma": 0.1},)),
    "dice-32": Fit(
        {"loss": "dice", "memory": 0, "gamma": 1.0, "batch_size": 32}, ({"gamma": 0.1},)
    ),
    "dice-annealed": Fit(
        {"loss": "dice", "memory": 0, "gamma": 1.0},
        ({"gamma": 0.1}, {"gamma": 10.0}),
        train=partial(fit_in_stages, anneal),
    ),
    "dice-warm": Fit(
        {"loss": "dice", "memory": 0, "gamma": 1.0},
        ({"gamma": 0.1}, {"gamma": 10.0}),
        train=partial(fit_in_stages, warm_start),
    ),
    "dsc-annealed": Fit(
        {"loss": "dsc", "memory": 0, "alpha": 0.01},
        ({"alpha": 0.1}, {"alpha": 0.5}),
        train=partial(fit_in_stages, anneal),
    ),
    "dsc-ce": Fit(
        {"loss": "dsc", "memory": 0, "ce_weight": 0.3}, ({"ce_weight": 0.1}, {"ce_weight": 0.5})
    ),
    "tversky-ce": Fit(
        {"loss": "tversky", "memory": 0, "alpha": 0.3, "beta": 0.7, "ce_weight": 0.3},
        ({"ce_weight": 0.1}, {"ce_weight": 0.5}),
    ),
    "tversky-ce-K": Fit(
        {"loss": "tversky", "memory": 0, "alpha": 0.3, "beta": 0.7, "ce_weight": 0.3, "K": 3.0},
        ({"gamma": 10.0}, {"K": 10.0}),
    ),
}
BASELINE = "ce, tuned"
CONTENDERS = {
    "ce": Contender("ce"),
    "ce + decision": Contender("ce", "tuned"),
    BASELINE: Contender("ce", "either"),
    "ce, resampled": Contender("ce-resampled"),
    "wce": Contender("wce"),
    "focal": Contender("focal"),
    "dice": Contender("dice"),
    "tversky": Contender("tversky"),
    "dsc": Contender("dsc"),
    "dsc-paper": Contender("dsc-paper"),
    "dsc-official": Contender("dsc-official"),
    "ce, resampled, tuned": Contender("ce-resampled", "either"),
    "wce, tuned": Contender("wce", "either"),
    "focal, tuned": Contender("focal", "either"),
    "dice, tuned": Contender("dice", "either"),
    "tversky, tuned": Contender("tversky", "either"),
    "dsc, tuned": Contender("dsc", "either"),
    "dice, resampled": Contender("dice-resampled"),
    "dice, batches of 8": Contender("dice-8"),
    "dice, batches of 32": Contender("dice-32"),
    "dice, annealed from ce": Contender("dice-annealed"),
    "dice, warm start by ce": Contender("dice-warm"),
    "dsc, annealed from ce": Contender("dsc-annealed"),
    "dsc with ce": Contender("dsc-ce"),
    "tversky with ce": Contender("tversky-ce"),
    "tversky with ce, weighted": Contender("tversky-ce-K"),
    "tversky with ce, weighted, tuned": Contender("tversky-ce-K", "either"),
    "dice with memory": Contender("dice-memory"),
    "dice with memory, tuned": Contender("dice-memory", "either"),
    "dice with memory, weighted": Contender("dice-memory-K"),
    "dice with memory, weighted, tuned": Contender("dice-memory-K", "either"),
    # The preset as a user calls it.
    "recommended": Contender("recommended"),
    "recommended, tuned": Contender("recommended", "either"),
}
MOST_SETTINGS = len(RATES) + len(MORE_RATES)


def settings(fit: str, n: int) -> list[Setting]:
    """Return the n settings that are tried for a way to train."""
    own = [Setting(None, changed) for changed in FITS[fit].alternatives]
    more = [Setting(lr, {}) for lr in MORE_RATES]
    return ([Setting(lr, {}) for lr in RATES] + own + more)[:n]


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
