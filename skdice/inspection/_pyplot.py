"""matplotlib, which only pictures need."""

from typing import Any

from .._extras import not_installed


def axes_or_new(ax: Any = None, **figure: Any) -> Any:
    """Return the axes, or those of a new figure with the given options."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise not_installed("A picture", "matplotlib", "plot") from error
    return plt.subplots(layout="constrained", **figure)[1]
