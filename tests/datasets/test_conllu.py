import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_conllu, split_into_characters
from skdice.metrics import get_entities


def line(node, word="w", upos="X", xpos="x"):
    return "\t".join([str(node), word, "_", upos, xpos, "_", "_", "_", "_", "_"])


def text(*lines):
    return "".join(f"{one}\n" for one in lines)


class TestReading:
    @pytest.mark.parametrize(
        "content, X, y",
        [
            (text(line(1, "a"), line(2, "b"), "", line(1, "c")), [["a", "b"], ["c"]], "XX X"),
            (text("", line(1, "a"), "", "", " \t", line(1, "b"), ""), [["a"], ["b"]], "X X"),
            (text("# text = a", line(1, "a"), "# b", line(2, "b")), [["a", "b"]], "XX"),
            (text(line("1-2", "ab", "_", "_"), line(1, "a"), line(2, "b")), [["a", "b"]], "XX"),
            (
                text(line("1-2"), line(1, "a"), line("1.1"), line(2, "b"), line("3-4"))
                + text(line(3, "c"), line(4, "d")),
                [["a", "b", "c", "d"]],
                "XXXX",
            ),
            (text(line(1, "10 000")), [["10 000"]], "X"),
            (text(line(1, "#"), line(2, "1-2")), [["#", "1-2"]], "XX"),
        ],
    )
    def test_sentences(self, write, content, X, y):
        assert read_conllu(write(content)) == (X, [list(tags) for tags in y.split(" ")])

    def test_tags(self, write):
        path = write(text(line(1, "a", "NOUN", "NN"), line(2, "b", "_", "VB")))
        assert read_conllu(path, tag="xpos") == ([["a", "b"]], [["NN", "VB"]])
        path = write(text(line(1, "a", "NOUN", "_")))
        assert read_conllu(str(path), tag="upos") == ([["a"]], [["NOUN"]])


class TestCharacters:
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
        "X, y, message",
        [
            ([["a"]], [], "got 1 rows of X and 0 of y"),
            ([["a"], ["b"]], [["X"], []], "row 1 has 1 words and 0 tags"),
            ([["a", ""]], [["X", "X"]], "words must not be empty.* row 0"),
            ([["a"]], [[""]], "tags must not be empty.* row 0"),
            (["a"], [["X"]], "row 0 is the bare string 'a'"),
            ([[1]], [["X"]], "position 0 of row 0 of X"),
        ],
    )
    def test_errors(self, X, y, message):
        with pytest.raises(ValueError, match=message):
            split_into_characters(X, y)
