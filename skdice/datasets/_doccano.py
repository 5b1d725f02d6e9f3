"""Reader and writer of doccano's JSON lines."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._inputs import Span
from .._parameters import check_bool, check_option
from .._typing import Labels, Spans, Texts
from ._annotated_labels import check_labels, has_label, make_label_array
from ._json import get_field, make_kind_error, read_objects, write_objects
from ._left_out import LeftOut
from ._spans import (
    Mention,
    check_encodable_texts,
    check_same_length,
    check_texts_and_spans,
    count_utf16,
    find_spans,
)

_LABEL_KEYS = ("label", "labels", "entities")
_SIDES = ("start", "end")
_OFFSETS = ("utf-16", "characters")


def read_doccano(
    path: str | os.PathLike[str],
    *,
    task: str = "entities",
    multilabel: bool = False,
    offsets: str = "utf-16",
) -> tuple[list[str], list[list[Span]] | np.ndarray | list[list[str]]]:
    """Read texts with entities or labels from an export of doccano.

    A text of which the file says that it has no entities is returned with none. doccano writes the
    same of texts that nobody has looked at yet: export the approved ones only.

    Parameters
    ----------
    path : str or path-like
        JSON lines or a JSON list, plain or compressed (``.gz``, ``.xz``), in UTF-8. Each object has
        a ``"text"`` and its annotations in ``"label"``, ``"labels"`` or ``"entities"``.
    task : {"entities", "labels"}, default="entities"
        What to read: spans, ``[start, end, label]`` or objects with ``"start_offset"``,
        ``"end_offset"`` and ``"label"``, of sequence labelling and relation extraction; or the
        labels of text classification.
    multilabel : bool, default=False
        Whether a text may have any number of labels. If False, it must have one.
    offsets : {"utf-16", "characters"}, default="utf-16"
        What offsets in the file count. doccano, a program in JavaScript, counts UTF-16 code units:
        characters beyond U+FFFF, such as most emoji, are two. Files of other programs may count
        characters. Without such characters both are the same. Projects that "count grapheme
        clusters as one character" export another count, which cannot be read.

    Returns
    -------
    X : list of str
        The texts, as they stand.
    y : list of list of tuple of (int, int, str), or ndarray of shape (n_texts,), or list of list \
