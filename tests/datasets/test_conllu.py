import gzip
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_conllu, split_into_characters
from skdice.metrics import get_entities

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def line(node, word="w", upos="X", xpos="x"):
    return "\t".join([str(node), word, "_", upos, xpos, "_", "_", "_", "_", "_"])


def text(*lines):
    return "".join(f"{one}\n" for one in lines)


@pytest.fixture
def write(tmp_path):
    def write(content, name="corpus.conllu"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


class TestReading:
    @pytest.mark.parametrize(
        "content, X, y",
        [
            (text(line(1, "a"), line(2, "b"), "", line(1, "c")), [["a", "b"], ["c"]], "XX X"),
            (text("", line(1, "a"), "", "", " \t", line(1, "b"), ""), [["a"], ["b"]], "X X"),
            (text("# text = a", line(1, "a"), "# b", line(2, "b")), [["a", "b"]], "XX"),
            (text("# alone", "", line(1, "a")), [["a"]], "X"),
            (text(line("1-2", "ab", "_", "_"), line(1, "a"), line(2, "b")), [["a", "b"]], "XX"),
            (text(line("1-1", "a", "_"), line(1, "a")), [["a"]], "X"),
            (text(line("0.1", "_", "_"), line(1, "a"), line("1.1"), line("1.2")), [["a"]], "X"),
            (
                text(line("1-2"), line(1, "a"), line("1.1"), line(2, "b"), line("3-4"))
                + text(line(3, "c"), line(4, "d")),
                [["a", "b", "c", "d"]],
                "XXXX",
            ),
            (text(line(1, "10 000")), [["10 000"]], "X"),
            (text(line(1, "_")), [["_"]], "X"),
            (text(line(1, "#"), line(2, "1-2")), [["#", "1-2"]], "XX"),
            (text(line(1, "a"), "", line(1, "b")).replace("\n", "\r\n"), [["a"], ["b"]], "X X"),
            (text(line(1, "a")).removesuffix("\n"), [["a"]], "X"),
            ("\ufeff" + text(line(1, "a")), [["a"]], "X"),
        ],
    )
    def test_sentences(self, write, content, X, y):
        assert read_conllu(write(content)) == (X, [list(tags) for tags in y.split(" ")])

    def test_tags(self, write):
        path = write(text(line(1, "a", "NOUN", "NN"), line(2, "b", "_", "VB")))
        assert read_conllu(path, tag="xpos") == ([["a", "b"]], [["NN", "VB"]])
        path = write(text(line(1, "a", "NOUN", "_")))
        assert read_conllu(str(path), tag="upos") == ([["a"]], [["NOUN"]])

    @pytest.mark.parametrize(
        "word", ["\u00a0", "\u200b", "\u2028", "\x85", "\x0c", "\x1c", "\u3000", "a\rb", " "]
    )
    def test_odd_characters_are_words_not_layout(self, write, word):
        assert read_conllu(write(text(line(1, word), line(2, "b" + word)))) == (
            [[word, "b" + word]],
            [["X", "X"]],
        )

    @pytest.mark.parametrize("name, compress", [("c.gz", gzip.compress), ("c.xz", lzma.compress)])
    def test_compressed(self, write, name, compress):
        path = write(compress(text(line(1, "a")).encode()), name)
        assert read_conllu(path) == ([["a"]], [["X"]])

    words = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=4))
    def test_round_trip_of_any_words(self, tmp_path_factory, sentences):
        path = tmp_path_factory.mktemp("conllu") / "corpus.conllu"
        blocks = [text(*(line(i, w) for i, w in enumerate(row, 1)), "") for row in sentences]
        path.write_bytes("".join(blocks).encode("utf-8"))
        assert read_conllu(path) == (sentences, [["X"] * len(row) for row in sentences])


