from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import KFold, StratifiedGroupKFold, cross_val_score

from skdice import DicePairClassifier, DiceTextClassifier
from skdice.losses import CrossEntropyLoss
from skdice.model_selection import tune_decision

from ..corpora import easy_labels, easy_pairs, easy_texts
from ..spies import internals

FAST = {"max_epochs": 8, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
LEARNS = {"max_epochs": 4, "lr": 5e-3}


def make_texts(model, **params):
    return DiceTextClassifier(model, **{**FAST, **params})


def make_pairs(model, **params):
    return DicePairClassifier(model, **{**FAST, **params})


@pytest.fixture(scope="module")
def texts(tiny_bert):
    return make_texts(tiny_bert, loss="ce").fit(*easy_texts(64))


@pytest.fixture(scope="module")
def pairs(tiny_bert):
    how = {"loss": "dice", "max_epochs": 5, "batch_size": 16}
    return make_pairs(tiny_bert, **how).fit(*easy_pairs(240))


@pytest.fixture(scope="module")
def three_classes(quick_bert):
    return make_texts(quick_bert, loss="ce", **LEARNS).fit(*easy_texts(192, n_classes=3))


@pytest.fixture(scope="module")
def labels(quick_bert):
    return make_texts(quick_bert, loss="dsc-official", **LEARNS).fit(*easy_labels(192))


def test_what_has_learned_scores(pairs, three_classes, labels):
    assert pairs.score(*easy_pairs(40, seed=1)) > 0.75
    assert three_classes.score(*easy_texts(42, seed=1, n_classes=3)) > 0.75
    assert labels.score(*easy_labels(40, seed=1)) > 0.75


class TestLabels:
    def test_columns_have_the_order_of_classes(self, texts, three_classes):
        assert three_classes.classes_.tolist() == ["neither", "person", "place"]
        p = three_classes.predict_proba(["the saw in", "john said", "by oslo"])
        assert p.argmax(1).tolist() == [0, 1, 2]
        X, _ = easy_texts(10, seed=1)
        p, decision = texts.predict_proba(X), texts.decision_function(X)
        assert p.shape == (10, 2)
        assert decision.shape == (10,)
        np.testing.assert_allclose(p.sum(1), 1)
        np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), decision)
        np.testing.assert_array_equal(texts.predict(X), texts.classes_[(decision > 0).astype(int)])

    def test_pos_label_is_the_larger_one_or_given(self, tiny_bert, pairs):
        X, y = easy_pairs(40, seed=2)
        assert pairs.score(X, y) == f1_score(y, pairs.predict(X), pos_label=1)
        assert pairs.net_.criterion_.background == 0
        y = ["same" if label else "other" for label in y]
        other = make_pairs(tiny_bert, loss="dice", max_epochs=1, pos_label="other").fit(X, y)
        assert other.net_.criterion_.background == 1  # "same"
        expected = f1_score(y, other.predict(X), pos_label="other")
        assert other.score(X, y) == pytest.approx(expected)

    def test_score_takes_sample_weight(self, texts, pairs):
        weight = np.arange(20)
        for one, rows, metric in (
            (texts, easy_texts, accuracy_score),
            (pairs, easy_pairs, f1_score),
        ):
            X, y = rows(20, seed=3)
            expected = metric(y, one.predict(X), sample_weight=weight)
            assert one.score(X, y, sample_weight=weight) == pytest.approx(expected)

    def test_presets_know_two_classes(self, tiny_bert):
        pair = make_pairs(tiny_bert, loss="dsc-official", max_epochs=1).fit(*easy_pairs(16))
        assert (pair.net_.criterion_.level, pair.net_.criterion_.average) == ("batch", "micro")
        text = make_texts(tiny_bert, loss="dsc-official", max_epochs=1)
        text.fit(*easy_texts(16, n_classes=3))
        assert (text.net_.criterion_.level, text.net_.criterion_.average) == ("example", "sum")


def test_class_weights_of_labels_that_a_fold_lacks(tiny_bert):
    """As in scikit-learn; a search scores all folds."""
    X, y = easy_texts(12)
    y = np.array([*y[:-1], "rare"])
    weight = {"place": 5.0, "rare": 3.0}
    classifier = make_texts(tiny_bert, max_epochs=1, class_weight=weight)
    scores = cross_val_score(classifier, X, y, cv=KFold(4), error_score="raise")
    assert np.isfinite(scores).all()
    known = {name: value for name, value in weight.items() if name != "rare"}
    extra = clone(classifier).fit(X[:9], y[:9]).predict_proba(X)
    expected = clone(classifier).set_params(class_weight=known).fit(X[:9], y[:9])
    np.testing.assert_array_equal(extra, expected.predict_proba(X))


