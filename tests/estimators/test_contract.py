"""scikit-learn's contract, for rows of text: a table of checks over all five estimators."""

import ast
import copy
import inspect
import logging
import os
import pickle
import random
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

import skdice
from skdice.datasets import make_pairs, make_questions, make_tagging
from skdice.metrics import get_entities

from ..corpora import easy_texts

# The checks of scikit-learn that pass no data; its others fit on matrices of numbers.
SKLEARN_CHECKS = [
    "check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types",
    "check_estimator_repr", "check_no_attributes_set_in_init", "check_mixin_order",
    "check_parameters_default_constructible", "check_get_params_invariance", "check_set_params",
]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Tiny fits find nothing.
OUTPUTS = ("predict", "predict_proba", "decision_function", "no_answer_score")


def unequal(X, y):
    """Return all rows of the first label and every third of the others, up to 16."""
    kept = [i for i, label in enumerate(y) if label == y[0] or i % 3 == 0][:16]
    return [X[i] for i in kept], [y[i] for i in kept]


TAGGED = make_tagging(20, ratio=2, random_state=0)
DATA = {
    skdice.DiceTokenTagger: TAGGED,
    skdice.DiceQueryTagger: TAGGED,
    skdice.DiceTextClassifier: unequal(*easy_texts(24)),
    skdice.DicePairClassifier: make_pairs(16, positive_share=0.4, random_state=0),
    skdice.DiceSpanExtractor: make_questions(16, ratio=20, unanswerable_share=0.3, random_state=0),
}


class Case:
    """An estimator, rows that it can be fitted on, and one fit of them."""

    def __init__(self, cls, model):
        self.X, self.y = DATA[cls]
        queries = {"queries": {"PER": "john mary", "LOC": "oslo paris", "ORG": "acme"}}
        self.estimator = cls(
            model, loss="dice", max_epochs=1, lr=2e-3, precision="fp32", random_state=0, verbose=0,
            **(queries if cls is skdice.DiceQueryTagger else {}),
        )  # fmt: skip
        self.fitted = self.fit()
        self.outputs = outputs(self.fitted, self.X)

    def fit(self, X=None, y=None, **options):
        X, y = (self.X, self.y) if X is None else (X, y)
        return clone(self.estimator).fit(X, y, **options)


@pytest.fixture(scope="module", params=DATA, ids=lambda cls: cls.__name__)
def case(request, quick_bert):
    return Case(request.param, quick_bert)


def outputs(estimator, X):
    return {name: getattr(estimator, name)(X) for name in OUTPUTS if hasattr(estimator, name)}


def take(rows, index):
    if hasattr(rows, "iloc"):
        return rows.iloc[index]
    return rows[index] if hasattr(rows, "shape") else [rows[i] for i in index]


def check_same(got, expected, atol=0.0):
    """Require equal predictions, and scores that are equal up to a tolerance."""
    assert got.keys() == expected.keys()
    for name, rows in expected.items():
        assert len(got[name]) == len(rows)
        for row, other in zip(got[name], rows):
            if name == "predict":
                assert np.array_equal(row, other)
            else:
                np.testing.assert_allclose(row, other, rtol=0, atol=atol)


@pytest.mark.parametrize("cls", DATA)
@pytest.mark.parametrize("name", SKLEARN_CHECKS)
def test_sklearns_own_checks(cls, name):
    getattr(estimator_checks, name)(cls.__name__, cls())


@pytest.mark.parametrize("cls", DATA)
def test_signatures(cls):
    parameters = inspect.signature(cls).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    assert next(iter(parameters)) == "model"
    assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {*kinds[1:]} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["batch_size"].annotation is int
    assert "Annotated" not in str(inspect.signature(cls))
    fit = inspect.signature(cls.fit).parameters
    assert list(fit)[:4] == ["self", "X", "y", "sample_weight"]
    assert fit["sample_weight"].default is None
    assert list(inspect.signature(cls.score).parameters)[:3] == ["self", "X", "y"]


@pytest.mark.parametrize("cls", DATA)
def test_every_parameter_is_documented(cls):
    doc, parameters = inspect.getdoc(cls), inspect.signature(cls).parameters
    sections = [part.split("\n\n")[0] for part in re.split(r"Parameters\n-+\n", doc)[1:]]
    usual, rare = (re.findall(r"^(\w+) :", section, re.MULTILINE) for section in sections)
    assert sorted(usual + rare) == sorted(parameters)
    assert usual[0] == "model"
    assert {"device", "warmup"} < set(rare)
    assert "%(" not in doc
    defaults = dict(re.findall(r"^(\w+) : .*default=([^\s,]+)$", doc, re.MULTILINE))
    plain = {name for name, p in parameters.items() if isinstance(p.default, str | int | float)}
    assert set(defaults) == plain
    for name, default in defaults.items():
        assert ast.literal_eval(default) == parameters[name].default


