"""What no fit can be made of: an error that names the parameter or the row, before any training.

Rows that no estimator can use are in test_bad_input, and the words that users are promised in
test_bad_input_table. Settings that are known to collapse are told.
"""

import ast
import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skdice
from skdice._pretrained import quiet_transformers
from skdice.exceptions import TruncationWarning, hidden, silent, warn
from skdice.losses import CrossEntropyLoss, DiceLoss, WeightedCrossEntropyLoss
from skdice.model_selection import tune_decision

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from ..spies import internals

FAST = {"max_epochs": 1, "lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
QUERIES = {"PER": "john mary", "LOC": "oslo paris"}
X, Y = easy_corpus(12)
QUESTIONS = [("city ?", "anna in oslo"), ("met ?", "the mary saw"), ("city ?", "by rome to")]
ANSWERS = ["oslo", "mary", "rome"]
ROWS = {
    skdice.DiceTokenTagger: (X, Y),
    skdice.DiceQueryTagger: (X, Y),
    skdice.DiceTextClassifier: (["a", "b", "c"], [0, 1, 0]),
    skdice.DicePairClassifier: ([("a", "b"), ("c", "d"), ("e", "f")], [0, 1, 0]),
    skdice.DiceSpanExtractor: (QUESTIONS, ANSWERS),
}
# Loading it would raise another error, as there is no such directory and no hub.
NO_MODEL = "no/such-model"


def make(cls, model, **parameters):
    defaults = {**FAST, "queries": QUERIES} if cls is skdice.DiceQueryTagger else FAST
    return cls(model, **{**defaults, **parameters})


def refuses(parts, call):
    """Require a ValueError with all the parts in its message."""
    with pytest.raises(ValueError) as caught:
        call()
    assert all(part in str(caught.value) for part in parts), caught.value


# Of all estimators: parameters, and what the message names beside the first of them.
SHARED = [
    ({"gamma": 2.0}, ["gamma=2.0 cannot be used with loss='auto'"]),
    ({"alpha": 0.3}, ["Set loss='tversky', or another one that has alpha. alpha=0.3 cannot"]),
    ({"alpha": 0.3, "loss": "cv"}, ["Set loss='tversky'", "loss='cv'", "'tversky', 'dsc'"]),
    ({"loss": "dise"}, ["'loss'", "'ce'", "'dise'"]),
    ({"loss": "ce", "gamma": 1.0}, ["gamma=1.0", "'ce'", "[{'loss'"]),
    ({"loss": "dice", "alpha": 0.1}, ["alpha=0.1", "'tversky'"]),
    ({"loss": "dsc-paper", "memory": 5}, ["memory=5", "'dsc-paper'"]),
    ({"loss": DiceLoss(), "gamma": 1.0}, ["'gamma'", "None", "DiceLoss"]),
    ({"loss": skdice.losses.SelfAdjustingDiceLoss(alpha=-1)}, ["'alpha'", "SelfAdjustingDiceLoss"]),
    ({"loss": DiceLoss(level="word")}, ["'level'", "DiceLoss"]),
    ({"loss": DiceLoss(ignore_index=-1.5)}, ["'ignore_index'", "DiceLoss"]),
    ({"loss": DiceLoss(class_weight=[1.0] * 7)}, ["(7,)"]),
    ({"loss": WeightedCrossEntropyLoss(class_weight=None)}, ["'class_weight'", "None"]),
    ({"loss": DiceLoss(level="example", reduction="none")}, ["reduction='mean'", "'none'"]),
    ({"loss": "dsc", "alpha": -1}, ["{cls}", "-1"]),
    ({"beta": "a", "loss": "tversky"}, ["{cls}", "'a'"]),
    ({"ce_weight": 2, "loss": "dice"}, ["{cls}", "[0, 1]", "2"]),
    ({"class_weight": "x"}, ["'balanced'", "'x'"]), ({"class_weight": {0: -1.0}}, ["-1.0"]),
    ({"lr": 0, "loss": "focal"}, ["{cls}", "(0, inf)"]), ({"head_lr": -1.0}, ["(0, inf)", "-1.0"]),
    ({"max_epochs": "fast"}, ["'auto'", "'fast'"]), ({"negative_ratio": 0}, ["(0, inf)", "0"]),
    ({"batch_size": 1.5}, ["int", "1.5"]), ({"warmup": 1.0}, ["[0, 1)", "1.0"]),
    ({"patience": 2}, ["patience=2 needs rows to validate on"]),
    ({"precision": "fp8"}, ["'bf16'", "'fp8'"]),
    ({"device": "cuda:99"}, ["'device'", "'auto'", "'cpu'", "'cuda:99'"]),
    ({"random_state": "x"}, ["{cls}", "'x'"]), ({"n_members": 0}, ["[1, inf)", "0"]),
    ({"time_limit": 0}, ["(0, inf)", "0"]),
    ({"model": 3}, ["3"]),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(SHARED)), ids=lambda i: str(SHARED[i][0])[:50])
