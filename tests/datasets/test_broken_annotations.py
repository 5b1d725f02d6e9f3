import copy
import json
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_doccano, read_label_studio, read_spacy_json

VALUE = {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"], "choices": ["pos"]}
RESULTS = [
    {"from_name": "a", "to_name": "text", "type": kind, "value": VALUE}
    for kind in ("labels", "choices")
]
READERS = {
    "label_studio": (
        read_label_studio,
        {
            "id": 1,
            "data": {"text": "Anna 😀."},
            "annotations": [{"result": RESULTS, "updated_at": "1"}, {"result": []}],
        },
    ),
    "json_min": (
        read_label_studio,
        {"text": "Anna 😀.", "id": 1, "a": [VALUE], "annotator": 1, "annotation_id": 1},
    ),
    "doccano": (
        read_doccano,
        {"text": "Anna 😀.", "entities": [[0, 4, "PER"]], "relations": [{}], "cats": ["a"]},
    ),
    "spacy": (
        read_spacy_json,
        {
            "text": "Anna 😀.",
            "ents": [VALUE | {"label": "X"}],
            "spans": {"a": []},
            "cats": {"b": 1},
        },
    ),
}
OTHERS = [None, True, 0, 2.5, -3, 10**30, "", "x", [], [1], ["x"], {}, {"a": []}, [[]], [{}]]


def list_places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (key,)
        if isinstance(inner, dict | list):
            yield from ((key, *place) for place in list_places(inner))


CASES = [
    *((name, task) for name in ("label_studio", "json_min") for task in ("entities", "labels")),
    ("label_studio", "pairs"),
    ("doccano", "entities"),
    ("doccano", "labels"),
    ("spacy", None),
]


@pytest.mark.parametrize("name, task", CASES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_wrong_value_is_read_or_an_error_names_the_row(tmp_path_factory, name, task, data):
    reader, example = READERS[name]
    broken = copy.deepcopy(example)
    *above, last = data.draw(st.sampled_from(list(list_places(example))))
    node = broken
    for key in above:
        node = node[key]
    node[last] = data.draw(st.sampled_from(OTHERS))
    path = tmp_path_factory.mktemp("broken") / "export.json"
    path.write_text(json.dumps([broken]), encoding="utf-8")
    message = f"{path}: row 0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            reader(path, **({} if task is None else {"task": task}))
        except ValueError as error:
            message = str(error)
    assert message.startswith(str(path))
    assert "row 0" in message
