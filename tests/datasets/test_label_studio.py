import json

import numpy as np
import pytest
from hypothesis import given, settings

from skdice.datasets import read_label_studio, write_label_studio
from skdice.text._entities import Entity

from .annotated import NESTED, SPANS, TEXTS, annotated_texts

TEXT = "Anna met Bo.\nBo smiles."


@pytest.fixture
def write(tmp_path):
    def write(*tasks, name="export.json"):
        path = tmp_path / name
        path.write_text(json.dumps(tasks), encoding="utf-8")
        return path

    return write


def make_region(start=0, end=4, text="Anna", labels=("PER",), **fields):
    value = {"start": start, "end": end, "text": text, "labels": list(labels)}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value} | fields


def make_choices(*choices, **fields):
    value = {"choices": list(choices)}
    return {"from_name": "mood", "to_name": "text", "type": "choices", "value": value} | fields


def make_task(*annotations, data=None, **fields):
    annotations = [a if isinstance(a, dict) else {"result": a} for a in annotations]
    return {"id": 7, "data": data or {"text": TEXT}, "annotations": annotations} | fields


class TestEntities:
    @pytest.mark.parametrize("spans", [SPANS, NESTED])
    @pytest.mark.parametrize("name", ["tasks.json", "tasks.json.gz"])
    def test_round_trip(self, tmp_path, name, spans):
        write_label_studio(tmp_path / name, TEXTS, spans)
        assert read_label_studio(tmp_path / name) == (TEXTS, spans)

    @settings(max_examples=60, deadline=None)
    @given(annotated_texts())
    def test_round_trip_of_any_text(self, tmp_path_factory, rows):
        path = tmp_path_factory.mktemp("studio") / "tasks.json"
        write_label_studio(path, *rows)
        assert read_label_studio(path) == rows

    @pytest.mark.parametrize(
        "results, expected",
        [
            ([], []),
            ([make_region()], [(0, 4, "PER")]),
            ([make_region(9, 11, "Bo"), make_region()], [(0, 4, "PER"), (9, 11, "PER")]),
            ([make_region(labels=["PER", "A"])], [(0, 4, "A"), (0, 4, "PER")]),
            ([make_region(), make_region()], [(0, 4, "PER"), (0, 4, "PER")]),
            ([make_region(from_name="one"), make_region(from_name="two")], [(0, 4, "PER")] * 2),
            ([{"type": "labels", "value": {"start": 0, "end": 1, "labels": ["X"]}}], [(0, 1, "X")]),
            # What the browser shows: a line end is a backslash and an n, white space is merged.
            ([make_region(9, 15, "Bo.\\nBo")], [(9, 15, "PER")]),
            ([make_region(9, 15, "Bo. Bo ")], [(9, 15, "PER")]),
        ],
    )
    def test_regions(self, write, results, expected):
        assert read_label_studio(write(make_task(results))) == ([TEXT], [expected])

    # Label Studio counts characters, in versions of 2021 and before UTF-16 code units:
    # https://github.com/HumanSignal/label-studio/issues/1347
    @pytest.mark.parametrize(
        "start, end, shown", [(12, 22, "annotation"), (13, 23, "annotation"), (12, 22, None)]
    )
    def test_offsets_after_astral_characters(self, write, start, end, shown):
        region = make_region(start, end, shown)
        if shown is None:
            del region["value"]["text"]
        text = "💩This is an annotation. "
        task = make_task([region], data={"text": text})
        assert read_label_studio(write(task)) == ([text], [[(12, 22, "PER")]])

    def test_offsets_of_an_annotation_are_of_one_kind(self, write):
        # The first one alone would fit as characters, too.
        regions = [make_region(3, 4, "a"), make_region(6, 7, "b")]
        path = write(make_task(regions, data={"text": "😀aaa b"}))
        assert read_label_studio(path)[1] == [[(2, 3, "PER"), (5, 6, "PER")]]

    @pytest.mark.parametrize(
        "data, text, to_name, expected",
        [
            ({"text": TEXT, "body": "x"}, None, "tag", TEXT),
            ({"text": "x", "body": TEXT}, None, "body", TEXT),
            ({"body": TEXT, "n": 3}, None, "tag", TEXT),
            ({"body": TEXT, "title": "x"}, "body", "tag", TEXT),
        ],
    )
    def test_key_of_the_text(self, write, data, text, to_name, expected):
        task = make_task([make_region(to_name=to_name)], data=data)
        assert read_label_studio(write(task), text=text) == ([expected], [[(0, 4, "PER")]])

    def test_one_tag(self, write):
        other = make_region(9, 11, "Bo", from_name="other")
        path = write(make_task([make_region(), other]))
        with pytest.warns(UserWarning, match=r"results of the tag 'other': 1 \(row 0\)"):
            assert read_label_studio(path, from_name="label")[1] == [[(0, 4, "PER")]]

    def test_old_name_of_annotations(self, write):
        completions = [{"result": [make_region()]}, {"result": [], "skipped": True}]
        path = write({"id": 1, "data": {"text": TEXT}, "completions": completions})
        with pytest.warns(UserWarning, match="cancelled annotations: 1"):
            assert read_label_studio(path) == ([TEXT], [[(0, 4, "PER")]])

    @pytest.mark.parametrize(
        "annotations",
        [
            [{"updated_at": "2024-01-02", "result": [make_region()]}, {"updated_at": "2024-01-01"}],
            [{"updated_at": "2024-01-01"}, {"updated_at": "2024-01-02", "result": [make_region()]}],
            [{}, {"result": [make_region()]}],
            [{"ground_truth": True, "result": [make_region()]}, {"updated_at": "2024-01-02"}],
        ],
    )
    def test_several_annotations(self, write, annotations):
        path = write(make_task(*({"result": []} | a for a in annotations)))
        with pytest.warns(UserWarning, match=r"besides the one read of their task: 1 \(row 0\)"):
            assert read_label_studio(path) == ([TEXT], [[(0, 4, "PER")]])

    def test_what_is_left_out_is_counted(self, write):
        cancelled = {"result": [make_region()], "was_cancelled": True}
        relation = {"type": "relation", "from_id": "a", "to_id": "b"}
        path = write(
            make_task(predictions=[{"result": [make_region()]}]),
            make_task(cancelled),
            make_task(cancelled, [make_region()]),
            make_task([make_region(), relation, make_choices("pos"), relation]),
            make_task([make_region(labels=[]), make_region(to_name="title")]),
            {"data": {"text": TEXT}},
        )
        tasks = json.loads(path.read_text(encoding="utf-8"))
        tasks[4]["data"]["title"] = "A title"
        path.write_text(json.dumps(tasks), encoding="utf-8")
        with pytest.warns(UserWarning, match="left out") as record:
            X, y = read_label_studio(path)
        assert (X, y) == ([TEXT] * 3, [[(0, 4, "PER")], [(0, 4, "PER")], []])
        assert str(record[0].message) == (
            f"{path}: left out tasks without an annotation: 2 (rows 0, 5); tasks with cancelled "
            "annotations only: 1 (row 1); cancelled annotations: 1 (row 2); results of type "
            "'relation': 2 (row 3); results of type 'choices': 1 (row 3); regions without a label: "
            "1 (row 4); regions of 'title': 1 (row 4)."
        )
        assert record[0].filename == __file__

    @pytest.mark.parametrize(
        "task, message",
        [
            ({"id": 9, "data": []}, r"'data': an object is expected. Got \[\]"),
            (make_task([make_region()], data={"a": "x"}), r"the data: 'text' is miss"),
            (make_task([], data={"text": 3}), "the data, 'text': a string is expected. Got 3"),
            (make_task(annotations=None), "'annotations': a list is expected. Got null"),
            (make_task(annotations=[11]), "annotation 0: an object is expected. Got 11"),
            (make_task({}), "annotation 0: 'result' is missing"),
            (make_task([], ["x"]), "annotation 1, result 0: an object is expected"),
            (make_task([{"value": {}}]), "result 0: 'type' is missing"),
            (make_task([make_region(value=[])]), "result 0, 'value': an object is expected"),
            (make_task([make_region("/p[1]")]), "'start': an integer is expected. Got \"/p"),
            (make_task([make_region(text=4)]), "result 0, 'text': a string is expected"),
            (make_task([make_region(labels=[5])]), "label must be a string .* Got 5"),
            (make_task([make_region(4, 0)]), "0 <= start < end <= 23, .* Got start 4 and end 0"),
            (make_task([make_region(), make_region(20, 24)]), "result 1: .* <= 23.* and end 24"),
            (
                make_task([make_region(0, 3)]),
                "text from 0 to 3 is 'Ann', but the file says 'Anna'",
            ),
        ],
    )
    def test_errors(self, write, task, message):
        path = write(make_task([]), task)
        with pytest.raises(ValueError, match=r"export\.json, line 1, row 1 \(task .*" + message):
            read_label_studio(path)

    def test_text_that_cannot_be_told(self, write):
        message = r"Its strings are \['a', 'b'\]. .* read_.*task='entities', text='a'\)"
        with pytest.raises(ValueError, match=message):
            read_label_studio(write(make_task([], data={"a": "x", "b": "y"})))

    def test_no_annotated_task(self, write):
        with pytest.raises(ValueError, match=r"no annotated task\..* annotation: 1"):
            read_label_studio(write(make_task()))


