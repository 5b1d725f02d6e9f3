"""Packages of extras: what needs them, and the error where one is not installed."""

from typing import Any


def not_installed(what: str, package: str, extra: str) -> ImportError:
    """Return the error that ``what`` needs packages, parted by spaces, which an extra has."""
    return ImportError(
        f"{what} needs {package.replace(' ', ' and ')}, not installed here: pip install {package}. "
        f"The extra skdice[{extra}] has it."
    )


def axes_or_new(ax: Any = None, **figure: Any) -> Any:
    """Return the axes, or those of a new figure with the given options."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise not_installed("A picture", "matplotlib", "plot") from error
    return plt.subplots(layout="compressed", **figure)[1]
