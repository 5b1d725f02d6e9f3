"""skdice with its defaults, and with cross-entropy."""

# Counted
from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger

# Not counted
ESTIMATORS = {"entities": DiceTokenTagger, "pairs": DicePairClassifier, "texts": DiceTextClassifier}
SET = {"skdice": {}, "skdice_ce": {"loss": "ce"}}


# Counted
def fit(task):
    estimator = ESTIMATORS[task.name](task.encoder, random_state=task.seed, **SET[task.contender])
    return estimator.fit(task.X, task.y)


def predict(estimator, X):
    return estimator.predict(X)
