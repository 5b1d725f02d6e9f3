"""skdice with its defaults, and with cross-entropy."""

from functools import partial

# Counted
from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger

# Not counted
ESTIMATORS = {"entities": DiceTokenTagger, "pairs": DicePairClassifier, "texts": DiceTextClassifier}


def estimator_of(task):
    estimator = ESTIMATORS[task.name]
    return partial(estimator, loss="ce") if task.contender == "skdice_ce" else estimator


# Counted
def fit(task):
    return estimator_of(task)(task.encoder, random_state=task.seed).fit(task.X, task.y)


def predict(estimator, X):
    return estimator.predict(X)
