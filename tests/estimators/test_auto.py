import builtins
import io
import os
import re
import socket
import warnings
from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

import skdice
from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.fitting import EpochFacts, Given, RowFacts, auto, prepare, settings_of
from skdice.fitting import choose as choose_plan
from skdice.losses import CrossEntropyLoss, DiceLoss, TverskyLoss
from skdice.nn import Encoder
from skdice.tasks import LabelFacts

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from ..io.conftest import CASES, make
from ..quick import quick
from ..spies import internals
from .test_span import easy_questions

FAST = {"max_epochs": 1, "lr": 3e-3, "batch_size": 2, "random_state": 0, "verbose": 0}
ENCODER = Encoder("bert", 384, 6, False, 512)
OF_LABELS = [field.name for field in fields(LabelFacts)]
ROWS = {
    "task": "tagging", "encoder": ENCODER, "n_rows": 100,
    "trains_embeddings": True, "has_adapters": False, "is_plain": True,
}  # fmt: skip
EPOCH = {
    "n_texts": None, "n_positive": 0, "ratio": None, "n_steps": 1, "begins_trained": False,
    "has_trained_head": False,
}  # fmt: skip


def choose(parameter, encoder=ENCODER, **given):
    """Return what a rule takes: facts go to the values that have them, the rest to the rule."""
    given["encoder"] = encoder
    labels = LabelFacts(**{name: given.pop(name) for name in OF_LABELS if name in given})
    rows = RowFacts(**{name: given.pop(name, ROWS[name]) for name in ROWS}, labels=labels)
    if parameter in auto.TASK_RULES:
        return auto.TASK_RULES[parameter](rows, **given)
    if parameter == "negative_ratio":
        known = {"n_texts": None, "n_positive": 0, **given}
        return auto.choose_negative_ratio(rows, **known)
    if parameter == "lr":
        return auto.choose_lr(encoder, rows.has_adapters)
    if parameter == "head_lr":
        known = {"lr": None, "has_trained_head": False, **given}
        return auto.choose_head_lr(encoder, rows.has_adapters, **known)
    epoch = EpochFacts(**{name: given.pop(name, EPOCH[name]) for name in EPOCH}, rows=rows)
    return getattr(auto, f"choose_{parameter}")(epoch, **given)


def why_of(estimator, parameter):
    rows = estimator.choices_[estimator.choices_["parameter"] == parameter]
    return rows["why"].item() if len(rows) else None


def tagged(n, others, entities=None):
    """The easy corpus with another tag in place of "O", and of all others if one is given."""
    X, y = easy_corpus(n)
    return X, [[others if tag == "O" else entities or tag for tag in tags] for tags in y]


def sparse(n, every):
    """Sentences of which only some have an entity."""
    X = [["mary", "saw", "the", "house"]] * n
    return X, [["B-PER" if i % every == 0 else "O", "O", "O", "O"] for i in range(n)]


def crowded(n):
    """Entities of one word, n in all and eight to a sentence."""
    counts = [min(8, n - i) for i in range(0, n, 8)]
    return [["mary", "saw"] * k for k in counts], [["B-PER", "O"] * k for k in counts]


@pytest.mark.parametrize("estimator, rows, loss, why", [
    (DiceTokenTagger, easy_corpus(16), CrossEntropyLoss, "less than 5,000 entities"),
    (DiceTokenTagger, sparse(20, 5), CrossEntropyLoss, "there are 4."),
    (DiceTokenTagger, sparse(24, 6), DiceLoss, "entities are rare, or level, and 4 of 24"),
    (DiceTokenTagger, tagged(16, "B-PER"), CrossEntropyLoss, "no other loss"),
    (DiceTokenTagger, tagged(16, "NOUN", "PROPN"), CrossEntropyLoss, "no other loss"),
    (skdice.DiceQueryTagger, crowded(1001), DiceLoss, "few words"),
    (DiceSpanExtractor, easy_questions(16), CrossEntropyLoss, "no other loss"),
    (DicePairClassifier, easy_pairs(16), CrossEntropyLoss, "no other loss"),
    (DiceTextClassifier, easy_texts(16), CrossEntropyLoss, "no other loss"),
    (DiceTextClassifier, easy_labels(16), CrossEntropyLoss, "no other loss"),
])  # fmt: skip
def test_is_the_loss_that_was_best(tiny_bert, estimator, rows, loss, why):
    fitted = estimator(tiny_bert, **FAST | {"batch_size": 8}).fit(*rows)
    assert why in why_of(fitted, "loss").lower()
    assert type(fitted.loss_) is loss


