"""The error where a package of an extra is not installed."""


def not_installed(what: str, package: str, extra: str) -> ImportError:
    """Return the error that names the packages that ``what`` needs, and the extra that has them.

    Several packages are parted by spaces.
    """
    return ImportError(
        f"{what} needs {package.replace(' ', ' and ')}, not installed here: pip install {package}. "
        f"The extra skdice[{extra}] has it."
    )