def test_shared_parameters(i):
    """Before the model is loaded; the code is shared, so that estimators take turns."""
    (parameters, parts), cls = SHARED[i], list(ROWS)[i % len(ROWS)]
    made = cls(**{"model": NO_MODEL, **parameters})
    parts = [part.replace("{cls}", cls.__name__) for part in parts]
    refuses([name for name in parameters if name != "loss"] + parts, lambda: made.fit(*ROWS[cls]))
    assert not hasattr(made, "net_")


@pytest.mark.parametrize("cls, parameters, parts", [
    (skdice.DiceTokenTagger, {"loss": DiceLoss(class_weight=[1] * 3), "class_weight": "log"},
     ["class_weight"]),
    (skdice.DiceTokenTagger, {"K": 3.0, "class_weight": "balanced"}, ["K=3.0", "'log'"]),
    (skdice.DiceTokenTagger, {"K": -5.0}, ["'O'", "K=-5.0"]),
    (skdice.DiceTokenTagger, {"class_weight": {"B-XYZ": 2.0}}, ["'B-XYZ'", "'B-LOC'"]),
    (skdice.DiceTokenTagger, {"max_length": 2}, ["[3, 64]", "2"]),
    (skdice.DiceTokenTagger, {"max_length": 65}, ["[3, 64]", "65"]),
    (skdice.DiceTokenTagger, {"max_length": 16, "stride": 14}, ["'stride'", "14 pieces"]),
    (skdice.DiceTokenTagger, {"n_frozen_layers": 3}, ["[0, 2]"]),
    (skdice.DiceTokenTagger, {"validation_fraction": 0.99}, ["no row to train on"]),
    (skdice.DiceTokenTagger, {"decode": "beam"}, ["'constrained', 'argmax'", "'beam'"]),
    (skdice.DiceTokenTagger, {"background_bias": "auto"}, ["rows to validate on"]),
    (skdice.DiceTokenTagger, {"background_bias": "folds"}, ["parameter", "'folds'"]),
    (skdice.DiceTokenTagger, {"word_shapes": "yes"}, ["one of {True, False, 'auto'}", "'yes'"]),
    (skdice.DiceTokenTagger, {"model": "organisation/absent"}, ["the hub did not give it"]),
    (skdice.DiceQueryTagger, {"queries": ["john"]}, ["dict", "['john']"]),
    (skdice.DiceQueryTagger, {"queries": {"PER": "  "}}, ["'PER'", "'  '"]),
    (skdice.DiceQueryTagger, {"queries": {"UNUSED": 3}}, ["'UNUSED'", "3"]),
    (skdice.DiceQueryTagger, {"queries": {"PER": "a " * 70, "LOC": "a"}, "max_length": 64},
     ["70 pieces", "max_length=64"]),
    (skdice.DiceQueryTagger, {"max_length": 3}, ["[4, 64]", "3"]),
    (skdice.DiceQueryTagger, {"max_length": 16, "stride": 11}, ["11", "max_length=16", "12"]),
    (skdice.DiceQueryTagger, {"span_weights": (1, 1)}, ["three numbers", "(1, 1)"]),
    (skdice.DiceQueryTagger, {"span_weights": (0, 0, 0)}, ["not all 0"]),
    (skdice.DiceQueryTagger, {"match_candidates": "some"}, ["'pred_gold_random'", "'some'"]),
    (skdice.DiceQueryTagger, {"decode": "constrained"}, ["'flat', 'nested'"]),
    (skdice.DiceQueryTagger, {"loss": "dice", "class_weight": {"PER": 2.0}}, ["0", "1", "'PER'"]),
    (skdice.DiceSpanExtractor, {"null_threshold": float("nan")}, ["'auto'", "nan"]),
    (skdice.DiceSpanExtractor, {"on_misaligned": "ignore"}, ["'repair', 'raise', 'skip'"]),
    (skdice.DiceSpanExtractor, {"max_length": 65}, ["[4, 64]", "65"]),
    (skdice.DiceSpanExtractor, {"max_length": 7, "stride": 2}, ["stride=2", "row 0", "(3 are"]),
    (skdice.DiceSpanExtractor, {"max_length": 5}, ["question of row 0", "2 pieces", "leaves 0"]),
    (skdice.DiceSpanExtractor, {"class_weight": "balanced", "loss": "ce"}, ["cross-entropy"]),
    (skdice.DiceSpanExtractor, {"K": 2.0}, ["K=2.0 cannot be used with cross-entropy"]),
    (skdice.DiceSpanExtractor, {"class_weight": "log", "loss": CrossEntropyLoss()}, ["positions"]),
    (skdice.DiceSpanExtractor, {"loss": CrossEntropyLoss(class_weight=[1.0, 2.0])}, ["[1.0, 2.0]"]),
    (skdice.DiceSpanExtractor, {"loss": "dice", "class_weight": {"PER": 2.0}}, ["'PER'", "0, 1"]),
    (skdice.DicePairClassifier, {"pos_label": "spam"}, ["0, 1", "'spam'"]),
    (skdice.DicePairClassifier, {"max_length": 3}, ["[4, 64]"]),
    (skdice.DicePairClassifier, {"class_weight": {7: 1.0}}, ["7", "0, 1"]),
    (skdice.DiceTextClassifier, {"truncation": "second"}, ["'longest_first', 'error'", "'second'"]),
    *((skdice.DiceTextClassifier, {"class_weight": {0: 0, 1: 0.0, **more}},
       ["above zero; it is zero for all labels of y, 0"]) for more in ({}, {2: 1})),
], ids=lambda value: "" if isinstance(value, list) else str(value)[:60])  # fmt: skip
def test_parameters_of_an_estimator(tiny_bert, cls, parameters, parts):
    made = make(cls, **{"model": tiny_bert, **parameters})
    name = [next(iter(parameters))] if len(parameters) == 1 else []
    refuses(name + parts, lambda: made.fit(*ROWS[cls]))


