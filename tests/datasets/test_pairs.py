import gzip

import numpy as np
import pytest

from skdice.datasets import read_pairs

from .test_bad_files import GLUE, MRPC, QUORA


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
        "content, X",
        [
            ('sentence1,sentence2,label\n"a, b","c ""d""",1\n', [("a, b", 'c "d"')]),
            ('"a, b",c,1\nd,"e\nf",0\n', [("a, b", "c"), ("d", "e\nf")]),
            ('"x","question2","question1","is_duplicate"\r\n1,a,b,0\r\n', [("b", "a")]),
        ],
    )
    @pytest.mark.parametrize("name", ["pairs.csv", "PAIRS.CSV.gz"])
    def test_csv(self, write, content, X, name):
        data = content.encode()
        path = write(gzip.compress(data) if name.endswith("gz") else data, name)
        assert read_pairs(path)[0] == X

    def test_csv_of_no_layout(self, write):
        with pytest.raises(ValueError, match=r"pairs.csv, line 1: .* cut at commas\. Pass layout="):
            read_pairs(write("a,b\n", "pairs.csv"))

    def test_labels_that_are_integers(self, write):
        labels = [" 1", "0 ", str(2**63 - 1), "-9"]
        _, y = read_pairs(write("".join(f"a\tb\t{label}\n" for label in labels)), layout="er")
        assert y.dtype == np.int64
        assert y.tolist() == [int(label) for label in labels]

    @pytest.mark.parametrize("label", ["no", "not equivalent", "1.0", "01", "-0", "٢", str(2**63)])
    def test_labels_that_are_none(self, write, label):
        _, y = read_pairs(write(f"a\tb\t1\na\tb\t{label}\n"), layout="er")
        assert y.dtype == object
        assert y.tolist() == ["1", label]
