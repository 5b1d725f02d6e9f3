import json

import numpy as np
import pytest
from hypothesis import given, settings

from skdice.datasets import read_doccano, write_doccano
from skdice.text._entities import Entity

from .annotated import NESTED, SPANS, TEXTS, annotated_texts


@pytest.fixture
def write(tmp_path):
    def write(*examples, name="all.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, examples)), encoding="utf-8")
        return path

    return write


class TestEntities:
    @pytest.mark.parametrize("spans", [SPANS, NESTED])
    @pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
    def test_round_trip(self, tmp_path, name, spans):
        write_doccano(tmp_path / name, TEXTS, spans)
        assert read_doccano(tmp_path / name) == (TEXTS, spans)

    @settings(max_examples=60, deadline=None)
    @given(annotated_texts())
    def test_round_trip_of_any_text(self, tmp_path_factory, rows):
        path = tmp_path_factory.mktemp("doccano") / "all.jsonl"
        write_doccano(path, *rows)
        assert read_doccano(path) == rows
        for line, text in zip(path.read_text(encoding="utf-8").split("\n"), rows[0]):
            units = len(text.encode("utf-16-le")) // 2
            assert all(0 <= start < end <= units for start, end, _ in json.loads(line)["label"])

    # As doccano writes it: https://github.com/doccano/doccano/issues/2290
    firetrucks = "👨🏻\u200d🚒 firemen drive firetrucks"

    @pytest.mark.parametrize(
        "offsets, start, end", [("utf-16", 22, 32), ("characters", 19, 29), ("utf-16", 0, 7)]
    )
    def test_offsets(self, write, offsets, start, end):
        path = write({"text": self.firetrucks, "label": [[start, end, "X"]]})
        _, [[(start, end, _)]] = read_doccano(path, offsets=offsets)
        assert self.firetrucks[start:end] in ("firetrucks", "👨🏻\u200d🚒")

    @pytest.mark.parametrize(
        "annotations",
        [
            {"label": [[0, 4, "PER"]]},
            {"labels": [[0, 4, "PER"]]},
            {"label": [[0, 4, "PER"]], "Comments": []},
            {"entities": [[0, 4, "PER"]], "cats": []},
            {
                "entities": [{"id": 7, "label": "PER", "start_offset": 0, "end_offset": 4}],
                "relations": [],
            },
            {"id": 3, "label": [[0, 4, "PER"]], "meta": {}},
        ],
    )
    def test_layouts(self, write, annotations):
        assert read_doccano(write({"text": "Anna smiles."} | annotations)) == (
            ["Anna smiles."],
            [[(0, 4, "PER")]],
        )

    def test_list_and_order(self, tmp_path):
        path = tmp_path / "all.json"
        label = [[5, 6, "B"], [0, 4, "A"], [0, 2, "Z"]]
        path.write_text(json.dumps([{"text": "Anna x", "label": label}]), encoding="utf-8")
        assert read_doccano(path)[1] == [[(0, 2, "Z"), (0, 4, "A"), (5, 6, "B")]]

    def test_what_is_left_out_is_counted(self, write):
        relations = [{"from_id": 0, "to_id": 1, "type": "x"}] * 2
        path = write(
            {"text": "a", "entities": [], "relations": relations, "cats": ["pos"]},
            {"text": "b"},
            {"text": "c", "label": None},
            {"text": "d", "label": [], "Comments": ["hm"]},
        )
        with pytest.warns(UserWarning, match="left out") as record:
            assert read_doccano(path) == (["a", "d"], [[], []])
        assert str(record[0].message) == (
            f"{path}: left out relations: 2 (row 0); labels of the text: 1 (row 0); "
            "texts without annotations: 2 (rows 1, 2); comments: 1 (row 3)."
        )
        assert record[0].filename == __file__

    def test_predictions_are_written_without_scores(self, tmp_path):
        path = tmp_path / "all.jsonl"
        write_doccano(path, ["Anna"], [[Entity(0, 4, "PER", 0.5)]])
        assert path.read_text(encoding="utf-8") == '{"text": "Anna", "label": [[0, 4, "PER"]]}\n'

    @pytest.mark.parametrize(
        "example, message",
        [
            ({"label": []}, ": 'text' is missing. Got the keys 'label'"),
            ({"text": "a", "label": "pos"}, ", 'label': a list is expected. Got \"pos\""),
            ({"text": "a", "label": ["pos"]}, "entity 0: a list or an object .* task='labels'"),
            ({"text": "a", "label": [[0, 1]]}, r"entity 0: \[start, end, label\] .* Got \[0, 1\]"),
            ({"text": "a", "label": [[0, 1, ""]]}, "the label must be a string .* Got ''"),
            ({"text": "a", "label": [[0, "1", "X"]]}, "must be integers. Got 0 and '1'"),
            ({"text": "a", "label": [[0, True, "X"]]}, "must be integers. Got 0 and True"),
            ({"text": "a", "label": [[0, 1, "X"], [0, 2, "X"]]}, "entity 1: .* <= 1, the length"),
            ({"text": "a", "label": [[1, 1, "X"]]}, "0 <= start < end <= 1.* Got start 1 and end"),
            ({"text": "😀a", "label": [[1, 3, "X"]]}, "at the edge of a character .* most 3, .* 1"),
            (
                {"text": "😀a", "label": [[0, 4, "X"]]},
                "offsets in UTF-16 .* count charac",
            ),
            ({"text": "😀a", "label": [[3, 2, "X"]]}, "0 <= start < end <= 2"),
            ({"text": "a", "entities": [{"start_offset": 0}]}, "entity 0: 'end_offset' is missing"),
        ],
    )
    def test_errors(self, write, example, message):
        with pytest.raises(ValueError, match=r"all\.jsonl, line 2, row 1.*" + message):
            read_doccano(write({"text": "a", "label": []}, example))


class TestLabels:
    @pytest.mark.parametrize(
        "y, expected",
        [
            (["neg", "pos"], np.array(["neg", "pos"], dtype=object)),
            (np.array([0, 1]), np.array([0, 1])),
            ([["neg"], ["pos"]], np.array(["neg", "pos"], dtype=object)),
        ],
    )
    def test_round_trip(self, tmp_path, y, expected):
        write_doccano(tmp_path / "a.jsonl", ["a😀", "b\r\n"], y, task="labels")
        X, read = read_doccano(tmp_path / "a.jsonl", task="labels")
        assert X == ["a😀", "b\r\n"]
        assert read.dtype == expected.dtype
        np.testing.assert_array_equal(read, expected)

    def test_round_trip_of_several(self, tmp_path):
        y = [["a", "b"], [], ["c"]]
        write_doccano(tmp_path / "a.jsonl", ["x", "y", "z"], y, task="labels")
        read = read_doccano(tmp_path / "a.jsonl", task="labels", multilabel=True)
        assert read == (["x", "y", "z"], y)

    def test_texts_without_a_label_are_counted(self, write):
        path = write({"text": "a", "label": []}, {"text": "b", "label": "pos"}, {"text": "c"})
        message = r"without a label: 1 \(row 0\); texts without annotations: 1 \(row 2\)"
        with pytest.warns(UserWarning, match=message):
            X, y = read_doccano(path, task="labels")
        assert (X, y.tolist()) == (["b"], ["pos"])

    @pytest.mark.parametrize(
        "label, message",
        [
            (["a", "b"], r"one label is expected. Got \['a', 'b'\]. Pass multilabel=True"),
            ([[0, 1, "X"]], r"must be strings that are not empty. Got \[0, 1, 'X'\]. .*entities"),
            ([""], "must be strings that are not empty. Got ''"),
            (3, "row 0, 'label': a list or a string is expected. Got 3"),
            ([], "the file has no annotated text. texts without a label: 1"),
        ],
    )
    def test_errors(self, write, label, message):
        with pytest.raises(ValueError, match=message):
            read_doccano(write({"text": "a", "label": label}), task="labels")


@pytest.mark.parametrize(
    "X, y, task, message",
    [
        (["a"], [[(0, 2, "X")]], "entities", r"row 0 has 1 characters and the span \(0, 2, 'X'\)"),
        (["a"], [[(1, 1, "X")]], "entities", "row 0 has"),
        (["a"], [[(0, 1)]], "entities", "row 0 has"),
        (["a"], [], "entities", "same number of rows; got 1 and 0"),
        (["a", "\ud83d"], [[], []], "entities", "row 1 of X has half of a surrogate pair"),
        (["a"], [[(0, 1, "\udc00")]], "entities", "the label of a span in row 0 of y has half"),
        (["a"], ["x", "y"], "labels", "same number of rows; got 1 and 2"),
        (["a"], [""], "labels", "row 0 of y has ''"),
        (["a"], [1.5], "labels", "Row 0 of y must be a list"),
        (["a"], [[None]], "labels", "row 0 of y has None"),
        (["a"], [[]], "spans", "The 'task' parameter of write_doccano must be one of"),
    ],
)
def test_writer_errors(tmp_path, X, y, task, message):
    with pytest.raises((ValueError, TypeError), match=message):
        write_doccano(tmp_path / "all.jsonl", X, y, task=task)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "parameters", [{"task": "pairs"}, {"offsets": "bytes"}, {"multilabel": "yes"}]
)
def test_parameters(tmp_path, parameters):
    with pytest.raises(ValueError, match=f"The {next(iter(parameters))!r} parameter of read_docc"):
        read_doccano(tmp_path / "all.jsonl", **parameters)
