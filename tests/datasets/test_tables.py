import csv
import gzip

import numpy as np
import pytest

from skdice.datasets import read_labeled_text, read_pairs

from .test_bad_files import GLUE, MRPC, QUORA


class TestReading:
    @pytest.mark.parametrize("layout, content, X, y", [
        ("mrpc", "\ufeff" + MRPC + '1\t7\t8\t"a" b\t"c\n', [('"a" b', '"c')], [1]),
        ("mrpc", MRPC + "0\t7\t8\ta\tb\n1\t9\t9\tc\td", [("a", "b"), ("c", "d")], [0, 1]),
        ("bimpm", '1\t"a\tb\t9\n0\t\td\tx\n', [('"a', "b"), ("", "d")], [1, 0]),
        ("quora", QUORA + '0\t1\t2\ta "b"\t"c ""d"""\t1\n', [('a "b"', 'c "d"')], [1]),
        ("quora", QUORA + '0\t1\t2\t"a\n\nb"\t"\tc"\t0\n', [("a\n\nb", "\tc")], [0]),
        ("quora", QUORA.replace("id", '"id"', 1) + "0\t1\t2\t\t\t0\n", [("", "")], [0]),
        ("quora", '"id"\t"question1"\t"question2"\t"is_duplicate"\n0\t"a"\t"b\r\n"\t1\r\n',
         [("a", "b\r\n")], [1]),
        ("glue", GLUE + '0\t"a\tb"\t1\n', [('"a', 'b"')], [1]),
        ("glue", "label\tsentence2\tsentence1\nno\ta\tb\n", [("b", "a")], ["no"]),
        ("er", "COL a VAL  \t b\t1\n\t\t0\n", [("COL a VAL  ", " b"), ("", "")], [1, 0]),
    ])  # fmt: skip
    def test_layouts(self, write, layout, content, X, y):
        path = write(content)
        for name in (layout, "auto"):
            pairs, labels = read_pairs(path, layout=name)
            assert pairs == X
            assert labels.tolist() == y
            assert {type(pair) for pair in pairs} == {tuple}

    @pytest.mark.parametrize("content, X", [
        ('sentence1,sentence2,label\n"a, b","c ""d""",1\n', [("a, b", 'c "d"')]),
        ('"a, b",c,1\nd,"e\nf",0\n', [("a, b", "c"), ("d", "e\nf")]),
        ('"x","question2","question1","is_duplicate"\r\n1,a,b,0\r\n', [("b", "a")]),
    ])  # fmt: skip
    @pytest.mark.parametrize("name", ["pairs.csv", "PAIRS.CSV.gz"])
    def test_csv(self, write, content, X, name):
        data = content.encode()
        path = write(gzip.compress(data) if name.endswith("gz") else data, name)
        assert read_pairs(path)[0] == X

    @pytest.mark.parametrize("name, content, columns, X, y", [
        ("p.csv", 'left,right,match\n"a, b",c,yes\n', ("left", "right", "match"), [("a, b", "c")],
         ["yes"]),
        ("p.tsv", "match\tleft\tright\n1\t\tb\n", ("left", 2, "match"), [("", "b")], [1]),
        ("p.csv", "a,0,b\n", (0, -1, 1), [("a", "b")], [0]),
    ])  # fmt: skip
    def test_columns_of_other_tables(self, write, name, content, columns, X, y):
        names = dict(zip(("first", "second", "label"), columns))
        pairs, labels = read_pairs(write(content, name), **names)
        assert (pairs, labels.tolist()) == (X, y)

    def test_labels_that_are_integers_and_others(self, write):
        numbers = [" 1", "0 ", str(2**63 - 1), "-9"]
        _, y = read_pairs(write("".join(f"a\tb\t{label}\n" for label in numbers)), layout="er")
        assert y.dtype == np.int64
        assert y.tolist() == [int(label) for label in numbers]
        for label in ("no", "not equivalent", "1.0", "01", "-0", "٢", str(2**63)):
            _, y = read_pairs(write(f"a\tb\t1\na\tb\t{label}\n"), layout="er")
            assert y.dtype == object
            assert y.tolist() == ["1", label]
        with pytest.raises(
            ValueError, match=r"pairs.csv, line 1: .* cut at commas\. Pass them, .* first='left'"
        ):
            read_pairs(write("a,b\n", "pairs.csv"))


class TestLabeledText:
    @pytest.mark.parametrize("name, content, parameters, X, y", [
        ("t.txt", "1 a b\n0  c\n", {}, ["a b", " c"], [1, 0]),
        ("t.txt", '1 "a, b\n0 \n', {}, ['"a, b', ""], [1, 0]),
        ("t.tsv", 'ham\t"a b\nspam\tc\n', {}, ['"a b', "c"], ["ham", "spam"]),
        ("t.tsv", "a\tham\n", {"text": 0, "label": 1}, ["a"], ["ham"]),
        ("t.tsv", "7\ta\tb\t1\n", {"text": -2, "label": np.int64(3)}, ["b"], [1]),
        ("t.tsv", "label\ttext\n", {"text": 1, "label": 0}, ["text"], ["label"]),
        ("t.tsv", "\ufeffLabel\tid\tText\n1\t2\ta\n", {}, ["a"], [1]),
        ("t.tsv", "body\tmood\na\tx\n", {"text": "body", "label": "mood"}, ["a"], ["x"]),
        ("t.tsv", "id\tbody\tmood\n1\ta\tx\n", {"text": 1, "label": "mood"}, ["a"], ["x"]),
        ("t.tsv", "text\tclass\tlabel\na\tx\ty\n", {"text": "text", "label": "class"}, ["a"],
         ["x"]),
        ("t.csv", ',class,tweet\n0,2,"a, ""b""\n\nc"\n1,0,\n', {}, ['a, "b"\n\nc', ""], [2, 0]),
        ("t.CSV", 'class,tweet\r\n2,"a\r\nb"\r\n', {}, ["a\r\nb"], [2]),
        ("t.csv", "text\tlabel\na, b\t1\n", {"separator": "\t"}, ["a, b"], [1]),
        ("t.txt", 'text;label\n"a;b";1\n', {"separator": ";"}, ["a;b"], [1]),
        ("t.txt", "x\ta b\n", {"separator": " "}, ["b"], ["x\ta"]),
        ("t.txt", "4 a\n1 b\n1 c\n", {}, ["a", "b", "c"], [4, 1, 1]),
    ])  # fmt: skip
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


@pytest.mark.parametrize("parameters, message", [
    ({"text": "tweet", "label": 0}, "one column 'tweet'. .* 'id, body, id, mood'"),
    ({"text": "body", "label": "id"}, "one column 'id'"),
    ({"text": "body"}, "'label' parameter .* Got None"),
    ({"text": 4, "label": 0}, "one column 4"),
    ({"text": 1, "label": -3}, "different columns"),
    ({"first": "body", "second": "right", "label": 0}, "column 'right'. .* 'id, body, id, mood'"),
    ({"first": "body", "second": "mood"}, "'label' parameter of read_pairs .* Got None"),
])  # fmt: skip
def test_columns_that_are_not_there(write, parameters, message):
    path = write("id,body,id,mood\n1,a,2,x\n", "t.csv")
    with pytest.raises(ValueError, match=message):
        (read_pairs if "first" in parameters else read_labeled_text)(path, **parameters)
