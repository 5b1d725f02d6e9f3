"""DiceSpanExtractor on any questions and contexts: parts of the context, or an error that says why.

Questions and contexts without a character are refused, as any question longer than a window is.
"""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdice import DiceSpanExtractor

from .hypothesis_inputs import (
    NAN,
    NO_ROWS,
    ONE_EPOCH,
    attempt,
    cases,
    fails,
    generator_of,
    junk,
    one_bad_row,
    text,
    texts,
    with_row,
)
from .test_span import easy_questions

SETTINGS = {**ONE_EPOCH, "max_length": 56}
X, Y = easy_questions(12, unanswerable=0.3)


def is_filled(text):
    return bool(text.strip())


contexts = texts.filter(is_filled)
# Eight characters are 32 bytes, and those 33 pieces at most.
questions = text(8).filter(is_filled) | st.sampled_from(["city ?", "[SEP]", "\x00", "\ud800"])
rows = st.lists(st.tuples(questions, contexts), max_size=4)


@pytest.fixture(scope="module", params=["bert", "roberta"])
def fitted(request, tiny_models):
    return DiceSpanExtractor(tiny_models(request.param), **SETTINGS).fit(X, Y)


@pytest.fixture(scope="module")
def extractor(tiny_bert):
    return DiceSpanExtractor(tiny_bert, **SETTINGS).fit(X, Y)


@cases(0.15)  # Twice: with WordPiece and with byte-level BPE.
@given(X=rows)
def test_predict(fitted, X):
    predicted = fitted.predict(X)
    assert predicted.shape == (len(X),)
    for answer, (_, context) in zip(predicted, X, strict=True):
        assert type(answer) is str
        assert answer in context
        assert answer == answer.strip()


@cases(0.15)
@given(X=rows)
def test_spans(fitted, X):
    for answers, (_, context) in zip(fitted.predict_spans(X), X, strict=True):
        scores = [answer.score for answer in answers]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) <= 1 + 1e-9
        assert len({(answer.start, answer.end) for answer in answers}) == len(answers) <= 20
        for answer, start, end, score in answers:
            assert 0 <= start < end <= len(context)
            assert context[start:end] == answer
            assert 0 <= score <= 1


@st.composite
def questions_with_answers(draw):
    """Draw questions of which some have answers, the places of some answers wrong."""
    X = draw(st.lists(st.tuples(questions, contexts), min_size=1, max_size=4))
    y = []
    for _, context in X:
        start = draw(st.integers(0, len(context) - 1))
        answer = context[start : start + draw(st.integers(0, 9))]
        shift = draw(st.sampled_from([0, 0, 0, 1, -3, 10**9]))
        y.append(draw(st.sampled_from([answer, [answer], squad(answer, start + shift)])))
    return X, y


def squad(answer, start):
    return {"text": [answer], "answer_start": [start]} if answer else {"text": []}


def text_of(answer):
    answer = answer["text"] if isinstance(answer, dict) else answer
    return answer if isinstance(answer, str) else "".join(answer)


@pytest.mark.filterwarnings("ignore:.*do not lie at their answer_start")
@pytest.mark.filterwarnings("ignore:.*lie in no window as a whole")
@cases(0.1)
@given(rows=questions_with_answers())
def test_fit(tiny_bert, rows):
    X, y = rows
    extractor = DiceSpanExtractor(tiny_bert, **SETTINGS)
    result = attempt(lambda: extractor.fit(X, y))
    if result is extractor:
        predicted = extractor.predict(X)
        assert all(answer in context for answer, (_, context) in zip(predicted, X, strict=True))
    else:
        assert "nothing that the tokenizer keeps" in str(result)
        assert not all(has_letter(answer) for answer in map(text_of, y) if answer)


def has_letter(text):
    return any(char.isascii() and char.isalnum() for char in text)


@cases(0.05)
@given(question=st.text(st.characters(categories=["L"]), min_size=54, max_size=80))
def test_questions_that_leave_no_room(extractor, question):
    bad = with_row(X, 5, (" ".join(question), "john in oslo"))
    fails(lambda: extractor.predict(bad), 5)


bad_rows = st.sampled_from(
    [
        "question",
        ("question",),
        ("question", "context", "more"),
        ("question", None),
        (NAN, "context"),
        ("question", ["context"]),
        (b"question", "context"),
        ("", "context"),
        ("question", " \n\u3000"),
        {"question": "question"},
        {"question": "question", "context": None},
        {"context": "context", 3: "question"},
    ]
)


@cases(0.15)
@given(bad=one_bad_row(X, junk | bad_rows))
def test_rows_of_junk(extractor, bad):
    for call in (extractor.predict, extractor.predict_spans, extractor.no_answer_score):
        fails(lambda call=call: call(bad[0]), bad[1])
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(bad[0], Y), bad[1])


@cases(0.05)
@given(cell=junk | st.sampled_from(["", " \t"]), column=st.sampled_from(["question", "context"]))
def test_tables_with_junk(extractor, cell, column):
    table = pd.DataFrame(X, columns=["question", "context"], dtype=object)
    column_of_junk = table[column].tolist()
    column_of_junk[7] = cell
    table[column] = pd.Series(column_of_junk, dtype=object)
    fails(lambda: extractor.predict(table), 7)


places = st.sampled_from([None, NAN, 1.0, "0", True, [0], 1j]) | junk
# No context has a q, so that these are wrong wherever they are said to be.
bad_answers = st.one_of(
    junk,
    st.lists(junk, min_size=1),
    st.builds(lambda texts: {"text": texts, "answer_start": [0]}, junk),
    st.builds(lambda text: {"text": [text], "answer_start": [0]}, junk),
    st.builds(lambda start: {"text": ["qq"], "answer_start": [start]}, places),
    st.builds(lambda starts: {"text": ["qq", "q"], "answer_start": starts}, places),
    st.sampled_from([{}, {"answers": ["a"]}, {"text": "a", "answer_start": 0}, "nowhere", ["no"]]),
)


@pytest.mark.filterwarnings("ignore:.*do not lie at their answer_start")
@cases(0.2)
@given(bad=one_bad_row(Y, bad_answers))
def test_answers_of_junk(bad):
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(X, bad[0]), bad[1])


@pytest.mark.parametrize("kind", NO_ROWS)
def test_no_rows(extractor, kind):
    bad = NO_ROWS[kind]
    for call in (extractor.predict, extractor.predict_spans, extractor.no_answer_score):
        fails(lambda call=call: call(bad))
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(bad, Y))
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(X, bad))


@pytest.mark.parametrize("columns", [[], ["question"], ["context", "text"], ["question"] * 2])
def test_tables_without_the_columns(extractor, columns):
    table = pd.DataFrame([["john"] * len(columns)] * 12, columns=columns)
    fails(lambda: extractor.predict(table))
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(table, Y))


@pytest.mark.parametrize("row", [0, 5, 11])
def test_generators(extractor, row):
    fails(lambda: extractor.predict(generator_of(X)))
    fails(lambda: extractor.predict(with_row(X, row, generator_of(X[row]))), row)
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(X, generator_of(Y)))
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(X, with_row(Y, row, generator_of("a"))), row)


@pytest.mark.parametrize("n_rows", [0, 1, 11, 13])
def test_wrong_number_of_rows(n_rows):
    fails(lambda: DiceSpanExtractor(**SETTINGS).fit(X, (Y * 2)[:n_rows]))
