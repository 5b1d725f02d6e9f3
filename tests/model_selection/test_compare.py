import re
import warnings
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import Pipeline as ImbalancedPipeline
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_fscore_support
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdice import DicePairClassifier, DiceQueryTagger, DiceTextClassifier, DiceTokenTagger
from skdice.estimators import DiceSpanExtractor, Internals
from skdice.fitting import Fitted
from skdice.losses import DiceLoss
from skdice.metrics import entity_precision_recall_fscore_support
from skdice.model_selection import compare_losses, tune_decision

from ..corpora import easy_corpus, easy_pairs, easy_texts
from ..spies import internals

pytestmark = pytest.mark.filterwarnings("ignore:.* looks undertrained")
FAST = {"max_epochs": 1, "lr": 2e-3, "batch_size": 8}
TWO = {"losses": ("ce", "dice"), "seeds": (0, 1), "verbose": 0}
QUESTIONS = [
    ("where is john", "john was in oslo"),
    ("where is anna", "anna went to rome by"),
    ("who", "the saw the"),
    ("where is mary", "mary saw paris"),
]
ANSWERS = ["oslo", "rome", "", "paris"]


class GuessInternals(Internals):
    def decision_scores(self, rows):
        return list(self.estimator._row_logits(rows))


class Guess(DicePairClassifier):
    """Learns nothing: labels by chance, drawn by the seed and the loss. It lists its fits."""

    fits: list = []  # noqa: RUF012
    train_loss = (1.0,)
    network = 0  # or that of each epoch

    def fit(self, X, y, sample_weight=None):
        self.check_parameters()
        type(self).fits.append(self.get_params() | {"rows": list(X)})
        asked = replace(self._asked(), threshold=0.5)
        rows = asked.read(X, y)
        task = asked.learn(rows, asked.facts(rows), None)
        known = dict.fromkeys(field.name for field in fields(Fitted))
        history = pd.DataFrame({"run": self.network, "train_loss": self.train_loss})
        self._fitted = Fitted(**known | {"task": task, "history": history})
        return self

    def decision_function(self, X):
        seed = [self.random_state, *str(self.loss).encode()]
        return np.random.default_rng(seed).normal(size=len(X))

    def _row_logits(self, rows):
        decision = self.decision_function(rows)
        return np.stack([-decision / 2, decision / 2], axis=1)

    @property
    def internals(self):
        return GuessInternals(self)

    def predict(self, X):
        return internals(self).task.decide(self._row_logits(X))


@pytest.fixture
def guess():
    Guess.fits = []
    return Guess("none")


@pytest.fixture(scope="module")
def pairs():
    return *easy_pairs(24), *easy_pairs(20, seed=1)


def f1_of(comparison, loss, seed):
    rows = comparison.frame.set_index(["loss", "seed"])
    return rows.loc[(loss, seed), "f1"]


def test_tagger(tiny_bert):
    X, y = easy_corpus(32)
    X_test, y_test = easy_corpus(20, seed=1)
    tagger = DiceTokenTagger(tiny_bert, **FAST | {"max_epochs": 4})
    comparison = compare_losses(tagger, X, y, X_test, y_test, **TWO)
    frame = comparison.frame
    assert list(frame) == ["loss", "seed", "fit_seconds", "precision", "recall", "f1"]
    assert frame["loss"].tolist() == ["ce", "ce", "dice", "dice"]
    assert frame["seed"].tolist() == [0, 1, 0, 1]
    assert (frame["fit_seconds"] > 0).all()
    fitted = clone(tagger).set_params(loss="dice", random_state=1, verbose=0).fit(X, y)
    predicted = fitted.predict(X_test)
    expected = entity_precision_recall_fscore_support(y_test, predicted, average="micro")
    assert fitted.score(X_test, y_test) > 0
    assert frame.iloc[3, 3:].tolist() == pytest.approx(expected[:3])
    assert frame.iloc[3, 5] == pytest.approx(fitted.score(X_test, y_test))
    assert not hasattr(tagger, "net_")
    assert tagger.get_params()["loss"] == "auto"


