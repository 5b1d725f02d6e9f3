"""Reader of the JSON exports of Label Studio."""

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._inputs import Span
from .._parameters import check_bool, check_option
from ._annotated_labels import has_label, make_label_array
from ._json import get_field, read_objects
from ._left_out import LeftOut
from ._spans import Mention, find_spans

# A result of an annotation, with its place for errors.
_Result = tuple[str, dict[str, Any]]

# What a row of JSON-MIN has besides the data of its task and what was annotated.
_RECORD_KEYS = {
    "id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement",
    "history", "was_cancelled",
}  # fmt: skip


def read_label_studio(
    path: str | os.PathLike[str],
    *,
    task: str = "entities",
    text: str | Sequence[str] | None = None,
    from_name: str | None = None,
    multilabel: bool = False,
) -> tuple[list[str] | list[tuple[str, str]], list[list[Span]] | np.ndarray | list[list[str]]]:
    """Read texts or pairs with entities or labels from an export of Label Studio.

    Each task gives at most one row. Of several annotations of a task that one is read which is
    marked as ground truth, else the newest. A task of which someone said, by an annotation with
    nothing in it, that it has no entities is returned with none; one that nobody annotated is left
    out. Predictions and drafts are ignored.

    Parameters
    ----------
    path : str or path-like
        A file in one of the formats JSON and JSON-MIN, plain or compressed (``.gz``, ``.xz``).
    task : {"entities", "labels", "pairs"}, default="entities"
        What to read: entities of texts (``<Labels>`` on a ``<Text>``), labels of texts
        (``<Choices>``) or labels of pairs of texts (``<Choices>``).
    text : str or sequence of two str, default=None
        Where the data of a task has the text, or both texts of a pair.

        None means, for a text, the name of the ``<Text>`` tag if the data has such a key, else
        ``"text"``, else the only string in the data; for a pair, the only two strings. The first
        annotated task decides.
    from_name : str, default=None
        Name of the ``<Labels>`` or ``<Choices>`` tag to read. None means all for entities, and for
        labels the only one that there is.
    multilabel : bool, default=False
        Whether a text or pair may have any number of labels. If False, it must have one.

    Returns
    -------
    X : list of str, or list of tuple of (str, str)
        The texts, or the pairs, as they stand.
    y : list of list of tuple of (int, int, str), or ndarray of shape (n_texts,), or list of list \
of str
        The entities of each text, ``(start, end, label)`` sorted by start; offsets count characters
        and the end is exclusive. Or the label of each text or pair: of dtype int64 if all are
        integers, else objects of type str. Or its labels, if `multilabel`.

    Warns
    -----
    UserWarning
        With counts and rows, of what is left out: tasks without an annotation, with cancelled
        annotations only or without a choice; cancelled annotations and others than the one read;
        regions without a label; results of other types, such as relations, or of other tags.

    Raises
    ------
    FileNotFoundError
        If there is no file at `path`, or a directory.
    ValueError
        If the file is not JSON, a field is missing or of another kind, a span does not lie in its
        text or the file says another text of it, the text or the tag cannot be told, a task has
        several labels but `multilabel` is False, no task is annotated, or a parameter is invalid.
        Errors in the file name the file, the line, the row, from 0, and the task.

    See Also
    --------
    write_label_studio : The other direction.

    Notes
    -----
    Label Studio counts characters (code points), a line end ``"\\r\\n"`` as two. Older
    versions, of 2021 and before, counted UTF-16 code units, where most emoji are two. The offsets
    of an annotation are taken as such if only so they fit the texts that it gives for its regions.
    White space is not compared there, for what is exported is the text that the browser showed.

    Examples
    --------
    >>> import json
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_label_studio
    >>> region = {
    ...     "from_name": "label",
    ...     "to_name": "text",
    ...     "type": "labels",
    ...     "value": {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]},
    ... }
    >>> tasks = [{"id": 1, "data": {"text": "Anna smiles."}, "annotations": [{"result": [region]}]}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "export.json"
    ...     _ = path.write_text(json.dumps(tasks), encoding="utf-8")
    ...     read_label_studio(path)
    (['Anna smiles.'], [[(0, 4, 'PER')]])
    """
    check_option("read_label_studio", "task", task, ("entities", "labels", "pairs"))
    check_bool("read_label_studio", "multilabel", multilabel)
    keys = check_text_keys("read_label_studio", task, text)
    X: list[Any] = []
    spans: list[list[Span]] = []
    labels: list[list[str]] = []
    tags: set[str] = set() if from_name is None else {from_name}
    left_out = LeftOut()
    for row, place, data, annotations in _iterate_tasks(path, from_name):
        results = _choose_results(place, annotations, row, left_out)
        if results is None:
            continue
        keys = keys or _find_text_keys(place, task, data, results)
        texts = [get_field(f"{place}, the data", data, key, str) for key in keys]
        if task == "entities":
            wanted = _select(results, "labels", from_name, row, left_out)
            mentions = _find_mentions(wanted, keys[0], data, row, left_out)
            X.append(texts[0])
            spans.append(find_spans(texts[0], mentions))
            continue
        wanted = _select(results, "choices", from_name, row, left_out)
        chosen = _find_choices(wanted, tags, row, left_out)
        if has_label(place, chosen, multilabel):
            X.append(texts[0] if task == "labels" else tuple(texts))
            labels.append(chosen)
        else:
            left_out.add("tasks without a choice", row)
    if not X:
        raise ValueError(f"{os.fspath(path)}: the file has no annotated task. {left_out}")
    left_out.warn(path)
    if task == "entities":
        return X, spans
    return X, labels if multilabel else make_label_array(labels)