def test_a_subclass_may_have_a_constructor_of_its_own():
    class Mine(skdice.DiceTokenTagger):
        def __init__(self, model="m", *, size=1):
            super().__init__(model, lr=1e-4)
            self.size = size

    assert clone(Mine(size=3)).get_params() == {"model": "m", "size": 3}
    assert Mine().lr == 1e-4


def test_unfitted(case):
    """The error comes before X is looked at; a clone is not fitted, and notebooks can show both."""
    check_is_fitted(case.fitted)
    for unfitted in (case.estimator, clone(case.fitted)):
        for name in (*case.outputs, "predict_spans", "predict_entities", "predict_iter", "score"):
            if hasattr(unfitted, name):
                with pytest.raises(NotFittedError):
                    getattr(unfitted, name)(*[object()] * (1 + (name == "score")))
        with pytest.raises(NotFittedError):
            check_is_fitted(unfitted)
    for estimator in (case.estimator, case.fitted):
        assert type(estimator).__name__ in estimator_html_repr(estimator)


def test_a_fit_leaves_parameters_and_data_alone(case):
    estimator = clone(case.estimator)
    X, y = copy.deepcopy((case.X, case.y))
    before, params = joblib.hash((X, y)), joblib.hash(estimator.get_params())
    assert estimator.fit(X, y) is estimator
    estimator.predict(X), estimator.score(X, y)
    assert joblib.hash((X, y)) == before
    assert joblib.hash(estimator.get_params()) == params
    new = set(vars(estimator)) - set(estimator.get_params(deep=False))
    assert all(name.startswith("_") or name.endswith("_") for name in new)
    assert not hasattr(estimator, "n_features_in_")


def test_copies_predict_the_same(case, tmp_path):
    joblib.dump(case.fitted, tmp_path / "dump")
    pickled = pickle.loads(pickle.dumps(case.fitted))
    for again in (joblib.load(tmp_path / "dump"), pickled, copy.deepcopy(case.fitted)):
        check_same(outputs(again, case.X), case.outputs)


def test_the_process_is_left_alone(case, tmp_path, monkeypatch, capfd):
    """Generators, switches of torch, warnings, logging, environment and files stay; no output."""
    monkeypatch.chdir(tmp_path)

    def state():
        switches = torch.get_num_threads(), str(torch.get_default_dtype())
        deterministic = torch.are_deterministic_algorithms_enabled()
        generators = random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()
        logs = logging.root.level, len(logging.root.handlers)
        left = warnings.filters, logs, dict(os.environ), os.listdir(tmp_path)
        return joblib.hash([switches, deterministic, generators, left])

    before = state()
    case.fit().predict(case.X)
    assert state() == before
    assert capfd.readouterr() == ("", "")


def test_outputs_have_a_row_for_each(case):
    """Also of rows of one length, which are no matrix, and of none."""
    index = [np.arange(len(case.X)), np.array([1, 1, 1]), np.array([], dtype=int)]
    for part in index:
        for name, rows in outputs(case.fitted, take(case.X, part)).items():
            assert isinstance(rows, np.ndarray)
            assert len(rows) == len(part), name
            assert rows.ndim == case.outputs[name].ndim or not len(part)
    with pytest.raises(ValueError):
        case.fit(*(take(rows, index[-1]) for rows in (case.X, case.y)))
    assert 0 <= case.fitted.score(case.X, case.y) <= 1
    assert isinstance(case.fitted.score(case.X, case.y), float)


def test_one_seed_gives_one_estimator(case):
    check_same(outputs(case.fit(), case.X), case.outputs)
    other = case.fit(take(case.X, np.arange(8, 16)), take(case.y, np.arange(8, 16)))
    other.set_params(**case.estimator.get_params(deep=False)).fit(case.X, case.y)
    check_same(outputs(other, case.X), case.outputs)
    weights = case.fitted.net_.module_.head_parameters()
    others = clone(case.estimator).set_params(random_state=1).fit(case.X, case.y)
    assert not all(map(torch.equal, weights, others.net_.module_.head_parameters()))


