"""Labels of texts and pairs, as annotation tools have them: strings, none or several for a text."""

from collections.abc import Hashable, Sequence
from numbers import Integral

import numpy as np

from .._inputs import check_rows, describe
from .._typing import Labels
from ._spans import check_encodable
from ._tables import is_integer


def has_label(place: str, labels: Sequence[str], multilabel: bool) -> bool:
    """Whether a text counts as labelled; several labels are refused if only one is wanted."""
    if len(labels) > 1 and not multilabel:
        raise ValueError(
            f"{place}: one label is expected. Got {list(labels)}. Pass multilabel=True to read "
            "several of a text."
        )
    return multilabel or len(labels) == 1


def make_label_array(labels: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the only label of each text: of dtype int64 if all are integers, else of type str."""
    only = [label for (label,) in labels]
    return np.array(only, dtype=np.int64 if all(map(is_integer, only)) else object)


def check_labels(y: Labels | Sequence[Sequence[Hashable]]) -> list[list[str]]:
    """Return the labels of each text, to be written as strings."""
    rows = []
    for i, row in enumerate(check_rows(y, "y", "labels, or of lists of labels")):
        is_one = isinstance(row, str | Integral)
        labels = [row] if is_one else check_rows(row, f"Row {i} of y", "labels")
        for label in labels:
            if not isinstance(label, str | Integral) or isinstance(label, bool) or label == "":
                raise ValueError(
                    "Labels must be str that are not empty, or int; row "
                    f"{i} of y has {describe(label)}."
                )
            check_encodable(str(label), f"row {i} of y")
        rows.append([str(label) for label in labels])
    return rows
