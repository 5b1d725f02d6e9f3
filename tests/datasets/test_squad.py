import json

import numpy as np
import pandas as pd
import pytest

from skdice.datasets import read_squad

NO_ANSWER = {"text": [], "answer_start": []}


def make_question(*answers, **fields):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": "a", "question": "Who?", "answers": answers} | fields


def make_file(*questions, context="Anna met Bo.", **article):
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}], **article}]}


@pytest.mark.parametrize("question, expected", [
    (make_question(("Bo", 9)), {"text": ["Bo"], "answer_start": [9]}),
    (make_question(("Anna", 0), ("Bo", 9), ("Anna", 0)),
     {"text": ["Anna", "Bo", "Anna"], "answer_start": [0, 9, 0]}),
    (make_question(("Bo", -1)), {"text": ["Bo"], "answer_start": [-1]}),
    (make_question(), NO_ANSWER),
    (make_question(is_impossible=True), NO_ANSWER),
    (make_question(("Bo", 9), is_impossible=True), NO_ANSWER),
    ({"id": "a", "question": "Who?", "is_impossible": True}, NO_ANSWER),
    (make_question(plausible_answers=[{"text": "Bo", "answer_start": 9}]), NO_ANSWER),
])  # fmt: skip
def test_answers(write, question, expected):
    _, y = read_squad(write(json.dumps(make_file(question))))
    assert y.tolist() == [expected]
    assert type(y[0]) is dict
    assert {type(start) for start in y[0]["answer_start"]} <= {int}


def test_form_and_order(write):
    first = make_file(make_question(id="b"), make_question(id="a"), title="One", url="x")
    second = make_file(make_question(id=7), make_question(id=7), context="B\n c.")
    content = {"version": 1, "data": first["data"] + [{"paragraphs": []}] + second["data"]}
    X, y = read_squad(write(content))
    rows = [(i, "One", "Who?", "Anna met Bo.") for i in "ba"] + [(7, "", "Who?", "B\n c.")] * 2
    names = ["id", "title", "question", "context"]
    expected = pd.DataFrame(rows, columns=names, dtype=object)
    pd.testing.assert_frame_equal(X, expected)
    assert type(y) is np.ndarray
    assert y.dtype == object
    assert y.shape == (4,)
    assert X["context"][2] is X["context"][3], "questions share their context"
    lines = "\n".join(json.dumps({"data": [article]}) for article in content["data"])
    pd.testing.assert_frame_equal(read_squad(write(lines))[0], expected)
