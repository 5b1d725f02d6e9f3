"""Where the words of raw texts lie, and languages that have no spaces between them."""

import pytest

from skdice.text import SPLITTERS, are_characters, check_spaced


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("words", ["Oslo", ",", "e", ".", "g", ".", "e\u0301\u200bx", "$", "5"]),
        ("whitespace", ["Oslo,", "e.g.", "e\u0301\u200bx", "$5"]),
        ("characters", list("Oslo,e.g.e\u0301\u200bx$5")),
    ],
)
def test_splitters(name, words):
    text = " Oslo, e.g.\u2028e\u0301\u200bx\t$5\n"
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