class TestLabels:
    @pytest.mark.parametrize(
        "y, dtype", [(["neg", "pos"], object), (np.array([0, 1]), np.int64), ([["1"], ["01"]], "O")]
    )
    @pytest.mark.parametrize(
        "task, X", [("labels", ["a😀", ""]), ("pairs", [("a", "a"), ("\r\n", "")])]
    )
    def test_round_trip(self, tmp_path, task, X, y, dtype):
        write_label_studio(tmp_path / "a.json", X, y, task=task)
        read = read_label_studio(tmp_path / "a.json", task=task)
        assert read[0] == X
        assert read[1].dtype == dtype
        assert read[1].tolist() == np.ravel(y).tolist()

    @pytest.mark.parametrize("task, X", [("labels", ["a", "b"]), ("pairs", [("a", "b")] * 2)])
    def test_round_trip_of_several(self, tmp_path, task, X):
        write_label_studio(tmp_path / "a.json", X, [["x", "y"], []], task=task)
        read = read_label_studio(tmp_path / "a.json", task=task, multilabel=True)
        assert read == (X, [["x", "y"], []])

    @pytest.mark.parametrize(
        "results", [[make_choices("a", "b")], [make_choices("a"), make_choices("b")]]
    )
    def test_several_labels(self, write, results):
        path = write(make_task(results))
        assert read_label_studio(path, task="labels", multilabel=True) == ([TEXT], [["a", "b"]])
        message = r"\(task 7\): one label is expected. Got \['a', 'b'\]. Pass multilabel=True"
        with pytest.raises(ValueError, match=message):
            read_label_studio(path, task="labels")

    def test_tags(self, write):
        topic = make_choices("sport", from_name="topic")
        path = write(make_task([make_choices("pos")]), make_task([topic, make_choices("neg")]))
        message = r"row 1 .* result 0: the file has .* 'mood' and 'topic'. .*from_name='mood'\)"
        with pytest.raises(ValueError, match=message):
            read_label_studio(path, task="labels")
        with pytest.warns(UserWarning, match=r"results of the tag 'topic': 1 \(row 1\)"):
            _, y = read_label_studio(path, task="labels", from_name="mood")
        assert y.tolist() == ["pos", "neg"]

    def test_what_is_left_out_is_counted(self, write):
        choices = make_choices("pos")
        of_region = make_choices("neg", value={"start": 0, "end": 4, "choices": ["neg"]})
        path = write(make_task([choices, of_region, make_region()]), make_task([]))
        message = (
            r"results of type 'labels': 1 \(row 0\); choices for a region: 1 \(row 0\); "
            r"tasks without a choice: 1 \(row 1\)"
        )
        with pytest.warns(UserWarning, match=message):
            X, y = read_label_studio(path, task="labels")
        assert (X, y.tolist()) == ([TEXT], ["pos"])

    def test_pairs(self, write):
        data = {"n": 1, "b": "B", "a": "A", "c": "C"}
        path = write(make_task([make_choices("1")], data=data))
        X, y = read_label_studio(path, task="pairs", text=("c", "a"))
        assert (X, y.tolist()) == ([("C", "A")], [1])
        with pytest.raises(ValueError, match=r"\['b', 'a', 'c'\]. .*text=\('text1', 'text2'\)\)"):
            read_label_studio(path, task="pairs")
        path = write(make_task([make_choices("1")], data={"n": 1, "b": "B", "a": "A"}))
        assert read_label_studio(path, task="pairs")[0] == [("B", "A")]

    @pytest.mark.parametrize(
        "choices, message",
        [
            (make_choices(3), "result 0: a choice must be a string .* Got 3 instead"),
            (make_choices(""), "result 0: a choice must be a string .* Got '' instead"),
            (make_choices(value={}), "result 0: 'choices' is missing"),
            (make_choices(value={"choices": "a"}), "'choices': a list is expected. Got \"a\""),
        ],
    )
    def test_errors(self, write, choices, message):
        with pytest.raises(ValueError, match=r"export\.json, line 1, row 0 .*" + message):
            read_label_studio(write(make_task([choices])), task="labels")