def check_text_keys(owner: str, task: str, text: str | Sequence[str] | None) -> list[str]:
    """Return the keys of the text, or of both texts of a pair; empty if they are not given."""
    if text is None:
        return []
    keys: list[Any] = list(text) if isinstance(text, list | tuple) else [text]
    n_keys = 2 if task == "pairs" else 1
    are_names = all(isinstance(key, str) and key for key in keys)
    if not are_names or len(keys) != n_keys or len(set(keys)) != n_keys:
        allowed = "two different str" if n_keys == 2 else "a str"
        raise ValueError(
            f"The 'text' parameter of {owner} must be {allowed} for task={task!r}, or None. Got "
            f"{text!r} instead."
        )
    return keys


def _iterate_tasks(
    path: str | os.PathLike[str], from_name: str | None
) -> Iterator[tuple[int, str, dict[str, Any], list[Any]]]:
    """Iterate over row, place, data and annotations of the tasks of either format."""

    def get_task(item: tuple[int, str, dict[str, Any]]) -> Any:
        row, _, record = item
        # In JSON-MIN each annotation is a row: those of a task follow each other.
        return record["id"] if "id" in record and "data" not in record else (row,)

    for _, items in itertools.groupby(read_objects(path), get_task):
        row, place, record = next(items)
        if "id" in record:
            place = f"{place} (task {record['id']!r})"
        if "data" in record:
            data = get_field(place, record, "data", dict)
            # The name of annotations before version 1.0 was completions.
            key = "completions" if "completions" in record else "annotations"
            annotations = get_field(place, record, key, list) if key in record else []
        else:
            controls = _find_controls(record, from_name)
            data = {k: v for k, v in record.items() if k not in _RECORD_KEYS and k not in controls}
            annotations = [
                {**other, "result": _make_results(other, _find_controls(other, from_name))}
                for other in (record, *(item[2] for item in items))
                if other.get("annotation_id", "") is not None
            ]
        yield row, place, data, annotations


def _find_controls(record: dict[str, Any], from_name: str | None) -> list[str]:
    """Return the keys of a row of JSON-MIN that hold what was annotated."""
    keys = list(record)
    if "id" in keys and "annotator" in keys:
        found = keys[keys.index("id") + 1 : keys.index("annotator")]
    else:
        found = [key for key in keys if key not in _RECORD_KEYS and type(record[key]) is list]
    return [*found, from_name] if from_name in keys and from_name not in found else found


