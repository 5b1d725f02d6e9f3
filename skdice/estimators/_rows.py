"""Rows of texts and predictions: lists in, object arrays out."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def take(rows: Sequence[Any], index: np.ndarray) -> list[Any]:
    """Return some of the rows, in that order."""
    return [rows[i] for i in index]


def object_array(rows: Sequence[Any]) -> np.ndarray:
    """Return a 1-D object array of the rows, also if all of them have one length."""
    array = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    return array