class TestSeveralLabels:
    def test_outputs(self, labels):
        X, Y = easy_labels(10, seed=1)
        assert labels.classes_.tolist() == [0, 1]
        p, decision = labels.predict_proba(X), labels.decision_function(X)
        assert p.shape == decision.shape == Y.shape
        np.testing.assert_allclose(p, 1 / (1 + np.exp(-decision)))
        np.testing.assert_array_equal(labels.predict(X), p > 0.5)
        assert labels.score(X, Y) == f1_score(Y, labels.predict(X), average="micro")

    def test_columns_of_y_are_those_of_the_fit(self, tiny_bert):
        X, Y = easy_labels(16)
        Y = pd.DataFrame(Y, columns=["person", "place"])
        named = make_texts(tiny_bert, max_epochs=1, class_weight={"place": 5.0}).fit(X, Y)
        assert named.classes_.tolist() == ["person", "place"]
        np.testing.assert_array_equal(named.net_.criterion_.class_weight, [[1, 1], [1, 5]])
        expected = named.score(X, Y)
        assert named.score(X, Y.to_numpy()) == expected
        swapped = r"\['person', 'place'\], in that order; got 2 columns, \['place', 'person'\]"
        for y, message in [
            (Y[["place", "person"]], swapped),
            (Y.rename(columns={"place": "town"}), "got .*'town'"),
            (Y.assign(time=0), r"2 columns of the fit, \['person', 'place'\], .* got 3"),
            (np.zeros((16, 3)), "got 3 columns"),
            ([0, 1] * 8, "a 0/1 matrix of 2 columns, as in the fit; got a label per row"),
        ]:
            for use in (named.score, partial(tune_decision, named)):
                with pytest.raises(ValueError, match=message):
                    use(X, y)
        assert named.score(X, Y[["place", "person"]][named.classes_.tolist()]) == expected
        unnamed = tune_decision(named, X, Y.to_numpy()).threshold_
        np.testing.assert_array_equal(unnamed, tune_decision(named, X, Y).threshold_)

    @pytest.mark.parametrize("kind", ["balanced", "log"])
    def test_class_weights(self, tiny_bert, kind):
        X, Y = easy_labels(24)
        Y = np.column_stack([Y, np.zeros(24, dtype=int)])  # A label that never occurs.
        classifier = make_texts(tiny_bert, max_epochs=1, class_weight=kind).fit(X, Y)
        weight = np.array(classifier.net_.criterion_.class_weight)
        n = np.array([[16, 8], [18, 6]])
        expected = 12 / n if kind == "balanced" else np.log10((24 - n) / n + 3)
        np.testing.assert_allclose(weight[:2], expected, rtol=1e-6)
        assert weight[2].tolist() == [1, 1]


STILL = {"lr": 1e-12, "head_lr": 1e-12, "max_epochs": 1}


def same_or_other(n, positive_share=0.5):
    """Return pairs of texts that are the same or have no word in common, and which are."""
    rng = np.random.default_rng(0)
    is_same = np.arange(n) < round(positive_share * n)
    words = rng.permuted(np.tile(list("abcdefghijklmnop"), (n, 1)), axis=1)
    second = np.where(is_same[:, None], words[:, :4], words[:, 4:8])
    rows = zip(words[:, :4], second)
    return [(" ".join(a), " ".join(b)) for a, b in rows], is_same.astype(int)


def assert_same_similarities(one, other):
    for left, right in zip(*(internals(each).task.similarities for each in (one, other))):
        np.testing.assert_equal(left, right)


def head_of(classifier):
    module = classifier.net_.module_
    return (module.comparison if isinstance(classifier, DicePairClassifier) else module.head).weight


