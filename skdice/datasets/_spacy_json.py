"""Reader and writer of spaCy's documents as JSON."""

import itertools
import re
from typing import Any

from .._inputs import Span
from .._typing import Spans, Texts
from ._json import get_field, get_items, read_objects, write_objects
from ._spans import Annotated, check_annotated, find_spans, make_mention
from ._text_files import FilePath

_TOKEN = re.compile(r"\S+|\s+")


def read_spacy_json(path: FilePath) -> tuple[list[str], list[list[Span]]]:
    """Read texts and entities from spaCy documents, as ``Doc.to_json`` gives them.

    Documents without ``"ents"``, span groups and categories are left out; a warning counts them.
    Tokens, sentences and whatever else a document has are ignored.

    Parameters
    ----------
    path : str or path-like
        A JSON list of documents, or JSON lines, plain or compressed (``.gz``, ``.xz``), in UTF-8.

    Returns
    -------
    X : list of str
        The texts, as they stand.
    y : list of list of (start, end, label)
        The entities of each text, sorted. Offsets count characters, the end is exclusive.

    Raises
    ------
    ValueError
        If the file is not JSON, a document has no text, a span does not lie in its text, or there
        is no document with entities. Errors name the file, the line and the row, from 0.
    """
    rows = Annotated("read_spacy_json", path)
    for row, place, document in read_objects(path):
        text = get_field(place, document, "text", str)
        rows.leave_out("categories", row, len(get_items(place, document, "cats", dict)))
        groups = get_items(place, document, "spans", dict)
        for name in groups:
            group = get_field(f"{place}, 'spans'", groups, name, list)
            rows.leave_out(f"spans of the group {name!r}", row, len(group))
        if "ents" in document:
            entities = get_field(place, document, "ents", list)
            mentions = [make_mention(f"{place}, entity {i}", ent) for i, ent in enumerate(entities)]
            rows.add(text, find_spans(text, mentions))
        else:
            rows.leave_out("documents without entities set", row)
    return rows.finish("document with 'ents'")


def write_spacy_json(path: FilePath, X: Texts, y: Spans) -> None:
    """Write texts and entities as spaCy documents, one JSON object a line.

    ``spacy.tokens.Doc(vocab).from_json`` makes a document of each line. Its tokens are cut at white
    space and at both ends of the entities. spaCy refuses entities that begin or end amid white
    space, and has no place for scores.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X : list, Series or array of str
    y : list of list of (start, end, label)
        The entities of each text, such as ``predict_entities`` gives them.

    Raises
    ------
    ValueError
        If a span does not lie in its text or overlaps another, or a text cannot be encoded. The
        error names the row.
    """
    texts, spans = check_annotated(X, y)
    for i, row in enumerate(spans):
        for before, after in itertools.pairwise(row):
            if after[0] < before[1]:
                raise ValueError(
                    f"Entities of spaCy must not overlap; row {i} has {before[:3]} and {after[:3]}."
                )
    write_objects(path, map(_make_document, texts, spans), as_list=False)


def _make_document(text: str, spans: list[Any]) -> dict[str, Any]:
    entities = [{"start": start, "end": end, "label": label} for start, end, label, *_ in spans]
    edges = sorted({0, len(text), *(edge for span in spans for edge in span[:2])})
    tokens: list[dict[str, int]] = []
    for left, right in itertools.pairwise(edges):
        for match in _TOKEN.finditer(text, left, right):
            start, end = match.span()
            # spaCy counts one space after a word to the word.
            if tokens and text[start] == " " and not text[start - 1].isspace():
                start += 1
            if start < end:
                tokens.append({"id": len(tokens), "start": start, "end": end})
    return {"text": text, "ents": entities, "tokens": tokens}
