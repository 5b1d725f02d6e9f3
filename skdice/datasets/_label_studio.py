"""Reader of the JSON exports of Label Studio, and writer of tasks for it."""

from typing import Any

import numpy as np

from .._inputs import Span
from .._parameters import check_option, not_allowed
from .._typing import Labels, Spans, Texts
from ._json import get_field, read_objects, show, write_objects
from ._spans import TASKS, Annotated, Mention, check_annotated, read_mentions
from ._text_files import FilePath


def read_label_studio(
    path: FilePath,
    *,
    task: str = "entities",
    text: str = "text",
    from_name: str | None = None,
    multilabel: bool = False,
) -> tuple[list[str], list[list[Span]] | np.ndarray | list[list[str]]]:
    r"""Read texts with entities or labels from an export of Label Studio.

    Each task gives at most one row: of several annotations the one that is marked as ground truth,
    else the newest. A task with an annotation that has nothing in it is returned without entities.
    A warning counts what is left out: tasks that nobody annotated, other annotations, regions
    without a label, relations and other results. Predictions and drafts are ignored.

    Parameters
    ----------
    path : str or path-like
        An export in the format JSON (not JSON-MIN), plain or compressed (``.gz``, ``.xz``).
    task : {"entities", "labels"}, default="entities"
        What to read: entities of texts (``<Labels>`` on a ``<Text>``) or labels of texts
        (``<Choices>``).
    text : str, default="text"
        Where the data of a task has the text.
    from_name : str, default=None
        Name of the ``<Labels>`` or ``<Choices>`` tag to read. None means all for entities, and for
        labels the only one that there is.
    multilabel : bool, default=False
        Whether a text may have any number of labels. If False, it must have one.

    Returns
    -------
    X : list of str
        The texts, as they stand.
    y : list of list of (start, end, label), ndarray of shape (n_texts,) or list of list of str
        The entities of each text, sorted; their offsets count characters, the end is exclusive. Or
        the label of each text (int64 if all are integers, else str), or its labels (`multilabel`).

    Raises
    ------
    ValueError
        If the file is not such an export, the data has no such text, a span does not lie in its
        text, the tag cannot be told, a task has several labels but `multilabel` is False, or no
        task is annotated. Errors name the file, row (from 0) and task.
    """
    rows = Annotated("read_label_studio", path, task, multilabel)
    _check_name("read_label_studio", "text", text)
    kind = "labels" if task == "entities" else "choices"
    tags: set[str] = set()
    for row, place, record in read_objects(path):
        if "id" in record:
            place = f"{place} (task {show(record['id'])})"
        data = get_field(place, record, "data", dict)
        annotations = get_field(place, {"annotations": [], **record}, "annotations", list)
        results = _choose_results(place, annotations, row, rows)
        if results is None:
            continue
        X = get_field(f"{place}, the data", data, text, str)
        found: list[Any] = []
        for where, result in results:
            type_, name = get_field(where, result, "type", str), result.get("from_name")
            region = result.get("to_name")
            if type_ != kind:
                rows.leave_out(f"results of type {type_!r}", row)
                continue
            value = get_field(where, result, "value", dict)
            if from_name not in (None, name):
                rows.leave_out(f"results of the tag {show(name)}", row)
            elif task != "entities" and "start" in value:
                rows.leave_out("choices for a region", row)
            elif task != "entities":
                tags.add(str(name))
                if len(tags) > 1:
                    raise ValueError(
                        f"{where}: the file has choices of several tags, {sorted(tags)}. Say which "
                        "ones to read, such as in read_label_studio(path, ..., "
                        f"from_name={min(tags)!r})."
                    )
                found += get_field(where, value, "choices", list)
            elif type(region) is str and region != text and region in data:
                rows.leave_out(f"regions of {region!r}", row)
            elif value.get("labels", []) == []:
                rows.leave_out("regions without a label", row)
            else:
                shown = get_field(where, value, "text", str) if "text" in value else None
                start, end = (get_field(where, value, side, int) for side in ("start", "end"))
                labels = get_field(where, value, "labels", list)
                found += [Mention(where, start, end, label, shown) for label in labels]
        if task == "entities":
            rows.add(X, read_mentions(X, found))
        else:
            rows.add_labels(place, row, X, found)
    return rows.finish()


