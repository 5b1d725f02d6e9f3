import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import _files, read_conll, write_conll

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture
def write(tmp_path):
    def write(content, name="corpus.conll"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


@pytest.mark.parametrize(
    "content, X, y",
    [
        ("a X\nb Y\n\nc Z\n", [["a", "b"], ["c"]], [["X", "Y"], ["Z"]]),
        ("a X\n\nb Y", [["a"], ["b"]], [["X"], ["Y"]]),
        ("\n\na X\n \t \n\n\nb Y\n\n\n", [["a"], ["b"]], [["X"], ["Y"]]),
        ("a X\r\nb Y\r\n\r\nc Z\r\n", [["a", "b"], ["c"]], [["X", "Y"], ["Z"]]),
        ("a\tp q\tX\nb\tr s\tY\n", [["a", "b"]], [["X", "Y"]]),
        ("a b\tX\n", [["a b"]], [["X"]]),
        ("a X\n \t\nb Y\n", [["a"], ["b"]], [["X"], ["Y"]]),
        ("a X\r\r\n", [["a"]], [["X\r"]]),
        ("-DOCSTART- -X- O\n\na X\n", [["a"]], [["X"]]),
        ("-DOCSTART-\na X\n-DOCSTART-\tO\nb Y\n", [["a"], ["b"]], [["X"], ["Y"]]),
        ("-DOCSTART-s X\n", [["-DOCSTART-s"]], [["X"]]),
        ("\ufeffa X\n", [["a"]], [["X"]]),
        ("a X\n\ufeff Y\n", [["a", "\ufeff"]], [["X", "Y"]]),
    ],
)
def test_reads_sentences(write, content, X, y):
    assert read_conll(write(content)) == (X, y)


@pytest.mark.parametrize(
    "word",
    ["\u00a0", "\u200b", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\u3000", "a\rb"],
)
@pytest.mark.parametrize("separator", [" ", "\t"])
def test_odd_characters_are_words_not_layout(write, word, separator):
    lines = [f"a{separator}X", f"{word}{separator}Y", f"b{word}{separator}Z"]
    assert read_conll(write("\n".join(lines))) == ([["a", word, "b" + word]], [["X", "Y", "Z"]])


@pytest.mark.parametrize(
    "columns, X, y",
    [
        ((0, -1), [["a"]], [["d"]]),
        ((0, 3), [["a"]], [["d"]]),
        ((-4, -3), [["a"]], [["b"]]),
        ([2, 0], [["c"]], [["a"]]),
    ],
)
def test_columns(write, columns, X, y):
    assert read_conll(write("a b c d\n"), columns=columns) == (X, y)


def test_separator(write):
    path = write("a|b c\td|X\n|\n")
    with pytest.raises(ValueError, match="line 2"):
        read_conll(path, separator="|")
    assert read_conll(write("a|b c\td|X\n"), separator="|") == ([["a"]], [["X"]])
    # A TAB that stands only in a blank or a document line does not make the file TAB-separated.
    assert read_conll(write("-DOCSTART-\tO\n\t\na X\n")) == ([["a"]], [["X"]])
    assert read_conll(write("a\tb X\n"), separator=" ") == ([["a\tb"]], [["X"]])


@pytest.mark.parametrize(
    "name, compress",
    [("c.conll.gz", gzip.compress), ("c.xz", lzma.compress), ("C.GZ", gzip.compress)],
)
def test_compressed(write, name, compress):
    assert read_conll(write(compress(b"a X\nb Y\n"), name)) == ([["a", "b"]], [["X", "Y"]])


def test_path_and_encoding(write):
    path = write("é X\n".encode("latin-1"))
    assert read_conll(str(path), encoding="latin-1") == ([["é"]], [["X"]])
    path = write("ü X\n".encode("utf-16"))
    assert read_conll(path, encoding="utf-16") == ([["ü"]], [["X"]])


@pytest.mark.parametrize(
    "content, parameters, message",
    [
        ("a X\nb\n", {}, r"corpus.conll, line 2: got 1 column in 'b', where columns 0 and -1 are"),
        ("a X\n\u00a0\nb Y\n", {}, r"line 2: got 1 column in '\\xa0'"),
        ("a\tX\n\nb X\n", {}, r"line 3: got 1 column in 'b X'.*separated by a TAB"),
        ("a X\n", {"columns": (0, 3)}, r"line 1: got 2 columns in 'a X', expected at least 4"),
        (
            "a X\n",
            {"columns": (-3, 0)},
            r"line 1: got 2 columns .* at least 3, separated by one sp",
        ),
        ("a X\nb  \n", {}, r"line 2: got 3 columns in 'b  ', where the tag \(column -1\) is empty"),
        ("a X\n Y\n", {}, r"line 2: .*the word \(column 0\) is empty"),
        ("a\tX\n\tY\n", {}, r"line 2: .*the word \(column 0\) is empty. Expected a TAB"),
        ("a X\n" + "b" * 200 + "\n", {}, r"line 2: got 1 column in 'b{75}\.\.\.'"),
        ("", {}, "without any sentence"),
        ("\n \n\t\n", {}, "line 3: the file ends without any sentence"),
        ("-DOCSTART- O\n\n", {}, "without any sentence"),
        (b"a X\n\xff X\n", {}, r"line 2: cannot decode the bytes b'\\xff' as 'utf-8'.*encoding="),
        ("a X\né X\n", {"encoding": "ascii"}, r"line 2: cannot decode .* as 'ascii'"),
        ("a X\n", {"encoding": "utf-99"}, r"'encoding' parameter .* Got 'utf-99'"),
        ("a X\n", {"encoding": "hex"}, r"'encoding' parameter"),
        ("a X\n", {"columns": (0,)}, r"'columns' parameter of read_conll .* Got \(0,\)"),
        ("a X\n", {"columns": (0, 0)}, r"two different ints"),
        ("a X\n", {"columns": (0, True)}, r"two different ints"),
        ("a X\n", {"columns": (0, "tag")}, r"two different ints"),
        ("a X\n", {"columns": 0}, r"two different ints"),
        ("a X\n", {"separator": ""}, r"'separator' parameter"),
        ("a X\n", {"separator": 1}, r"'separator' parameter"),
    ],
)
def test_errors(write, content, parameters, message):
    with pytest.raises(ValueError, match=message):
        read_conll(write(content), **parameters)


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.gz", b"a X\n"),
        ("a.xz", b"a X\n"),
        ("a.gz", gzip.compress(b"a X\n" * 100, mtime=0)[:-12]),
        ("a.xz", lzma.compress(b"a X\n" * 100)[:-12]),
    ],
)
def test_broken_archive(write, name, content):
    with pytest.raises(ValueError, match=rf"{name}: the suffix says {name[2:]}, but"):
        read_conll(write(content, name))


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.conll"):
        read_conll(tmp_path / "nowhere.conll")
    with pytest.raises(FileNotFoundError, match="is a directory"):
        read_conll(tmp_path)


field = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1, max_size=6
).filter(lambda text: text.strip(" ") != "" and not text.startswith("-DOCSTART-"))
sentence = st.lists(st.tuples(field, field), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(st.lists(sentence, min_size=1, max_size=4))
def test_round_trip_of_any_text(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("conll") / "corpus.tsv"
    blocks = ["".join(f"{w}\t{t}\n" for w, t in words) for words in sentences]
    # A byte order mark is written first, so that one inside the first word is seen to survive.
    path.write_bytes("\n".join(blocks).encode("utf-8-sig"))
    X, y = read_conll(path)
    assert [list(zip(*pair, strict=True)) for pair in zip(X, y, strict=True)] == sentences


@pytest.mark.parametrize(
    "name, n_sentences, n_words, n_outside",
    [
        ("ner/conll2003_en/train.conll.xz", 14_041, 203_621, 169_578),
        ("ner/conll2003_en/dev.conll.xz", 3_250, 51_362, 42_759),
        ("ner/conll2003_en/test.conll.xz", 3_453, 46_435, 38_323),
        ("ner/ncbi_disease/train.tsv.xz", 5_432, 136_086, 124_819),
        ("ner/bc5cdr/train.tsv.xz", 4_560, 118_170, 103_967),
        ("ner/wikigold/all.conll.xz", 1_696, 39_007, 32_576),
        ("ner/weibo_zh/train.conll.xz", 1_350, 73_778, 68_827),
        ("ner/msra_zh/train.bio.xz", 45_000, 2_171_573, 1_929_725),
        ("ner/msra_zh/test.bio.xz", 4_365, 172_601, 152_505),
        ("pos/ritter_tweets/all.txt.xz", 787, 15_185, 1),
    ],
)
def test_published_corpora(name, n_sentences, n_words, n_outside):
    if not (CORPORA / name).exists():
        pytest.skip(f"needs the corpus {name} in ../shared/data")
    X, y = read_conll(CORPORA / name)
    assert len(X) == len(y) == n_sentences
    assert sum(map(len, X)) == sum(map(len, y)) == n_words
    assert sum(tags.count("O") for tags in y) == n_outside


class TestWriting:
    words = st.text(
        st.characters(codec="utf-8", exclude_characters=" \t\r\n"), min_size=1, max_size=5
    ).filter(lambda word: word != "-DOCSTART-")

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=4), min_size=1))
    def test_round_trip_of_any_words(self, tmp_path_factory, sentences):
        X = [[word for word, _ in row] for row in sentences]
        y = [[tag for _, tag in row] for row in sentences]
        path = tmp_path_factory.mktemp("conll") / "a.conll"
        write_conll(path, X, y)
        assert read_conll(path) == (X, y)

    @pytest.mark.parametrize("name", ["a.conll", "a.conll.gz", "a.XZ"])
    def test_odd_words(self, tmp_path, name):
        X = [["\ufeff", "\u00a0", "\u2028", "😀", "-DOCSTART-x"], ["#", "א"]]
        y = [["O"] * 5, ["B-X", "-DOCSTART-"]]
        write_conll(tmp_path / name, X, y)
        assert read_conll(tmp_path / name) == (X, y)

    def test_lines(self, tmp_path):
        write_conll(tmp_path / "a.conll", [["Anna", "x"], ["Hi"]], [["B-PER", "O"], ["O"]])
        content = (tmp_path / "a.conll").read_bytes()
        assert content == b"Anna B-PER\nx O\n\nHi O\n\n"

    @pytest.mark.parametrize(
        "words, tags, message",
        [
            ([""], ["O"], "must not be empty .* position 0 of row 1 of X is ''"),
            (["a", "b c"], ["O", "O"], "position 1 of row 1 of X is 'b c'"),
            (["a\tb"], ["O"], r"position 0 of row 1 of X is 'a\\tb'"),
            (["a\n"], ["O"], r"position 0 of row 1 of X is 'a\\n'"),
            (["a"], [""], "position 0 of row 1 of y is ''"),
            (["a"], ["O\r"], r"position 0 of row 1 of y is 'O\\r'"),
            (["-DOCSTART-"], ["O"], "-DOCSTART- ends a sentence .* position 0 of row 1 of X"),
            ([], [], "no empty sentences; row 1 of X"),
            (["a"], ["O", "O"], "row 1 has 1 words and 2 tags"),
            (["\ud800"], ["O"], "position 0 of row 1 of X has half of a surrogate pair"),
        ],
    )
    def test_errors(self, tmp_path, words, tags, message):
        with pytest.raises(ValueError, match=message):
            write_conll(tmp_path / "a.conll", [["ok"], words], [["O"], tags])
        assert not list(tmp_path.iterdir())


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.sampled_from("\r\n\ufeff é😀\u2028a")),
    st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
    st.integers(1, 5),
)
def test_lines_do_not_depend_on_the_pieces_read(tmp_path_factory, text, encoding, size):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(text.encode(encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files, "_PIECE", size)
        lines = _files.read_lines(path, encoding=encoding)
    expected = _files.read_text(path, encoding=encoding).split("\n")
    expected = expected[:-1] if expected[-1] == "" else expected
    assert lines == [line.removesuffix("\r") for line in expected]