@pytest.fixture
def fitted_rows(monkeypatch):
    """A list that gets X and y of every fit of a few estimators."""
    rows = []
    for cls in (DiceTokenTagger, DiceTextClassifier, DiceSpanExtractor):

        def fit(self, X, y, fit=cls.fit):
            rows.append((X, y))
            return fit(self, X, y)

        monkeypatch.setattr(cls, "fit", fit)
    return rows


def fit_by_hand(estimator, X, y, trained):
    """Return a fit with cross-entropy and seed 1 of the rows of a run, and the rows held out."""
    ours = {id(row) for row in trained[0]}
    held_out = [(row, label) for row, label in zip(X, y) if id(row) not in ours]
    one = clone(estimator).set_params(loss="ce", random_state=1, verbose=0).fit(*trained)
    return one, tuple(map(list, zip(*held_out)))


def test_tuned_decisions(tiny_bert, fitted_rows):
    X, y = easy_corpus(40)
    test = easy_corpus(20, seed=1)
    tagger = DiceTokenTagger(tiny_bert, **FAST | {"max_epochs": 3})
    options = {"losses": ("ce",), "seeds": (1,), "tune_threshold": True, "verbose": 0}
    comparison = compare_losses(tagger, X, y, *test, **options)
    assert comparison.losses == ("ce", "ce+threshold")
    assert (comparison.n_train, comparison.n_held_out) == (34, 6)
    one, held_out = fit_by_hand(tagger, X, y, fitted_rows[0])
    tuned = tune_decision(one, *held_out)
    assert f1_of(comparison, "ce", 1) == one.score(*test)
    assert f1_of(comparison, "ce+threshold", 1) == tuned.score(*test) > one.score(*test)
    # Those of texts are tuned for F1, not for accuracy.
    X, y = easy_texts(48, n_classes=3)
    y = [str(label) if i % 4 == 0 else "common" for i, label in enumerate(y)]
    classifier = DiceTextClassifier(tiny_bert, **FAST)
    fitted_rows.clear()
    comparison = compare_losses(classifier, X, y, X, y, **options)
    one, held_out = fit_by_hand(classifier, X, y, fitted_rows[0])
    metric = partial(f1_score, average="macro", zero_division=0.0)
    expected = metric(y, tune_decision(one, *held_out, metric=metric).predict(X))
    assert f1_of(comparison, "ce+threshold", 1) == pytest.approx(expected)


@pytest.mark.parametrize("pos_label, kind", [(None, np.array), ("no", pd.Series)])
def test_pairs(tiny_bert, pairs, pos_label, kind):
    X, y, X_test, y_test = pairs
    y, y_test = (kind(["yes" if label else "no" for label in part]) for part in (y, y_test))
    classifier = DicePairClassifier(tiny_bert, pos_label=pos_label, **FAST)
    comparison = compare_losses(
        classifier, kind(X), y, kind(X_test), y_test, losses=("dice",), seeds=(0,), baseline="dice",
        verbose=0,
    )  # fmt: skip
    fitted = clone(classifier).set_params(loss="dice", random_state=0, verbose=0).fit(X, y)
    expected = precision_recall_fscore_support(
        y_test, fitted.predict(X_test), labels=[pos_label or "yes"], average="macro",
        zero_division=0.0,
    )  # fmt: skip
    assert list(comparison.frame)[3:] == ["precision", "recall", "f1"]
    assert comparison.frame.iloc[0, 3:].tolist() == pytest.approx(expected[:3])
    assert comparison.frame["f1"][0] == pytest.approx(fitted.score(X_test, y_test))


