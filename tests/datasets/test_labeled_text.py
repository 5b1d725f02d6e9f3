import csv

import numpy as np
import pytest

from skdice.datasets import read_labeled_text


class TestReading:
    @pytest.mark.parametrize(
        "name, content, parameters, X, y",
        [
            ("t.txt", "1 a b\n0  c\n", {}, ["a b", " c"], [1, 0]),
            ("t.txt", '1 "a, b\n0 \n', {}, ['"a, b', ""], [1, 0]),
            ("t.tsv", 'ham\t"a b\nspam\tc\n', {}, ['"a b', "c"], ["ham", "spam"]),
            ("t.tsv", "a\tham\n", {"text": 0, "label": 1}, ["a"], ["ham"]),
            ("t.tsv", "7\ta\tb\t1\n", {"text": -2, "label": np.int64(3)}, ["b"], [1]),
            ("t.tsv", "label\ttext\n", {"text": 1, "label": 0}, ["text"], ["label"]),
            ("t.tsv", "\ufeffLabel\tid\tText\n1\t2\ta\n", {}, ["a"], [1]),
            ("t.tsv", "body\tmood\na\tx\n", {"text": "body", "label": "mood"}, ["a"], ["x"]),
            ("t.tsv", "id\tbody\tmood\n1\ta\tx\n", {"text": 1, "label": "mood"}, ["a"], ["x"]),
            (
                "t.tsv",
                "text\tclass\tlabel\na\tx\ty\n",
                {"text": "text", "label": "class"},
                ["a"],
                ["x"],
            ),
            ("t.csv", ',class,tweet\n0,2,"a, ""b""\n\nc"\n1,0,\n', {}, ['a, "b"\n\nc', ""], [2, 0]),
            ("t.CSV", 'class,tweet\r\n2,"a\r\nb"\r\n', {}, ["a\r\nb"], [2]),
            ("t.csv", "text\tlabel\na, b\t1\n", {"separator": "\t"}, ["a, b"], [1]),
            ("t.txt", 'text;label\n"a;b";1\n', {"separator": ";"}, ["a;b"], [1]),
            ("t.txt", "x\ta b\n", {"separator": " "}, ["b"], ["x\ta"]),
            ("t.txt", "4 a\n1 b\n1 c\n", {}, ["a", "b", "c"], [4, 1, 1]),
        ],
    )
    def test_forms(self, write, name, content, parameters, X, y):
        texts, labels = read_labeled_text(write(content, name), **parameters)
        assert texts == X
        assert labels.tolist() == y
        assert labels.dtype == (np.int64 if isinstance(y[0], int) else object)

    def test_long_quoted_texts(self, write):
        limit = csv.field_size_limit()
        text = "a, " * limit
        assert read_labeled_text(write(f'1,"{text}"\n', "t.csv"))[0] == [text]
        with pytest.raises(ValueError, match="badly quoted"):
            read_labeled_text(write(f'1,"{text}\n', "t.csv"))
        assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"text": "tweet", "label": 0}, "one column 'tweet'. .* 'id, body, id, mood'"),
        ({"text": "body", "label": "id"}, "one column 'id'"),
        ({"text": "body"}, "'label' parameter .* Got None"),
        ({"text": 4, "label": 0}, "one column 4"),
        ({"text": 1, "label": -3}, "different columns"),
    ],
)
def test_columns_that_are_not_there(write, parameters, message):
    path = write("id,body,id,mood\n1,a,2,x\n", "t.csv")
    with pytest.raises(ValueError, match=message):
        read_labeled_text(path, **parameters)