@pytest.mark.parametrize("cls, X, y, parts", [
    (skdice.DiceTokenTagger, [], [], ["no sentence"]),
    (skdice.DiceTokenTagger, [[], []], [[], []], ["2 sentences and no words"]),
    (skdice.DiceQueryTagger, X, [["O"] * len(row) for row in X], ["12 rows"]),
    (skdice.DiceTextClassifier, ["a", "b", "c"], [[0], [1], [0]], ["two columns or more"]),
    (skdice.DiceTextClassifier, ["a", "b", "c"], np.zeros((3, 2), int), ["no 1"]),
    (skdice.DiceTextClassifier, ["a", "b", "c"], [2**53, 2**53 + 1, 1.0],
     ["above 2**53", "row 1", "9007199254740993"]),
    (skdice.DiceTextClassifier, ["a", "b"], [np.int64(2**53 + 1), np.uint64(1)], ["row 0"]),
    (skdice.DicePairClassifier, (["a"] * 3, ["b"] * 3), [0, 1, 0], ["list(zip(first, second))"]),
    (skdice.DiceSpanExtractor, QUESTIONS, ["oslo", {"text": ["mary"] * 2, "answer_start": [4]}, ""],
     ["row 1", "2 texts and 1 starts"]),
    (skdice.DiceSpanExtractor, QUESTIONS, ["oslo", {"text": [" "], "answer_start": [3]}, "rome"],
     ["row 1", "tokenizer"]),
], ids=lambda value: value.__name__ if isinstance(value, type) else "")  # fmt: skip
def test_rows(tiny_bert, cls, X, y, parts):
    refuses(parts, lambda: make(cls, tiny_bert).fit(X, y))


