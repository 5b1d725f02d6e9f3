"""Pictures without matplotlib."""

import sys

import pytest

from skdice.inspection import LossDerivativeDisplay


def test_the_error_names_package_and_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib.*skdice\[plot\]"):
        LossDerivativeDisplay.from_losses({"dice": "dice"})