class TestErrors:
    @pytest.mark.parametrize(
        "content, message",
        [
            (text(line(1)) + "2\tb\n", r"corpus.conllu, line 2: got 2 columns .* expected 10"),
            (text(line(1), "b"), r"line 2: got 1 column in 'b', expected 10, separated by a TAB"),
            (text(line(1) + "\t_"), "line 1: got 11 columns"),
            (text(line("1-2") + "\t"), "line 1: got 11 columns"),
            (text(line(1), "b" * 200), r"line 2: got 1 column in 'b{75}\.\.\.'"),
            (text("# c", line(2)), "line 2: got the word 2, expected the word 1"),
            (text(line(1), line(3)), "line 2: got the word 3, expected the word 2"),
            (text(line(1), line(1)), r"line 2: got the word 1, expected .* Is the empty line"),
            (text(line(1), "", line(2)), "line 3: got the word 2, expected the word 1"),
            (text(line(0)), r"line 1: got the ID '0', expected that of a word \(3\)"),
            (text(line("01")), "line 1: got the ID '01'"),
            (text(line("")), "line 1: got the ID ''"),
            (text(line("\u0661")), "line 1: got the ID '\u0661'"),
            (text(line("1-")), "line 1: got the ID '1-'"),
            (text(line("2-3")), "line 1: .*token 2-3, expected one that starts with the word 1"),
            (text(line(1), line("2-1")), "line 2: got the multi-word token 2-1"),
            (text(line("1-2"), line("1-3")), "line 2: .* token 1-3, expected the word 1"),
            (text(line("1-3"), line(1), line("2-3")), "line 3: .* 2-3, expected the word 2"),
            (text(line("1-2"), line(1), "", line(1)), "line 3: .* with the word 1, inside .* 2"),
            (text(line("1-2"), line(1)), "line 2: .* with the word 1, inside .* the word 2"),
            (text(line("1.1")), r"line 1: got the empty node 1\.1, .* such as 0\.1"),
            (text(line(1), line("0.1")), r"line 2: got the empty node 0\.1, .* such as 1\.1"),
            (text(line(1), line("1.0")), r"line 2: got the ID '1\.0'"),
            (text(line(1, "")), r"line 1: the word \(column 2\) is empty"),
            (text(line(1), line(2, "b", "_")), r"line 2: the word 'b' has no upos tag .*'xpos'"),
            (text(line(1, "b", "")), r"line 1: the word 'b' has no upos tag \(column 4 is ''\)"),
            ("", "the file ends without any sentence"),
            ("\n# c\n\n", "line 3: the file ends without any sentence"),
            (text(line("0.1")), "line 1: the file ends without any sentence"),
            (b"# c\n\xff\n", r"line 2: cannot decode the bytes b'\\xff' as 'utf-8'"),
        ],
    )
    def test_content(self, write, content, message):
        with pytest.raises(ValueError, match=message):
            read_conllu(write(content))

    def test_no_tags_of_the_language(self, write):
        path = write(text(line(1), line(2, "b", "X", "_")))
        with pytest.raises(ValueError, match=r"line 2: .* has no xpos tag \(column 5 .*tag='upos'"):
            read_conllu(path, tag="xpos")

    @pytest.mark.parametrize("tag", ["lemma", "UPOS", None, 3, ["upos"]])
    def test_tag_parameter(self, write, tag):
        with pytest.raises(ValueError, match=r"'tag' parameter of read_conllu .*'upos', 'xpos'"):
            read_conllu(write(text(line(1))), tag=tag)

    def test_files(self, write, tmp_path):
        with pytest.raises(ValueError, match=r"a\.xz: the suffix says xz, but"):
            read_conllu(write(text(line(1)), "a.xz"))
        with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.conllu"):
            read_conllu(tmp_path / "nowhere.conllu")
        with pytest.raises(FileNotFoundError, match="is a directory"):
            read_conllu(tmp_path)


