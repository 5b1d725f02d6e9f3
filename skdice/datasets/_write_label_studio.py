"""Writer of tasks for Label Studio, with annotations or with predictions to be corrected."""

import os
from collections.abc import Sequence
from typing import Any

from .._inputs import check_pairs
from .._parameters import check_option
from .._typing import Labels, Pairs, Spans, Texts
from ._annotated_labels import check_labels
from ._json import write_objects
from ._label_studio import check_text_keys
from ._spans import (
    check_encodable,
    check_encodable_texts,
    check_same_length,
    check_texts_and_spans,
)


def write_label_studio(
    path: str | os.PathLike[str],
    X: Texts | Pairs,
    y: Spans | Labels,
    *,
    task: str = "entities",
    text: str | Sequence[str] | None = None,
    from_name: str = "label",
    model_version: str | None = None,
) -> None:
    r"""Write texts or pairs with entities or labels as tasks for Label Studio.

    Predictions are shown in the tool as pre-annotations: an annotator corrects them, and a later
    export has what became of them.

    Parameters
    ----------
    path : str or path-like
        The JSON file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X : list, Series or array of str, or of pairs of str
        The texts, or the pairs.
    y : list of list of tuple of (int, int, str), or array-like of shape (n_texts,)
        The entities of each text as ``(start, end, label)`` with offsets in characters, or with a
        score as a fourth, such as ``predict_entities`` gives them. Or the label of each text or
        pair, or a list of labels. None but those of the configuration of the project are shown.
    task : {"entities", "labels", "pairs"}, default="entities"
        What `X` and `y` are.
    text : str or sequence of two str, default=None
        Names of the ``<Text>`` tags, and the keys of the data. None means ``"text"``, for pairs
        ``("text1", "text2")``.
    from_name : str, default="label"
        Name of the ``<Labels>`` or ``<Choices>`` tag.
    model_version : str, default=None
        Name of the model of which `y` are the predictions. None means that they are annotations,
        unless spans have scores: then they are predictions of ``"skdice"``. Where a model may have
        found nothing in any text, pass a name.

    Raises
    ------
    ValueError
        If a span does not lie in its text, only some spans have a score, a text or label cannot be
        written, or a parameter is invalid. The error names the row.

    See Also
    --------
    read_label_studio : The other direction.

    Notes
    -----
    A prediction has the lowest score of its entities, so that tasks can be sorted by it: what the
    model is least sure of comes first. The configuration of a project for entities may be::

        <View>
          <Labels name="label" toName="text"> <Label value="PER"/> </Labels>
          <Text name="text" value="$text"/>
        </View>

    and one for pairs::

        <View>
          <Text name="text1" value="$text1"/> <Text name="text2" value="$text2"/>
          <Choices name="label" toName="text1"> <Choice value="0"/> <Choice value="1"/> </Choices>
        </View>

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_label_studio, write_label_studio
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tasks.json"
    ...     write_label_studio(path, ["Hi.", "Anna smiles."], [[], [(0, 4, "PER")]])
    ...     read_label_studio(path)
    (['Hi.', 'Anna smiles.'], [[], [(0, 4, 'PER')]])
    """
    check_option("write_label_studio", "task", task, ("entities", "labels", "pairs"))
    for name, value in (("from_name", from_name), ("model_version", model_version)):
        if not isinstance(value, str | None) or value == "" or (value is None and name[0] == "f"):
            raise ValueError(
                f"The {name!r} parameter of write_label_studio must be a str that is not empty. "
                f"Got {value!r} instead."
            )
    keys = check_text_keys("write_label_studio", task, text)
    keys = keys or (["text1", "text2"] if task == "pairs" else ["text"])
    rows: list[Sequence[str]]
    values: list[list[dict[str, Any]]]
    if task == "entities":
        texts, spans = check_texts_and_spans(X, y)
        if _have_scores(spans) and model_version is None:
            model_version = "skdice"
        rows = [(one,) for one in texts]
        values = [
            [_make_region(one, *span) for span in row_spans] for one, row_spans in zip(texts, spans)
        ]
    else:
        rows = _check_pairs(X) if task == "pairs" else [(one,) for one in check_encodable_texts(X)]
        labels = check_labels(y)
        check_same_length(rows, labels)
        values = [[{"type": "choices", "value": {"choices": row}}] if row else [] for row in labels]
    tags = {"from_name": from_name, "to_name": keys[0]}
    tasks = (
        _make_task(dict(zip(keys, row)), [tags | value for value in row_values], model_version)
        for row, row_values in zip(rows, values)
    )
    write_objects(path, tasks, as_list=True)


def _check_pairs(X: Any) -> list[Sequence[str]]:
    pairs = check_pairs(X)
    for i, pair in enumerate(pairs):
        for one in pair:
            check_encodable(one, f"row {i} of X")
    return list(pairs)


def _have_scores(spans: Sequence[Sequence[Any]]) -> bool:
    """Whether all spans have a score, or none."""
    n_scores = {len(span) for row in spans for span in row}
    if len(n_scores) > 1:
        lengths = [{len(span) for span in row} for row in spans]
        i = next(i for i, found in enumerate(lengths) if 3 in found)
        raise ValueError(f"All spans of y must have a score, or none; row {i} has one without.")
    return n_scores == {4}


def _make_region(
    text: str, start: int, end: int, label: str, score: float | None = None
) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text[start:end], "labels": [label]}
    return {"type": "labels", "value": value} | ({} if score is None else {"score": score})


def _make_task(
    data: dict[str, str], results: list[dict[str, Any]], model_version: str | None
) -> dict[str, Any]:
    results = [{"id": str(i)} | result for i, result in enumerate(results)]
    if model_version is None:
        return {"data": data, "annotations": [{"result": results}]}
    prediction: dict[str, Any] = {"model_version": model_version, "result": results}
    scores = [result["score"] for result in results if "score" in result]
    if scores:
        prediction["score"] = min(scores)
    return {"data": data, "predictions": [prediction]}
