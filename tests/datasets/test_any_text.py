"""What all readers of text files do: any text is read as it stands, whatever ends its lines."""

import csv
import gzip
import io
import json
import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice import datasets
from skdice.datasets import read_conll, read_labeled_text, read_pairs


def quote(rows, separator):
    content = io.StringIO(newline="")
    csv.writer(content, delimiter=separator, lineterminator="\n").writerows(rows)
    return content.getvalue()


def lines(form):
    return lambda texts: "".join(form.format(i, text) for i, text in enumerate(texts, 1))


def write_squad(texts):
    question = {"id": "a", "question": "Who?", "answers": []}
    data = [{"paragraphs": [{"context": text, "qas": [question]}]} for text in texts]
    return json.dumps({"data": data}, ensure_ascii=False) + "\n"


# Name of a file, its content with some texts, how they are read again, and what they cannot have.
FORMATS = {
    "conll": (lines("{1}\tX\n"), lambda path: read_conll(path, separator="\t")[0][0],
              "\t\r\n"),
    "conll space":
        (lines("{1} X\n"), lambda path: read_conll(path, separator=" ")[0][0], " \t\r\n"),
    "conllu": (lines("{0}\t{1}\t_\tX" + "\t_" * 6 + "\n"),
               lambda path: datasets.read_conllu(path)[0][0], "\t\r\n"),
    "glue": (lambda texts: "sentence1\tsentence2\tlabel\n" + lines("{1}\tb\t1\n")(texts),
             lambda path: [first for first, _ in read_pairs(path)[0]], "\t\r\n"),
    "er": (lines("a\t{1}\t1\n"), lambda path: [b for _, b in read_pairs(path, layout="er")[0]],
           "\t\r\n"),
    "quora": (lambda texts: quote([("question1", "question2", "is_duplicate"),
                                   *((text, "b", 0) for text in texts)], "\t"),
              lambda path: [first for first, _ in read_pairs(path)[0]], "\r"),
    "csv": (lambda texts: quote([("label", "text"), *((1, text) for text in texts)], ","),
            lambda path: read_labeled_text(path, separator=",")[0], "\r"),
    "tsv": (lines("1\t{1}\n"), lambda path: read_labeled_text(path, text=1, label=0)[0], "\t\r\n"),
    "spaces": (lines("1 {1}\n"),
               lambda path: read_labeled_text(path, text=1, label=0, separator=" ")[0], "\r\n"),
    "squad": (write_squad, lambda path: list(datasets.read_squad(path)[0]["context"]), ""),
}  # fmt: skip
ODD = ["\u00a0", "\u200b", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\u3000", "😀", '"']


@pytest.mark.parametrize("name", FORMATS)
def test_odd_characters_are_text(write, name):
    make, read, _ = FORMATS[name]
    texts = [*ODD, *(f"b{char}" for char in ODD), "a\ufeff"]
    assert read(write(make(texts))) == texts
    assert read(write("\ufeff" + make(texts))) == texts
    assert read(write(make(["a", "b"]).replace("\n", "\r\n"))) == ["a", "b"]
    assert read(write(make(["a", "b"]).rstrip("\n"))) == ["a", "b"]
    assert read(write(make(["a", "b"]) + "\n \n\n")) == ["a", "b"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("reader, content", [
    (read_conll, "é\tX\n"), (read_pairs, "é\tb\t1\n"), (read_labeled_text, "1\té\n"),
])  # fmt: skip
def test_encodings(write, encoding, reader, content):
    X, _ = reader(write(content.encode(encoding)), encoding=encoding)
    assert "é" in str(X)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_round_trip(tmp_path_factory, name, data):
    make, read, excluded = FORMATS[name]
    is_word = name.startswith("conll")
    any_text = st.text(st.characters(codec="utf-8", exclude_characters=excluded), min_size=is_word)
    # Lines of white space end a sentence, and so do those of a document.
    text = any_text.filter(
        lambda text: not text.startswith("-DOCSTART-") and (text.strip(" ") or not is_word)
    )
    texts = data.draw(st.lists(text, min_size=1, max_size=5))
    path = tmp_path_factory.mktemp("any") / "file.txt"
    # A byte order mark is written first, so that one inside the first text is seen to survive.
    path.write_bytes(make(texts).encode("utf-8-sig"))
    assert read(path) == texts


CONLLU = "1\ta\t_\tX" + "\t_" * 6 + "\n2\tb\t_\tY" + "\t_" * 6 + "\n\n1\tc\t_\tX" + "\t_" * 6 + "\n"
# For each reader: the name of a file, and its content in several lines.
FILES = {
    read_conll: ("a.conll", "a X\nb Y\n\nc Z\n"),
    datasets.read_conllu: ("a.conllu", CONLLU),
    read_labeled_text: ("a.tsv", "1\ta b\n0\tc d\n1\te f\n"),
    read_pairs: ("a.tsv", "sentence1\tsentence2\tlabel\na b\tb\t1\nc d\td\t0\n"),
    datasets.read_doccano: ("all.jsonl", '{"text": "ab", "label": [[0, 1, "X"]]}\n' * 2),
}
CSV = 'label,text\nham,"a\rb\r\nc"\nspam,"d, e"\n'


def read_all(reader, path):
    X, y = reader(path)
    return X, list(y)


@pytest.mark.parametrize("reader", FILES)
@pytest.mark.parametrize("end, suffix, pack", [
    ("\r", "", bytes), ("\r\n", ".gz", gzip.compress), ("\r", ".XZ", lzma.compress),
])  # fmt: skip
def test_all_lines_are_read(write, reader, end, suffix, pack):
    name, content = FILES[reader]
    expected = read_all(reader, write(content, name))
    other = write(pack(content.replace("\n", end).encode()), f"other-{name}{suffix}")
    assert read_all(reader, other) == expected


def test_tables_with_quotes(write):
    """A line end inside of quotes is text."""
    expected = (["a\rb\r\nc", "d, e"], ["ham", "spam"])
    assert read_all(read_labeled_text, write(CSV, "a.csv")) == expected
    windows = 'label,text\r\nham,"a\rb\r\nc"\r\nspam,"d, e"\r\n'
    assert read_all(read_labeled_text, write(windows, "a.csv")) == expected
    old = 'label,text\rham,"a\rb"\rspam,"d, e"\r'
    assert read_all(read_labeled_text, write(old, "a.csv")) == (["a\rb", "d, e"], ["ham", "spam"])
    quora = 'question1\tquestion2\tis_duplicate\r"a\rb"\tc\t1\r'
    assert read_all(read_pairs, write(quora)) == ([("a\rb", "c")], [1])


def test_errors_count_lines_that_end_in_cr(write):
    for reader, content, line in (
        (datasets.read_doccano, '{"text": "a", "label": []}\r{"text": 1}', 2),
        (read_conll, "a X\r\rb\r", 3),
        (read_conll, b"a X\rb\xff X\r", 2),
    ):
        path = write(content)
        with pytest.raises(ValueError, match=rf"^{path}, line {line}[:,]"):
            reader(path)
