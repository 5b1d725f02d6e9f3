"""What a search does by the best estimator that it has found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _best_estimator_has(method: str) -> Callable[[BestEstimatorMethods], bool]:
    """Return a check that the refitted estimator, or before ``fit`` the given one, has a method."""

    def check(search: BestEstimatorMethods) -> bool:
        if not search.refit:
            raise AttributeError(
                f"{method!r} needs refit=True: without, there is no estimator fitted on all rows. "
                f"best_params_ and cv_results_ say what to fit."
            )
        getattr(getattr(search, "best_estimator_", search.estimator), method)
        return True

    return check


class BestEstimatorMethods(MetaEstimatorMixin, BaseEstimator):
    """Prediction methods, those that the estimator has; parameters and results are its own."""

    estimator: Any
    refit: bool
    best_estimator_: Any
    scorer_: Callable[..., Any]

    @available_if(_best_estimator_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict with the best estimator."""
        return self._fitted().predict(X)

    @available_if(_best_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the class probabilities of the best estimator."""
        return self._fitted().predict_proba(X)

    @available_if(_best_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision scores of the best estimator."""
        return self._fitted().decision_function(X)

    @available_if(_best_estimator_has("predict_spans"))
    def predict_spans(self, X: Any) -> Any:
        """Find entities or answers with the best estimator."""
        return self._fitted().predict_spans(X)

    @available_if(_best_estimator_has("predict_entities"))
    def predict_entities(self, texts: Any, splitter: Any = None) -> Any:
        """Find the entities of raw texts with the best estimator."""
        return self._fitted().predict_entities(texts, splitter)

    @available_if(_best_estimator_has("predict_iter"))
    def predict_iter(self, X: Iterable[Any]) -> Any:
        """Predict a stream of rows with the best estimator, in flat memory."""
        return self._fitted().predict_iter(X)

    @available_if(_best_estimator_has("exact_match"))
    def exact_match(self, X: Any, y: Any) -> float:
        """Return the share of answers that the best estimator gets exactly right."""
        return self._fitted().exact_match(X, y)

    @available_if(_best_estimator_has("transform"))
    def transform(self, X: Any) -> Any:
        """Transform with the best estimator."""
        return self._fitted().transform(X)

    @available_if(_best_estimator_has("fit"))
    def score(self, X: Any, y: Any = None) -> float:
        """Score the best estimator by ``scoring``, or by its own ``score``."""
        fitted = self._fitted()
        return float(self.scorer_(fitted, X, y))

    @property
    def classes_(self) -> Any:
        """The classes of the best estimator."""
        return self._attribute("classes_")

    @property
    def n_features_in_(self) -> int:
        """The number of features of the best estimator."""
        return self._attribute("n_features_in_")

    @property
    def feature_names_in_(self) -> Any:
        """The names of the features of the best estimator."""
        return self._attribute("feature_names_in_")

    def _attribute(self, name: str) -> Any:
        if "best_estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name!r} before it is refitted.")
        return getattr(self.best_estimator_, name)

    def _fitted(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.target_tags = deepcopy(inner.target_tags)
        tags.input_tags = deepcopy(inner.input_tags)
        return tags
