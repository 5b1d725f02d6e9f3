import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_conll, read_conllu, write_conll

from .test_bad_files import line


@pytest.mark.parametrize("content, X, y", [
    ("a X\nb Y\n\nc Z\n", [["a", "b"], ["c"]], [["X", "Y"], ["Z"]]),
    ("a X\n\nb Y", [["a"], ["b"]], [["X"], ["Y"]]),
    ("\n\na X\n \t \n\n\nb Y\n\n\n", [["a"], ["b"]], [["X"], ["Y"]]),
    ("a\tp q\tX\nb\tr s\tY\n", [["a", "b"]], [["X", "Y"]]),
    ("a b\tX\n", [["a b"]], [["X"]]),
    ("a X\n \t\nb Y\n", [["a"], ["b"]], [["X"], ["Y"]]),
    ("a\tO \n b\t O\nc\tB-X\n", [["a", " b", "c"]], [["O", "O", "B-X"]]),  # Spaces are no tag.
    ("-DOCSTART- -X- O\n\na X\n", [["a"]], [["X"]]),
    ("-DOCSTART-\na X\n-DOCSTART-\tO\nb Y\n", [["a"], ["b"]], [["X"], ["Y"]]),
    ("-DOCSTART-s X\n", [["-DOCSTART-s"]], [["X"]]),
    ("a X\n\ufeff Y\n", [["a", "\ufeff"]], [["X", "Y"]]),
])  # fmt: skip
def test_reads_sentences(write, content, X, y):
    assert read_conll(write(content)) == (X, y)


@pytest.mark.parametrize("columns, X, y", [
    ((0, -1), [["a"]], [["d"]]), ((0, 3), [["a"]], [["d"]]), ((-4, -3), [["a"]], [["b"]]),
    ([2, 0], [["c"]], [["a"]]),
])  # fmt: skip
def test_columns(write, columns, X, y):
    assert read_conll(write("a b c d\n"), columns=columns) == (X, y)


def test_separator(write):
    path = write("a|b c\td|X\n|\n")
    with pytest.raises(ValueError, match="line 2"):
        read_conll(path, separator="|")
    with pytest.raises(ValueError, match="line 2"):
        read_conll(write("a\tX\nb\t \n"))
    with pytest.raises(ValueError, match="line 1"):
        read_conll(write("a O \n"))
    assert read_conll(write("a|b c\td|X\n"), separator="|") == ([["a"]], [["X"]])
    # A TAB that stands only in a blank or a document line does not make the file TAB-separated.
    assert read_conll(write("-DOCSTART-\tO\n\t\na X\n")) == ([["a"]], [["X"]])
    assert read_conll(write("a\tb X\n"), separator=" ") == ([["a\tb"]], [["X"]])


class TestWriting:
    words = st.text(
        st.characters(codec="utf-8", exclude_characters=" \t\r\n"), min_size=1, max_size=5
    ).filter(lambda word: word != "-DOCSTART-") | st.sampled_from(["\ufeff", "-DOCSTART-x", "#"])

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=4), min_size=1))
    def test_round_trip_of_any_words(self, tmp_path_factory, sentences):
        X = [[word for word, _ in row] for row in sentences]
        y = [[tag for _, tag in row] for row in sentences]
        folder = tmp_path_factory.mktemp("conll")
        for name in ("a.conll", "a.conll.gz", "a.XZ"):
            write_conll(folder / name, X, y)
            assert read_conll(folder / name) == (X, y)

    def test_lines(self, tmp_path):
        write_conll(tmp_path / "a.conll", [["Anna", "x"], ["Hi"]], [["B-PER", "O"], ["O"]])
        content = (tmp_path / "a.conll").read_bytes()
        assert content == b"Anna B-PER\nx O\n\nHi O\n\n"

    @pytest.mark.parametrize("words, tags, message", [
        *(([word], ["O"], "position 0 of row 1 of X") for word in ("", "b c", "a\tb", "a\n")),
        *((["a"], [tag], "position 0 of row 1 of y") for tag in ("", "O\r")),
        (["-DOCSTART-"], ["O"], "-DOCSTART- .* position 0 of row 1 of X"),
        ([], [], "row 1 of X"),
        (["a"], ["O", "O"], "row 1 has 1 words and 2 tags"),
        (["\ud800"], ["O"], "position 0 of row 1 of X has half of a surrogate pair"),
    ])  # fmt: skip
    def test_errors(self, tmp_path, words, tags, message):
        with pytest.raises(ValueError, match=message):
            write_conll(tmp_path / "a.conll", [["ok"], words], [["O"], tags])
        assert not list(tmp_path.iterdir())


class TestReading:
    @pytest.mark.parametrize("content, X, y", [
        (line(1, "a") + line(2, "b") + "\n" + line(1, "c"), [["a", "b"], ["c"]], "XX X"),
        ("\n" + line(1, "a") + "\n\n \t\n" + line(1, "b") + "\n", [["a"], ["b"]], "X X"),
        ("# text = a\n" + line(1, "a") + "# b\n" + line(2, "b"), [["a", "b"]], "XX"),
        (line("1-2", "ab", "_", "_") + line(1, "a") + line(2, "b"), [["a", "b"]], "XX"),
        (line("1-2") + line(1, "a") + line("1.1") + line(2, "b") + line("3-4") + line(3, "c"),
         [["a", "b", "c"]], "XXX"),
        (line(1, "10 000"), [["10 000"]], "X"),
        (line(1, "#") + line(2, "1-2"), [["#", "1-2"]], "XX"),
    ])  # fmt: skip
    def test_sentences(self, write, content, X, y):
        assert read_conllu(write(content)) == (X, [list(tags) for tags in y.split(" ")])

    def test_tags(self, write):
        path = write(line(1, "a", "NOUN", "NN") + line(2, "b", "_", "VB"))
        assert read_conllu(path, tag="xpos") == ([["a", "b"]], [["NN", "VB"]])
        path = write(line(1, "a", "NOUN", "_"))
        assert read_conllu(str(path), tag="upos") == ([["a"]], [["NOUN"]])