def test_micro_batches_are_one_large_batch(case):
    """Here without what each micro-batch draws for itself: dropout, and candidates of matches."""
    estimator = clone(case.estimator)
    if hasattr(estimator, "match_candidates"):
        estimator.set_params(match_candidates="pred_and_gold")
    whole, cut = (
        clone(estimator).set_params(batch_size=size, accumulate=n).fit(case.X, case.y)
        for size, n in ((8, 1), (2, 4))
    )
    np.testing.assert_allclose(cut.history_["train_loss"], whole.history_["train_loss"], rtol=1e-4)
    check_same(outputs(cut, case.X), outputs(whole, case.X), atol=1e-3)


def test_weights_of_rows(case):
    """0 is absence, 1 is no weight, 2 is repetition, in lists and Series too."""
    n = len(case.X)
    check_same(outputs(case.fit(sample_weight=[1] * n), case.X), case.outputs, atol=1e-5)
    # With a mean loss they may be as small as those that sum to 1.
    estimator = clone(case.estimator).set_params(loss="ce")
    fits = [clone(estimator).fit(case.X, case.y, np.full(n, w)) for w in (2**-10, 1)]
    check_same(*(outputs(each, case.X) for each in fits), atol=1e-5)
    kept = np.delete(np.arange(n), [2, 5])
    expected = outputs(case.fit(take(case.X, kept), take(case.y, kept)), case.X)
    weight = pd.Series(np.isin(np.arange(n), kept).astype(float), index=range(n, 0, -1))
    check_same(outputs(case.fit(sample_weight=weight), case.X), expected, atol=1e-5)
    doubled = outputs(case.fit(sample_weight=np.where(np.arange(n) < n // 2, 5.0, 1.0)), case.X)
    name = list(doubled)[-1]
    if name != "predict":
        assert not all(np.array_equal(a, b) for a, b in zip(doubled[name], case.outputs[name]))


def items_of(case):
    """Return how many items of each class the loss counts in each row."""
    fitted, X, y = case.fitted, case.X, case.y
    if isinstance(fitted, skdice.DiceTokenTagger):
        return np.array([[row.count(tag) for tag in fitted.classes_] for row in y])
    if isinstance(fitted, skdice.DiceTextClassifier | skdice.DicePairClassifier):
        return np.array([[label == one for one in fitted.classes_] for label in y], dtype=int)
    if isinstance(fitted, skdice.DiceQueryTagger):  # Each word may start an entity of each query.
        n_items = [len(fitted.queries_) * len(row) for row in X]
        n_positive = [len(get_entities(row)) for row in y]
    else:  # Each piece of a context may start an answer; one position more means "no answer".
        pieces = fitted.tokenizer_.encode(X["context"].tolist(), as_words=False)
        n_items, n_positive = pieces.lengths + 1, [1] * len(y)
    return np.column_stack([np.subtract(n_items, n_positive), n_positive])


@pytest.mark.parametrize("params, K", [
    ({"loss": "wce"}, 3), ({"loss": "focal", "K": 10.0}, 10), ({"class_weight": "log"}, 3),
    ({"class_weight": "balanced"}, None), ({"class_weight": "balanced", "max_length": 48}, None),
])  # fmt: skip
def test_class_weights_go_by_the_items(case, params, K):
    """Those in several windows count once, and rows as often as their weight says."""
    weight = np.arange(len(case.X)) % 3
    counts = weight @ items_of(case)
    log = np.log10((counts.sum() - counts) / counts + (K or 0))
    expected = log if K else counts.sum() / (len(counts) * counts)
    fitted = clone(case.estimator).set_params(**params).fit(case.X, case.y, weight)
    loss = getattr(fitted.net_.criterion_, "loss", fitted.net_.criterion_)
    np.testing.assert_allclose(loss.class_weight, expected, rtol=1e-6)


def test_class_weights_go_by_the_labels(case):
    """Those of starts and ends are 0 and 1."""
    has_places = isinstance(case.fitted, skdice.DiceQueryTagger | skdice.DiceSpanExtractor)
    *others, last = [0, 1] if has_places else case.fitted.classes_
    fitted = clone(case.estimator).set_params(class_weight={last: 5.0}).fit(case.X, case.y)
    loss = getattr(fitted.net_.criterion_, "loss", fitted.net_.criterion_)
    np.testing.assert_array_equal(loss.class_weight, [1.0] * len(others) + [5.0])