def test_entities_of_absent_and_of_held_out_sentences_do_not_count(tiny_bert, constants):
    constants(many_entities=81)
    X, y = crowded(96)
    tagger = DiceTokenTagger(tiny_bert, max_epochs=1, verbose=0)
    assert isinstance(tagger.fit(X, y).loss_, DiceLoss)
    weight = [1.0] * 10 + [0.0] * 2
    assert isinstance(tagger.fit(X, y, sample_weight=weight).loss_, CrossEntropyLoss)
    tagger.set_params(validation_fraction=0.2)
    assert isinstance(tagger.fit(X, y).loss_, CrossEntropyLoss)


@pytest.mark.parametrize("n_positives, n_steps, expected", [
    (40 * 100, 100, 0),  # A step has 40.
    (20 * 100, 100, 2), (4 * 100, 100, 10),
    (1, 100, 25), (1, 20, 5),  # No more than a quarter of an epoch.
    (1, 4, 0), (0, 100, 0), (np.inf, 100, 0),
])  # fmt: skip
def test_as_many_steps_as_have_enough_positives(n_positives, n_steps, expected):
    assert choose("memory", set_positives=n_positives, n_steps=n_steps).value == expected


@pytest.mark.parametrize("estimator, loss, rows, expected", [
    (DiceTokenTagger, "dice", sparse(32, 1), 4),
    (DiceTokenTagger, "dice", sparse(16, 2), 2),
    (DiceTokenTagger, TverskyLoss(), sparse(32, 1), 4),
    (DiceTokenTagger, DiceLoss(level="example"), sparse(32, 1), 0),
    (DiceTokenTagger, DiceLoss(memory=3), sparse(32, 1), 3),
    (DicePairClassifier, "dsc", (easy_pairs(32)[0], [int(i % 10 == 0) for i in range(32)]), 4),
    (DiceTextClassifier, "dice", easy_texts(32, n_classes=3), 0),
    (DiceTextClassifier, "dice", easy_labels(32), 4),
    (DiceTokenTagger, "dice", ([["mary", "saw"] * 80] * 16, [["B-PER", "O"] * 80] * 16), 0),
    (DiceSpanExtractor, "dice", easy_questions(32), 4),
    (skdice.DiceQueryTagger, "dice", easy_corpus(16), 3.5),
])  # fmt: skip
def test_auto_in_each_estimator(estimator, loss, rows, expected, quick_bert):
    """A step has two rows; no more is remembered than a quarter of the steps of an epoch."""
    fitted = estimator(quick_bert, loss=loss, negative_ratio=None, **FAST).fit(*rows)
    assert fitted.loss_.memory == expected
    if not isinstance(loss, str):
        assert fitted.get_params()["loss"].memory == loss.memory
    elif estimator is DiceTokenTagger and expected == 4:  # The steps are those of the optimiser.
        assert clone(fitted).set_params(accumulate=2).fit(*rows).loss_.memory == 2


@pytest.mark.parametrize("n_steps, n_positive, epochs", [
    (1, 16, 200),  # Tiny sets: 200 steps.
    (7, 100, 29),  # 200 steps
    (63, 1000, 4),
    (19, 100, 12),  # 1,200 presentations of texts with positives
    (2000, 10, 30),
])  # fmt: skip
def test_epochs_count_steps_and_texts_with_positives(n_steps, n_positive, epochs):
    chosen = choose("max_epochs", n_steps=n_steps, n_positive=n_positive)
    assert chosen.value == epochs
    facts = {"task": "query-tagging", "n_steps": n_steps, "n_positive": 2 * n_positive}
    assert choose("max_epochs", **facts).value == epochs