def make_record(data, output, annotation_id=1, **fields):
    """Make a row of JSON-MIN, in the order of Label Studio's own converter."""
    end = {"annotator": 1, "annotation_id": annotation_id, "updated_at": "2024", "lead_time": 1.5}
    return data | {"id": 5} | output | end | fields


class TestJsonMin:
    region = make_region()["value"]

    def test_entities(self, write):
        path = write(make_record({"text": TEXT}, {"label": [self.region]}))
        assert read_label_studio(path) == ([TEXT], [[(0, 4, "PER")]])

    def test_unknown_order_of_keys(self, write):
        path = write({"label": [self.region], "text": TEXT, "annotation_id": 3})
        assert read_label_studio(path) == ([TEXT], [[(0, 4, "PER")]])

    @pytest.mark.parametrize(
        "value, multilabel, expected",
        [
            ("pos", False, ["pos"]),
            ({"choices": ["a", "b"]}, True, [["a", "b"]]),
            ([{"choices": ["a"]}, {"choices": ["b"]}], True, [["a", "b"]]),
        ],
    )
    def test_labels(self, write, value, multilabel, expected):
        path = write(make_record({"text": TEXT, "title": "x"}, {"mood": value}))
        X, y = read_label_studio(path, task="labels", multilabel=multilabel)
        assert (X, list(y)) == ([TEXT], expected)

    def test_pairs_without_the_rest(self, write):
        path = write({"one": "A", "two": "B", "same": "1"})
        X, y = read_label_studio(path, task="pairs", from_name="same")
        assert (X, y.tolist()) == ([("A", "B")], [1])

    def test_what_is_left_out_is_counted(self, write):
        old = make_record({"text": TEXT}, {"label": []}, updated_at="2023")
        new = make_record({"text": TEXT}, {"label": [self.region], "note": "hm"})
        path = write(
            old,
            new,
            make_record({"text": "b"}, {}, None, id=6),
            make_record({"text": "c"}, {}, id=7),
        )
        message = (
            r"besides the one read of their task: 1 \(row 0\); results of type 'choices': 1 "
            r"\(row 0\); tasks without an annotation: 1 \(row 2\)"
        )
        with pytest.warns(UserWarning, match=message):
            X, y = read_label_studio(path)
        assert (X, y) == ([TEXT, "c"], [[(0, 4, "PER")], []])

    def test_errors(self, write):
        path = write(make_record({"text": TEXT}, {"label": [self.region | {"end": 99}]}))
        with pytest.raises(ValueError, match=r"row 0 \(task 5\), annotation 0, result 0: a span"):
            read_label_studio(path)


