"""matplotlib, which only pictures need."""

from typing import Any

from .._extras import not_installed


def load_pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise not_installed("A picture", "matplotlib", "plot") from error
    return plt