def _check_name(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise not_allowed(owner, name, "a str that is not empty", value)


def _choose_results(
    place: str, annotations: list[Any], row: int, rows: Annotated
) -> list[tuple[str, Any]] | None:
    """Return the results of one annotation with their places; none if there is no annotation."""
    done = []
    for i, annotation in enumerate(annotations):
        where = f"{place}, annotation {i}"
        results = get_field(where, annotation, "result", list)
        if not (annotation.get("was_cancelled") or annotation.get("skipped")):
            time = annotation.get("updated_at") or annotation.get("created_at") or ""
            done.append((annotation.get("ground_truth") is True, show(time), i, where, results))
    if not done:
        what = "with cancelled annotations only" if annotations else "without an annotation"
        rows.leave_out(f"tasks {what}", row)
        return None
    rows.leave_out("cancelled annotations", row, len(annotations) - len(done))
    rows.leave_out("annotations besides the one read of their task", row, len(done) - 1)
    *_, where, results = max(done)
    return [(f"{where}, result {i}", result) for i, result in enumerate(results)]


def write_label_studio(
    path: FilePath,
    X: Texts,
    y: Spans | Labels,
    *,
    task: str = "entities",
    text: str = "text",
    from_name: str = "label",
    model_version: str | None = None,
) -> None:
    """Write texts with entities or labels as tasks for Label Studio.

    Predictions are shown in the tool as pre-annotations: an annotator corrects them, and a later
    export has what became of them.

    Parameters
    ----------
    path : str or path-like
        The JSON file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X : list, Series or array of str
    y : list of list of (start, end, label), or array-like of shape (n_texts,)
        The entities of each text, also with a score as a fourth, such as ``predict_entities`` gives
        them. Or the label of each text, or a list of labels. None but those of the configuration of
        the project are shown.
    task : {"entities", "labels"}, default="entities"
        What `y` is.
    text : str, default="text"
        Name of the ``<Text>`` tag, and the key of the data.
    from_name : str, default="label"
        Name of the ``<Labels>`` or ``<Choices>`` tag.
    model_version : str, default=None
        Name of the model of which `y` are the predictions. None means that they are annotations,
        unless spans have scores: then they are predictions of ``"skdice"``.

    Raises
    ------
    ValueError
        If a span does not lie in its text, only some spans have a score, or a text or label cannot
        be written. The error names the row.

    Notes
    -----
    A prediction has the lowest score of its entities, so that tasks can be sorted by it: what the
    model is least sure of comes first.
    """
    check_option("write_label_studio", "task", task, TASKS)
    names = {"text": text, "from_name": from_name, "model_version": model_version or "skdice"}
    for name, value in names.items():
        _check_name("write_label_studio", name, value)
    X, y = check_annotated(X, y, task)
    if task == "entities":
        lengths = {len(span) for row in y for span in row}
        if len(lengths) > 1:
            i = next(i for i, row in enumerate(y) if any(len(span) == 3 for span in row))
            raise ValueError(f"All spans of y must have a score, or none; row {i} has one without.")
        if lengths == {4} and model_version is None:
            model_version = "skdice"
        results = [[_make_region(one, *span) for span in row] for one, row in zip(X, y)]
    else:
        results = [[{"type": "choices", "value": {"choices": row}}] if row else [] for row in y]
    tags = {"from_name": from_name, "to_name": text}
    tasks = []
    for row, found in zip(X, results):
        result = {"result": [{"id": str(i), **tags, **one} for i, one in enumerate(found)]}
        if model_version is None:
            tasks.append({"data": {text: row}, "annotations": [result]})
        else:
            scores = [one["score"] for one in found if "score" in one]
            lowest = {"score": min(scores)} if scores else {}
            prediction = {"model_version": model_version, **result, **lowest}
            tasks.append({"data": {text: row}, "predictions": [prediction]})
    write_objects(path, tasks, as_list=True)


def _make_region(text: str, start: int, end: int, label: str, *scores: float) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text[start:end], "labels": [label]}
    return {"type": "labels", "value": value, **dict(zip(["score"], scores))}
