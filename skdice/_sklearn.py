"""scikit-learn's base classes, and their types for mypy.

scikit-learn has no types. In mypy's eyes a base class without a type makes a dataclass take every
keyword, so that a misspelled parameter would be no error.
"""

from typing import Any, Self

__all__ = ["BaseEstimator", "ClassifierMixin"]

MYPY = False  # True for mypy alone; other type checkers read scikit-learn's code.
if MYPY:

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        def set_score_request(self, **requests: bool | str | None) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator, ClassifierMixin
