"""Reader and writer of doccano's JSON lines."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from .._inputs import Span
from .._parameters import check_option
from .._typing import Spans, Texts
from ._json import get_field, make_kind_error, read_objects, show, write_objects
from ._spans import check_annotated, check_mention, utf16_offsets, warn_of_left_out
from ._text_files import FilePath

# The keys of spans, which differ with the version of doccano, and of what no span is.
_OF_SPANS = ("label", "labels", "entities")
_LEFT_OUT = ("relations", "cats", "comments", "Comments")


def read_doccano(path: FilePath, *, offsets: str = "utf-16") -> tuple[list[str], list[list[Span]]]:
    """Read texts with entities from an export of doccano.

    A text that was annotated without entities has an empty list. doccano writes the
    same of texts that nobody has looked at yet: export the approved ones only. Texts without
    annotations, labels of whole texts, relations and comments are left out; a warning counts them.

    Parameters
    ----------
    path : str or path-like
        JSON lines or a JSON list, plain or compressed (``.gz``, ``.xz``), in UTF-8. Each object has
        a ``"text"`` and its entities in ``"label"``, ``"labels"`` or ``"entities"``, as
        ``[start, end, label]`` or objects.
    offsets : {"utf-16", "characters"}, default="utf-16"
        What offsets in the file count. doccano, a program in JavaScript, counts UTF-16 code units:
        characters beyond U+FFFF, such as most emoji, are two. Files of other programs may count
        characters. Projects that "count grapheme clusters as one character" cannot be read.

    Returns
    -------
    X : list of str
        The texts, as they stand.
    y : list of list of (start, end, label)
        The entities of each text, sorted; their offsets count characters, the end is exclusive.

    Raises
    ------
    ValueError
        If the file is not such an export, a span does not lie in its text, or no text is annotated.
        Errors name the file and the row (from 0).

    Examples
    --------
    >>> from skdice.datasets import read_doccano, write_doccano
    >>> write_doccano("all.jsonl", ["😀 Anna smiles."], [[(2, 6, "PER")]])  # doctest: +SKIP
    >>> read_doccano("all.jsonl")  # doctest: +SKIP
    (['😀 Anna smiles.'], [[(2, 6, 'PER')]])
    """
    check_option("read_doccano", "offsets", offsets, ("utf-16", "characters"))
    left_out = defaultdict[str, list[int]](list)  # rows of the file, by what was in them
    X, y = [], []
    for row, place, example in read_objects(path):
        text = get_field(place, example, "text", str)
        for key in _LEFT_OUT:
            what = "labels of the text" if key == "cats" else key.lower()
            for _ in get_field(place, example, key, list) if example.get(key) else ():
                left_out[what].append(row)
        keys = [key for key in _OF_SPANS if example.get(key) is not None]
        if not keys:
            left_out["texts without annotations"].append(row)
            continue
        is_utf16 = offsets == "utf-16" and not text.isascii()
        units = {unit: i for i, unit in enumerate(utf16_offsets(text))} if is_utf16 else None
        spans = []
        for i, annotation in enumerate(get_field(place, example, keys[0], list)):
            where = f"{place}, entity {i}"
            spans.append(check_mention(where, text, _parts(where, annotation), units, shown=None))
        X.append(text)
        y.append(sorted(spans))
    warn_of_left_out(path, left_out, len(X))
    return X, y


def write_doccano(
    path: FilePath, X: Texts, y: Spans | None, *, fields: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Write texts with entities as JSON lines that doccano imports.

    Predictions are imported as annotations, to be corrected. doccano has no place for scores.
    Offsets count UTF-16 code units, as doccano does.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X : list, Series or array of str
    y : list of list of (start, end, label)
        The entities of each text, such as ``predict_entities`` gives them; doccano drops those that
        overlap, unless the project allows it. None writes texts that nobody has annotated.
    fields : list of dict, default=None
        More data of each text, such as an id. Exports have it, too.

    Raises
    ------
    ValueError
        If a span does not lie in its text, a text, a label or a field cannot be written, or a field
        has a name that doccano uses. The error names the row.
    """
    examples = []
    for text, spans, more in zip(*check_annotated(X, y, fields, (*_OF_SPANS, *_LEFT_OUT))):
        offsets = utf16_offsets(text)
        row = [[offsets[start], offsets[end], label] for start, end, label, *_ in spans]
        examples.append({**more, "text": text, **({} if y is None else {"label": row})})
    write_objects(path, examples, as_list=False)


def _parts(place: str, annotation: Any) -> list[Any]:
    """Return start, end and label of an annotation."""
    if type(annotation) is dict:
        fields = {"start_offset": int, "end_offset": int, "label": str}
        return [get_field(place, annotation, *field) for field in fields.items()]
    if type(annotation) is not list:
        raise make_kind_error(place, annotation, list, dict)
    if len(annotation) != 3:
        raise ValueError(f"{place}: [start, end, label] is expected. Got {show(annotation)}.")
    return annotation