@pytest.mark.parametrize("params, y, part", [
    ({"pos_label": 1}, [0, 1, 2], "more than two classes"),
    ({"pos_label": 1}, [[0, 1], [1, 0], [1, 1]], "multi-label"),
    ({"threshold": 0.3}, [0, 1, 2], "more than two classes"),
])  # fmt: skip
def test_parameters_of_two_classes(tiny_bert, params, y, part):
    classifier = skdice.DiceTextClassifier(tiny_bert, **params)
    refuses([f"'{next(iter(params))}'", part], lambda: classifier.fit(["a", "b", "c"], y))
    tagger = skdice.DiceTokenTagger(loss="dsc")
    refuses(["loss__gamma", "loss=DiceLoss()"], lambda: tagger.set_params(loss__gamma=1.0))


@pytest.mark.parametrize("cls, params, y, groups, part", [
    (skdice.DiceTextClassifier, {"threshold": "cv"}, [1] + [0] * 23, None, "two rows of each"),
    (skdice.DiceTextClassifier, {"threshold": "cv"}, [1] * 6 + [0] * 18, np.arange(24) // 6,
     "that tune the decision: DiceTextClassifier needs at least two classes"),
    (skdice.DiceTokenTagger, {"background_bias": "cv"}, [["B-X"]] + [["O"]] * 23, None,
     "that tune the decision: DiceTokenTagger needs at least two different tags"),
])  # fmt: skip
def test_folds_that_cannot_be_learned(tiny_bert, seen, cls, params, y, groups, part):
    """Before the network of all rows is trained."""
    X = ["john"] * 24 if cls is skdice.DiceTextClassifier else [["john"]] * 24
    refuses([part], lambda: make(cls, tiny_bert, **params).fit(X, y, groups=groups))
    assert not seen


def test_any_number_is_a_random_state(tiny_bert):
    X, y = easy_texts(12)
    large, small = (
        make(skdice.DiceTextClassifier, tiny_bert, random_state=seed, threshold="cv").fit(X, y)
        for seed in (2**64 + 3, 3)
    )
    np.testing.assert_array_equal(large.predict_proba(X), small.predict_proba(X))


def test_a_class_without_weight_is_absent(tiny_bert):
    fit = make(skdice.DiceTextClassifier, tiny_bert).fit
    refuses(["one class, 0"], lambda: fit(["a", "b", "c"], [0, 1, 0], sample_weight=[1, 0, 1]))
    fitted = fit(["a", "b", "c", "d"], [0, 1, 0, 5], sample_weight=[1, 1, 1, 0])
    assert fitted.classes_.tolist() == [0, 1]


class TestQuestions:
    def test_nothing_is_left_to_train_on(self, tiny_bert):
        nowhere = [{"text": ["berlin"], "answer_start": [0]}] * 3
        extractor = make(skdice.DiceSpanExtractor, tiny_bert, on_misaligned="skip")
        with pytest.warns(UserWarning, match="3 questions without another answer"):
            refuses(["no question", "3 rows"], lambda: extractor.fit(QUESTIONS, nowhere))

    def test_answers_longer_than_what_windows_share(self, tiny_bert):
        long = [("city ?", "the " * 20 + "saw " * 14 + "by oslo"), QUESTIONS[0]]
        y = [("saw " * 14).strip(), ANSWERS[0]]
        extractor = make(skdice.DiceSpanExtractor, tiny_bert, max_length=20, stride=2)
        with pytest.warns(UserWarning, match=r"answers of 1 question .*: row 0\."):
            extractor.fit(long, y)
        with warnings.catch_warnings(action="error", category=UserWarning):
            extractor.set_params(max_length=32, stride=24).fit(long, y)


