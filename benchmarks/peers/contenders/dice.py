"""skdice with its defaults."""

# Counted
from skdice import DicePairClassifier, DiceTextClassifier

# Not counted
ESTIMATORS = {"pairs": DicePairClassifier, "texts": DiceTextClassifier}


# Counted
def fit(task):
    return ESTIMATORS[task.name](task.encoder, random_state=task.seed).fit(task.X, task.y)


def predict(estimator, X):
    return estimator.predict(X)