def test_questions(tiny_bert, fitted_rows):
    X, y = pd.DataFrame(QUESTIONS * 6, columns=["question", "context"]), ANSWERS * 6
    extractor = DiceSpanExtractor(tiny_bert, **FAST)
    options = {"losses": ("dice",), "seeds": (0,), "baseline": "dice+threshold", "verbose": 0}
    comparison = compare_losses(extractor, X, y, X, y, **options, tune_threshold=True)
    assert list(comparison.frame)[3:] == ["exact_match", "f1"]
    (trained,) = fitted_rows
    n_of_context = trained[0]["context"].value_counts()
    assert len(n_of_context) < len(QUESTIONS)
    assert set(n_of_context) == {6}, "rows of one context are trained on or held out together"
    one = clone(extractor).set_params(loss="dice", random_state=0, verbose=0).fit(*trained)
    assert comparison.frame.loc[0, "exact_match"] == one.exact_match(X, y)
    assert comparison.frame.loc[0, "f1"] == pytest.approx(one.score(X, y))


def test_pipelines(tiny_bert, pairs):
    X, y, X_test, y_test = pairs
    bare = DicePairClassifier(tiny_bert, **FAST)
    swap = FunctionTransformer(lambda X: [(b, a) for a, b in X])
    wrapped = Pipeline([("none", "passthrough"), ("swap", swap), ("classify", bare)])
    options = {"losses": ("ce",), "seeds": (0,), "tune_threshold": True, "verbose": 0}
    by_hand = compare_losses(bare, swap.transform(X), y, swap.transform(X_test), y_test, **options)
    columns = ["loss", "seed", "precision", "recall", "f1"]
    in_pipeline = compare_losses(Pipeline([("in", wrapped)]), X, y, X_test, y_test, **options)
    pd.testing.assert_frame_equal(in_pipeline.frame[columns], by_hand.frame[columns])


def test_a_sampler_works_on_training_rows_only(guess, pairs):
    X, y = easy_pairs(80)
    sampler = RandomUnderSampler(random_state=0)
    pipeline = ImbalancedPipeline([("sample", sampler), ("classify", guess)])
    X, X_test = np.array(X, dtype=object), np.array(pairs[2], dtype=object)
    comparison = compare_losses(pipeline, X, y, X_test, pairs[3], **TWO, tune_threshold=True)
    assert comparison.n_test == 20
    assert [len(fit["rows"]) for fit in Guess.fits] == [34] * 4  # 17 of the 20 positives


def test_a_loss_brings_its_own_parameters_only(guess, pairs):
    guess.set_params(loss="tversky", alpha=0.3, beta=0.7, gamma=0.1, class_weight="balanced")
    losses = {
        "plain": "ce",
        "low": {"loss": "tversky", "alpha": 0.2},
        "object": DiceLoss(gamma=3.0),
        "log": {"loss": "wce", "K": 2.0, "class_weight": None},
    }
    compare_losses(guess, *pairs, losses=losses, seeds=[5], baseline="plain", verbose=0)
    names = ("alpha", "beta", "gamma", "K", "class_weight", "random_state")
    assert [[fit[name] for name in names] for fit in Guess.fits] == [
        [None, None, None, None, "balanced", 5],
        [0.2, None, None, None, "balanced", 5],
        [None, None, None, None, "balanced", 5],
        [None, None, None, 2.0, None, 5],
    ]
    assert Guess.fits[2]["loss"].gamma == 3.0
    assert all(fit["verbose"] == 0 for fit in Guess.fits)


def test_held_out_rows_are_those_of_the_seed(guess, pairs):
    X, y = easy_pairs(80)
    comparison = compare_losses(guess, X, y, *pairs[2:], **TWO, tune_threshold=True)
    rows = [fit["rows"] for fit in Guess.fits]
    assert rows[:2] == rows[2:]
    assert rows[0] != rows[1]
    label_of = dict(zip(X, y))
    assert [sum(label_of[row] for row in part) for part in rows] == [17] * 4
    assert [len(part) for part in rows] == [68] * 4
    # The own and the tuned decision share the fit.
    assert comparison.losses == ("ce", "ce+threshold", "dice", "dice+threshold")
    own, tuned = (comparison.frame["fit_seconds"].to_numpy()[[i, i + 2]] for i in (0, 2))
    assert (tuned[0] > own[0]).all()


