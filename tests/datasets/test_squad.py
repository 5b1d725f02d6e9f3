import gzip
import json
import lzma

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_squad

NO_ANSWER = {"text": [], "answer_start": []}


def make_file(*questions, context="Anna met Bo.", **article):
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}], **article}]}


def make_question(*answers, **fields):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": "a", "question": "Who?", "answers": answers} | fields


def drop(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


class TestReading:
    @pytest.mark.parametrize(
        "question, expected",
        [
            (make_question(("Bo", 9)), {"text": ["Bo"], "answer_start": [9]}),
            (
                make_question(("Anna", 0), ("Bo", 9), ("Anna", 0)),
                {"text": ["Anna", "Bo", "Anna"], "answer_start": [0, 9, 0]},
            ),
            (make_question(("Bo", 8)), {"text": ["Bo"], "answer_start": [8]}),
            (make_question(("Bo", -1)), {"text": ["Bo"], "answer_start": [-1]}),
            (make_question(("Nobody", 900)), {"text": ["Nobody"], "answer_start": [900]}),
            (make_question(("", 0)), {"text": [""], "answer_start": [0]}),
            (make_question((" Bo ", 8)), {"text": [" Bo "], "answer_start": [8]}),
            (
                make_question(("Bo", 9), is_impossible=False),
                {"text": ["Bo"], "answer_start": [9]},
            ),
            (make_question(), NO_ANSWER),
            (make_question(is_impossible=False), NO_ANSWER),
            (make_question(is_impossible=True), NO_ANSWER),
            (make_question(("Bo", 9), is_impossible=True), NO_ANSWER),
            (drop(make_question(is_impossible=True), "answers"), NO_ANSWER),
            (make_question(plausible_answers=[{"text": "Bo", "answer_start": 9}]), NO_ANSWER),
        ],
    )
    def test_answers(self, write, question, expected):
        _, y = read_squad(write(make_file(question)))
        assert y.tolist() == [expected]
        assert type(y[0]) is dict
        assert {type(start) for start in y[0]["answer_start"]} <= {int}

    def test_form_and_order(self, write):
        first = make_file(make_question(id="b"), make_question(id="a"), title="One", url="x")
        second = make_file(make_question(id=7), context="B\n c.", title="Two")
        content = {"version": 1, "data": first["data"] + [{"paragraphs": []}] + second["data"]}
        X, y = read_squad(write(content))
        expected = pd.DataFrame(
            [
                ("b", "One", "Who?", "Anna met Bo."),
                ("a", "One", "Who?", "Anna met Bo."),
                (7, "Two", "Who?", "B\n c."),
            ],
            columns=["id", "title", "question", "context"],
            dtype=object,
        )
        pd.testing.assert_frame_equal(X, expected)
        assert type(y) is np.ndarray
        assert y.dtype == object
        assert y.shape == (3,)

    def test_missing_titles_are_empty(self, write):
        assert read_squad(write(make_file(make_question())))[0]["title"].tolist() == [""]

    def test_repeated_ids_and_questions_are_kept(self, write):
        X, y = read_squad(write(make_file(make_question(), make_question(), make_question())))
        assert X["id"].tolist() == ["a", "a", "a"]
        assert len(y) == 3

    def test_questions_share_their_context(self, write):
        X, _ = read_squad(write(make_file(make_question(), make_question())))
        assert X["context"][0] is X["context"][1]

    @pytest.mark.parametrize("name, compress", [("c.gz", gzip.compress), ("c.XZ", lzma.compress)])
    def test_compressed(self, write, name, compress):
        path = write(compress(json.dumps(make_file(make_question())).encode("utf-8")), name)
        assert len(read_squad(str(path))[0]) == 1

    def test_byte_order_mark(self, write):
        assert len(read_squad(write("\ufeff" + json.dumps(make_file(make_question()))))[0]) == 1

    texts = st.text(st.characters(exclude_categories=[]))

    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(
            st.tuples(texts, texts, texts, texts, st.lists(st.tuples(texts, st.integers()))),
            min_size=1,
            max_size=4,
        ),
        is_ascii=st.booleans(),
    )
    def test_round_trip_of_any_text(self, tmp_path_factory, rows, is_ascii):
        data = []
        for name, title, text, context, answers in rows:
            question = make_question(*answers, id=name, question=text)
            data += make_file(question, context=context, title=title)["data"]
        path = tmp_path_factory.mktemp("squad") / "dev.json"
        # Half of a surrogate pair can be written as an escape only.
        has_surrogate = any("\ud800" <= c <= "\udfff" for c in repr_all(rows))
        content = json.dumps({"data": data}, ensure_ascii=is_ascii or has_surrogate)
        path.write_bytes(content.encode("utf-8"))
        X, y = read_squad(path)
        assert list(X.itertuples(index=False, name=None)) == [row[:4] for row in rows]
        assert [list(zip(*answers.values())) for answers in y] == [row[4] for row in rows]


def repr_all(rows):
    return "".join(
        part for *texts, answers in rows for part in [*texts, *(text for text, _ in answers)]
    )
