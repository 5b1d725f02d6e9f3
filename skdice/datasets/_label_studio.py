"""Reader of the JSON exports of Label Studio, and writer of tasks for it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from .._inputs import Span
from .._parameters import not_allowed
from .._typing import Spans, Texts
from ..exceptions import warn
from ._json import get_field, read_objects, show, write_objects
from ._spans import check_annotated, check_mention, warn_of_left_out
from ._text_files import FilePath


def read_label_studio(
    path: FilePath, *, text: str = "text", from_name: str | None = None
) -> tuple[list[str], list[list[Span]]]:
    r"""Read texts with entities from an export of Label Studio.

    Each task gives at most one row: of several annotations the one that is marked as ground truth,
    else the newest. A task with an annotation that has nothing in it is returned without entities.
    A warning counts what is left out: tasks that nobody annotated, other annotations, regions
    without a label, relations and other results. Predictions and drafts are ignored.

    Parameters
    ----------
    path : str or path-like
        An export in the format JSON (not JSON-MIN), plain or compressed (``.gz``, ``.xz``).
    text : str, default="text"
        Where the data of a task has the text.
    from_name : str, default=None
        Name of the ``<Labels>`` tag to read. None means all.

    Returns
    -------
    X : list of str
        The texts, as they stand.
    y : list of list of (start, end, label)
        The entities of each text, sorted; their offsets count characters, the end is exclusive.

    Raises
    ------
    ValueError
        If the file is not such an export, the data has no such text, a span does not lie in its
        text, or no task is annotated with one. Errors name the file, row (from 0) and task.
    """
    _check_name("read_label_studio", "text", text)
    left_out = defaultdict[str, list[int]](list)  # rows of the file, by what was in them
    X, y = [], []
    choices: dict[str, int] = {}  # tags that choose a label for a whole text, and the first row
    for row, place, record in read_objects(path):
        if "id" in record:
            place = f"{place} (task {show(record['id'])})"
        if "data" not in record and ("annotator" in record or text in record):
            raise ValueError(f"{place}: this seems to be JSON-MIN. Export the project as JSON.")
        data = get_field(place, record, "data", dict)
        annotations = get_field(place, {"annotations": [], **record}, "annotations", list)
        results = _choose_results(place, annotations, row, left_out)
        if results is None:
            continue
        X.append(get_field(f"{place}, the data", data, text, str))
        spans: list[Span] = []
        for where, result in results:
            type_, name = get_field(where, result, "type", str), result.get("from_name")
            region = result.get("to_name")
            value = get_field(where, result, "value", dict) if type_ == "labels" else {}
            if type_ == "choices":
                choices.setdefault(str(name), row)
            if type_ != "labels":
                left_out[f"results of type {type_!r}"].append(row)
            elif from_name not in (None, name):
                left_out[f"results of the tag {show(name)}"].append(row)
            elif type(region) is str and region != text and region in data:
                left_out[f"regions of {region!r}"].append(row)
            elif value.get("labels", []) == []:
                left_out["regions without a label"].append(row)
            else:
                shown = get_field(where, value, "text", str) if "text" in value else None
                start, end = (get_field(where, value, side, int) for side in ("start", "end"))
                for label in get_field(where, value, "labels", list):
                    spans.append(check_mention(where, X[-1], (start, end, label), None, shown))
        y.append(sorted(spans))
    if choices and not any(y):
        found = f"no entities, but choices for whole texts, as in row {min(choices.values())}"
        use = f"use read_labeled_text(path, {text=}, label={min(choices)!r})"
        raise ValueError(f"{path}: there are {found}. Export these as CSV and {use}.")
    warn_of_left_out(path, left_out, len(X))
    return X, y


def _check_name(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise not_allowed(owner, name, "a str that is not empty", value)


def _choose_results(
    place: str, annotations: list[Any], row: int, left_out: dict[str, list[int]]
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
        left_out[f"tasks {what}"].append(row)
        return None
    for _ in annotations[len(done) :]:
        left_out["cancelled annotations"].append(row)
    for _ in done[1:]:
        left_out["annotations besides the one read of their task"].append(row)
    *_, where, results = max(done)
    return [(f"{where}, result {i}", result) for i, result in enumerate(results)]


def write_label_studio(
    path: FilePath,
    X: Texts,
    y: Spans | None,
    *,
    text: str = "text",
    from_name: str = "label",
    model_version: str | None = None,
    fields: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Write texts with entities as tasks for Label Studio.

    Predictions are shown in the tool as pre-annotations: an annotator corrects them, and a later
    export has what became of them.

    Parameters
    ----------
    path : str or path-like
        The JSON file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X : list, Series or array of str
    y : list of list of (start, end, label)
        The entities of each text, also with a score as a fourth, such as ``predict_entities`` gives
        them. The tool shows the labels that its project has. None writes texts without annotations.
    text : str, default="text"
        Name of the ``<Text>`` tag, and the key of the data.
    from_name : str, default="label"
        Name of the ``<Labels>`` tag.
    model_version : str, default=None
        Name of the model of which `y` are the predictions. None means that they are annotations,
        unless spans have scores: then they are predictions of ``"skdice"``. Tasks can be sorted by
        the score of a prediction, the lowest of its entities.
    fields : list of dict, default=None
        More data of each task, such as an id. Exports have it, too.

    Raises
    ------
    ValueError
        If a span does not lie in its text, only some spans have a score, or a text, a label or a
        field cannot be written. The error names the row.

    Warns
    -----
    UserWarning
        If no text has an entity and there is no ``model_version``: predictions would be taken for
        annotations.
    """
    names = {"text": text, "from_name": from_name, "model_version": model_version or "skdice"}
    for name, value in names.items():
        _check_name("write_label_studio", name, value)
    texts, rows, more = check_annotated(X, y, fields)
    lengths = {len(span) for row in rows for span in row}
    if len(lengths) > 1:
        i = next(i for i, row in enumerate(rows) if any(len(span) == 3 for span in row))
        raise ValueError(f"All spans of y must have a score, or none; row {i} has one without.")
    if lengths == {4} and model_version is None:
        model_version = "skdice"
    if y is not None and rows and not lengths and model_version is None:
        warn("No entity: all are written as annotated. Are they predictions? Pass a model_version.")
    tags = {"from_name": from_name, "to_name": text, "type": "labels"}
    tasks: list[dict[str, Any]] = []
    for one, spans, others in zip(texts, rows, more):
        data = {**others, text: one}
        regions = []
        for i, (start, end, label, *score) in enumerate(spans):
            region = {"start": start, "end": end, "text": one[start:end], "labels": [label]}
            regions.append({"id": str(i), **tags, "value": region, **dict(zip(["score"], score))})
        result = {"result": regions}
        if y is None:
            tasks.append({"data": data})
        elif model_version is None:
            tasks.append({"data": data, "annotations": [result]})
        else:
            scores = [span[3] for span in spans if len(span) == 4]
            lowest = {"score": min(scores)} if scores else {}
            prediction = {"model_version": model_version, **result, **lowest}
            tasks.append({"data": data, "predictions": [prediction]})
    write_objects(path, tasks, as_list=True)
