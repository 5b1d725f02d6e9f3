"""Line ends: LF, CRLF or CR, in all readers and compressed files."""

import gzip
import lzma

import pytest

from skdice.datasets import read_conll, read_conllu, read_doccano, read_labeled_text, read_pairs

CONLLU = "1\ta\t_\tX" + "\t_" * 6 + "\n2\tb\t_\tY" + "\t_" * 6 + "\n\n1\tc\t_\tX" + "\t_" * 6 + "\n"
# For each reader: the name of a file, and its content in several lines.
FILES = {
    read_conll: ("a.conll", "a X\nb Y\n\nc Z\n"),
    read_conllu: ("a.conllu", CONLLU),
    read_labeled_text: ("a.tsv", "1\ta b\n0\tc d\n1\te f\n"),
    read_pairs: ("a.tsv", "sentence1\tsentence2\tlabel\na b\tb\t1\nc d\td\t0\n"),
    read_doccano: ("all.jsonl", '{"text": "ab", "label": [[0, 1, "X"]]}\n' * 2),
}
CSV = 'label,text\nham,"a\rb\r\nc"\nspam,"d, e"\n'


def read_all(reader, path):
    X, y = reader(path)
    return X, list(y)


@pytest.mark.parametrize("reader", FILES)
@pytest.mark.parametrize(
    "end, suffix, pack",
    [("\r", "", bytes), ("\r\n", ".gz", gzip.compress), ("\r", ".XZ", lzma.compress)],
)
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
        (read_doccano, '{"text": "a", "label": []}\r{"text": 1}', 2),
        (read_conll, "a X\r\rb\r", 3),
        (read_conll, b"a X\rb\xff X\r", 2),
    ):
        path = write(content)
        with pytest.raises(ValueError, match=rf"^{path}, line {line}[:,]"):
            reader(path)
