import copy
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_doccano, read_label_studio, write_doccano, write_label_studio
from skdice.text import Entity

TOOLS = {
    "label_studio": (read_label_studio, write_label_studio, "tasks.json.gz"),
    "doccano": (read_doccano, write_doccano, "all.jsonl.xz"),
}
TEXT = "Anna met Bo.\nBo smiles."


def region(start=0, end=4, text="Anna", labels=("PER",), **fields):
    value = {"start": start, "end": end, "text": text, "labels": list(labels)}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value} | fields


def choices(*chosen, **fields):
    value = {"choices": list(chosen)}
    return {"from_name": "mood", "to_name": "text", "type": "choices", "value": value} | fields


def task(*annotations, data=None, **fields):
    """Make a task of Label Studio; an annotation may be given as its results."""
    annotations = [a if isinstance(a, dict) else {"result": a} for a in annotations]
    return {"id": 7, "data": data or {"text": TEXT}, "annotations": annotations} | fields


def read_warned(reader, path, **parameters):
    """Return X, y and what the only warning says was left out, in the name of its caller."""
    with pytest.warns(UserWarning, match="left out") as caught:
        X, y = reader(path, **parameters)
    (warning,) = caught
    return X, y, str(warning.message).removeprefix(f"{path}: left out ").removesuffix(".")


@st.composite
def annotated_texts(draw):
    """Draw texts of any characters that UTF-8 has, and spans of them."""
    text = st.text(st.characters(codec="utf-8"), max_size=20)
    odd = st.sampled_from(
        ["\r\n", "\n", "\\n", "😀", "𝔅", "e\u0301", "א", " ", "\t", "\ufeff", "a"]
    )
    X = draw(st.lists(text | st.lists(odd).map("".join), min_size=1, max_size=4))
    y = []
    for row in X:
        edges = st.lists(st.integers(0, len(row)), min_size=2, max_size=2, unique=True).map(sorted)
        pairs = draw(st.lists(edges, max_size=4)) if row else []
        y.append(sorted((a, b, draw(st.sampled_from(["PER", "é😀"]))) for a, b in pairs))
    return X, y


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_text_there_and_back(tmp_path_factory, tool, data):
    read, write, name = TOOLS[tool]
    rows = data.draw(annotated_texts())
    path = tmp_path_factory.mktemp("any") / name
    write(path, *rows)
    assert read(path) == rows


class TestSpans:
    @pytest.mark.parametrize("reader, content, expected", [
        # Offsets of doccano count UTF-16: https://github.com/doccano/doccano/issues/2290
        (read_doccano, {"text": "👨🏻x", "label": [[4, 5, "X"], [0, 4, "E"]]}, "👨🏻 x"),
        (read_doccano, {"text": "Anna x", "label": [[0, 4, "PER"]], "Comments": []}, "Anna"),
        (read_doccano, {"text": "Anna x", "labels": [[0, 4, "PER"]], "id": 3}, "Anna"),
        (read_doccano,
         {"text": "a b", "entities": [{"label": "A", "start_offset": 0, "end_offset": 1}]}, "a"),
        (read_label_studio, task([]), ""),
        (read_label_studio, task([region(9, 11, "Bo"), region()]), "Anna Bo"),
        (read_label_studio, task([region(labels=["B", "A"])]), "Anna Anna"),
        (read_label_studio, task([region(from_name="a"), region()]), "Anna Anna"),
        (read_label_studio,
         task([{"type": "labels", "value": {"start": 0, "end": 4, "labels": ["X"]}}]), "Anna"),
        # What the browser shows: a line end is a backslash and an n, white space is merged.
        (read_label_studio, task([region(9, 15, "Bo.\\nBo")]), "Bo.\nBo"),
        (read_label_studio, task([region(9, 15, "Bo. Bo ")]), "Bo.\nBo"),
        (read_label_studio, task([region(1, 3, "is")], data={"text": "💩is"}), "is"),
    ])  # fmt: skip
    def test_json(self, write, reader, content, expected):
        (text,), (spans,) = reader(write([content]))
        assert " ".join(text[start:end] for start, end, _ in spans) == expected
        assert spans == sorted(spans)

    def test_characters_of_doccano(self, write):
        path = write({"text": "👨🏻x", "label": [[2, 3, "X"]]})
        assert read_doccano(path, offsets="characters")[1] == [[(2, 3, "X")]]

    def test_key_of_the_text(self, write):
        path = write([task([region(to_name="body")], data={"body": TEXT, "title": "x"})])
        assert read_label_studio(path, text="body") == ([TEXT], [[(0, 4, "PER")]])
        with pytest.raises(ValueError, match="'text' is missing"):
            read_label_studio(path)

    @pytest.mark.parametrize("annotations", [
        [{"updated_at": "2024-01-02", "result": [region()]}, {"updated_at": "2024-01-01"}],
        [{"updated_at": "2024-01-01"}, {"updated_at": "2024-01-02", "result": [region()]}],
        [{}, {"result": [region()]}],
        [{"ground_truth": True, "result": [region()]}, {"updated_at": "2024-01-02"}],
    ])  # fmt: skip
    def test_several_annotations(self, write, annotations):
        path = write([task(*({"result": []} | a for a in annotations))])
        X, y, left_out = read_warned(read_label_studio, path)
        assert (X, y) == ([TEXT], [[(0, 4, "PER")]])
        assert left_out == "annotations besides the one read of their task: 1 (row 0)"