class TestCharacters:
    @pytest.mark.parametrize(
        "words, tags, characters, character_tags",
        [
            (["我們", "來"], ["PRON", "VERB"], "我們來", ["B-PRON", "I-PRON", "B-VERB"]),
            (["a"], ["X"], "a", ["B-X"]),
            ([], [], "", []),
            (["e\u0301"], ["X"], "e\u0301", ["B-X", "I-X"]),
            (["1 0", "😀"], ["NUM", "SYM"], "1 0😀", ["B-NUM", "I-NUM", "I-NUM", "B-SYM"]),
        ],
    )
    def test_one_sentence(self, words, tags, characters, character_tags):
        assert split_into_characters([words], [tags]) == ([list(characters)], [character_tags])

    sentence = st.lists(
        st.tuples(st.text(min_size=1), st.sampled_from(["NOUN", "-", "B-X", "O"])), max_size=6
    )

    @settings(max_examples=60, deadline=None)
    @given(st.lists(sentence, max_size=4))
    def test_words_and_tags_can_be_told_again(self, sentences):
        X = [[word for word, _ in row] for row in sentences]
        y = [[tag for _, tag in row] for row in sentences]
        chars, tags = split_into_characters(X, y)
        assert all(len(char) == 1 for row in chars for char in row)
        assert [len(row) for row in chars] == [len(row) for row in tags]
        again = [
            [("".join(row[start:end]), label) for start, end, label in get_entities(row_tags)]
            for row, row_tags in zip(chars, tags)
        ]
        assert again == sentences

    @pytest.mark.parametrize(
        "make", [list, tuple, pd.Series, lambda rows: pd.Series(rows, index=[7, 3]).to_numpy()]
    )
    def test_containers(self, make):
        X, y = split_into_characters(make([["ab"], ["c", "d"]]), make([["X"], ["Y", "X"]]))
        assert X == [["a", "b"], ["c", "d"]]
        assert y == [["B-X", "I-X"], ["B-Y", "B-X"]]

    def test_rows_may_be_arrays(self):
        X, y = split_into_characters([np.array(["ab", "c"])], [np.array(["X", "Y"])])
        assert (X, y) == ([["a", "b", "c"]], [["B-X", "I-X", "B-Y"]])
        assert {type(item) for row in X + y for item in row} == {str}

    @pytest.mark.parametrize(
        "X, y, error, message",
        [
            ([["a"]], [], ValueError, "got 1 sentences and 0 rows of tags"),
            ([["a"], ["b"]], [["X"], []], ValueError, "row 1 has 1 words and 0 tags"),
            ([["a", ""]], [["X", "X"]], ValueError, "words must not be empty.* word 1 of row 0"),
            ([["a"]], [[""]], ValueError, "tags must not be empty.* tag 0 of row 0"),
            (["a"], [["X"]], ValueError, "list of words; row 0 is the bare string 'a'"),
            ([["a"]], ["X"], ValueError, "list of tags; row 0 is the bare string 'X'"),
            ([None], [["X"]], ValueError, "list of words .*; row 0 is None"),
            ([[1]], [["X"]], ValueError, "position 0 of row 0 of X is 1 of type int"),
            ([["a"]], [[None]], ValueError, "position 0 of row 0 of y is None"),
        ],
    )
    def test_errors(self, X, y, error, message):
        with pytest.raises(error, match=message):
            split_into_characters(X, y)


@pytest.mark.parametrize(
    "name, n_sentences, n_words, n_upos, n_xpos",
    [
        ("ud_english_ewt/train", 12_544, 204_577, 17, 49),
        ("ud_english_ewt/dev", 2_001, 25_147, 17, 49),
        ("ud_english_ewt/test", 2_077, 25_094, 17, 48),
        ("ud_chinese_1.4/train", 3_997, 98_608, 15, 42),
        ("ud_chinese_1.4/dev", 500, 12_663, 15, 37),
        ("ud_chinese_1.4/test", 500, 12_012, 15, 35),
        ("ud_english_gum_2.5/train", 3_753, 69_760, 17, 45),
    ],
)
def test_published_corpora(name, n_sentences, n_words, n_upos, n_xpos):
    path = CORPORA / "pos" / f"{name}.conllu.xz"
    if not path.exists():
        pytest.skip(f"needs the corpus pos/{name}.conllu.xz in ../shared/data")
    X, y = read_conllu(path)
    X_too, xpos = read_conllu(path, tag="xpos")
    assert X_too == X
    assert len(X) == len(y) == n_sentences
    assert sum(map(len, X)) == sum(map(len, y)) == n_words
    assert len({tag for tags in y for tag in tags}) == n_upos
    assert len({tag for tags in xpos for tag in tags}) == n_xpos
    chars, char_tags = split_into_characters(X, y)
    assert ["".join(row) for row in chars] == ["".join(row) for row in X]
    starts = Counter(tag[2:] for row in char_tags for tag in row if tag.startswith("B-"))
    assert starts == Counter(tag for row in y for tag in row)