class TestHeadsThatBeginAsRegressions:
    ROWS: ClassVar = {make_pairs: same_or_other, make_texts: easy_texts}

    @pytest.mark.parametrize("make, n_classes", [(f, n) for f in ROWS for n in (2, 3)])
    def test_they_tell_before_any_training(self, tiny_bert, make, n_classes):
        X, y = same_or_other(60) if make is make_pairs else easy_texts(120, n_classes=n_classes)
        if make is make_pairs and n_classes == 3:
            X, y = X + [(a, f"{a} {b}") for a, b in X[-30:]], np.append(y, [2] * 30)
        fitted = make(tiny_bert, **STILL).fit(X, y)
        assert fitted.score(X, y) > (0.95 if make is make_pairs else 1.3 / n_classes)

    @pytest.mark.parametrize("make", ROWS)
    def test_a_weight_is_repetition(self, tiny_bert, make):
        X, y = self.ROWS[make](60 if make is make_pairs else 160)
        weight = np.arange(len(y)) % 3
        rows = np.repeat(range(len(y)), weight)
        weighted = make(tiny_bert, **STILL).fit(X, y, sample_weight=weight)
        repeated = make(tiny_bert, **STILL).fit([X[i] for i in rows], [y[i] for i in rows])
        heads = [head_of(one).detach() for one in (weighted, repeated)]
        np.testing.assert_allclose(*heads, atol=1e-3)

    @pytest.mark.parametrize("make", ROWS)
    def test_few_epochs_are_enough_if_the_states_say_something(self, tiny_bert, make, constants):
        constants(fewest_epochs=4, most_epochs=5, steps=1)
        X, y = self.ROWS[make](60)
        for labels, n in ((y, 4), (np.random.default_rng(0).permutation(y), 5)):
            fitted = make(tiny_bert, max_epochs="auto").fit(X, labels)
            assert fitted.max_epochs_ == n
            if make is make_texts:
                head = fitted.choices_.set_index("parameter").loc["head", "value"]
                assert head == ("regression" if n == 4 else "random")

    def test_a_class_may_have_one_text(self, tiny_bert):
        X, y = easy_texts(60)
        texts = make_texts(tiny_bert, **STILL).fit(X, [*y[:-1], "single"])
        assert np.isfinite(texts.decision_function(X)).all()

    def test_a_trained_head_goes_on(self, tiny_bert, tmp_path):
        """Also where a regression on the new rows would say nothing."""
        X, y = easy_texts(120)
        texts = make_texts(tiny_bert, **STILL).fit(X, y)
        assert texts.choices_.set_index("parameter").loc["head", "value"] == "regression"
        texts.save_pretrained(tmp_path)
        for labels in (y, np.random.default_rng(0).permutation(y)):
            again = make_texts(str(tmp_path), **STILL | {"head_lr": None}).fit(X, labels)
            np.testing.assert_allclose(again.predict_proba(X), texts.predict_proba(X), atol=1e-5)
        again = make_texts(str(tmp_path), max_epochs=1, lr="auto", head_lr=None).fit(X, y)
        choices = again.choices_.set_index("parameter")
        assert "trained already" in choices.loc["head_lr", "why"]
        assert again.net_.head_lr == again.lr_


