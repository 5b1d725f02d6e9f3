import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skdice import DiceSpanExtractor
from skdice.tasks import align_answers

FAST = {"max_epochs": 1, "lr": 5e-3, "random_state": 0, "verbose": 0}
#          0         1         2         3
#          0123456789012345678901234567890123
CONTEXT = "oslo saw paris, oslo was near oslo"


def squad(*answers):
    """A SQuAD dict of (text, start) pairs."""
    return {"text": [text for text, _ in answers], "answer_start": [start for _, start in answers]}


def read(row, on_misaligned="repair", context=CONTEXT):
    """Return the gold answers of one row; it must warn if, and only if, it counts something."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        gold = align_answers([row], [context], on_misaligned)
    counted = [one for one in caught if "several places" not in str(one.message)]
    assert len(counted) == (gold.n_misaligned > 0)
    return gold


@pytest.mark.parametrize("answer_as", [str, lambda text: [text], lambda text: {"text": [text]}])
@pytest.mark.parametrize("text, context, start, n_several", [
    ("art", "She starts with modern art.", 23, 0), ("on", "London lies on the Thames.", 12, 0),
    ("e", "Cafe\u0301 e\u0301 e", 9, 0), ("art", "art, starts, Art, (art)", 0, 2),
    ("(art", "starts (art)", 7, 0),
    # Scripts without spaces have no borders of words that could be seen.
    ("東京", "私は東京都に住む。", 2, 0), ("2020", "于2020年", 1, 0),
])  # fmt: skip
def test_an_answer_without_offset_is_a_word(text, context, start, n_several, answer_as):
    with warnings.catch_warnings(record=True, action="always") as caught:
        gold = align_answers([answer_as(text)], [context], "raise")
    assert gold.spans == [(start, start + len(text))]
    assert gold.n_misaligned == 0
    several = rf"1 answer without an answer_start: several places \({n_several} in all\)"
    assert len(caught) == bool(n_several)
    assert all(re.match(several, str(one.message)) for one in caught)


@pytest.mark.parametrize("on_misaligned", ["repair", "raise", "skip"])
def test_an_answer_that_is_no_word_anywhere_is_counted(on_misaligned):
    message = r"2 answers without .* inside of other words .*\(rows 0, 2\)"
    with pytest.warns(UserWarning, match=message):
        gold = align_answers(["art", "", "on"], ["starts", "a", "London"], on_misaligned)
    assert (gold.spans, gold.n_misaligned) == ([(2, 5), None, (1, 3)], 2)


@pytest.mark.parametrize("row, span", [
    (squad(("oslo", 0)), (0, 4)), (squad(("oslo", 16)), (16, 20)),
    (squad(("paris", 9), ("oslo", 0)), (9, 14)),
    ({"text": np.array(["oslo"]), "answer_start": np.array([16])}, (16, 20)),
    (squad(("", 3), ("oslo", 16)), (16, 20)), (["oslo", "paris"], (0, 4)),
    (("paris",), (9, 14)), (np.array(["paris", "oslo"], dtype=object), (9, 14)),
    (["berlin", "paris"], (9, 14)), ({"text": ["paris"]}, (9, 14)), ("", None), ([], None),
    (squad(("", -1)), None),
    ({"text": np.array([], dtype=object), "answer_start": np.array([])}, None),
])  # fmt: skip
def test_answers_that_are_in_order(row, span):
    for on_misaligned in ("repair", "raise", "skip"):
        gold = read(row, on_misaligned)
        assert gold.spans == [span]
        assert gold.kept.tolist() == [0]
        assert gold.n_misaligned == 0


@pytest.mark.parametrize("row", [squad(("berlin", 3)), squad(("berlin", 3), ("Oslo", 0))])
def test_text_that_is_nowhere_is_left_out_or_an_error(row):
    with pytest.raises(ValueError, match=r"answer of row 0 .*'berlin'.* is nowhere in it.*'skip'"):
        align_answers([row], [CONTEXT], "repair")
    gold = read(row, "skip")
    assert (gold.spans, gold.kept.tolist()) == ([None], [])
    assert gold.n_misaligned == len(row["text"])


@pytest.mark.parametrize("row, repaired, left, n_misaligned", [
    # A leading space that is no part of the text, as in Quoref.
    (squad(("paris", 8)), (9, 14), None, 1),
    # No offset, as in CMRC.
    (squad(("oslo", -1)), (0, 4), None, 1), (squad(("paris", 1000)), (9, 14), None, 1),
    # The nearest of several mentions; of two as near the earlier one.
    (squad(("oslo", 6)), (0, 4), None, 1), (squad(("oslo", 23)), (16, 20), None, 1),
    # Several answers: each is counted, the first that is kept is learned.
    (squad(("paris", 8), ("oslo", 17)), (9, 14), None, 2),
    (squad(("paris", 8), ("oslo", 16)), (9, 14), (16, 20), 1),
    (squad(("oslo", 16), ("paris", 8)), (16, 20), (16, 20), 1),
    # One of the answers is nowhere.
    (squad(("berlin", 3), ("oslo", 17)), (16, 20), None, 2),
])  # fmt: skip
def test_wrong_offsets(row, repaired, left, n_misaligned):
    for how, span in (("repair", repaired), ("skip", left)):
        gold = read(row, how)
        assert gold.spans == [span]
        assert gold.kept.tolist() == ([] if span is None else [0])
        assert gold.n_misaligned == n_misaligned
    with pytest.raises(ValueError, match=r"row 0, '(oslo|paris|berlin)', must lie at its answ"):
        read(row, "raise")


def test_repair_prefers_words():
    context = "He starts to see art."
    assert read(squad(("art", 4)), context=context).spans == [(17, 20)]
    assert read(squad(("tar", 9)), context=context).spans == [(4, 7)]


def test_rows_keep_their_places():
    y = [squad(("paris", 9)), squad(("berlin", 0)), squad(), squad(("paris", 8)), "oslo"]
    with pytest.warns(UserWarning, match="answer_start") as record:
        gold = align_answers(pd.Series(y, index=range(5, 0, -1)), [CONTEXT] * 5, "skip")
    assert gold.kept.tolist() == [0, 2, 4]
    assert gold.spans == [(9, 14), None, None, None, (0, 4)]
    assert gold.answers == y
    assert gold.n_misaligned == 2
    message, repeated = (str(warning.message) for warning in record)
    assert repeated.startswith("1 answer without an answer_start: several places")
    assert "2 answers not at the answer_start: 0 moved" in message
    assert "2 left out, 2 questions without another answer with them" in message
    assert "on_misaligned='skip'" in message
    assert "They are in rows 1, 3." in message


def test_an_extractor_learns_from_repaired_answers(tiny_bert):
    X = [("city ?", "in oslo"), ("met ?", "the anna saw"), ("city ?", "rome by"), ("met ?", "mary")]
    right = [squad(("oslo", 3)), squad(("anna", 4)), squad(("rome", 0)), squad(("mary", 0))]
    # A start that is off by one, and an answer that is nowhere beside one that is in order.
    wrong = [right[0], squad(("anna", 3)), squad(("berlin", 0), ("rome", 0)), right[3]]
    expected = DiceSpanExtractor(tiny_bert, **FAST).fit(X, right)
    assert expected.n_misaligned_ == 0
    with pytest.warns(UserWarning, match=r"2 answers not at .*rows 1, 2\.") as record:
        found = DiceSpanExtractor(tiny_bert, **FAST).fit(X, wrong)
    assert [warning.filename for warning in record] == [__file__]
    assert found.n_misaligned_ == 2
    np.testing.assert_array_equal(found.no_answer_score(X), expected.no_answer_score(X))
