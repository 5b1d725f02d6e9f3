"""scikit-learn estimators for imbalanced text: transformers trained with F1-oriented losses."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .estimators import (
        DicePairClassifier,
        DiceQueryTagger,
        DiceSpanExtractor,
        DiceTextClassifier,
        DiceTokenTagger,
    )
    from .inspection import imbalance_report
    from .model_selection import DiceSearchCV, compare_losses, suggest_loss

__all__ = [
    "DicePairClassifier",
    "DiceQueryTagger",
    "DiceSearchCV",
    "DiceSpanExtractor",
    "DiceTextClassifier",
    "DiceTokenTagger",
    "__version__",
    "compare_losses",
    "imbalance_report",
    "suggest_loss",
]

# Looked up when first used: torch takes seconds to import, which `skdice --help` does not need.
_HOMES = ("estimators", "inspection", "model_selection")
_PACKAGES = (*_HOMES, "datasets", "labeling", "losses", "metrics")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name in __all__:
        for home in _HOMES:
            module = import_module(f".{home}", __name__)
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES})
