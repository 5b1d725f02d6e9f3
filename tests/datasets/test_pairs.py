import csv
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import read_pairs

MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
QUORA = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
GLUE = "index\tsentence1\tsentence2\tlabel\n"


class TestReading:
    @pytest.mark.parametrize(
        "layout, content, X, y",
        [
            ("mrpc", "\ufeff" + MRPC + '1\t7\t8\t"a" b\t"c\n', [('"a" b', '"c')], [1]),
            ("mrpc", MRPC + "0\t7\t8\ta\tb\n1\t9\t9\tc\td", [("a", "b"), ("c", "d")], [0, 1]),
            ("bimpm", '1\t"a\tb\t9\n0\t\td\tx\n', [('"a', "b"), ("", "d")], [1, 0]),
            ("quora", QUORA + '0\t1\t2\ta "b"\t"c ""d"""\t1\n', [('a "b"', 'c "d"')], [1]),
            ("quora", QUORA + '0\t1\t2\t"a\n\nb"\t"\tc"\t0\n', [("a\n\nb", "\tc")], [0]),
            ("quora", QUORA.replace("id", '"id"', 1) + "0\t1\t2\t\t\t0\n", [("", "")], [0]),
            (
                "quora",
                '"id"\t"question1"\t"question2"\t"is_duplicate"\n0\t"a"\t"b\r\n"\t1\r\n',
                [("a", "b\r\n")],
                [1],
            ),
            ("glue", GLUE + '0\t"a\tb"\t1\n', [('"a', 'b"')], [1]),
            ("glue", "label\tsentence2\tsentence1\nno\ta\tb\n", [("b", "a")], ["no"]),
            ("glue", GLUE.replace("\n", "\r\n") + "0\ta\tb\t1\r\n", [("a", "b")], [1]),
            ("er", "COL a VAL  \t b\t1\n\t\t0\n", [("COL a VAL  ", " b"), ("", "")], [1, 0]),
        ],
    )
    def test_layouts(self, write, layout, content, X, y):
        path = write(content)
        for name in (layout, "auto"):
            pairs, labels = read_pairs(path, layout=name)
            assert pairs == X
            assert labels.tolist() == y
            assert {type(pair) for pair in pairs} == {tuple}

    @pytest.mark.parametrize(
        "labels, expected",
        [
            (["1", "0", "-1"], np.array([1, 0, -1])),
            ([" 1", "0 "], np.array([1, 0])),
            (["1", "no"], np.array(["1", "no"], dtype=object)),
            (["not equivalent"], np.array(["not equivalent"], dtype=object)),
            (["1", "1.0"], np.array(["1", "1.0"], dtype=object)),
            (["1", "01"], np.array(["1", "01"], dtype=object)),
            (["0", "-0"], np.array(["0", "-0"], dtype=object)),
            (["1", "٢"], np.array(["1", "٢"], dtype=object)),
            ([str(2**63 - 1), str(-(2**63))], np.array([2**63 - 1, -(2**63)])),
            (["1", str(2**63)], np.array(["1", str(2**63)], dtype=object)),
        ],
    )
    def test_labels(self, write, labels, expected):
        _, y = read_pairs(write("".join(f"a\tb\t{label}\n" for label in labels)), layout="er")
        assert y.dtype == expected.dtype
        assert y.tolist() == expected.tolist()
        assert {type(label) for label in y.tolist()} <= {int, str}

    @pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n  \n\n", "\r\n\r\n", "\n "])
    @pytest.mark.parametrize(
        "layout, start", [("er", "a\tb\t1"), ("quora", QUORA + "0\t1\t2\ta\tb\t1")]
    )
    def test_blank_lines_at_the_end(self, write, layout, start, end):
        pairs, labels = read_pairs(write(start + end), layout=layout)
        assert (pairs, labels.tolist()) == ([("a", "b")], [1])

    @pytest.mark.parametrize("word", ["\u00a0", "\u2028", "\x85", "\x0c", "\x1c", "a\rb", '"', " "])
    def test_odd_characters_are_text(self, write, word):
        pairs, _ = read_pairs(write(f"{word}\tb{word}\t1\n{word}\t\t0\n"))
        assert pairs == [(word, f"b{word}"), (word, "")]

    @pytest.mark.parametrize("name, compress", [("c.gz", gzip.compress), ("c.xz", lzma.compress)])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_compressed_and_encoded(self, write, name, compress, encoding):
        path = write(compress("ä\tb\t1\n".encode(encoding)), name)
        assert read_pairs(str(path), encoding=encoding)[0] == [("ä", "b")]

    def test_long_quoted_texts(self, write):
        limit = csv.field_size_limit()
        text = "a\n" * limit
        pairs, _ = read_pairs(write(f'{QUORA}0\t1\t2\t"{text}"\tb\t1\n'))
        assert pairs == [(text, "b")]
        assert csv.field_size_limit() == limit

    texts = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"))

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(texts, texts, st.integers(-9, 9)), min_size=1, max_size=5))
    def test_round_trip_of_any_text(self, tmp_path_factory, rows):
        path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
        content = GLUE + "".join(f"0\t{a}\t{b}\t{label}\n" for a, b, label in rows)
        path.write_bytes(content.encode("utf-8"))
        pairs, labels = read_pairs(path)
        assert list(zip(pairs, labels.tolist())) == [((a, b), label) for a, b, label in rows]

    quoted_texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"))

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(quoted_texts, quoted_texts), min_size=1, max_size=5))
    def test_round_trip_of_quoted_text(self, tmp_path_factory, rows):
        path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
        content = io.StringIO(newline="")
        writer = csv.writer(content, delimiter="\t", lineterminator="\n")
        writer.writerows([QUORA.split(), *([0, 1, 2, a, b, 1] for a, b in rows)])
        path.write_bytes(content.getvalue().encode("utf-8"))
        assert read_pairs(path)[0] == rows