@pytest.mark.parametrize("tune_threshold", [False, True])
def test_finished_runs_are_not_run_again(guess, pairs, tmp_path, tune_threshold):
    options = TWO | {"tune_threshold": tune_threshold}
    first = compare_losses(guess, *pairs, **options, cache_dir=tmp_path / "runs")
    assert len(Guess.fits) == 4
    again = compare_losses(guess, *pairs, **options, cache_dir=str(tmp_path / "runs"))
    assert len(Guess.fits) == 4
    pd.testing.assert_frame_equal(again.frame, first.frame)
    pd.testing.assert_frame_equal(again.table(), first.table())
    more = options | {"losses": {"plain": "ce", "dsc": "dsc"}, "seeds": (1, 2), "baseline": "plain"}
    compare_losses(guess, *pairs, **more, cache_dir=tmp_path / "runs")
    ran = [(fit["loss"], fit["random_state"]) for fit in Guess.fits[4:]]
    assert ran == [("ce", 2), ("dsc", 1), ("dsc", 2)]


@pytest.mark.parametrize("change, n_fits", [
    (lambda guess, *rows: (guess.set_params(verbose=1, loss="focal", gamma=1.0), *rows), 0),
    (lambda guess, *rows: (guess.set_params(class_weight={1: 2.0}), *rows), 2),
    (lambda guess, X, y, *rest: (guess, X[::-1], y[::-1], *rest), 2),
    (lambda *args: (*args[:4], [1 - args[4][0], *args[4][1:]]), 2),
    (lambda guess, *rows: (Pipeline([("classify", guess)]), *rows), 2),
])  # fmt: skip
def test_what_makes_a_run_another_one(guess, pairs, tmp_path, change, n_fits):
    options = TWO | {"losses": ("ce",), "cache_dir": tmp_path}
    compare_losses(guess, *pairs, **options)
    compare_losses(*change(guess, *pairs), **options)
    assert len(Guess.fits) == 2 + n_fits


def test_a_fit_that_fails_leaves_the_others_finished(guess, pairs, tmp_path, monkeypatch, capfd):
    fit = Guess.fit

    def fail(self, X, y):
        if (self.loss, self.random_state) == ("dice", 0):
            raise RuntimeError("out of memory")
        return fit(self, X, y)

    with monkeypatch.context() as patch:
        patch.setattr(Guess, "fit", fail)
        with pytest.raises(RuntimeError, match="out of memory") as caught:
            compare_losses(guess, *pairs, **TWO, cache_dir=tmp_path)
    assert caught.value.__notes__ == ["This happened with loss 'dice' and seed 0."]
    assert len(Guess.fits) == 2
    assert capfd.readouterr() == ("", "")
    compare_losses(guess, *pairs, **TWO | {"verbose": 1}, cache_dir=tmp_path)
    ran = [(fit["loss"], fit["random_state"]) for fit in Guess.fits[2:]]
    assert ran == [("dice", 0), ("dice", 1)]
    out, err = capfd.readouterr()
    assert out == ""
    assert all(part in err for part in ("dice, seed 1", "4/4", "F1 0."))