PREDICTED = [[Entity(0, 4, "PER", 0.75), Entity(9, 11, "PER", np.float32(0.5))], []]


class TestPredictions:
    @pytest.mark.parametrize("model_version", [None, "v2"])
    def test_entities_with_scores(self, tmp_path, model_version):
        path = tmp_path / "tasks.json"
        write_label_studio(path, [TEXT, "a"], PREDICTED, model_version=model_version)
        first, second = json.loads(path.read_text(encoding="utf-8"))
        name = model_version or "skdice"
        assert first == {
            "data": {"text": TEXT},
            "predictions": [
                {
                    "model_version": name,
                    "score": 0.5,
                    "result": [
                        {"id": "0"} | make_region() | {"score": 0.75},
                        {"id": "1"} | make_region(9, 11, "Bo") | {"score": 0.5},
                    ],
                }
            ],
        }
        prediction = {"model_version": name, "result": []}
        assert second == {"data": {"text": "a"}, "predictions": [prediction]}

    def test_a_model_that_found_nothing(self, tmp_path):
        path = tmp_path / "tasks.json"
        write_label_studio(path, ["a"], [[]], model_version="v1")
        assert "annotations" not in json.loads(path.read_text(encoding="utf-8"))[0]

    def test_labels_and_names(self, tmp_path):
        path = tmp_path / "tasks.json"
        write_label_studio(
            path,
            [("a", "b")],
            [1],
            task="pairs",
            text=["x", "y"],
            from_name="same",
            model_version="v",
        )
        assert json.loads(path.read_text(encoding="utf-8")) == [
            {
                "data": {"x": "a", "y": "b"},
                "predictions": [
                    {
                        "model_version": "v",
                        "result": [
                            {
                                "id": "0",
                                "from_name": "same",
                                "to_name": "x",
                                "type": "choices",
                                "value": {"choices": ["1"]},
                            }
                        ],
                    }
                ],
            }
        ]

    def test_predictions_are_not_read(self, tmp_path):
        path = tmp_path / "tasks.json"
        write_label_studio(path, [TEXT, "a"], PREDICTED)
        with pytest.raises(ValueError, match=r"no annotated task. .*: 2 \(rows 0, 1\)"):
            read_label_studio(path)


