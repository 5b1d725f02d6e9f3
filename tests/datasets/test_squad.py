import gzip
import json
import lzma
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_squad

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
NO_ANSWER = {"text": [], "answer_start": []}


@pytest.fixture
def write(tmp_path):
    def write(content, name="dev.json"):
        path = tmp_path / name
        if isinstance(content, str):
            content = content.encode("utf-8")
        if not isinstance(content, bytes):
            content = json.dumps(content, ensure_ascii=False).encode("utf-8")
        path.write_bytes(content)
        return path

    return write


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


PARAGRAPH = {"context": "Anna met Bo.", "qas": [make_question()]}


class TestErrors:
    @pytest.mark.parametrize(
        "content, message",
        [
            ("", "dev.json, line 1, column 1: the file is not JSON (Expecting value). Got ''"),
            ('{"data":\n[1,]}', "dev.json, line 2, column "),
            ('{"data": [],\n\n oops}', "line 3, column 2: the file is not JSON"),
            ('{"a": 1}\n{"a": 1}\n', "line 2, column 1: the file is not JSON (Extra data). Got"),
            ("[" * 100_000, "dev.json: the JSON cannot be read ("),
            ("1" * 5000, "dev.json: the JSON cannot be read ("),
            (b'{"data":\n\xff}', r"dev.json, line 2: cannot decode the bytes b'\xff'"),
            ([], "dev.json: an object is expected. Got [] instead."),
            ({}, "dev.json: 'data' is missing. Got the keys none."),
            ({"version": 1, "qas": 2}, "dev.json: 'data' is missing. Got the keys 'version', 'qa"),
            ({"data": {}}, "dev.json, data: a list is expected. Got {} instead."),
            ({"data": []}, "dev.json: the file has no questions."),
            ({"data": [{"paragraphs": []}]}, "dev.json: the file has no questions."),
            ({"data": [5]}, "dev.json, data[0]: an object is expected. Got 5 instead."),
            ({"data": [{}]}, "dev.json, data[0]: 'paragraphs' is missing. Got the keys none."),
            (
                make_file(make_question(), title=None),
                "dev.json, data[0]['title']: a string is expected. Got null instead.",
            ),
            (
                {"data": [{"paragraphs": [PARAGRAPH, drop(PARAGRAPH, "context")]}]},
                "data[0]['paragraphs'][1]: 'context' is missing. Got the keys 'qas'.",
            ),
            (
                {"data": [{"paragraphs": [PARAGRAPH]}, {"paragraphs": [PARAGRAPH | {"qas": 3}]}]},
                "data[1]['paragraphs'][0]['qas']: a list is expected. Got 3 instead.",
            ),
            (
                {"data": [{"paragraphs": [drop(PARAGRAPH, "qas")]}]},
                "data[0]['paragraphs'][0]: 'qas' is missing. Got the keys 'context'.",
            ),
            (
                make_file(make_question(), context=["Anna"]),
                """['paragraphs'][0]['context']: a string is expected. Got ["Anna"] instead.""",
            ),
        ],
    )
    def test_layout(self, write, content, message):
        with pytest.raises(ValueError) as error:
            read_squad(write(content))
        assert message in str(error.value)

    @pytest.mark.parametrize(
        "question, message",
        [
            ("Who?", ': an object is expected. Got "Who?" instead.'),
            (drop(make_question(), "id"), ": 'id' is missing. Got the keys 'question', 'answers'."),
            (make_question(id=1.5), "['id']: a string or an integer is expected. Got 1.5 instead."),
            (make_question(id=True), "['id']: a string or an integer is expected. Got true"),
            (drop(make_question(), "question"), ": 'question' is missing. Got the keys 'id',"),
            (make_question(question=3), "['question']: a string is expected. Got 3 instead."),
            (
                make_question(question={"text": "a" * 200}),
                """['question']: a string is expected. Got {"text": \"""" + "a" * 67 + "... inst",
            ),
            (make_question(is_impossible=1), "['is_impossible']: true or false is expected. Got 1"),
            (make_question(is_impossible=None), "['is_impossible']: true or false is expected."),
            (drop(make_question(), "answers"), ": 'answers' is missing. Got the keys"),
            (
                make_question(answers={"text": ["Bo"], "answer_start": [9]}),
                """['answers']: a list is expected. Got {"text": ["Bo"], "answer_start": [9]} i""",
            ),
            (make_question(answers=["Bo"]), """['answers'][0]: an object is expected. Got "Bo" """),
            (
                make_question(answers=[{"text": "Bo"}]),
                "['answers'][0]: 'answer_start' is missing. Got the keys 'text'.",
            ),
            (
                make_question(answers=[{"answer_start": 1}]),
                "['answers'][0]: 'text' is missing. Got the keys 'answer_start'.",
            ),
            (make_question(("Bo", 9), (7, 9)), "['answers'][1]['text']: a string is expected. Got"),
            (
                make_question(("Bo", 9.0)),
                "['answers'][0]['answer_start']: an integer is expected. Got 9.0 instead.",
            ),
            (
                make_question(("Bo", "9")),
                """['answers'][0]['answer_start']: an integer is expected. Got "9" """,
            ),
            (
                make_question(("Bo", True)),
                "['answers'][0]['answer_start']: an integer is expected. Got true",
            ),
        ],
    )
    def test_questions(self, write, question, message):
        with pytest.raises(ValueError) as error:
            read_squad(write(make_file(make_question(), question)))
        assert f"dev.json, data[0]['paragraphs'][0]['qas'][1]{message}" in str(error.value)

    def test_files(self, write, tmp_path):
        with pytest.raises(ValueError, match=r"a\.xz: the suffix says xz, but"):
            read_squad(write("{}", "a.xz"))
        with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.json"):
            read_squad(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    "name, n_questions, n_unanswerable, n_wrong, n_repeated_ids",
    [
        ("squad_v1.1/dev", 10_570, 0, 0, 0),
        ("squad_v1.1/train_subset", 14_348, 0, 0, 0),
        ("squad_v2.0/dev", 11_873, 5_945, 0, 0),
        ("squad_v2.0/half_a", 6_078, 3_168, 0, 0),
        ("squad_v2.0/half_b", 5_795, 2_777, 0, 0),
        ("quoref/dev", 2_418, 0, 50, 0),
        ("quoref/contrast_original", 415, 0, 7, 0),
        ("quoref/contrast_perturbed", 700, 0, 0, 2),
        ("cmrc2018_zh/dev", 3_219, 0, 200, 0),
        ("cmrc2018_zh/trial", 1_002, 0, 5, 0),
    ],
)
def test_published_corpora(name, n_questions, n_unanswerable, n_wrong, n_repeated_ids):
    path = CORPORA / "mrc" / f"{name}.json.xz"
    if not path.exists():
        pytest.skip(f"needs the corpus mrc/{name}.json.xz in ../shared/data")
    start = time.perf_counter()
    X, y = read_squad(path)
    assert time.perf_counter() - start < 10
    assert X.shape == (n_questions, 4)
    assert len(y) == n_questions
    assert sum(not answers["text"] for answers in y) == n_unanswerable
    assert n_questions - X["id"].nunique() == n_repeated_ids
    # Wrong offsets are counted over answers: a question may have several.
    found = [
        (context[start : start + len(text)], text)
        for context, answers in zip(X["context"], y)
        for text, start in zip(answers["text"], answers["answer_start"], strict=True)
    ]
    assert sum(there != text for there, text in found) == n_wrong
    assert X.map(lambda value: type(value) is str).all(axis=None)
