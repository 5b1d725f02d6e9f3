import numpy as np
import pytest

from skdice.text import SPLITTERS, Similarities, are_characters, check_spaced

PAIRS = [
    ("canon powershot sd 1100", "canon powershot sd1100 is"), ("the cat sat", "a dog barked"),
    ("", ""), ("", "text"), ("东京是日本的首都", "日本的首都是东京"),
    ("same text 12", "same text 12"),
    ("\ud800", "a lone surrogate"),
]  # fmt: skip


def features(pairs):
    return Similarities.of_texts(PAIRS, 2, np.ones(len(PAIRS))).features(pairs)


def test_they_are_between_0_and_1_and_do_not_depend_on_order_or_rows():
    found = features(PAIRS)
    assert found.shape == (len(PAIRS), 5)
    assert found.min() >= 0
    assert found.max() <= 1
    np.testing.assert_allclose(found, features([pair[::-1] for pair in PAIRS]))
    np.testing.assert_allclose(found, np.concatenate([features([pair]) for pair in PAIRS]))
    assert features([]).shape == (0, 5)
    assert Similarities.of_texts([], 2, np.ones(0)).n_texts == 0


@pytest.mark.parametrize("text, numbers", [("same text 12", 1), ("ab", 0.5), ("日本", 0.5)])
def test_identical_texts_are_alike_in_all(text, numbers):
    """But for numbers, if they have none."""
    assert features([(text, text)])[0].tolist() == pytest.approx([1, 1, 1, numbers, 1])


def test_texts_without_a_common_term_are_not_alike():
    found = features([("12 xyz", "345 klm")])[0]
    assert found[:4] == pytest.approx([0, 0, 0, 0])
    assert found[4] == pytest.approx(7 / 8)


def test_a_rare_term_says_more_than_one_that_all_texts_have():
    pairs = [(f"product name{i}", f"product word{i}") for i in range(20)]
    known = Similarities.of_texts(pairs, 2, np.ones(len(pairs)))
    common, rare = known.features([("product x", "product y"), ("zyx x", "zyx y")])[:, 2]
    assert common < 0.1 < rare


@pytest.mark.parametrize(("name", "words"), [
    ("words", ["Oslo", ",", "e", ".", "g", ".", "e\u0301\u200bx", "$", "5", "❤\ufe0f", "ok"]),
    ("whitespace", ["Oslo,", "e.g.", "e\u0301\u200bx", "$5❤\ufe0fok"]),
    ("characters", list("Oslo,e.g.e\u0301\u200bx$5❤\ufe0fok")),
])  # fmt: skip
def test_splitters(name, words):
    text = " Oslo, e.g.\u2028e\u0301\u200bx\t$5❤\ufe0fok\n"
    assert [text[start:end] for start, end in SPLITTERS[name](text)] == words
    assert SPLITTERS[name]("") == []


def test_scripts_without_spaces():
    for text in ("我住在北京。", "ฉันอยู่ที่กรุงเทพ"):
        with pytest.raises(ValueError, match=r"Row 3 is written without spaces.* Do this\."):
            check_spaced(text, 3, "Do this.")
    for text in ("I live in 北京.", ""):
        check_spaced(text, 3, "")
    assert are_characters([["我", "住", "在", "北", "京"]])
    assert not are_characters([["I", "live", "in", "X"]])
    assert not are_characters([[]])