@pytest.mark.parametrize(
    "X, y, parameters, message",
    [
        (["a"], [[(0, 2, "X")]], {}, r"row 0 has 1 characters and the span \(0, 2, 'X'\)"),
        (["ab"], [[(0, 2, "X", 0.5), (0, 1, "X")]], {}, "score, or none; row 0 has one without"),
        (["a"], [[], []], {}, "same number of rows; got 1 and 2"),
        (["\ud83d"], [[]], {}, "row 0 of X has half of a surrogate pair"),
        ([("a", "\ud83d")], [1], {"task": "pairs"}, "row 0 of X has half of a surrogate pair"),
        (["ab"], [1], {"task": "pairs"}, "row 0 is 'ab'"),
        (["a"], [None], {"task": "labels"}, "Row 0 of y must be a list"),
        (["a"], [[]], {"task": "spans"}, "The 'task' parameter of write_label_studio must be one"),
        (["a"], [[]], {"text": 3}, "The 'text' parameter .* must be a str .* Got 3"),
        (
            ["a"],
            [[]],
            {"text": ["a", "b"]},
            r"must be a str .*'entities'.* Got \['a', 'b'\]",
        ),
        ([("a", "b")], [1], {"task": "pairs", "text": "a"}, "must be two different str .* Got 'a'"),
        ([("a", "b")], [1], {"task": "pairs", "text": ("a", "a")}, "must be two different str"),
        (["a"], [[]], {"from_name": None}, "The 'from_name' parameter .* Got None"),
        (["a"], [[]], {"from_name": ""}, "The 'from_name' parameter .* Got ''"),
        (["a"], [[]], {"model_version": 2}, "The 'model_version' parameter .* Got 2"),
    ],
)
def test_writer_errors(tmp_path, X, y, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        write_label_studio(tmp_path / "tasks.json", X, y, **parameters)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("parameters", [{"task": "spans"}, {"text": 1}, {"multilabel": "yes"}])
def test_parameters(tmp_path, parameters):
    with pytest.raises(ValueError, match=f"The {next(iter(parameters))!r} parameter of read_label"):
        read_label_studio(tmp_path / "export.json", **parameters)
