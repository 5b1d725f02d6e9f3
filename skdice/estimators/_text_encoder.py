"""Columns of text among columns of numbers."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from .._typing import Labels
from ._base import check_partition


class DiceTextEncoder(TransformerMixin, BaseEstimator):
    """Turn texts, or pairs of texts, into the scores that a classifier gives them.

    Use it in a ``ColumnTransformer`` or ``FeatureUnion``, to combine text with numbers and
    categories. A network scores the rows that it was trained on too well. So ``fit_transform``
    gives each row the scores of a network that was not trained on this row. ``transform`` uses one
    more network, trained on all rows; so do not use ``fit(X, y).transform(X)`` for training rows.

    Parameters
    ----------
    estimator : DiceTextClassifier or DicePairClassifier
        A clone of it is fitted.
    cv : int, splitter or iterable, default=5
        Folds of ``fit_transform``, as in ``cross_val_predict``. There is one fit for each, and one
        more on all rows.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows.

    See Also
    --------
    sklearn.ensemble.StackingClassifier : The same, with all columns in each of several classifiers.

    Examples
    --------
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdice import DiceTextClassifier, DiceTextEncoder
    >>> columns = make_column_transformer(
    ...     (DiceTextEncoder(DiceTextClassifier()), ["review"]),
    ...     (StandardScaler(), ["price", "stars"]),
    ... )
    >>> model = make_pipeline(columns, LogisticRegression())
    >>> model.fit(table, is_returned)  # doctest: +SKIP
    """

    def __init__(self, estimator: Any, *, cv: Any = 5) -> None:
        self.estimator = estimator
        self.cv = cv

    def fit(self, X: Any, y: Labels) -> Self:
        """Fit the classifier on all rows.

        Parameters
        ----------
        X : rows of text
            As the classifier takes them; a column of a table, or two for pairs.
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Labels) -> np.ndarray:
        """Fit, and return the scores that networks give to rows that they have not seen.

        Parameters
        ----------
        X : rows of text
        y : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            As of :meth:`transform`.

        Raises
        ------
        ValueError
            If `cv` does not put each row in one test part.
        """
        self.fit(X, y)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        check_partition(splits, len(y), "fit_transform")
        fitted = self.estimator_
        scores = fitted.out_of_fold_scores(X, y, splits=splits)
        return _columns(fitted.task.decision_values(np.stack(scores)))

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of texts.

        Parameters
        ----------
        X : rows of text

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The log-odds of the second class if there are two, else the logit of each class.
        """
        check_is_fitted(self, "estimator_")
        return _columns(self.estimator_.decision_function(X))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the classes that the columns are scores of.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of shape (n_features,), object
        """
        check_is_fitted(self, "estimator_")
        classes = list(map(str, self.estimator_.classes_))
        has_one = len(classes) == 2 and not self.estimator_.task.is_multilabel
        return np.array(classes[1:] if has_one else classes, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


def _columns(scores: np.ndarray) -> np.ndarray:
    return np.reshape(scores, (len(scores), -1))
