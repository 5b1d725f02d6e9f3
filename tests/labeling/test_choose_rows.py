"""Rows to label next: their scores equal what predictions say, and no two are alike."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import skdice
from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.labeling import choose_rows

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts

FAST = {"max_epochs": 2, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
POOL = easy_corpus(120, seed=5)[0]


@pytest.fixture(scope="module")
def fit(quick_bert):
    return lambda cls, X, y, **more: cls(quick_bert, **{**FAST, "device": "cpu", **more}).fit(X, y)


@pytest.fixture(scope="module", params=["IOB2", "IOBES", "IOB1"])
def each_tagger(request, fit):
    return fit(DiceTokenTagger, *easy_corpus(24, scheme=request.param))


@pytest.fixture(scope="module")
def tagger(fit):
    return fit(DiceTokenTagger, *easy_corpus(24))


def scores(estimator, X, strategy="auto"):
    """Return the table of all rows in the order of X."""
    found = choose_rows(estimator, X, n=len(X), strategy=strategy, random_share=0)
    return found.sort_values("row", ignore_index=True)


def expected_entities(classes, p):
    """Count begun entities word by word, as the scheme of the classes has it."""
    total, before = 0.0, 0.0
    for word in p:
        of = dict(zip(classes, word))
        inside = 1 - of["O"]
        if any(tag[0] in "BS" for tag in classes):
            total += sum(share for tag, share in of.items() if tag[0] in "BS")
        else:
            total += max(0.0, inside - before)
        before = inside
    return total


def test_words_of_taggers(each_tagger):
    p = each_tagger.predict_proba(POOL)
    unsure = [1 - row.max(axis=1) for row in p]
    index = {tag: i for i, tag in enumerate(each_tagger.classes_)}
    log_p = [
        np.log([row[i, index[tag]] for i, tag in enumerate(tags)])
        for row, tags in zip(p, each_tagger.predict(POOL))
    ]
    oracles = {
        "least_confident": [row.mean() for row in unsure],
        "least_confident_sum": [row.sum() for row in unsure],
        "least_confident_max": [row.max() for row in unsure],
        "mnlp": [-row.mean() for row in log_p],
        "expected": [expected_entities(each_tagger.classes_, row) for row in p],
    }
    for strategy, oracle in oracles.items():
        found = scores(each_tagger, POOL, strategy)
        np.testing.assert_allclose(found["score"], oracle, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(found["expected"], oracles["expected"], rtol=1e-4)
    assert found["words"].tolist() == [len(row) for row in POOL]
    assert scores(each_tagger, POOL)["score"].tolist() != found["score"].tolist()


def test_spans_of_query_taggers(fit):
    tagger = fit(DiceQueryTagger, *easy_corpus(24), negative_ratio=None, max_epochs=4)
    tagger.threshold_ = expit(-4)  # The lowest that is looked at.
    rows = [[entity.score for entity in row] for row in tagger.predict_spans(POOL)]
    found = scores(tagger, POOL, "expected")
    np.testing.assert_allclose(found["score"], [sum(row) for row in rows], rtol=1e-4)
    tagger.decode = "nested"  # Now these are all spans.
    for threshold in (0.5, {"PER": 0.2, "LOC": 0.6}):
        tagger.threshold_ = expit(-4)
        spans = tagger.predict_spans(POOL)
        tagger.threshold_ = threshold
        cut = threshold if isinstance(threshold, dict) else {"PER": 0.5, "LOC": 0.5}
        near = [
            [expit(-abs(logit(span.score) - logit(cut[span.label]))) for span in row]
            for row in spans
        ]
        total = scores(tagger, POOL, "least_confident_sum")["score"]
        np.testing.assert_allclose(total, [sum(row) for row in near], rtol=1e-4)
        mean = scores(tagger, POOL)["score"]
        np.testing.assert_allclose(mean, total / [len(row) for row in POOL], rtol=1e-6)
        most = scores(tagger, POOL, "least_confident_max")["score"]
        np.testing.assert_allclose(most, [max(row, default=0) for row in near], rtol=1e-4)


TEXTS = list(dict.fromkeys(easy_texts(90, seed=3)[0]))


class TestClassifiers:
    @pytest.mark.parametrize("pos_label", [None, "person"])
    def test_two_classes_and_their_threshold(self, fit, pos_label):
        classifier = fit(DiceTextClassifier, *easy_texts(24), pos_label=pos_label)
        positive = classifier.predict_proba(TEXTS)[:, 0 if pos_label else 1]
        for threshold in (0.5, float(np.quantile(positive, 0.9))):
            classifier.threshold_ = threshold
            oracle = np.exp(-np.abs(logit(positive) - logit(threshold)))
            found = scores(classifier, TEXTS)
            np.testing.assert_allclose(found["score"], oracle, rtol=1e-4)
            np.testing.assert_allclose(found["expected"], positive, rtol=1e-5)
        assert scores(classifier, TEXTS, "expected")["score"].equals(found["expected"])

    def test_several_classes(self, fit):
        classifier = fit(DiceTextClassifier, *easy_texts(24, n_classes=3))
        classifier.threshold_ = [0.2, 0.3, 0.5]
        p = np.sort(classifier.predict_proba(TEXTS) / classifier.threshold_, axis=1)
        found = scores(classifier, TEXTS)
        np.testing.assert_allclose(found["score"], p[:, 1] / p[:, 2], rtol=1e-4)
        with pytest.raises(ValueError, match=r"one of \{'auto', 'margin', 'random'\}. Got 'exp"):
            choose_rows(classifier, TEXTS, 9, strategy="expected")

    def test_several_labels(self, fit):
        classifier = fit(DiceTextClassifier, *easy_labels(24))
        classifier.threshold_ = [0.2, 0.6]
        p = classifier.predict_proba(TEXTS)
        distance = np.abs(logit(p) - logit([0.2, 0.6])).min(axis=1)
        found = scores(classifier, TEXTS)
        np.testing.assert_allclose(found["score"], np.exp(-distance), rtol=1e-4)
        np.testing.assert_allclose(found["expected"], p.sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("unanswered", [False, True])
def test_questions(fit, unanswered):
    X, y = skdice.datasets.make_questions(24, random_state=0)
    y = [{"text": [], "answer_start": []} if unanswered and i % 2 else a for i, a in enumerate(y)]
    extractor = fit(DiceSpanExtractor, X, y, max_epochs=1)
    best = np.array([row[0].score for row in extractor.predict_spans(X)])
    none = best * np.exp(extractor.no_answer_score(X))
    if not unanswered:
        best, none = best / (1 - none), 0 * none
    found = scores(extractor, X)
    np.testing.assert_allclose(found["score"], 1 - np.maximum(best, none), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["expected"], 1 - none, rtol=1e-4)


SAME = ["the", "berlin", "saw", "john", "in", "rome"]
NEAR = ["The", *SAME[1:], "!"]


class TestDuplicates:
    @pytest.mark.parametrize("is_fitted", [True, False])
    @pytest.mark.parametrize("share", [0, 0.5])
    def test_one_of_many_is_chosen(self, tagger, tiny_bert, is_fitted, share):
        estimator = tagger if is_fitted else DiceTokenTagger(tiny_bert, device="cpu")
        pool = [SAME] * 40 + POOL + [NEAR] * 40
        found = choose_rows(estimator, pool, 30, random_share=share, random_state=0)
        texts = [" ".join(pool[i]).lower() for i in found["row"]]
        assert len(texts) == len(set(texts)) == 30
        chosen = [text for text, drawn in zip(texts, found["is_random"]) if not drawn]
        assert sum(text.startswith("the berlin saw john in rome") for text in chosen) <= 1

    def test_what_is_labeled_is_passed_over(self, tagger):
        pool = [SAME, NEAR, *POOL]
        assert 0 in choose_rows(tagger, [SAME, *POOL], 121)["row"].tolist()
        found = choose_rows(tagger, pool, 20, labeled=[SAME, *POOL[:40]], random_share=0)
        texts = {" ".join(pool[i]) for i in found["row"]}
        assert not texts & {" ".join(row) for row in [SAME, NEAR, *POOL[:40]]}

    def test_near_duplicates_are_better_than_nothing(self, tagger):
        """Repeated rows are not."""
        pool = [[*SAME, mark] for mark in ".,;:!?"] * 2 + [["peter", "said"]] * 2
        found = choose_rows(tagger, pool, 3, random_share=0)
        assert len({tuple(pool[i]) for i in found["row"]}) == 3
        with pytest.warns(UserWarning, match="X has 7 rows to choose from, fewer than n=13: all"):
            found = choose_rows(tagger, pool, 13, random_share=0)
        assert len({tuple(pool[i]) for i in found["row"]}) == 7

    def test_pairs_with_an_empty_text(self, tiny_bert):
        pool = [("john", "")] * 9 + [("", "john"), *easy_pairs(6)[0]]
        pairs = DicePairClassifier(tiny_bert, max_epochs=1, verbose=0, device="cpu")
        rows = choose_rows(pairs.fit(*easy_pairs(16)), pool, 5)["row"]
        assert len({pool[i] for i in rows}) == 5


class TestHighest:
    def test_scores_decide_whatever_the_seed(self, tagger):
        pool = [["oslo"], ["the", "said"], ["john", "saw", "paris"], ["rome", "in"], ["mary", "."]]
        for strategy in ("auto", "mnlp", "expected"):
            every = scores(tagger, pool, strategy).nlargest(3, "score")["row"]
            for seed in range(5):
                found = choose_rows(
                    tagger, pool, 3, strategy=strategy, random_share=0, random_state=seed
                )
                assert found["row"].tolist() == every.tolist()


class TestRandomRows:
    def test_share_and_seed(self, tagger):
        cases = ((10, 0.1, 1), (50, 0.1, 5), (10, 0.5, 5), (10, 1, 10), (9, 0, 0))
        for n, share, expected in cases:
            found = choose_rows(tagger, POOL, n, random_share=share, random_state=3)
            assert found["is_random"].sum() == expected
            again = choose_rows(tagger, POOL, n, random_share=share, random_state=3)
            pd.testing.assert_frame_equal(found, again)
        draws = [choose_rows(tagger, POOL, 10, random_share=1, random_state=i) for i in range(2)]
        assert set(draws[0]["row"]) != set(draws[1]["row"])
        assert not draws[0]["score"].isna().any()

    def test_the_strategy_needs_no_prediction(self, tagger, monkeypatch):
        monkeypatch.setattr(skdice.nn.TextNet, "predict_logits", None)
        found = choose_rows(tagger, POOL, 8, strategy="random", random_state=0)
        assert found["is_random"].all()
        assert found[["score", "expected"]].isna().all(axis=None)


class TestWithoutAFit:
    def test_rows_are_spread(self, tiny_bert):
        """Each of three kinds of sentences has a row, also the rare one."""
        kinds = [["oslo", "paris"], ["the", "said"], ["john", "mary", "anna"]]
        rng = np.random.default_rng(0)
        pool = [
            [str(word) for word in rng.choice(kinds[kind], 4)]
            for kind in [0] * 30 + [1] * 30 + [2] * 4
        ]
        estimator = DiceTokenTagger(tiny_bert, device="cpu")
        for seed in range(4, 8):  # With these seeds five random rows miss a kind.
            found = choose_rows(estimator, pool, 5, random_share=0, random_state=seed)
            assert {np.searchsorted([30, 60], row, "right") for row in found["row"]} == {0, 1, 2}
        assert found["score"].between(1 / len(pool), 1).all()
        assert found["expected"].isna().all()

    @pytest.mark.parametrize("cls, X", [
        (DiceQueryTagger, POOL), (DiceTextClassifier, easy_texts(40)[0]),
        (DicePairClassifier, easy_pairs(40)[0]),
        (DiceSpanExtractor, skdice.datasets.make_questions(40, random_state=0)[0]),
    ])  # fmt: skip
    def test_all_estimators(self, tiny_bert, cls, X):
        found = choose_rows(cls(tiny_bert, device="cpu"), X, 10, random_state=0)
        assert (len(found), found["is_random"].sum(), found["row"].nunique()) == (10, 1, 10)


class TestContainers:
    @pytest.mark.parametrize("make", [
        iter, lambda rows: pd.Series(rows, index=range(7, 7 + len(rows))),
    ])  # fmt: skip
    def test_a_pool_may_be_any_of_them(self, tagger, make):
        pool = [*POOL, ["oslo"]] * 10  # More than are read at a time.
        expected = choose_rows(tagger, pool, 20, labeled=POOL[:30], random_state=0)
        found = choose_rows(tagger, make(pool), 20, labeled=tuple(POOL[:30]), random_state=0)
        pd.testing.assert_frame_equal(found, expected)

    def test_pipelines_and_searches(self, tiny_bert, tagger):
        split = FunctionTransformer(lambda texts: [text.split() for text in texts])
        texts = [" ".join(row) for row in POOL]
        pipeline = Pipeline([("split", split), ("tagger", tagger)])
        expected = choose_rows(tagger, POOL, 9, random_state=0, labeled=POOL[:9])
        found = choose_rows(pipeline, texts, 9, random_state=0, labeled=texts[:9])
        pd.testing.assert_frame_equal(found, expected)
        search = GridSearchCV(pipeline, {})
        search.best_estimator_ = pipeline
        found = choose_rows(search, texts, 9, random_state=0, labeled=texts[:9])
        pd.testing.assert_frame_equal(found, expected)
        unfitted = Pipeline([("split", split), ("tagger", DiceTokenTagger(tiny_bert))])
        assert len(choose_rows(unfitted, texts, 9)) == 9
        ascii_only = FunctionTransformer(lambda texts: [text.encode("ascii") for text in texts])
        with pytest.raises(ValueError, match="'ascii' codec can't encode"):
            choose_rows(Pipeline([("a", ascii_only), *pipeline.steps]), ["café"], 1)

    @pytest.mark.slow
    def test_memory_is_flat(self, tagger):
        peaks = []
        for n_rows in (5_000, 20_000):
            pool = (POOL * 170)[:n_rows]
            tracemalloc.start()
            choose_rows(tagger, pool, 20, random_state=0)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] - peaks[0] < 100 * 15_000, "bytes for each row more"

    def test_rows_without_words(self, tagger):
        found = choose_rows(tagger, [[], ["oslo"], [" "], ["\ud83d", "saw"]], 2)
        assert set(found["row"]) == {1, 3}


class TestErrors:
    @pytest.mark.parametrize("X, more, message", [
        ([], {}, "X must have a row with a word; it has none"),
        ([[], [" "]], {}, "X must have a row with a word; it has none"),
        (POOL[:3], {"labeled": POOL[:5]}, "not among the 5 rows of labeled; it has none"),
        (POOL, {"n": 0}, "'n' parameter of choose_rows must be an int in the range [1, inf)"),
        (POOL, {"n": 2.5}, "'n' parameter of choose_rows must be an int"),
        (POOL, {"random_share": 1.1}, "'random_share' parameter of choose_rows must be a float"),
        (POOL, {"random_state": -1}, "'random_state' parameter of choose_rows must be an int >= 0"),
        (POOL, {"strategy": "margin"}, "of choose_rows with this DiceTokenTagger must be one of {"),
        ([*POOL, "oslo"], {}, "row 120 is the bare string 'oslo'"),
        (POOL * 10 + [["a"], [3]], {}, "in what follows is row 1024 of X. Words must be str"),
        (POOL, {"labeled": ["oslo"]}, "labeled is read as X is. Each row of X must be a list of"),
    ])  # fmt: skip
    def test_values(self, tagger, X, more, message):
        with pytest.raises(ValueError) as caught:
            choose_rows(tagger, X, **{"n": 5, **more})
        assert message in str(caught.value)

    @pytest.mark.parametrize("X", ["oslo", None, 3, {"a": 1}])
    def test_no_pool(self, tagger, X):
        with pytest.raises(TypeError, match="X must be a list, Series or object array of lists of"):
            choose_rows(tagger, X)

    @pytest.mark.parametrize("estimator", [
        DiceTokenTagger, LogisticRegression(), None, Pipeline([("last", LogisticRegression())]),
    ])  # fmt: skip
    def test_other_estimators(self, estimator):
        with pytest.raises(TypeError, match="choose_rows takes an estimator of skdice"):
            choose_rows(estimator, POOL)

    def test_strategies_that_need_a_fit_or_entities(self, tiny_bert, fit):
        unfitted = DiceTokenTagger(tiny_bert)
        with pytest.raises(ValueError, match=r"'spread', 'random'}. Got 'mnlp'"):
            choose_rows(unfitted, POOL, strategy="mnlp")
        with pytest.raises(ValueError, match="'max_epochs' parameter of DiceTokenTagger"):
            choose_rows(DiceTokenTagger(tiny_bert, max_epochs=0), POOL)
        tags = [["NN" if len(word) > 3 else "VB" for word in row] for row in POOL[:20]]
        tagger = fit(DiceTokenTagger, POOL[:20], tags, max_epochs=1)
        assert choose_rows(tagger, POOL, 5)["expected"].isna().all()
        with pytest.raises(ValueError, match=r"'mnlp', 'random'}. Got 'exp"):
            choose_rows(tagger, POOL, strategy="expected")
