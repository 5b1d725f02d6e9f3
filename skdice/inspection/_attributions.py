"""How much each word of a text speaks for a label."""

import re
from typing import Any

import numpy as np
import pandas as pd

from .._inputs import indexable_rows, is_table, list_some, table_cells


def word_attributions(classifier: Any, X: Any, label: Any = None) -> pd.DataFrame:
    """Tell how much each word of a text speaks for a label: how its probability falls without it.

    The classifier predicts each text once more for each of its words, which is left out (Li, Monroe
    & Jurafsky 2016, "Understanding Neural Networks through Representation Erasure"). What a word
    adds only together with another one, which says the same, does not show.

    Parameters
    ----------
    classifier : fitted DiceTextClassifier or DicePairClassifier
        Or a Pipeline that ends in one, or any classifier that takes these texts.
    X : list, Series or array of str, or of pairs of str; a DataFrame of one or two columns
    label : label, optional
        One of ``classes_``; of each text the label that is predicted, by default. A classifier of
        several labels for a text needs one.

    Returns
    -------
    DataFrame
        A row for each word, in their order: ``row`` of `X`; ``text``, which of a pair, 0 or 1;
        ``start``, ``end`` and ``word``, the characters ``text[start:end]`` between spaces;
        ``label``; ``attribution``, by how much the probability of the label falls without the word,
        in [-1, 1].

    Raises
    ------
    ValueError
        If the label is none of ``classes_``, or is missing where texts have several.

    Examples
    --------
    >>> from skdice.inspection import word_attributions
    >>> word_attributions(classifier, ["I liked the plot."]).head()  # doctest: +SKIP
    """
    classes = np.asarray(classifier.classes_).tolist()
    whole = np.asarray(classifier.predict_proba(X))
    if label is not None and label not in classes:
        raise ValueError(f"label must be one of {list_some(classes)}; got {label!r}.")
    labels = [label] * len(whole)
    if label is None:
        labels = np.asarray(classifier.predict(X)).tolist()
        if any(isinstance(found, list) for found in labels):
            raise ValueError(f"Texts have several labels, so label must be one of {classes}.")
    found, variants = [], []
    for i, row in enumerate(table_cells(X) if is_table(X) else indexable_rows(X)):
        texts = [row] if isinstance(row, str) else [*row]
        for k, text in enumerate(texts):
            for match in re.finditer(r"\S+", text):
                start, end = match.span()
                others = [*texts[:k], text[:start] + text[end:], *texts[k + 1 :]]
                variants.append(others[0] if len(others) == 1 else tuple(others))
                found.append((i, k, start, end, match[0], labels[i]))
    numbers = ["row", "text", "start", "end"]
    # The str of pandas cannot hold lone surrogates, an object can.
    table = pd.DataFrame(found, columns=[*numbers, "word", "label"], dtype=object)
    table = table.astype(dict.fromkeys(numbers, np.int64))
    place = [classes.index(name) for name in table["label"]]
    without = np.asarray(classifier.predict_proba(variants)) if found else whole[:0]
    table["attribution"] = whole[table["row"], place] - without[np.arange(len(found)), place]
    return table