class TestTruncation:
    LONG = (("the", "saw"), ("the saw in was by " * 20, "by " * 9), ("in " * 70, "by"))

    def test_warning_counts_the_rows(self, tiny_bert, recwarn):
        classifier = make(skdice.DicePairClassifier, tiny_bert).fit(*easy_pairs(8))
        assert not [w for w in recwarn if w.category is TruncationWarning]
        texts, y = easy_texts(8)
        short = make(skdice.DiceTextClassifier, tiny_bert, max_length=8)
        for message, call in (
            (
                "2 of 3 pairs .*max_length=64.*rows 1, 2",
                lambda: classifier.fit(self.LONG, [0, 1, 0]),
            ),
            ("1 of 1 pairs", lambda: classifier.predict(self.LONG[1:2])),
            ("1 of 9 texts .*=8.*row 8", lambda: short.fit([*texts, "a " * 9], [*y, "place"])),
        ):
            with pytest.warns(TruncationWarning, match=message):
                call()

    def test_each_call_warns_once_and_says_what_would_do(self, tiny_bert, recwarn):
        """Folds, held-out rows and the scores of a search have long rows, too."""
        texts, y = easy_texts(24)
        X = [f"{text} {'by ' * (9 + i)}" for i, text in enumerate(texts)]
        short = make(skdice.DiceTextClassifier, tiny_bert, max_length=8)
        held_out = clone(short).set_params(validation_fraction=0.25, threshold="cv")
        search = skdice.DiceSearchCV(
            short, lambda trial: {"alpha": None}, n_trials=2, cv=2, verbose=0
        )
        compare = {"losses": ["ce", "dice"], "baseline": "ce", "seeds": (0,), "verbose": 0}
        for call in (
            lambda: held_out.fit(X, y),
            lambda: held_out.score(X, y),
            lambda: tune_decision(held_out, X, y),
            lambda: search.fit(X, y),
            lambda: skdice.compare_losses(short, X, y, X, y, **compare),
        ):
            recwarn.clear()
            call()
            (said,) = [w for w in recwarn if w.category is TruncationWarning]
            assert said.filename == __file__
        held_out.set_params(threshold="auto").fit(X[:4] + texts[:8], y[:4] + y[:8])
        with pytest.warns(TruncationWarning) as caught:
            held_out.predict(X)
        enough = int(re.search(r"max_length=(\d+) would hold", str(caught[0].message))[1])
        for max_length, n_warnings in ((enough, 0), (enough - 1, 1)):
            recwarn.clear()
            clone(short).set_params(max_length=max_length).fit(X, y)
            found = [w for w in recwarn if w.category is TruncationWarning]
            assert len(found) == n_warnings

    def test_error(self, tiny_bert):
        classifier = make(skdice.DicePairClassifier, tiny_bert, truncation="error")
        refuses(["Row 1", "61 are", "2 rows"], lambda: classifier.fit(self.LONG, [0, 1, 0]))
        classifier.fit(*easy_pairs(8))
        refuses(["Row 0", "61 are allowed"], lambda: classifier.predict(self.LONG[1:]))
        X, y = easy_pairs(8)  # A row is called by its place, whatever is left out before it.
        weight = [0, 0, *[1] * 7]
        refuses(["Row 8"], lambda: classifier.fit([*X, self.LONG[1]], [*y, 0], weight))

    def test_second(self, tiny_bert):
        classifier = make(skdice.DicePairClassifier, tiny_bert, truncation="second")
        refuses(["row 1", "100 pieces"], lambda: classifier.fit(self.LONG, [0, 1, 0]))
        classifier.fit(*easy_pairs(8))
        rows = [("the saw", "by " * 80 + "oslo"), ("the saw", "by " * 59)]
        with pytest.warns(TruncationWarning, match="1 of 2 pairs"):
            decision = classifier.decision_function(rows)
        # The network sees the same of both; the similarities are of the whole texts.
        cut, short = decision - np.diff(internals(classifier).task.similarities.offset(rows))[:, 0]
        assert cut == pytest.approx(short, abs=1e-5)


@pytest.mark.parametrize("cls, parameters", [
    (skdice.DiceTokenTagger, {"class_weight": {"B-XYZ": 2.0}}),
    (skdice.DiceTokenTagger, {"model": NO_MODEL}),
    (skdice.DiceQueryTagger, {"queries": {"PER": "a " * 70, "LOC": "oslo"}}),
    (skdice.DiceSpanExtractor, {"max_length": 3}),
])  # fmt: skip
def test_a_refit_that_fails_before_training_leaves_the_last_fit(tiny_bert, cls, parameters):
    fitted = make(cls, tiny_bert).fit(*ROWS[cls])
    expected = fitted.predict(ROWS[cls][0]).tolist()
    fitted.set_params(**parameters)
    with pytest.raises(ValueError):
        fitted.fit(*ROWS[cls])
    assert fitted.predict(ROWS[cls][0]).tolist() == expected