@pytest.mark.parametrize("n, epochs", [(50, 50), (250, 30), (1000, 15), (5000, 7)])
def test_epochs_of_sentences_with_entities_fall_slowly(n, epochs):
    n_texts = np.array([n - n // 4, n // 4])
    facts = {"n_steps": -(-n // 16), "n_texts": n_texts, "n_positive": n - n // 4}
    assert choose("max_epochs", has_entities=True, **facts).value == epochs
    # Rare entities, as tags without entities, go by presentations.
    is_rare = choose("max_epochs", has_entities=True, ratio=2.0, **facts)
    assert is_rare.value == choose("max_epochs", **facts).value


class TestTooFewEpochs:
    """The habit of other trainers, such as max_epochs=3, makes fits that find nothing."""

    @pytest.mark.parametrize("given, facts, says", [
        (3, {}, True), (6, {}, True), (7, {}, False), (13, {}, False), (30, {}, False),
        (3, {"begins_trained": True}, False), (1, {"has_trained_head": True}, False),
        (1, {"n_steps": 1}, False),
    ])  # fmt: skip
    def test_below_half_of_auto(self, given, facts, says):
        rows = RowFacts(**ROWS, labels=LabelFacts(has_entities=True))
        epoch = EpochFacts(**EPOCH | {"n_steps": 16, "n_positive": 250} | facts, rows=rows)
        found = auto.too_few_epochs(epoch, given, usual=13)
        assert (found is not None) == says
        assert not says or f"max_epochs={given} is less than half" in found
        assert not says or "would take here, 13 epochs." in found

    def test_a_fit_says_it_once_and_trials_of_a_search_do_not(self, tiny_bert, recwarn):
        tagger = DiceTokenTagger(tiny_bert, **FAST | {"batch_size": 8}, background_bias="cv")
        for params in ({"n_members": 2, "loss": "cv"}, {"background_bias": 0.0}):
            recwarn.clear()
            clone(tagger).set_params(**params).fit(*easy_corpus(24))
            (told,) = [warning for warning in recwarn if "max_epochs=1" in str(warning.message)]
            assert (told.category, told.filename) == (UserWarning, __file__)
        recwarn.clear()
        quiet = DiceTokenTagger(tiny_bert, **FAST | {"batch_size": 8})
        search = skdice.DiceSearchCV(quiet, n_trials=2, cv=2, random_state=0, refit=False)
        search.fit(*easy_corpus(48))
        assert not [warning for warning in recwarn if "max_epochs" in str(warning.message)]


@pytest.mark.parametrize("family, width, depth, lr", [
    # Measured here (benchmarks/RESULTS.md).
    ("bert", 384, 6, 2e-4), ("mpnet", 768, 12, 5e-5),
    # Within what the authors of the models publish.
    ("roberta", 1024, 24, 1.9e-5),
    ("modernbert", 768, 22, 2.7e-5),
    # At the ends of the range, and without layers that are counted.
    ("bert", 32, 2, 2e-4), ("bert", 4096, 48, 2.3e-6), ("gpt2", 768, None, 5e-5),
])  # fmt: skip
def test_rate_goes_by_family_width_and_depth(family, width, depth, lr):
    encoder = ENCODER._replace(family=family, width=width, depth=depth)
    assert choose("lr", encoder).value == pytest.approx(lr)
    assert choose("head_lr", encoder, lr=1e-4).value == 1e-4
    assert choose("head_lr", encoder, has_trained_head=True).value == pytest.approx(lr)
    if family == "mpnet":
        assert choose("head_lr", encoder).value == pytest.approx(2.5e-4)
    adapters = choose("lr", encoder, has_adapters=True).value
    assert adapters == choose("head_lr", encoder, has_adapters=True).value


def test_epochs_are_those_of_the_training_rows(tiny_models, constants):
    """A fold has fewer rows and takes more epochs; accumulated batches are one step."""
    constants(steps=48, presentations=96)
    X, y = easy_texts(48, n_classes=2)
    one = DiceTextClassifier(tiny_models("bert"), batch_size=4, verbose=0, random_state=0)
    assert one.fit(X, y).max_epochs_ == 4  # 12 steps, 24 rows of the rarer class
    assert len(one.history_) == 4
    one.set_params(validation_fraction=0.25, accumulate=2)
    assert one.fit(X, y).max_epochs_ == 10  # 5 steps


SOME = {"has_entities": True, "n_entities": 100, "n_texts": np.array([50, 50])}
NAMES = {"has_entities": True, "n_entities": 100, "share_of_names": 0.9}
FEW = NAMES | {"share_of_names": 0.5}


def of(*numbers):
    return {"n_texts": np.array(numbers)}


@pytest.mark.parametrize("parameter, facts, value, why", [
    ("word_shapes", NAMES, True, "names, 90% of them capitalised"),
    ("word_shapes", {}, False, "Tags without a B- or I- prefix"),
    ("word_shapes", NAMES | {"share_of_names": 2 / 3}, False, "no names."),
    ("word_shapes", NAMES | {"share_of_names": np.nan}, False, "No sentence"),
    ("word_shapes", NAMES | {"encoder": ENCODER._replace(sees_case=True)}, False, "sees case"),
    ("word_shapes", NAMES | {"trains_embeddings": False}, False, "frozen"),
    ("crf", NAMES, False, "names, 90% of them capitalised, and a CRF did not"),
    ("crf", FEW | {"n_entities": 4999}, True, "no names, and there are 4,999, less than 5,000"),
    ("crf", FEW | {"n_entities": 5000}, False, "there are 5,000"),
    ("crf", {}, False, "Tags without a B- or I- prefix"),
    ("threshold", {}, 0.5, "not two classes"),
    ("threshold", {"positive_share": 0.1}, 0.1, "rare, 10.0% of the rows"),
    ("threshold", {"positive_share": 0.1, "n_rows": 1100}, 0.5, "these are 110"),
    ("threshold", {"positive_share": 0.1, "is_plain": False}, 0.5, "0.5 is kept"),
    ("threshold", {"positive_share": 0.3}, 0.5, "not rare"),
    ("null_threshold", {"n_unanswered": 0}, np.inf, "All training questions"),
    ("null_threshold", {"n_unanswered": 3}, 0.0, "3 training questions"),
    ("loss", SOME | {"n_entities": 4999}, "ce", "there are 4,999"),
    ("loss", SOME | {"n_entities": 5000}, "dice", "there are 5,000"),
    ("loss", SOME | {"ratio": 2.0, "n_positive": 9}, "dice", "9 of 100"),
    ("negative_ratio", {}, None, "no positives"),
    ("negative_ratio", {"has_entities": True}, None, "No text is without"),
    ("negative_ratio", of(10, 40), None, "10 texts with and 40 without an entity"),
    ("negative_ratio", of(10, 41), 2, "10 texts with and 41 without an entity"),
    ("negative_ratio", of(40, 2), None, "not rare"),
    ("negative_ratio", of(10, 10, 81) | {"n_positive": 20}, 2, "20 texts in all"),
    ("negative_ratio", of(10, 20) | {"task": "query-tagging"}, None, "not rare"),
    ("negative_ratio", of(10, 21) | {"task": "query-tagging"}, 1, "rare"),
])  # fmt: skip
def test_rules(parameter, facts, value, why):
    chosen = choose(parameter, **facts)
    assert chosen.value == value
    assert why in chosen.why
    assert chosen.why.endswith(".")


@pytest.mark.parametrize("facts, why", [
    ({"n_steps": 19, "n_positive": 135, "n_texts": np.array([135, 165])},
     "11 epochs: 135 texts with positives x 11 = 1,485 presentations, in 19 x 11 = 209 steps. The "
     "aim is about 1,200 presentations, in 3 to 30 epochs, and at least 200 steps."),
    ({"n_steps": 2, "n_positive": 20}, "A tiny set takes at least 200 steps."),
    ({"n_steps": 63, "n_positive": 1000, "has_entities": True},
     "The aim is 30 epochs of 250 sentences, half of that of four times as many, in "),
    ({"begins_trained": True}, "3 epochs, because the head starts from a logistic regression."),
])  # fmt: skip
def test_epochs_are_explained(facts, why):
    assert why in choose("max_epochs", **facts).why


@pytest.mark.parametrize("case", quick(["tagger", "texts", "queries"], CASES))
def test_choices_are_what_was_left_open(tiny_models, case):
    estimator, X, y = make(case, tiny_models("bert"), lr="auto", negative_ratio="auto", loss="auto")
    table = estimator.fit(X, y).choices_
    assert list(table.columns) == ["parameter", "value", "why"]
    assert table["parameter"].is_unique
    open_ = {"loss", "lr", "head_lr", "negative_ratio"}
    assert open_ <= set(table["parameter"])
    assert "max_epochs" not in set(table["parameter"])
    value = table.set_index("parameter")["value"]
    assert value["lr"] == estimator.lr_
    named, X, y = make(case, tiny_models("bert"), loss=value["loss"], negative_ratio=None)
    left = named.set_params(lr=1e-3, head_lr=1e-3).fit(X, y).choices_["parameter"]
    assert not open_ & set(left)


class TestLossOutOfFold:
    def test_it_is_the_one_with_the_better_mean_in_the_folds(self, tiny_models):
        X, y = easy_corpus(25)
        fast = {**FAST, "batch_size": 4, "max_epochs": 3, "negative_ratio": None}
        tagger = DiceTokenTagger(tiny_models("bert"), loss="cv", **fast).fit(X, y)
        folds = KFold(5, shuffle=True, random_state=0)
        mean = {
            name: cross_val_score(clone(tagger).set_params(loss=name), X, y, cv=folds).mean()
            for name in ("ce", "dice")
        }
        best = max(mean, key=lambda name: mean[name])
        assert mean["ce"] != mean["dice"]
        assert tagger.choices_.set_index("parameter")["value"]["loss"] == best
        why = why_of(tagger, "loss")
        shown = f"{mean['ce']:.3f} with ce and {mean['dice']:.3f} with dice"
        assert why == f"The mean F1 of 5 folds of the training rows is {shown}."
        same = clone(tagger).set_params(loss=best).fit(X, y)
        assert list(map(list, same.predict(X))) == list(map(list, tagger.predict(X)))
        assert tagger.get_params()["loss"] == "cv"

    @pytest.mark.parametrize("case", quick(["tagger", "questions"], CASES))
    def test_every_estimator_takes_it(self, tiny_models, case):
        estimator, X, y = make(case, tiny_models("bert"), loss="cv")
        estimator.fit(X, y)
        assert isinstance(estimator.loss_, CrossEntropyLoss | DiceLoss)
        metric = "accuracy" if "texts" in case else "micro F1" if case == "labels" else "F1"
        assert f"The mean {metric} of " in why_of(estimator, "loss")

    @pytest.mark.slow
    def test_folds_count_as_their_rows_and_those_without_a_class_are_left_out(self, tiny_models):
        X, y = easy_corpus(36)
        groups = np.array([0] * 8 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 16)
        # Only the first group has an entity: without it, all training words are outside.
        y = [row if group == 0 else ["O"] * len(row) for row, group in zip(y, groups)]
        fast = {**FAST, "batch_size": 8}
        tagger = DiceTokenTagger(tiny_models("bert"), loss="cv", **fast)
        why = why_of(tagger.fit(X, y, groups=groups), "loss")
        assert "The mean F1 of 4 folds" in why
        assert re.search(r"Fold \d is left out of both: .* got one class, 'O'\.$", why)
        X, y = easy_texts(36)
        texts = DiceTextClassifier(tiny_models("bert"), loss="cv", **fast)
        why = why_of(texts.fit(X, y, groups=groups), "loss")
        folds = list(GroupKFold(5, shuffle=True, random_state=0).split(X, y, groups))
        sizes = [len(test) for _, test in folds]
        scores = cross_val_score(clone(texts).set_params(loss="dice"), X, y, cv=folds)
        assert f"{np.average(scores, weights=sizes):.3f} with dice" in why

    def test_errors(self, tiny_bert):
        texts = DiceTextClassifier(tiny_bert, loss="cv", **FAST)
        y = np.repeat(["a", "b"], 8)
        message = r"none has training rows.* Fold 1 is .*: .*got one class, 'a'"
        with pytest.raises(ValueError, match=message):
            texts.fit(easy_texts(16)[0], y, groups=y)
        with pytest.raises(ValueError, match="gamma"):
            texts.set_params(gamma=2.0).fit(*easy_texts(16))


class TestNoDeadFit:
    """A fit with an open rate whose loss does not fall starts again once with a third of it."""

    def tagger(self, model, **params):
        return DiceTokenTagger(model, loss="ce", max_epochs=8, verbose=0, random_state=0, **params)

    @pytest.mark.parametrize("rate", [30.0, 1e-12])
    def test_starts_again(self, tiny_bert, constants, rate):
        constants(lr=384 * 6 * rate)
        with (
            pytest.warns(UserWarning, match="so it started again with"),
            pytest.warns(UserWarning, match="With .*, too, the fit learned nothing"),
        ):
            tagger = self.tagger(tiny_bert).fit(*easy_corpus(16))
        assert len(tagger.history_) == 8
        if rate < 1:  # Of two that have gone astray one is kept by chance.
            assert tagger.lr_ == pytest.approx(rate / 3)
            assert "learned nothing" in why_of(tagger, "lr")

    @pytest.mark.parametrize("n_members", [1, 2])
    def test_a_try_that_was_only_short_is_kept(self, tiny_bert, constants, n_members):
        """A lower rate is no better then."""
        constants(lr=384 * 6 * 2e-4)
        tagger = self.tagger(tiny_bert, crf=False, n_members=n_members)
        with pytest.warns(UserWarning, match="higher training loss, .*, so the first one is kept"):
            tagger.fit(*easy_corpus(60))
        assert tagger.lr_ == 2e-4
        assert tagger.runs_["began_again"].tolist() == [False] * n_members
        assert "learned nothing" not in why_of(tagger, "lr")

    def test_a_trained_head_has_little_to_learn(self, tiny_bert, tmp_path, constants):
        self.tagger(tiny_bert, lr=1e-3).fit(*easy_corpus(16)).save_pretrained(tmp_path)
        constants(lr=1e-12)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*started again")
            self.tagger(tmp_path).fit(*easy_corpus(16))


OPEN = {"lr": "auto", "batch_size": 8, "random_state": 0, "verbose": 0}


@pytest.mark.parametrize("loss, n_rows, n_epochs, share", [
    ("dice", 64, 12, 0.2), *(pytest.param(*row, marks=pytest.mark.slow) for row in [
        ("ce", 64, 6, 0.0), ("ce", 64, 12, 0.35), ("dice", 256, 6, 0.5),
    ]),
])  # fmt: skip
def test_what_has_found_the_classes_is_kept(loss, n_rows, n_epochs, share, quick_bert, constants):
    """However late the loss falls, and however little below that of the shares."""
    constants(lr=384 * 6 * 1e-3)
    X, y = easy_texts(n_rows)
    rng, other = np.random.default_rng(0), {"person": "place", "place": "person"}
    noisy = [other[label] if rng.random() < share else label for label in y]
    classifier = DiceTextClassifier(quick_bert, loss=loss, max_epochs=n_epochs, **OPEN)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*started again")
        classifier.fit(X, noisy)
    assert classifier.score(*easy_texts(200, seed=9)) > 0.58, "by chance it is 0.5"


@pytest.mark.parametrize("parameters, runs", [
    ({}, [("ce", 30)]), ({"n_members": 3, "max_epochs": 2}, [("ce", 2)] * 3),
])  # fmt: skip
def test_a_plan_is_chosen_without_touching_a_file(
    tiny_bert, monkeypatch, constants, parameters, runs
):
    constants(steps=1)
    tagger = DiceTokenTagger(tiny_bert, random_state=0, verbose=0, **parameters)
    task = internals(tagger).task
    given = Given(settings=settings_of(tagger), rows=task.read(*easy_corpus(64)), seed=7)
    prepared = prepare(task, given)

    def refuse(*args, **kwargs):
        raise AssertionError("A plan is chosen from what was prepared alone.")

    with monkeypatch.context() as refused:
        for module, name in ((builtins, "open"), (os, "open"), (os, "stat"), (io, "open")):
            refused.setattr(module, name, refuse)
        refused.setattr(socket, "socket", refuse)
        plan, again = choose_plan(prepared), choose_plan(prepared)
    assert [(run.name, run.max_epochs) for run in plan.runs] == runs
    assert len({run.lr for run in plan.runs}) == len({run.head_lr for run in plan.runs}) == 1
    assert len({run.seed for run in plan.runs}) == len(runs)
    assert plan.runs[0].seed == 7
    assert [run.seed for run in again.runs] == [run.seed for run in plan.runs]
    assert plan.choices == again.choices
