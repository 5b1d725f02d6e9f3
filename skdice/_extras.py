"""The error where a package of an extra is not installed."""


def not_installed(what: str, package: str, extra: str) -> ImportError:
    """Return the error that names a package, and the extra that has it.

    Parameters
    ----------
    what : str
        That needs it.
    package : str
        Its name for pip; several are parted by spaces.
    extra : str
    """
    return ImportError(
        f"{what} needs {package.replace(' ', ' and ')}, not installed here: pip install {package}. "
        f"The extra skdice[{extra}] has it."
    )
