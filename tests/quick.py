"""What of a table of cases `make test` runs; `make test-all` runs all of them."""

from collections.abc import Iterable
from typing import Any

import pytest


def quick(few: Iterable[Any], every: Iterable[Any]) -> list[Any]:
    """Return all cases for ``parametrize``, all but a few of them marked as slow."""
    few = list(few)
    return [case if case in few else pytest.param(case, marks=pytest.mark.slow) for case in every]