# An answer longer than what windows share: those with a part of it are ignored.
ANSWER = "in the new city near the old market"
CUT = [("city ?", f"{'the small company ' * n}{ANSWER} today") for n in range(4)], [ANSWER] * 4


@pytest.mark.filterwarnings("ignore:.*lie in no window as a whole")
@pytest.mark.parametrize("cls, rows, max_length", [
    (skdice.DiceTokenTagger, (X, Y), 6), (skdice.DiceQueryTagger, (X, Y), 16),
    (skdice.DiceSpanExtractor, CUT, 12), (skdice.DiceTextClassifier, easy_labels(12), 16),
])  # fmt: skip
def test_any_negative_number_gives_the_same_fit(tiny_bert, cls, rows, max_length):
    def fit(model, number):
        given = DiceLoss(ignore_index=number)
        how = {} if cls is skdice.DiceTextClassifier else {"stride": 1}
        fitted = make(cls, model, loss=given, max_length=max_length, **how).fit(*rows)
        assert given.ignore_index == number, "the loss of the user is left alone"
        return fitted.history_["train_loss"].tolist()

    assert fit(tiny_bert, -1) == fit(tiny_bert, -100)
    for number in (0, 255):  # Of a class, before anything is loaded.
        with pytest.raises(ValueError, match=f"ignore_index={number}"):
            fit(NO_MODEL, number)


def test_what_folds_warn_of_is_hidden_in_their_thread_only():
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings(record=True) as record, silent():
        warn("hidden")
        pool.submit(warn, "shown").result()
    assert [str(each.message) for each in record] == ["shown"]


def test_filters_are_restored_whichever_thread_ends_first():
    """Loading, which has filters of its own, waits for what hides warnings, and the reverse."""
    before, entered = [*warnings.filters], threading.Event()

    def load():
        with quiet_transformers():
            entered.set()

    with ThreadPoolExecutor(1) as pool:
        with hidden(UserWarning):
            loaded = pool.submit(load)
            assert not entered.wait(0.05)
        loaded.result()
    assert [*warnings.filters] == before


@pytest.mark.parametrize(
    "cls", [skdice.DiceTokenTagger, skdice.DiceQueryTagger, skdice.DiceSpanExtractor]
)
def test_a_preset_that_is_known_to_collapse(cls, tiny_bert):
    with pytest.warns(UserWarning, match="known to collapse") as record:
        make(cls, tiny_bert, loss="dsc-paper").fit(*ROWS[cls])
    assert len([w for w in record if "known to collapse" in str(w.message)]) == 1


@pytest.mark.parametrize("given, near", [
    ({"max_epoch": 3}, "max_epochs"), ({"bacth_size": 8}, "batch_size"),
    ({"los__gamma": 1.0}, "loss"), ({"temperature": 1e-4}, None),
])  # fmt: skip
def test_an_unknown_parameter_gets_the_nearest_name(given, near):
    (name,) = given
    message = f"Invalid parameter '{name.partition('__')[0]}' for estimator DiceTokenTagger"
    with pytest.raises(ValueError) as caught:
        skdice.DiceTokenTagger().set_params(**given)
    assert str(caught.value).startswith(message)
    assert (f"Did you mean {near!r}?" in str(caught.value)) is (near is not None)
    assert "Valid parameters are: [" in str(caught.value)


def test_the_grid_that_an_error_shows_can_be_pasted(tiny_bert):
    classifier = make(skdice.DiceTextClassifier, tiny_bert)
    X, y = easy_texts(12)
    with pytest.raises(ValueError) as caught:
        clone(classifier).set_params(loss="ce", alpha=0.3).fit(X, y)
    grid = ast.literal_eval(re.search(r"\[\{.+\}\]", str(caught.value))[0])
    search = GridSearchCV(classifier, grid, cv=2, error_score="raise").fit(X, y)
    assert search.cv_results_["params"] == [{"loss": "ce"}, {"alpha": 0.3, "loss": "tversky"}]
