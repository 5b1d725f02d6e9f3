import pickle
import resource
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

from skdice import DiceSpanExtractor
from skdice.metrics import squad_exact_match, squad_f1_score
from skdice.model_selection import tune_decision

from ..corpora import FILLERS, LEARNING, NAMES
from ..spies import internals

FAST = {"max_epochs": 2, "lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
ASKED = {"PER": "met ?", "LOC": "city ?"}


def easy_questions(n, seed=0, unanswerable=0.0):
    """Pairs and SQuAD answers: a context names one person and one place, and one is asked for.

    In a share of the rows what is asked for is not there.
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        kind = ["PER", "LOC"][i % 2]
        words = rng.choice(FILLERS, int(rng.integers(3, 7))).tolist()
        named = {label: str(rng.choice(names)) for label, names in NAMES.items()}
        if rng.random() < unanswerable:
            del named[kind]
        for name in named.values():
            words.insert(int(rng.integers(len(words) + 1)), name)
        context = " ".join(words)
        texts = [named[kind]] if kind in named else []
        X.append((ASKED[kind], context))
        y.append({"text": texts, "answer_start": [context.index(text) for text in texts]})
    return X, y


def make(model, **params):
    return DiceSpanExtractor(model, **{**FAST, **params})


@pytest.fixture(scope="module")
def answers(quick_bert):
    """Learned; all questions have answers; long contexts lie in several windows."""
    extractor = make(quick_bert, loss="dice", max_length=24, max_epochs=6)
    return extractor.fit(*easy_questions(160))


@pytest.fixture(scope="module")
def tuned(quick_bert):
    """Learned; three in ten questions have no answer; the threshold is tuned."""
    extractor = make(quick_bert, loss="ce", validation_fraction=0.25, max_epochs=8)
    return extractor.fit(*easy_questions(200, unanswerable=0.3))


@pytest.mark.parametrize("loss", LEARNING)
def test_every_loss_learns(quick_bert, loss):
    extractor = make(quick_bert, loss=loss, max_epochs=6).fit(*easy_questions(160))
    assert extractor.exact_match(*easy_questions(40, seed=1)) > 0.9


FORMS = {
    "columns by name": lambda table: table.assign(id=range(12))[["id", "context", "question"]],
    "strings": lambda table: table.astype("string"),
    "dicts": lambda table: table.assign(title="a").to_dict("records"),
    "lists": lambda table: table.to_numpy().tolist(),
    "array": lambda table: table.to_numpy(),
    "array of str": lambda table: table.to_numpy(dtype=str),
    "Series": lambda table: pd.Series(list(zip(*map(table.get, table))), index=table.index),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_questions(form):
    X, _ = easy_questions(12)
    table = pd.DataFrame(X, columns=["question", "context"], index=range(12, 0, -1))
    read = internals(DiceSpanExtractor()).task.read_X
    assert read(FORMS[form](table)) == read(X)


@pytest.mark.parametrize("loss", ["ce", "dice"])
def test_a_weight_of_two_is_repetition(quick_bert, loss):
    """In a single step, in which all rows are seen, without dropout."""
    X, y = easy_questions(12, unanswerable=0.3)
    rows = [*range(12), *range(4)]
    step = {"max_epochs": 1, "batch_size": 64, "warmup": 0, "precision": "fp32", "loss": loss}
    plain, weighted, repeated = (make(quick_bert, **step) for _ in range(3))
    plain.fit(X, y)
    weighted.fit(X, y, np.bincount(rows))
    repeated.fit([X[i] for i in rows], [y[i] for i in rows])
    losses = [e.history_["train_loss"].iloc[0] for e in (weighted, repeated, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0] != pytest.approx(losses[2], rel=1e-5)
    found, expected = (each.no_answer_score(X) for each in (weighted, repeated))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_n_best_and_longest(answers):
    X = (*easy_questions(20, seed=3)[0], ("met ?", "Anna-Mary  saw, \t“oslo”! " * 5))
    most = answers.predict_spans(X, n_best=10**6)
    for n in (1, 3, 1000):
        assert [row[:n] for row in most] == answers.predict_spans(X, n_best=n).tolist()
    for n in (1, 2, 5):
        task = replace(internals(answers).task, max_answer_length=n)
        short = internals(answers).with_task(task).predict_spans(X[:20], n_best=10**6)
        # A word is a piece.
        assert max(len(span.text.split()) for spans in short for span in spans) == n


class TestLongContexts:
    @pytest.mark.parametrize("n_before", [10, 17, 18, 40, 200])
    def test_answers_are_found_in_every_window(self, answers, n_before):
        context = " ".join(["the"] * n_before + ["oslo", "said", "mary"])
        questions = [(ASKED["LOC"], context), (ASKED["PER"], context)]
        assert answers.predict(questions).tolist() == ["oslo", "mary"]
        starts = [spans[0].start for spans in answers.predict_spans(questions)]
        assert starts == [4 * n_before, 4 * n_before + 10]

    @pytest.mark.slow
    def test_answers_are_learned_in_every_window(self, quick_bert):
        X, y = easy_questions(200)
        X = [(asked, "the " * (9 * (i % 2)) + context) for i, (asked, context) in enumerate(X)]
        y = [row["text"][0] for row in y]
        extractor = make(quick_bert, loss="ce", max_length=18, max_epochs=8, lr=4e-3)
        assert extractor.fit(X[:160], y[:160]).exact_match(X[160:], y[160:]) > 0.9

    @pytest.mark.slow
    def test_30_000_words(self, answers):
        n_before = 29_997
        context = "the " * n_before + "oslo said mary"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        X = [(ASKED["LOC"], context), (ASKED["PER"], context)]
        spans = answers.predict_spans(X)
        assert time.perf_counter() - start < 60
        # Kilobytes; a table of all spans of all pairs of pieces would have 7 gigabytes.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000
        assert [row[0].text for row in spans] == ["oslo", "mary"]
        assert [row[0].start for row in spans] == [4 * n_before, 4 * n_before + 10]


class TestNullThreshold:
    @pytest.mark.parametrize("threshold, unanswerable", [(-1, 0.3), (2.5, 0.0), (-np.inf, 0.0)])
    def test_given(self, tiny_bert, answers, threshold, unanswerable):
        X, y = easy_questions(16, unanswerable=unanswerable)
        params = {"null_threshold": threshold, "validation_fraction": 0.25, "max_epochs": 1}
        extractor = make(tiny_bert, **params).fit(X, y)
        assert extractor.null_threshold_ == threshold
        is_null = extractor.predict(X) == ""
        assert is_null.tolist() == (extractor.no_answer_score(X) > threshold).tolist()
        # Without unanswerable questions in training it gives an answer to all.
        assert answers.null_threshold_ == np.inf
        assert "" not in answers.predict(easy_questions(30, seed=5, unanswerable=1.0)[0]).tolist()

    def test_unanswerable_questions_are_told_apart(self, tuned):
        X, y = easy_questions(60, seed=6, unanswerable=0.4)
        y[0] = {"text": ["nowhere", *y[0]["text"]], "answer_start": [0] * (1 + len(y[0]["text"]))}
        predicted, score = tuned.predict(X), tuned.no_answer_score(X)
        assert tuned.score(X, y) == squad_f1_score(y, predicted)
        assert tuned.exact_match(X, y) == squad_exact_match(y, predicted) > 0.9
        assert not is_classifier(tuned)
        is_null = np.array([not row["text"] for row in y])
        assert score[is_null].mean() > score[~is_null].mean() + 1
        assert ((predicted == "") == is_null).mean() > 0.9

    @pytest.mark.parametrize("metric", [squad_f1_score, squad_exact_match])
    def test_tune_decision(self, tuned, metric):
        X, y = easy_questions(30, seed=7, unanswerable=0.5)
        worse = pickle.loads(pickle.dumps(tuned))
        worse.null_threshold_ = 30.0
        better = tune_decision(worse, X, y, metric=None if metric is squad_f1_score else metric)
        assert better is not worse
        assert worse.null_threshold_ == 30.0
        assert better.net_ is worse.net_
        got, scores = metric(y, better.predict(X)), {}
        values = np.unique(worse.no_answer_score(X))
        for threshold in (0.0, values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1):
            worse.null_threshold_ = threshold
            scores[abs(threshold)] = metric(y, worse.predict(X))
        assert got == pytest.approx(max(scores.values()))
        best = [t for t, score in scores.items() if score > max(scores.values()) - 1e-9]
        assert abs(better.null_threshold_) == pytest.approx(min(best))
