"""Scorers for ``scoring=`` of scikit-learn's cross-validation and search.

For other options build one with :func:`sklearn.metrics.make_scorer`, for instance
``make_scorer(entity_f1_score, mode="strict", scheme="IOBES")``.

Examples
--------
>>> from skdice.metrics import entity_f1_scorer
>>> from sklearn.base import BaseEstimator
>>> class Outside(BaseEstimator):
...     def fit(self, X, y):
...         return self
...     def predict(self, X):
...         return [["O"] * len(words) for words in X]
>>> entity_f1_scorer(Outside(), [["Ada", "sleeps"]], [["B-PER", "O"]])
0.0
"""

from __future__ import annotations

from sklearn.metrics import make_scorer

from ._entity import entity_f1_score
from ._squad import squad_exact_match, squad_f1_score
from ._tags import tag_f1_score

entity_f1_scorer = make_scorer(entity_f1_score)
squad_exact_match_scorer = make_scorer(squad_exact_match)
squad_f1_scorer = make_scorer(squad_f1_score)
tag_f1_scorer = make_scorer(tag_f1_score)
