import csv
import gzip
import io
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_labeled_text

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture
def write(tmp_path):
    def write(content, name="texts.tsv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


class TestReading:
    @pytest.mark.parametrize(
        "name, content, parameters, X, y",
        [
            ("t.txt", "1 a b\n0  c\n", {}, ["a b", " c"], [1, 0]),
            ("t.txt", '1 "a, b\n0 \n', {}, ['"a, b', ""], [1, 0]),
            ("t.txt", "label text\nx a b\n", {}, ["a b"], ["x"]),
            ("t.tsv", 'ham\t"a b\nspam\tc\n', {}, ['"a b', "c"], ["ham", "spam"]),
            ("t.tsv", "a\tham\n", {"text": 0, "label": 1}, ["a"], ["ham"]),
            ("t.tsv", "a\tham\n", {"label": -1}, ["a"], ["ham"]),
            ("t.tsv", "a\tham\n", {"text": 0}, ["a"], ["ham"]),
            ("t.tsv", "7\ta\tb\t1\n", {"text": -2, "label": np.int64(3)}, ["b"], [1]),
            ("t.tsv", "a b\ta\nc d\tb\n", {"label": 0}, ["a", "b"], ["a b", "c d"]),
            ("t.tsv", "label\ttext\n", {"text": 1, "label": 0}, ["text"], ["label"]),
            ("t.tsv", "sentence\tlabel\na \t1\nb\t0\n", {}, ["a ", "b"], [1, 0]),
            ("t.tsv", "\ufeffLabel\tid\tText\n1\t2\ta\n", {}, ["a"], [1]),
            ("t.tsv", "body\tmood\na\tx\n", {"text": "body"}, ["a"], ["x"]),
            ("t.tsv", "body\tmood\na\tx\n", {"label": "mood"}, ["a"], ["x"]),
            ("t.tsv", "text\tclass\tlabel\na\tx\ty\n", {"label": "class"}, ["a"], ["x"]),
            ("t.csv", ',class,tweet\n0,2,"a, ""b""\n\nc"\n1,0,\n', {}, ['a, "b"\n\nc', ""], [2, 0]),
            ("t.CSV", 'class,tweet\r\n2,"a\r\nb"\r\n', {}, ["a\r\nb"], [2]),
            ("t.csv", "1,a b\n2,c\td\n", {}, ["a b", "c\td"], [1, 2]),
            ("t.csv", "text\tlabel\na, b\t1\n", {"separator": "\t"}, ["a, b"], [1]),
            ("t.txt", 'text;label\n"a;b";1\n', {"separator": ";"}, ["a;b"], [1]),
            ("t.txt", "x\ta b\n", {"separator": " "}, ["b"], ["x\ta"]),
            ("t.txt", "text label\n", {"text": 1, "label": 0}, ["label"], ["text"]),
            ("t.txt", "4 a\n1 b\n1 c\n", {}, ["a", "b", "c"], [4, 1, 1]),
        ],
    )
    def test_forms(self, write, name, content, parameters, X, y):
        texts, labels = read_labeled_text(write(content, name), **parameters)
        assert texts == X
        assert labels.tolist() == y
        assert labels.dtype == (np.int64 if isinstance(y[0], int) else object)

    @pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.xz", "a.gz", "a.tsv.xz"])
    def test_compressed_and_encoded(self, write, name):
        separator = "," if ".csv" in name else "\t"
        compress = gzip.compress if name.endswith("gz") else lzma.compress
        path = write(compress(f"label{separator}text\n1{separator}ä b\n".encode("latin-1")), name)
        texts, labels = read_labeled_text(str(path), encoding="latin-1")
        assert (texts, labels.tolist()) == (["ä b"], [1])

    @pytest.mark.parametrize("end", ["", "\n", "\n\n \n", "\r\n\r\n"])
    @pytest.mark.parametrize("name, start", [("t.txt", "1 a"), ("t.tsv", "1\ta"), ("t.csv", "1,a")])
    def test_blank_lines_at_the_end(self, write, name, start, end):
        texts, labels = read_labeled_text(write(start + end, name))
        assert (texts, labels.tolist()) == (["a"], [1])

    @pytest.mark.parametrize("word", ["\u00a0", "\u2028", "\x85", "\x0c", "\x1c", "a\rb", '"'])
    @pytest.mark.parametrize("separator", ["\t", " "])
    def test_odd_characters_are_text(self, write, word, separator):
        path = write(f"1{separator}{word}\n0{separator}b{word}\n")
        assert read_labeled_text(path)[0] == [word, f"b{word}"]

    def test_long_quoted_texts(self, write):
        limit = csv.field_size_limit()
        text = "a, " * limit
        assert read_labeled_text(write(f'1,"{text}"\n', "t.csv"))[0] == [text]
        with pytest.raises(ValueError, match="badly quoted"):
            read_labeled_text(write(f'1,"{text}\n', "t.csv"))
        assert csv.field_size_limit() == limit

    texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"))

    @settings(max_examples=60, deadline=None)
    @given(rows=st.lists(st.tuples(st.sampled_from("ab"), texts), min_size=1, max_size=5))
    def test_round_trip_of_any_text(self, tmp_path_factory, rows):
        folder = tmp_path_factory.mktemp("texts")
        content = io.StringIO(newline="")
        csv.writer(content, lineterminator="\n").writerows([("label", "text"), *rows])
        (folder / "t.csv").write_bytes(content.getvalue().encode("utf-8"))
        rows_of_lines = [(label, text.replace("\n", " ")) for label, text in rows]
        lines = [f"{label} {text}\n" for label, text in rows_of_lines]
        (folder / "t.txt").write_bytes("".join(lines).encode("utf-8"))
        texts, labels = read_labeled_text(folder / "t.csv", text="text", label="label")
        assert list(zip(labels.tolist(), texts)) == rows
        texts, labels = read_labeled_text(folder / "t.txt", text=1, label=0, separator=" ")
        assert list(zip(labels.tolist(), texts)) == rows_of_lines


class TestErrors:
    @pytest.mark.parametrize(
        "name, content, message",
        [
            ("t.txt", "1 a\n0\n", r"t\.txt, line 2: got 1 column in '0', .* 2 .* by one space"),
            ("t.txt", "1 a\n\n0 b\n", "line 2: got a blank line, expected 2 columns"),
            ("t.txt", "1 a\n b\n", r"line 2: the label \(column 0\) is empty"),
            ("t.tsv", "1\ta\n0\tb\tc\n", "line 2: got 3 columns .* expected 2 .* by a TAB"),
            ("t.tsv", "1\ta\n\tb\n", r"line 2: the label \(column 0\) is empty"),
            ("t.tsv", "sentence\tlabel\na\t1\n\tx\ty\n", "line 3: got 3 columns"),
            ("t.tsv", "sentence\tlabel\na\t1\nb\t\n", r"line 3: the label \(column 1\) is empty"),
            ("t.tsv", "sentence\tlabel\n", "line 1: the file ends after its header"),
            ("t.csv", 'class,tweet\n1,"a\n\n"\n1,a,b\n', "line 5: got 3 columns .* by a comma"),
            ("t.csv", 'class,tweet\n1,"a\n\n"\n\n1,a\n', "line 5: got a blank line"),
            ("t.csv", 'class,tweet\n1,"a\n"\n"",a\n', r"line 4: the label \(column 0\) is empty"),
            ("t.csv", 'class,tweet\n1,a\n1,"a\nb\n', "line 3: .* badly quoted, .* line 4"),
            ("t.txt", "\n1 a\n", "line 1: got a blank line"),
            ("t.txt", "", "line 1: the file ends without any row"),
            ("t.txt", " \n\n", "line 2: the file ends without any row"),
            ("t.tsv", "mood\tbody\n1\ta\n0\tb\n", "line 1: the label is 'mood', .* a header"),
            (
                "t.tsv",
                "mood\tbody\nx\ta\nx\tb\n",
                "line 1: the label 'mood' occurs in this line on",
            ),
            ("t.tsv", "a b\tx\nc\ty\n", "line 1: the first column has several words"),
            ("t.tsv", "a\tx\nb\ty\nc d\ty\n", "line 3: the first column has several words"),
            ("t.csv", "id,body,mood\n1,a,x\n", r"The columns of line 1 are 'id', 'body', 'mood'\."),
            (
                "t.csv",
                "id,body,mood\n1,a,x\n",
                r"read_labeled_text\(path, text='mood', label='id'\)",
            ),
            (
                "t.csv",
                "id,tweet,mood\n1,a,x\n",
                r"tell the column of the label\. .*text='tweet', la",
            ),
            ("t.csv", "id,body,class\n1,a,x\n", r"tell the column of the text\. .*label='class'\)"),
            ("t.csv", "text,tweet,class\n1,a,x\n", r"line 1: cannot tell the column of the text"),
            ("t.csv", "text,class,label\n1,a,x\n", r"line 1: cannot tell the column of the label"),
            ("t.tsv", "tweet\tmood\na\tx\n", "line 1: cannot tell the column of the label"),
            ("t.txt", "word\nword\n", r"line 1: cannot tell the columns .* are 'word'\."),
            ("t.txt", "text label\na b\n", "cut at their first space only"),
            ("t.txt", b"1 a\n0 \xff\n", r"line 2: cannot decode the bytes b'\\xff' as 'utf-8'"),
        ],
    )
    def test_content(self, write, name, content, message):
        with pytest.raises(ValueError, match=message):
            read_labeled_text(write(content, name))

    @pytest.mark.parametrize(
        "parameters, message",
        [
            (
                {"text": "tweet"},
                r"one column 'tweet' \(text='tweet'\)\. .* 'id', 'body', 'id', 'moo",
            ),
            ({"text": "body", "label": "id"}, r"one column 'id' \(label='id'\)"),
            ({"text": "body"}, "line 1: cannot tell the column of the label"),
            ({"text": 1}, "line 1: cannot tell the columns of the text and the label"),
            ({"text": 4, "label": 0}, r"no column 4 \(text=4\)\. The columns of line 1 are 'id'"),
            ({"text": 1, "label": -5}, r"no column -5 \(label=-5\)"),
            ({"text": 1, "label": -3}, "must be in different columns. Got text=1 and label=-3"),
            ({"text": "body", "label": "body"}, "must be in different columns"),
            ({"text": 1, "label": "mood"}, "must both be names .* Got text=1 and label='mood'"),
            ({"text": True}, "'text' parameter of read_labeled_text must be a str, an int or None"),
            ({"label": 1.0}, "'label' parameter of read_labeled_text must be .* Got 1.0 instead"),
            ({"text": 1, "label": 2, "separator": " "}, r"no column 1 \(text=1\)"),
            ({"separator": ""}, "'separator' parameter of read_labeled_text must be one character"),
            ({"separator": "||"}, r"'separator' .* Got '\|\|' instead"),
            ({"separator": '"'}, "'separator' parameter"),
            ({"separator": "\n"}, "'separator' parameter"),
            ({"separator": 3}, "'separator' parameter .* Got 3 instead"),
        ],
    )
    def test_parameters(self, write, parameters, message):
        path = write("id,body,id,mood\n1,a,2,x\n", "t.csv")
        with pytest.raises(ValueError, match=message):
            read_labeled_text(path, **parameters)

    def test_a_space_cuts_after_the_label(self, write):
        with pytest.raises(ValueError, match=r"label must come first. Got text=0 and label=1"):
            read_labeled_text(write("a 1\nb 0\n"), text=0, label=1)

    def test_numbers_for_a_file_with_a_header(self, write):
        with pytest.raises(ValueError, match="line 1: the label is 'label', while all others are"):
            read_labeled_text(write("sentence\tlabel\na\t1\nb\t0\n"), text=0, label=1)

    def test_long_first_lines_are_shortened(self, write):
        path = write("\t".join(["a" * 500] * 50))
        with pytest.raises(ValueError, match="cannot tell the columns") as error:
            read_labeled_text(path)
        assert len(str(error.value)) < 1500

    def test_files(self, write, tmp_path):
        with pytest.raises(ValueError, match=r"a\.xz: the suffix says xz, but"):
            read_labeled_text(write("1 a\n", "a.xz"))
        with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.csv"):
            read_labeled_text(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    "name, counts",
    [
        ("sst2/train.txt", {1: 3_610, 0: 3_310}),
        ("sst2/dev.txt", {1: 444, 0: 428}),
        ("sst2/test.txt", {0: 912, 1: 909}),
        ("sst5/train.txt", {3: 2_322, 1: 2_218, 2: 1_624, 4: 1_288, 0: 1_092}),
        ("sst5/dev.txt", {1: 289, 3: 279, 2: 229, 4: 165, 0: 139}),
        ("sst5/test.txt", {1: 633, 3: 510, 4: 399, 2: 389, 0: 279}),
        ("sst2_glue/train.tsv", {1: 37_569, 0: 29_780}),
        ("sst2_glue/dev.tsv", {1: 444, 0: 428}),
        ("sms_spam/all.tsv", {"ham": 4_827, "spam": 747}),
        ("hate_davidson/labeled_data.csv", {1: 19_190, 2: 4_163, 0: 1_430}),
    ],
)
def test_published_corpora(name, counts):
    path = CORPORA / "cls" / f"{name}.xz"
    if not path.exists():
        pytest.skip(f"needs the corpus cls/{name}.xz in ../shared/data")
    X, y = read_labeled_text(path)
    assert Counter(y.tolist()) == counts
    assert len(X) == len(y)
    assert all(text.strip() for text in X)
    assert y.dtype == (object if "ham" in counts else np.int64)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_carriage_return_alone_is_text(tmp_path, end):
    """Rows end at line feeds only, quoted or not."""
    path = tmp_path / "texts.csv"
    rows = ["label,text", "ham,one\rtwo", 'spam,"one\rtwo"', 'ham,"a\r\rb, c"', "spam,\rx", "ham,y"]
    path.write_bytes(end.join(rows).encode() + b"\r")
    X, y = read_labeled_text(path)
    assert X == ["one\rtwo", "one\rtwo", "a\r\rb, c", "\rx", "y"]
    assert y.tolist() == ["ham", "spam", "ham", "spam", "ham"]
    path.write_bytes(end.join([*rows, 'spam,"a" b']).encode())
    with pytest.raises(ValueError, match="line 7: the row that begins here is badly quoted"):
        read_labeled_text(path)