of str
        The entities of each text, ``(start, end, label)`` sorted by start; their offsets count
        characters and the end is exclusive. Or the label of each text: of dtype int64 if all are
        integers, else objects of type str. Or its labels, if `multilabel`.

    Warns
    -----
    UserWarning
        With counts and rows, of what is left out: texts without annotations, relations, comments.

    Raises
    ------
    FileNotFoundError
        If there is no file at `path`, or a directory.
    ValueError
        If the file is not JSON, a field is missing or of another kind, a span does not lie in its
        text, a text has several labels but `multilabel` is False, no text is annotated, or a
        parameter is invalid. Errors in the file name the file, the line and the row, from 0.

    See Also
    --------
    write_doccano : The other direction.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_doccano
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "all.jsonl"
    ...     line = '{"text": "😀 Anna smiles.", "label": [[3, 7, "PER"]]}'
    ...     _ = path.write_text(line, encoding="utf-8")
    ...     read_doccano(path)
    (['😀 Anna smiles.'], [[(2, 6, 'PER')]])
    """
    check_option("read_doccano", "task", task, ("entities", "labels"))
    check_option("read_doccano", "offsets", offsets, _OFFSETS)
    check_bool("read_doccano", "multilabel", multilabel)
    X: list[str] = []
    spans: list[list[Span]] = []
    labels: list[list[str]] = []
    left_out = LeftOut()
    for row, place, example in read_objects(path):
        text = get_field(place, example, "text", str)
        for key in ("relations", "comments", "Comments"):
            if example.get(key):
                left_out.add(key.lower(), row, len(get_field(place, example, key, list)))
        key = next((key for key in _LABEL_KEYS if example.get(key) is not None), "")
        if not key:
            left_out.add("texts without annotations", row)
        elif task == "entities":
            if example.get("cats"):
                cats = get_field(place, example, "cats", list)
                left_out.add("labels of the text", row, len(cats))
            annotations = get_field(place, example, key, list)
            mentions = [_make_mention(place, *pair) for pair in enumerate(annotations)]
            X.append(text)
            spans.append(find_spans(text, mentions, is_utf16=offsets == "utf-16"))
        else:
            chosen = _read_labels(place, get_field(place, example, key, list, str))
            if has_label(place, chosen, multilabel):
                X.append(text)
                labels.append(chosen)
            else:
                left_out.add("texts without a label", row)
    if not X:
        raise ValueError(f"{os.fspath(path)}: the file has no annotated text. {left_out}")
    left_out.warn(path)
    if task == "entities":
        return X, spans
    return X, labels if multilabel else make_label_array(labels)


def write_doccano(
    path: str | os.PathLike[str], X: Texts, y: Spans | Labels, *, task: str = "entities"
) -> None:
    """Write texts with entities or labels as JSON lines that doccano imports.

    Predictions are imported as annotations, to be corrected. Their scores are not written: doccano
    has no place for them. Offsets count UTF-16 code units, as doccano does.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X : list, Series or array of str
        The texts.
    y : list of list of tuple of (int, int, str), or array-like of shape (n_texts,)
        The entities of each text as ``(start, end, label)`` with offsets in characters, such as
        ``predict_entities`` gives them. Those that overlap need a project that allows it: else
        doccano drops them. Or the label of each text, or a list of labels.
    task : {"entities", "labels"}, default="entities"
        What `y` is.

    Raises
    ------
    ValueError
        If a span does not lie in its text, a text or label cannot be written, or `task` is invalid.
        The error names the row.

    See Also
    --------
    read_doccano : The other direction.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import write_doccano
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "import.jsonl"
    ...     write_doccano(path, ["Anna smiles."], [[(0, 4, "PER")]])
    ...     print(path.read_text(encoding="utf-8"))
    {"text": "Anna smiles.", "label": [[0, 4, "PER"]]}
    """
    check_option("write_doccano", "task", task, ("entities", "labels"))
    rows: list[list[Any]]
    if task == "entities":
        texts, spans = check_texts_and_spans(X, y)
        rows = [_make_spans(text, row) for text, row in zip(texts, spans)]
    else:
        texts, rows = check_encodable_texts(X), check_labels(y)
        check_same_length(texts, rows)
    examples = ({"text": text, "label": row} for text, row in zip(texts, rows))
    write_objects(path, examples, as_list=False)


def _make_mention(place: str, i: int, annotation: Any) -> Mention:
    place = f"{place}, entity {i}"
    if type(annotation) is dict:
        start, end = (get_field(place, annotation, f"{side}_offset", int) for side in _SIDES)
        return Mention(place, start, end, get_field(place, annotation, "label", str))
    if type(annotation) is not list:
        hint = " Labels of texts are read with task='labels'." if type(annotation) is str else ""
        raise ValueError(f"{make_kind_error(place, annotation, list, dict)}{hint}")
    if len(annotation) != 3:
        raise ValueError(f"{place}: [start, end, label] is expected. Got {annotation!r} instead.")
    return Mention(place, *annotation)


def _read_labels(place: str, value: Any) -> list[str]:
    labels = [value] if type(value) is str else value
    for label in labels:
        if type(label) is not str or not label:
            raise ValueError(
                f"{place}: labels must be strings that are not empty. Got {label!r}. Spans are "
                "read with task='entities'."
            )
    return labels


def _make_spans(text: str, spans: Sequence[Any]) -> list[list[Any]]:
    units = count_utf16(text)
    return [[units[start], units[end], label] for start, end, label, *_ in spans]