CANCELLED = {"result": [region()], "was_cancelled": True}
RELATION = {"type": "relation", "from_id": "a", "to_id": "b"}


@pytest.mark.parametrize("reader, content, parameters, n_rows, expected", [
    (read_label_studio, [
        task(predictions=[{"result": [region()]}]),
        task(CANCELLED),
        task(CANCELLED, [region()]),
        task([region(), RELATION, choices("pos"), RELATION]),
        task([region(labels=[]), region(to_name="title")], data={"text": TEXT, "title": "A"}),
        {"data": {"text": TEXT}},
    ], {}, 3,
     "tasks without an annotation: 2 (rows 0, 5); tasks with cancelled annotations only: 1 "
     "(row 1); cancelled annotations: 1 (row 2); results of type 'relation': 2 (row 3); "
     "results of type 'choices': 1 (row 3); regions without a label: 1 (row 4); regions of "
     "'title': 1 (row 4)"),
    (read_label_studio, [task([region(from_name="a"), region()])], {"from_name": "label"}, 1,
     'results of the tag "a": 1 (row 0)'),
    (read_doccano, [
        {"text": "a", "entities": [], "relations": [{}, {}], "cats": ["pos"]},
        {"text": "b"},
        {"text": "c", "label": None},
        {"text": "d", "label": [], "Comments": ["hm"]},
    ], {}, 2,
     "relations: 2 (row 0); labels of the text: 1 (row 0); texts without annotations: 2 "
     "(rows 1, 2); comments: 1 (row 3)"),
])  # fmt: skip
def test_what_is_left_out_is_counted(write, reader, content, parameters, n_rows, expected):
    X, y, left_out = read_warned(reader, write(content), **parameters)
    assert len(X) == len(y) == n_rows
    assert left_out == expected


GOOD = {read_label_studio: task([]), read_doccano: {"text": "a", "label": []}}
# For each reader a row, after a good one, and what is said of it.
BAD_ROWS = {
    read_label_studio: [(task([region()], data={"a": "x"}), "the data: 'text' is missing"),
     (task([region(labels=[5])]), "label must be a string .* label 5"),
     (task([region(4, 0)]), "0 <= start < end <= 23, .* Got start 4 and end 0"),
     (task([region(0, 3)]), "text there is 'Ann', but the file says 'Anna'. Got start 0")],
    read_doccano: [({"label": []}, "'text' is missing. Got the keys 'label'"),
     ({"text": "a", "label": ["pos"]}, "entity 0: a list or an object is expected"),
     ({"text": "a", "label": [[0, 1]]}, r"entity 0: \[start, end, label\] .* Got \[0, 1\]"),
     ({"text": "😀a", "label": [[1, 3, "X"]]}, "UTF-16 .* edge of a character .* may count ch"),
     ({"text": "a", "entities": [{"start_offset": 0}]}, "entity 0: 'end_offset' is missing")],
}  # fmt: skip


