"""Search with Optuna, by cross-validation."""

from ._search_cv import DiceSearchCV
from ._suggest import suggest_loss

__all__ = ["DiceSearchCV", "suggest_loss"]
