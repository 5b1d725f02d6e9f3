import json

import pytest
from hypothesis import given, settings

from skdice.datasets import read_spacy_json, write_spacy_json

from .annotated import NESTED, SPANS, TEXTS, annotated_texts


@pytest.fixture
def write(tmp_path):
    def write(*documents, name="docs.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
        return path

    return write


def make_entity(start=0, end=4, label="PER", **fields):
    return {"start": start, "end": end, "label": label} | fields


def make_document(*entities, text="Anna smiles.", **fields):
    return {"text": text, "ents": list(entities)} | fields


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.jsonl.gz", "docs.xz"])
def test_round_trip(tmp_path, name):
    write_spacy_json(tmp_path / name, TEXTS, SPANS)
    assert read_spacy_json(tmp_path / name) == (TEXTS, SPANS)


@settings(max_examples=60, deadline=None)
@given(annotated_texts(overlap=False))
def test_round_trip_of_any_text(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("spacy") / "docs.jsonl"
    write_spacy_json(path, *rows)
    assert read_spacy_json(path) == rows


@pytest.mark.parametrize(
    "text, spans, tokens",
    [
        ("", [], []),
        ("Anna smiles.", [], ["Anna", "smiles."]),
        ("in Oslo.", [(3, 7, "LOC")], ["in", "Oslo", "."]),
        ("a  b", [], ["a", " ", "b"]),
        (" a\n", [], [" ", "a", "\n"]),
        ("a \n b ", [], ["a", "\n ", "b"]),
        ("  ", [], ["  "]),
        ("😀x", [(0, 1, "E")], ["😀", "x"]),
    ],
)
def test_tokens(tmp_path, text, spans, tokens):
    path = tmp_path / "docs.jsonl"
    write_spacy_json(path, [text], [spans])
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [text[token["start"] : token["end"]] for token in document["tokens"]] == tokens
    assert [token["id"] for token in document["tokens"]] == list(range(len(tokens)))


def test_list_of_documents_and_order(tmp_path):
    path = tmp_path / "docs.json"
    document = make_document(make_entity(5, 11, "V"), make_entity(), tokens=[{"id": 0}], sents=[])
    path.write_text(json.dumps([document, make_document()]), encoding="utf-8")
    expected = [[(0, 4, "PER"), (5, 11, "V")], []]
    assert read_spacy_json(path) == (["Anna smiles."] * 2, expected)


def test_what_is_left_out_is_counted(write):
    group = [make_entity(kb_id="")] * 3
    path = write(
        make_document(cats={"pos": 1.0}),
        {"text": "No entities set."},
        make_document(spans={"sc": group}),
        make_document(spans={"sc": group}),
    )
    with pytest.warns(UserWarning, match="left out") as record:
        X, _ = read_spacy_json(path)
    assert len(X) == 3
    assert str(record[0].message) == (
        f"{path}: left out categories: 1 (row 0); documents without entities set: 1 (row 1); "
        "spans of the group 'sc': 6 (rows 2, 3)."
    )
    assert record[0].filename == __file__


@pytest.mark.parametrize(
    "document, message",
    [
        ({"ents": []}, "line 2, row 1: 'text' is missing"),
        (make_document(text=None), "line 2, row 1, 'text': a string is expected. Got null"),
        (make_document(ents=None), "line 2, row 1, 'ents': a list is expected. Got null"),
        (make_document([0, 4, "PER"]), r"line 2, row 1, entity 0: an object is expected. Got \[0,"),
        (make_document(make_entity(), {"start": 1}), "row 1, entity 1: 'end' is missing"),
        (make_document(make_entity(start="0")), "row 1, entity 0, 'start': an integer is expected"),
        (make_document(make_entity(start=True)), "'start': an integer is expected. Got true"),
        (make_document(make_entity(label=3)), "entity 0, 'label': a string is expected"),
        (make_document(make_entity(label="")), "the label must be a string that is not empty"),
        (make_document(make_entity(4, 4)), "0 <= start < end <= 12, .* Got start 4 and end 4"),
        (make_document(make_entity(-1, 4)), "Got start -1 and end 4, label 'PER'"),
        (make_document(make_entity(0, 13)), "entity 0: .* <= 12, .* Got start 0 and end 13"),
        (make_document(make_entity(0, 7), text="😀😀😀"), "<= 3, the length of its text"),
    ],
)
def test_errors(write, document, message):
    with pytest.raises(ValueError, match=r"docs\.jsonl, .*" + message):
        read_spacy_json(write(make_document(), document))


def test_no_documents(write):
    with pytest.raises(ValueError, match=r"no document with 'ents'. documents .* \(row 0\)"):
        read_spacy_json(write({"text": "a"}))


def test_overlap_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"row 0 has \(0, 4, 'PER'\) and \(0, 12, 'S'\)"):
        write_spacy_json(tmp_path / "docs.jsonl", TEXTS, NESTED)
    assert not list(tmp_path.iterdir())
