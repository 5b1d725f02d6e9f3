import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import words_from_spans
from skdice.metrics import get_entities
from skdice.text import SPLITTERS

TEXT = "Ann lives in New York."


def test_spans_of_words_may_overlap():
    spans = [[(13, 21, "LOC"), (13, 16, "X"), (0, 3, "PER"), (0, 3, "PER")]]
    _, y = words_from_spans([TEXT], spans, scheme=None)
    assert y == [[(0, 1, "PER"), (3, 5, "LOC"), (3, 4, "X")]]


# A span, what is said of it, its tags if it is expanded, and if it is skipped.
MISFITS = {
    "white space behind": ((0, 4), "1 have white space at their ends, kept", [0], [0]),
    "white space before": ((12, 16), "1 have white space at their ends, kept", [3], [3]),
    "a letter short": ((13, 20), "1 cut a word, {done}", [3, 4], []),
    "a letter late": ((14, 21), "1 cut a word, {done}", [3, 4], []),
    "one to the left": ((12, 20), "1 cut a word, {done}", [3, 4], []),
    "inside a word": ((5, 7), "1 cut a word, {done}", [1], []),
    "behind the end": ((17, 30), "1 reach out of their text, {done}", [4, 5], []),
    "before the start": ((-2, 3), "1 reach out of their text, {done}", [0], []),
    "outside": ((40, 45), "1 hold no word, left out", [], []),
    "white space alone": ((3, 4), "1 hold no word, left out", [], []),
    "empty": ((13, 13), "1 hold no word, left out", [], []),
    "turned around": ((16, 13), "1 hold no word, left out", [], []),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit(name):
    (start, end), said, expanded, skipped = MISFITS[name]
    texts, spans = ["", TEXT], [[], [(start, end, "X")]]
    for on_misaligned, words in (("expand", expanded), ("skip", skipped)):
        done = "kept" if on_misaligned == "expand" else "left out"
        message = f"Of 1 spans {said.format(done=done)} (row 1)."
        with pytest.warns(UserWarning, match=re.escape(message)):
            X, y = words_from_spans(texts, spans, on_misaligned=on_misaligned)
        assert X == [[], ["Ann", "lives", "in", "New", "York", "."]]
        assert [i for i, tag in enumerate(y[1]) if tag != "O"] == words
    with pytest.raises(ValueError, match=rf"Span \({start}, {end}, 'X'\) of row 1"):
        words_from_spans(texts, spans, on_misaligned="raise")


def test_overlaps_keep_the_first_and_the_longer():
    spans = [[(13, 16, "X"), (13, 21, "LOC"), (17, 22, "Y"), (21, 22, "Z")]]
    with pytest.warns(UserWarning, match=r"2 overlap with one that starts before or is longer"):
        _, y = words_from_spans([TEXT], spans)
    assert y == [["O", "O", "O", "B-LOC", "I-LOC", "B-Z"]]
    with pytest.raises(ValueError, match=r"\(13, 16, 'X'\) of row 0.*overlap"):
        words_from_spans([TEXT], spans, on_misaligned="raise")


@pytest.mark.parametrize(("arguments", "options", "message"), [
    ((["a"], [[], []]), {}, "same number of rows; got 1 rows of"),
    (([3], [[]]), {}, "row 0 is 3"),
    ((["a"], [[(0, 1)]]), {}, r"Each span of spans must be \(start, end, label\)"),
    ((["a"], [[(0.0, 1, "X")]]), {}, "The start of a span must be an int; row 0"),
    ((["a"], [[(0, 1, "")]]), {}, "The label of a span must be a str"),
    ((["a"], ["x"]), {}, "Each row of spans must be a list"),
    ((["a"], [[]]), {"splitter": "spaces"}, "'splitter' parameter of words_from_spans"),
    ((["a"], [[]]), {"scheme": "BIO"}, "'scheme' parameter of words_from_spans"),
    ((["a"], [[]]), {"on_misaligned": "repair"}, "'on_misaligned' parameter"),
    ((["a b", "我住在北京"], [[], []]), {}, "Row 1 is written without spaces: '我住在北京'"),
    ((["ab"], [[]]), {"splitter": lambda text: [(1, 1)]}, "for row 0 .* it gave"),
])  # fmt: skip
def test_errors(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        words_from_spans(*arguments, **options)


ANY_TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(list(" \r\n\t.,-'’\u00a0\u200b\u0301\u202bאبaB1𐐷😀語")),
    ),
    max_size=30,
)


@given(ANY_TEXT, st.data())
@settings(deadline=None, max_examples=200)
def test_there_and_back(text, data):
    name = data.draw(st.sampled_from(sorted(SPLITTERS)))
    scheme = data.draw(st.sampled_from(["IOB1", "IOB2", "IOBES", "BILOU"]))
    words = SPLITTERS[name](text)
    edges = sorted(data.draw(st.sets(st.integers(0, len(words)), max_size=8)))
    chosen = [(a, b, data.draw(st.sampled_from("XY"))) for a, b in itertools.pairwise(edges)]
    spans = [(words[a][0], words[b - 1][1], label) for a, b, label in chosen]
    X, y = words_from_spans([text], [spans], splitter=name, scheme=scheme, on_misaligned="raise")
    assert [[text[a:b] for a, b in words]] == X
    assert "".join(X[0]) == "".join(text.split())
    assert get_entities(y[0], mode="strict", scheme=scheme) == chosen
    back = [(words[a][0], words[b - 1][1], label) for a, b, label in get_entities(y[0])]
    assert back == spans


@given(ANY_TEXT, st.lists(st.tuples(st.integers(-3, 33), st.integers(-3, 33), st.just("X"))))
@settings(deadline=None, max_examples=200)
@pytest.mark.filterwarnings("ignore:Of .* spans")
def test_any_span_is_taken_or_counted(text, spans):
    _, y = words_from_spans([text], [spans], scheme=None, splitter="words")
    words = SPLITTERS["words"](text)
    expected = set()
    for start, end, _ in spans:
        touched = [(a, b) for a, b in words if max(a, start) < min(b, end)]
        if touched:
            expected.add((touched[0][0], touched[-1][1]))
    assert {(words[a][0], words[b - 1][1]) for a, b, _ in y[0]} == expected