@pytest.mark.parametrize(
    "reader, row, message", [(reader, *case) for reader, rows in BAD_ROWS.items() for case in rows]
)
def test_bad_rows(write, reader, row, message):
    path = write([GOOD[reader], row], "export.json")
    with pytest.raises(ValueError, match=r"export\.json, row 1.*" + message):
        reader(path)


@pytest.mark.parametrize("reader, row, message", [
    (read_doccano, {"text": "a"}, "no annotated text. texts without annotations"),
    (read_label_studio, task(), r"no annotated text\. .*: 1 \(row 0\)"),
    (read_label_studio, task([choices("pos")]), "choices .* label='mood'"),
    (read_label_studio, {"id": 1, "text": "a", "label": [], "annotator": 1}, "task 1.* JSON-MIN"),
])  # fmt: skip
def test_files_without_annotations(write, reader, row, message):
    with pytest.raises(ValueError, match=message):
        reader(write([row]))


OTHERS = [None, True, 0, 2.5, -3, 10**30, "", "x", [], [1], ["x"], {}, {"a": []}, [[]], [{}]]
VALUE = {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"], "choices": ["pos"]}
RESULTS = [{"from_name": "a", "type": kind, "value": VALUE} for kind in ("labels", "choices")]
WHOLE = {
    "label_studio": task({"result": RESULTS, "updated_at": "1"}, [], data={"text": "Anna 😀."}),
    "doccano": {"text": "Anna 😀.", "entities": [[0, 4, "PER"]], "relations": [{}], "cats": ["a"]},
}


def list_places(value):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (key,)
        if isinstance(inner, dict | list):
            yield from ((key, *place) for place in list_places(inner))


@pytest.mark.parametrize("name", TOOLS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_wrong_value_is_read_or_an_error_names_the_row(tmp_path_factory, name, data):
    reader = TOOLS[name][0]
    broken = copy.deepcopy(WHOLE[name])
    *above, last = data.draw(st.sampled_from(list(list_places(broken))))
    node = broken
    for key in above:
        node = node[key]
    node[last] = data.draw(st.sampled_from(OTHERS))
    path = tmp_path_factory.mktemp("broken") / "export.json"
    path.write_text(json.dumps([broken]), encoding="utf-8")
    message = f"{path}: row 0"
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        try:
            reader(path)
        except ValueError as error:
            message = str(error)
    assert message.startswith(str(path))
    assert "row 0" in message


class TestWriters:
    @pytest.mark.parametrize("X, y, message", [
        (["a"], [[(0, 2, "X")]], "row 0 has 1 characters and the span"),
        (["a"], [[(0, 1)]], "row 0 has"),
        (["a"], [[], []], "same number of rows; got 1 rows of"),
        (["a", "\ud83d"], [[], []], "row 1 of X has half of a surrogate pair"),
        (["a"], [[(0, 1, "\udc00")]], "label of a span in row 0 of y has half"),
    ])  # fmt: skip
    @pytest.mark.parametrize("writer", [write_label_studio, write_doccano])
    def test_rows(self, tmp_path, writer, X, y, message):
        with pytest.raises((ValueError, TypeError), match=message):
            writer(tmp_path / "new", X, y)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("parameters, message", [
        ({"y": [[(0, 2, "X", 0.5), (0, 1, "X")]]}, "row 0 has one w"),
        ({"text": ["a", "b"]}, "'text' parameter"),
        *(({"from_name": name}, "'from_name' parameter") for name in (None, "")),
        ({"model_version": 2}, "'model_version' parameter"),
    ])  # fmt: skip
    def test_of_label_studio(self, tmp_path, parameters, message):
        with pytest.raises((ValueError, TypeError), match=message):
            write_label_studio(tmp_path / "new", **{"X": ["ab"], "y": [[]], **parameters})
        assert not list(tmp_path.iterdir())

    def test_doccano_has_no_scores(self, tmp_path):
        path = tmp_path / "all.jsonl"
        for span in (Entity(0, 4, "PER", 0.5), {"start": 0, "end": 4, "label": "PER", "score": 1}):
            write_doccano(path, ["Anna"], [[span]])
        assert path.read_text(encoding="utf-8") == '{"text": "Anna", "label": [[0, 4, "PER"]]}\n'

    def test_predictions_for_label_studio(self, tmp_path):
        path = tmp_path / "tasks.json"
        found = [[Entity(0, 4, "PER", 0.75), Entity(9, 11, "PER", np.float32(0.5))], []]
        write_label_studio(path, [TEXT, "a"], found)
        results = [
            {"id": "0"} | region() | {"score": 0.75},
            {"id": "1"} | region(9, 11, "Bo") | {"score": 0.5},
        ]
        assert json.loads(path.read_text(encoding="utf-8")) == [
            {
                "data": {"text": TEXT},
                "predictions": [{"model_version": "skdice", "score": 0.5, "result": results}],
            },
            {"data": {"text": "a"}, "predictions": [{"model_version": "skdice", "result": []}]},
        ]
        with pytest.raises(ValueError, match=r"no annotated text. .*: 2 \(rows 0, 1\)"):
            read_label_studio(path)
        write_label_studio(path, ["a"], [[]], model_version="v1")
        assert json.loads(path.read_text())[0]["predictions"][0]["model_version"] == "v1"

    def test_texts_that_nobody_has_annotated(self, tmp_path):
        """They have their other fields, which the readers leave alone."""
        path, fields = tmp_path / "tasks.json", [{"id": 1, "text": "?"}, {"is_random": True}]
        write_label_studio(path, ["a", "b"], None, fields=fields, model_version="v")
        written = json.loads(path.read_text())
        assert written == [
            {"data": {"id": 1, "text": "a"}},
            {"data": {"is_random": True, "text": "b"}},
        ]
        write_label_studio(path, ["a", "b"], [[], [(0, 1, "X")]], fields=fields)
        assert read_label_studio(path) == (["a", "b"], [[], [(0, 1, "X")]])
        write_doccano(path, ["a", "b"], None, fields=fields)
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert rows == [{"id": 1, "text": "a"}, {"is_random": True, "text": "b"}]
        write_doccano(path, ["a", "b"], [[], [(0, 1, "X")]], fields=fields)
        assert read_doccano(path) == (["a", "b"], [[], [(0, 1, "X")]])

    @pytest.mark.parametrize("writer", [write_label_studio, write_doccano])
    @pytest.mark.parametrize("fields, message", [
        ([{}], "same number of rows; got 2 rows of X and 1 of fields"),
        ([{}, 3], "Each row of fields must be a dict; row 1 is 3 of type int"),
        ([{}, {"a": float("nan")}], "Row 1 of fields cannot be JSON: Out of range float"),
        ([{"a": {1}}, {}], "Row 0 of fields cannot be JSON: Object of type set"),
        ([{"a": "\ud800"}, {}], "Row 0 of fields cannot be JSON: .*surrogates"),
    ])  # fmt: skip
    def test_fields(self, tmp_path, writer, fields, message):
        with pytest.raises(ValueError, match=message):
            writer(tmp_path / "new", ["a", "b"], None, fields=fields)

    def test_names_that_doccano_uses(self, tmp_path):
        with pytest.raises(ValueError, match="Row 1 of fields has 'entities', which the tool uses"):
            write_doccano(tmp_path / "new", ["a", "b"], None, fields=[{}, {"entities": []}])

    def test_no_entity_in_any_text(self, tmp_path):
        with pytest.warns(UserWarning, match="all are written as annotated"):
            write_label_studio(tmp_path / "new", ["a", "b"], [[], []])
