import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from skdice.datasets import make_questions


@pytest.mark.parametrize("ratio", [10, 20.0, 127.1, 500])
@pytest.mark.parametrize("n_samples, share", [(300, 0.0), (300, 0.3), (2000, 0.5)])
def test_ratio(n_samples, share, ratio):
    # The fewest words that contexts can have.
    ratio = max(ratio, (22 + 9 * share) / 2 / (1 - share) - 1)
    if ratio * n_samples > 300_000:
        n_samples //= 10
    X, y = make_questions(n_samples, ratio=ratio, unanswerable_share=share, random_state=3)
    n_positive = 2 * sum(bool(answers["text"]) for answers in y)
    n_negative = X["context"].str.split().str.len().sum() - n_positive
    assert n_positive == 2 * (n_samples - round(share * n_samples))
    assert abs(n_negative - ratio * n_positive) <= 30
    assert n_negative / n_positive == pytest.approx(ratio, rel=0.01)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.floats(62, 150), st.floats(0, 0.5), st.integers(0, 2**40))
def test_form(n_samples, ratio, share, seed):
    X, y = make_questions(n_samples, ratio=ratio, unanswerable_share=share, random_state=seed)
    assert type(X) is pd.DataFrame
    assert list(X.columns) == ["id", "title", "question", "context"]
    assert set(X.dtypes) == {np.dtype(object)}
    assert X.index.tolist() == list(range(n_samples))
    assert X["id"].nunique() == n_samples
    assert X.map(lambda value: type(value) is str and bool(value)).all(axis=None)
    assert type(y) is np.ndarray
    assert y.dtype == object
    assert y.shape == (n_samples,)
    n_unanswerable = min(round(share * n_samples), n_samples - 1)
    assert sum(not answers["text"] for answers in y) == n_unanswerable
    for context, answers in zip(X["context"], y):
        assert list(answers) == ["text", "answer_start"]
        assert len(answers["text"]) == len(answers["answer_start"]) <= 1
        for text, start in zip(answers["text"], answers["answer_start"]):
            assert type(start) is int
            assert context[start : start + len(text)] == text
            before, after = context[:start][-1:], context[start + len(text)]
            assert before in ("", " ")
            assert after in " .,"


@pytest.fixture(scope="module")
def sample():
    return make_questions(3000, ratio=50, unanswerable_share=0.4, random_state=0)


def test_the_context_has_just_the_answer(sample):
    """Here to "Who ...?": what a sentence has before what is asked for."""
    n_answered = 0
    for question, context, answers in zip(sample[0]["question"], sample[0]["context"], sample[1]):
        if question.startswith("Who ") and " did " not in question:
            rest = re.escape(question[4:-1])
            pattern = rf"(?:^|(?<=\. ))(?:In \d{{4}}, )?([^.,]+?) {rest}(?: in \d{{4}})?\."
            found = [(match[1], match.start(1)) for match in re.finditer(pattern, context)]
            assert found == list(zip(answers["text"], answers["answer_start"])), question
            n_answered += len(found)
    assert n_answered > 30


def test_numbers_of_mentions_do_not_decide(sample):
    X, y = sample
    is_answerable = [bool(answers["text"]) for answers in y]
    n_mentions = [
        min(
            context.count(value)
            for value in re.findall(
                r"(?:[A-Z][a-z]+ )?[A-Z][a-z]+|\d+ [a-z]+", question.split(" ", 1)[1]
            )
        )
        for question, context in zip(X["question"], X["context"])
    ]
    assert 0.4 < roc_auc_score(is_answerable, n_mentions) < 0.6
    assert 0.4 < roc_auc_score(is_answerable, X["context"].str.len()) < 0.6