class TestSimilarities:
    X = tuple((f"item{i} of acme", f"item{i + (i % 3 > 0)} of acme") for i in range(60))
    y = np.array([int(i % 3 == 0) for i in range(60)])

    def test_they_decide_where_the_encoder_knows_nothing(self, tiny_bert):
        pairs = make_pairs(tiny_bert, **STILL).fit(self.X, self.y)
        new = [("item900 of acme", "item900 of acme"), ("item900 of acme", "item777 of acme")]
        assert pairs.predict(new).tolist() == [1, 0]
        choices = pairs.choices_.set_index("parameter")
        share = choices.loc["similarities", "value"]
        assert 0 < share <= 1
        assert pairs.net_.module_.share.item() == pytest.approx(1 - share)

    @pytest.mark.parametrize("X, y, why", [
        (*same_or_other(60), "best, in 5 folds."),
        ([("same", "same" + " " * i) for i in range(60)], y, "tells nothing"),
        (X, [0] * 59 + [1], "single training pair"),
    ])  # fmt: skip
    def test_choices_say_what_decided_their_share(self, X, y, why, tiny_bert):
        choices = make_pairs(tiny_bert, **STILL).fit(X, y).choices_.set_index("parameter")
        assert why in choices.loc["similarities", "why"]

    def test_a_group_is_in_one_fold(self, tiny_bert, monkeypatch):
        splits, split = [], StratifiedGroupKFold.split

        def record(*args, **how):
            splits.extend(split(*args, **how))
            return iter(splits)

        monkeypatch.setattr(StratifiedGroupKFold, "split", record)
        groups = [("article", i // 4) for i in range(60)]
        pairs = make_pairs(tiny_bert, **STILL).fit(self.X, self.y, groups=groups)
        assert len(splits) >= 4
        for train, test in splits:
            assert not {groups[i] for i in train} & {groups[i] for i in test}
        why = pairs.choices_.set_index("parameter").loc["similarities", "why"]
        assert "keep groups together" in why or "count equally" in why

    @pytest.mark.parametrize("y, n_folds", [(np.arange(60) % 20, 3), (np.arange(60), 0)])
    def test_a_class_may_be_in_few_groups(self, y, n_folds, tiny_bert):
        """The one of y = 0."""
        groups = np.arange(60) // 20
        pairs = make_pairs(tiny_bert, **STILL).fit(self.X, y > 0, groups=groups)
        assert np.isfinite(pairs.decision_function(self.X)).all()
        why = pairs.choices_.set_index("parameter").loc["similarities", "why"]
        assert ("A class is in too few groups" in why) == (n_folds == 0)

    def test_a_fold_has_none_of_the_fit_of_all_rows(self, tiny_bert):
        """Here a fold trains on one of three groups, and has none of its own."""
        groups = np.arange(60) // 3 % 3
        y = self.y + 2 * groups
        pairs = make_pairs(tiny_bert, **STILL, validation_fraction=0.5).fit(self.X, y)
        tuned = tune_decision(pairs, self.X, y, cv=3, groups=groups)
        assert tuned.threshold_.shape == (len(np.unique(y)),)

    def test_rows_held_out_are_not_learned_from(self, tiny_bert):
        X, y = self.X[:40], self.y[:40]
        one, other = (
            make_pairs(tiny_bert, **STILL).fit(X, y, validation=(rows, self.y[40:]))
            for rows in (self.X[40:], [("other", "words")] * 20)
        )
        assert_same_similarities(one, other)


class TestThreshold:
    X, y = same_or_other(40, positive_share=0.1)
    texts = tuple(f"{first} {second}" for first, second in X)

    def test_it_is_the_share_of_a_rare_class(self, tiny_bert):
        pairs = make_pairs(tiny_bert, **STILL).fit(self.X, self.y)
        assert pairs.threshold_ == pytest.approx(0.1)
        pairs = clone(pairs).set_params(loss=CrossEntropyLoss()).fit(self.X, self.y)
        assert pairs.threshold_ == pytest.approx(0.1)
        one = make_texts(tiny_bert, **STILL).fit(self.texts, self.y)
        assert one.threshold_ == pytest.approx(0.1)
        probability = one.predict_proba(self.texts)[:, 1]
        np.testing.assert_array_equal(one.predict(self.texts), probability > 0.1)
        weighted = clone(one).fit(self.texts, self.y, sample_weight=1 + self.y)
        assert weighted.threshold_ == pytest.approx(2 * 0.1 / 1.1)

    def test_a_regression_that_sees_few_rows_has_the_shares_of_all(self, tiny_bert, monkeypatch):
        monkeypatch.setattr("skdice.fitting._initial_weights._MOST_ROWS", 40)
        X, y = easy_texts(400)
        X, y = X[:40:2] + X[1::2][:180], y[:40:2] + y[1::2][:180]
        p = make_texts(tiny_bert, **STILL).fit(X, y).predict_proba(X)[:, 0]
        assert p.mean() == pytest.approx(0.1, abs=0.05)

    def test_the_positive_class_may_be_the_first(self, tiny_bert):
        one = make_texts(tiny_bert, **STILL, pos_label=0).fit(self.texts, 1 - self.y)
        assert one.threshold_ == pytest.approx(0.1)
        probability = one.predict_proba(self.texts)[:, 0]
        np.testing.assert_array_equal(one.predict(self.texts) == 0, probability > 0.1)
        noisy = 1 - self.y
        noisy[0] = 1  # Three of the pairs that are the same.
        pairs = make_pairs(tiny_bert, **STILL, pos_label=0).fit(self.X, noisy)
        mirrored = make_pairs(tiny_bert, **STILL).fit(self.X, 1 - noisy)
        assert pairs.threshold_ == pytest.approx(mirrored.threshold_)

    @pytest.mark.parametrize("params, threshold", [
        ({"threshold": 0.3}, 0.3),
        ({"threshold": 0.3, "pos_label": 0}, 0.3), ({"threshold": 0}, 0.0), ({"threshold": 1}, 1.0),
        ({"loss": "dice"}, 0.5), ({"class_weight": "balanced"}, 0.5), ({"pos_label": 0}, 0.5),
    ])  # fmt: skip
    def test_otherwise_it_is_a_half_or_what_is_given(self, tiny_bert, params, threshold):
        pairs = make_pairs(tiny_bert, **STILL, **params).fit(self.X, self.y)
        assert pairs.threshold_ == pytest.approx(threshold)
