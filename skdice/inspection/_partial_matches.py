"""Scores that count a part of an entity whose border or label is wrong."""

from typing import Any

import pandas as pd

from .._extras import not_installed
from ._entity_rows import EntityRow, EntityRows, read_entities

# As nervaluate names them, and as they are named here.
_MATCHES = {"strict": "strict", "exact": "border", "ent_type": "type", "partial": "partial"}
_COUNTS = ("correct", "incorrect", "partial", "missed", "spurious")


def partial_match_report(y_true: EntityRows, y_pred: EntityRows) -> pd.DataFrame:
    """Return the scores of SemEval 2013, task 9, which also count what is nearly right.

    They are computed by the package nervaluate (the extra ``report``).

    Parameters
    ----------
    y_true, y_pred : list, Series or object array of n_sentences lists
        Of tags, or of (start, end, label), positions in words and ``end`` exclusive, as
        ``predict_spans`` gives them.

    Returns
    -------
    DataFrame
        A row for each label, and one for all (``"micro avg"``), of each kind of match: ``strict``
        (border and label), ``border`` (whatever the label), ``type`` (the label, and some word in
        common), ``partial`` (some word in common is half a match, the same border a whole one).
        Columns ``precision``, ``recall``, ``f1-score``, and counts of entities: ``correct``,
        ``incorrect``, ``partial``, ``missed``, ``spurious``.

    Raises
    ------
    ImportError
        If nervaluate is not installed.
    TypeError, ValueError
        If the numbers of sentences or tags differ, a row is of another kind, or an entity does not
        lie in its sentence; the message names the row.

    See Also
    --------
    EntityConfusionDisplay : Which labels are confused, and whose borders are wrong.

    Examples
    --------
    >>> from skdice.inspection import partial_match_report
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> y_pred = [["B-PER", "O", "O", "B-LOC"]]
    >>> partial_match_report(y_true, y_pred)["f1-score"].unstack()  # doctest: +SKIP
    match      strict  border  type  partial
    label
    LOC           1.0     1.0   1.0     1.00
    PER           0.0     0.0   1.0     0.50
    micro avg     0.5     0.5   1.0     0.75
    """
    try:
        from nervaluate import Evaluator
    except ImportError as error:
        raise not_installed("partial_match_report", "nervaluate", "report") from error
    gold = read_entities(y_true, "y_true")
    predicted = read_entities(y_pred, "y_pred", [row.n_words for row in gold])
    labels = sorted({span.label for row in (*gold, *predicted) for span in row.spans})
    evaluator = Evaluator(_as_dicts(gold), _as_dicts(predicted), tags=labels, loader="dict")
    found = evaluator.evaluate()
    results = {
        **{label: found["entities"][label] for label in labels},
        "micro avg": found["overall"],
    }
    table = {
        (label, match): {
            "precision": float(result[name].precision),
            "recall": float(result[name].recall),
            "f1-score": float(result[name].f1),
            **{count: getattr(result[name], count) for count in _COUNTS},
        }
        for label, result in results.items()
        for name, match in _MATCHES.items()
    }
    frame = pd.DataFrame.from_dict(table, orient="index")
    frame.index.names = ["label", "match"]
    return frame


def _as_dicts(rows: list[EntityRow]) -> list[list[dict[str, Any]]]:
    return [
        [{"label": span.label, "start": span.start, "end": span.end - 1} for span in row.spans]
        for row in rows
    ]
