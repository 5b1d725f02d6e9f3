import math
import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.metrics import squad_exact_match, squad_f1_score, squad_report


def answer(*texts):
    return {"text": list(texts), "answer_start": [0] * len(texts)}


def slow_words(text):
    """Drop punctuation, then the articles among runs of word characters, letter by letter."""
    pieces = [""]
    for character in text.lower():
        if character in string.punctuation:
            continue
        is_word = character.isalnum()
        if pieces[-1] and pieces[-1][-1].isalnum() != is_word:
            pieces.append("")
        pieces[-1] += character
    return "".join(" " if piece in ("a", "an", "the") else piece for piece in pieces).split()


def slow_scores(texts, prediction, version):
    if version == "2.0":
        texts = [text for text in texts if slow_words(text)] or [""]
    best_match, best_f1 = 0, 0
    for text in texts:
        gold, predicted = slow_words(text), slow_words(prediction)
        match = int(" ".join(gold) == " ".join(predicted))
        rest, common = list(gold), 0
        for word in predicted:
            if word in rest:
                rest.remove(word)
                common += 1
        if version == "2.0" and (not gold or not predicted):
            f1 = match
        elif common == 0:
            f1 = 0
        else:
            f1 = 2 * common / (len(gold) + len(predicted))
        best_match, best_f1 = max(best_match, match), max(best_f1, f1)
    return best_match, best_f1


HAND_TABLE = [
    # true, predicted, exact match and F1 by version 2.0, the same by version 1.1 (None: an error)
    ("Oslo", "Oslo", (1, 1), (1, 1)),
    ("Oslo", "Rome", (0, 0), (0, 0)),
    ("the  Eiffel\tTower.", "an eiffel TOWER", (1, 1), (1, 1)),
    ("North Sea", "the North Sea coast", (0, 0.8), (0, 0.8)),
    ("to be or not to be", "be to to to", (0, 0.6), (0, 0.6)),
    ("well-known", "well known", (0, 0), (0, 0)), ("well-known", "wellknown", (1, 1), (1, 1)),
    ("1,000", "1000", (1, 1), (1, 1)), ("“Oslo”", "Oslo", (0, 0), (0, 0)),
    ("“the” Oslo", "“ ” oslo", (1, 1), (1, 1)), ("x\u00a0y", "x y", (1, 1), (1, 1)),
    ("a-the", "athe", (1, 1), (1, 1)), ("theory", "ory", (0, 0), (0, 0)),
    ("océan", "océ", (0, 0), (0, 0)), ("ÎLE", "île", (1, 1), (1, 1)),
    ("Oslo", "", (0, 0), (0, 0)), ("Oslo", "The ...", (0, 0), (0, 0)),
    ("the", "", (1, 1), (1, 0)), ("the", "a.", (1, 1), (1, 0)), ("the", "Oslo", (0, 0), (0, 0)),
    (["the", "Oslo"], "", (0, 0), (1, 0)), (["the", "Oslo"], "an Oslo", (1, 1), (1, 1)),
    (["", "Oslo"], "", (0, 0), (1, 0)),
    (["Oslo Norway", "Oslo in Norway"], "in Oslo, Norway", (0, 1), (0, 1)),
    (["north sea", "sea"], "the sea", (1, 1), (1, 1)),
    (["the north sea of x", "sea north"], "north sea", (0, 1), (0, 1)), ("", "", (1, 1), None),
    ("", "the", (1, 1), None), ("", "Oslo", (0, 0), None), ([], "", (1, 1), None),
    ([""], "", (1, 1), None),
]  # fmt: skip


@pytest.mark.parametrize("y_true, y_pred, new, old", HAND_TABLE)
def test_hand_table(y_true, y_pred, new, old):
    texts = [y_true] if isinstance(y_true, str) else y_true
    for version, expected in (("2.0", new), ("1.1", old)):
        for row in (y_true, texts, answer(*texts)):
            if expected is None:
                with pytest.raises(ValueError, match=r"row 0 is .* Use version='2\.0'"):
                    squad_f1_score([row], [y_pred], version=version)
                continue
            exact_match = squad_exact_match([row], [y_pred], version=version)
            f1 = squad_f1_score([row], [y_pred], version=version)
            assert (exact_match, f1) == pytest.approx(expected)
            assert type(exact_match) is type(f1) is float


FRAGMENTS = ["a", "an", "the", "The", "oslo", "sea", "é", "ñan", " ", "\t", "\u00a0", ".", "_", "’"]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=7).map("".join) | st.text(max_size=6)
ROWS = st.lists(st.tuples(st.lists(TEXTS, max_size=3), TEXTS), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(ROWS, st.sampled_from(["2.0", "1.1"]))
def test_equals_the_rules(rows, version):
    if version == "1.1":
        rows = [([*texts, "x"], prediction) for texts, prediction in rows]
    y_true, y_pred = [answer(*texts) for texts, _ in rows], [prediction for _, prediction in rows]
    expected = np.mean([slow_scores(*row, version) for row in rows], axis=0)
    found = [f(y_true, y_pred, version=version) for f in (squad_exact_match, squad_f1_score)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_report_splits_the_scores(rows, random):
    def make_report(rows):
        return squad_report([answer(*texts) for texts, _ in rows], [row[1] for row in rows])

    report = make_report(rows)
    parts = {
        "total": rows,
        "HasAns": [row for row in rows if any(row[0])],
        "NoAns": [row for row in rows if not any(row[0])],
    }
    assert list(report.index) == list(parts)
    for name, part in parts.items():
        expected = (
            np.mean([slow_scores(*row, "2.0") for row in part], axis=0) if part else [math.nan] * 2
        )
        np.testing.assert_allclose(report.loc[name, ["exact_match", "f1"]].astype(float), expected)
        assert report.loc[name, "n"] == len(part)
    shuffled = [(random.sample(texts, len(texts)), text) for texts, text in rows]
    pd.testing.assert_frame_equal(make_report(random.sample(shuffled, len(rows))), report)


@pytest.mark.parametrize("score", [squad_f1_score, squad_exact_match, squad_report])
@pytest.mark.parametrize("y_true, y_pred, version, error, message", [
    (["a"], ["a", "b"], "2.0", ValueError, "got 1 and 2"),
    ([], [], "2.0", ValueError, "got none"),
    (["a"], ["a"], "1.0", ValueError, "'version'.*'1.0'"),
    ("a", ["a"], "2.0", TypeError, "y_true"),
    (answer("a"), ["a"], "2.0", TypeError, "y_true .*dict"),
    (["a", 1], ["a", "b"], "2.0", TypeError, "row 1 of y_true .* got 1"),
    ([{"answer_start": [1]}], ["a"], "2.0", ValueError, "row 0 .*'answer_start'"),
    (["a", "b"], ["a", ["b"]], "2.0", TypeError, "row 1 of y_pred"),
    (["a", answer()], ["a", "b"], "1.1", ValueError, "row 1"),
])  # fmt: skip
def test_errors(score, y_true, y_pred, version, error, message):
    with pytest.raises(error, match=message):
        score(y_true, y_pred, version=version)