def _make_results(record: dict[str, Any], controls: Sequence[str]) -> list[dict[str, Any]]:
    results = []
    for name in controls:
        values = record.get(name, [])
        for value in values if type(values) is list else [values]:
            # One choice is written as a string, but so is one line of a text area.
            value = value if type(value) is dict else {"choices": [value]}
            kind = next((kind for kind in ("labels", "choices") if kind in value), "other")
            results.append({"from_name": name, "type": kind, "value": value})
    return results


def _choose_results(
    place: str, annotations: list[Any], row: int, left_out: LeftOut
) -> list[_Result] | None:
    """Return the results of one annotation; none if there is no annotation."""
    done = []
    for i, annotation in enumerate(annotations):
        where = f"{place}, annotation {i}"
        results = get_field(where, annotation, "result", list)
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            continue
        time = annotation.get("updated_at") or annotation.get("created_at") or ""
        done.append((annotation.get("ground_truth") is True, str(time), i, where, results))
    if not done:
        what = "with cancelled annotations only" if annotations else "without an annotation"
        left_out.add(f"tasks {what}", row)
        return None
    if len(done) < len(annotations):
        left_out.add("cancelled annotations", row, len(annotations) - len(done))
    if len(done) > 1:
        left_out.add("annotations besides the one read of their task", row, len(done) - 1)
    *_, where, results = max(done)
    return [(f"{where}, result {i}", result) for i, result in enumerate(results)]


def _find_text_keys(
    place: str, task: str, data: dict[str, Any], results: Sequence[_Result]
) -> list[str]:
    strings = [key for key, value in data.items() if type(value) is str]
    if task == "pairs":
        if len(strings) == 2:
            return strings
        example = "('text1', 'text2')"
    else:
        kind = "labels" if task == "entities" else "choices"
        named = [r.get("to_name") for _, r in results if type(r) is dict and r.get("type") == kind]
        for key in (*named[:1], "text", *(strings if len(strings) == 1 else [])):
            if key in strings:
                return [str(key)]
        example = repr(strings[0]) if strings else "'text'"
    raise ValueError(
        f"{place}: cannot tell which of the data to read. Its strings are {strings}. Say it, such "
        f"as in read_label_studio(path, task={task!r}, text={example})."
    )


def _select(
    results: Sequence[_Result], kind: str, from_name: str | None, row: int, left_out: LeftOut
) -> list[_Result]:
    """Return the results of one type and tag."""
    selected = []
    for place, result in results:
        found = get_field(place, result, "type", str)
        if found != kind:
            left_out.add(f"results of type {found!r}", row)
        elif from_name is not None and result.get("from_name") != from_name:
            left_out.add(f"results of the tag {result.get('from_name')!r}", row)
        else:
            selected.append((place, result))
    return selected


def _find_mentions(
    results: Sequence[_Result], key: str, data: dict[str, Any], row: int, left_out: LeftOut
) -> list[Mention]:
    mentions = []
    for place, result in results:
        name = get_field(place, result, "to_name", str) if "to_name" in result else key
        if name != key and name in data:
            left_out.add(f"regions of {name!r}", row)
            continue
        value = get_field(place, result, "value", dict)
        start, end = (get_field(place, value, side, int) for side in ("start", "end"))
        labels = get_field(place, value, "labels", list) if "labels" in value else []
        if not labels:
            left_out.add("regions without a label", row)
        shown = get_field(place, value, "text", str) if "text" in value else None
        mentions += [Mention(place, start, end, label, shown) for label in labels]
    return mentions


def _find_choices(
    results: Sequence[_Result], tags: set[str], row: int, left_out: LeftOut
) -> list[str]:
    chosen: list[str] = []
    for place, result in results:
        value = get_field(place, result, "value", dict)
        if "start" in value:
            left_out.add("choices for a region", row)
            continue
        tags.add(str(result.get("from_name")))
        if len(tags) > 1:
            first, second = sorted(tags)
            raise ValueError(
                f"{place}: the file has choices of the tags {first!r} and {second!r}. Say which "
                f"ones to read, such as in read_label_studio(path, ..., from_name={first!r})."
            )
        for choice in get_field(place, value, "choices", list):
            if type(choice) is not str or not choice:
                raise ValueError(
                    f"{place}: a choice must be a string that is not empty. Got {choice!r} instead."
                )
            chosen.append(choice)
    return chosen