@pytest.mark.parametrize("train_loss, network, knows, message", [
    ((0.9, 0.6), 0, True, "its training loss fell by 33% in the last epoch"),
    ((0.9, 0.4, 0.35), 0, True, None),
    ((0.9,), 0, True, None), ((0.9, 0.0, 0.0), 0, True, None),
    ((0.9, 1e-7, 5e-8), 0, True, None),  # What float32 rounds.
    ((0.9, 0.6), (0, 1), True, None),
    ((0.9, 0.8, 0.2, 0.2), (0, 0, 1, 1), True, None),
    ((0.9, 0.9, 0.2, 0.1), (0, 0, 1, 1), True, "its training loss fell by 50% in the last epoch"),
    ((0.1, 0.1), 0, False, r"its F1 on rows that it was trained on is 0\.00"),
])  # fmt: skip
@pytest.mark.parametrize("baseline", ["ce", "ce+threshold"])
def test_an_undertrained_baseline(
    guess, pairs, baseline, train_loss, network, knows, message, monkeypatch, tmp_path
):
    """Also when its runs are read from the cache."""
    label_of = dict(zip(pairs[0] + pairs[2], pairs[1] + pairs[3]))
    monkeypatch.setattr(Guess, "train_loss", train_loss)
    monkeypatch.setattr(Guess, "network", network)
    monkeypatch.setattr(Guess, "predict", lambda self, X: [knows * label_of[row] for row in X])
    options = TWO | {"baseline": baseline, "tune_threshold": True, "cache_dir": tmp_path}
    for _ in range(2):
        with warnings.catch_warnings(record=True, action="always") as caught:
            compare_losses(guess, *pairs, **options)
        found = [str(each.message) for each in caught if "undertrained" in str(each.message)]
        assert len(found) == (message is not None)
        if message is not None:
            assert re.search(f"The baseline 'ce' .*{message}.* max_epochs", found[0])
    assert len(Guess.fits) == 4


@pytest.mark.parametrize("options, error, message", [
    ({"losses": ()}, TypeError, "losses must be a sequence of names"),
    ({"losses": "ce"}, TypeError, "losses must be a sequence of names .* got 'ce'"),
    ({"losses": ("ce", DiceLoss())}, TypeError, "a dict that maps labels"),
    ({"losses": {"ce": 3}}, ValueError, r"losses\['ce'\] must be a name, a loss object"),
    ({"losses": {"ce": {"alpha": 1}}}, ValueError, "a dict with 'loss'"),
    ({"losses": {"ce": {"loss": "ce", "lr": 1}}}, ValueError, "'lr'.*same for all losses"),
    ({"losses": ("ce", "hinge")}, ValueError, "Got 'hinge' instead"),
    ({"losses": {"ce": {"loss": "ce", "alpha": 1}}}, ValueError, "alpha=1 cannot be used"),
    ({"seeds": ()}, ValueError, "seeds must be one or more"),
    ({"seeds": (0, 1, 0)}, ValueError, r"one or more, different .* got \[0, 1, 0\]"),
    ({"seeds": (0, -1)}, ValueError, r"'seeds' .* an int in the range \[0, inf\). Got -1"),
    ({"baseline": "dsc"}, ValueError, "'baseline' .* {'ce', 'dice'}. Got 'dsc'"),
    ({"losses": {"ce": "ce", "ce+threshold": "dice"}, "tune_threshold": True}, ValueError,
     r"losses must be .*different .* 'ce\+threshold', 'ce\+threshold'"),
    ({"X_test": [("a", "b")]}, ValueError, "X_test and y_test must have .* of rows, .* got 1"),
    ({"y": [0]}, ValueError, "X and y must have the same number of rows, .* got 24 and 1"),
    ({"X_test": [], "y_test": []}, ValueError, "must have .* at least one; got 0 and 0"),
    ({"y_test": [None] * 20}, ValueError, "Every row of X needs a label in y"),
    ({"estimator": LogisticRegression()}, TypeError, "an estimator of skdice.* got Logistic"),
    ({"estimator": DiceQueryTagger(), "X": [["a"]], "y": [[(0, 1, "A")]]}, ValueError,
     "Tags must be str"),
    ({"estimator": DiceTokenTagger(), "X": [["a"]], "y": [["DET"]], "X_test": [["a"]],
      "y_test": [["DET"]], "tune_threshold": True}, ValueError, "no decision to tune"),
])  # fmt: skip
def test_errors(guess, pairs, options, error, message):
    rows = dict(zip(("X", "y", "X_test", "y_test"), pairs))
    with pytest.raises(error, match=message) as caught:
        compare_losses(**{"estimator": guess} | rows | TWO | options)
    if hasattr(caught.value, "__notes__"):
        assert re.match("This is about (X|losses)", caught.value.__notes__[0])
    assert not Guess.fits
