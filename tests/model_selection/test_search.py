import re
import time
import warnings

import matplotlib
import numpy as np
import optuna
import pandas as pd
import pytest
import sklearn
from optuna.trial import FixedTrial
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.fitting import open_rates
from skdice.losses import DiceLoss
from skdice.model_selection import DiceSearchCV
from skdice.model_selection._space import default_space, draw_parameters
from skdice.nn import describe_encoder

from ..corpora import easy_corpus
from .searched import Act, Peak, X, Y, make_search, trials_of

matplotlib.use("Agg")

FAST = {"max_epochs": 1, "lr": 2e-3, "batch_size": 8, "random_state": 0}


def raise_if(condition):
    def act(estimator, X):
        if condition(estimator, X):
            raise RuntimeError(f"no luck with x={estimator.x:.3f}")

    return Act(act)


def listing():
    """Return a list, and what makes Peak write its fits there."""
    fits = []
    note = lambda peak, X: fits.append((peak.x, len(X), peak.verbose, peak.sample_weight_))  # noqa: E731
    return fits, Act(note)


class TestResults:
    def test_as_of_a_grid_search(self):
        """The same candidates in GridSearchCV give the same table."""
        X, y = make_classification(60, random_state=0)
        cv = sklearn.model_selection.StratifiedKFold(3)

        def space(trial):
            more = {"l1_ratio": 0.5, "solver": "saga", "class_weight": {0: 1, 1: 2}}
            penalised = more if trial.number % 2 else {}
            return {"C": trial.suggest_float("C", 0.1, 1.0), "max_iter": 5000, **penalised}

        search = make_search(estimator=LogisticRegression(), space=space, cv=cv).fit(X, y)
        candidates = [
            {name: [value] for name, value in each.items()} for each in search.cv_results_["params"]
        ]
        with warnings.catch_warnings(action="ignore"):
            grid = GridSearchCV(LogisticRegression(), candidates, cv=cv).fit(X, y)
        ours, theirs = dict(search.cv_results_), grid.cv_results_
        assert ours.pop("trial_number").tolist() == list(range(6))
        assert set(ours.pop("state")) == {"COMPLETE"}
        assert set(ours) == set(theirs)
        for name, column in theirs.items():
            if "time" in name:
                assert (ours[name] >= 0).all()
            elif name == "params":
                assert ours[name] == column
            else:
                assert ours[name].dtype == column.dtype, name
                for part in (np.ma.getmask, np.ma.compressed):
                    np.testing.assert_array_equal(part(ours[name]), part(column))
        assert search.best_index_ == grid.best_index_
        assert search.best_score_ == grid.best_score_
        assert search.best_params_ == grid.best_params_
        assert search.n_splits_ == grid.n_splits_
        np.testing.assert_array_equal(search.classes_, grid.classes_)
        np.testing.assert_array_equal(search.predict(X), grid.predict(X))
        assert search.score(X, y) == grid.score(X, y)

    def test_scoring_and_folds(self):
        by_name = make_search(scoring="accuracy").fit(X, Y)
        assert by_name.best_score_ == by_name.score(X, Y) == 0.5
        by_function = make_search(scoring=lambda estimator, X, y: estimator.x).fit(X, Y)
        assert by_function.best_score_ == by_function.best_params_["x"] == by_function.score(X, Y)
        folds = [(np.arange(6), np.arange(6, 12)), (np.arange(6, 12), np.arange(6))]
        for cv, groups in ((GroupKFold(2), np.repeat([0, 1], 6)), (iter(folds), None)):
            assert make_search(cv=cv).fit(X, Y, groups=groups).n_splits_ == 2
        space = lambda trial: {"bandwidth": trial.suggest_float("bandwidth", 0.1, 2)}  # noqa: E731
        search = make_search(estimator=KernelDensity(), space=space, n_trials=2).fit(X)
        assert search.score(X) == search.best_estimator_.score(X)

    def test_sample_weight(self):
        fits, act = listing()
        weight = np.arange(12.0)
        search = make_search(n_trials=1, cv=KFold(3), estimator=Peak(act=act))
        search.fit(X, Y, sample_weight=weight.tolist())
        for (*_, got), fold in zip(fits, [slice(4, 12), [0, 1, 2, 3, 8, 9, 10, 11]]):
            np.testing.assert_array_equal(got, weight[fold])
        np.testing.assert_array_equal(fits[-1][-1], weight)

        pipeline = Pipeline([("scale", StandardScaler()), ("peak", Peak(act=act))])
        search = make_search(n_trials=1, estimator=pipeline, space=lambda trial: {"peak__x": 0.5})
        search.fit(X, Y, sample_weight=weight)
        np.testing.assert_array_equal(fits[-1][-1], weight)

    def test_fits(self):
        """A bar over the trials, none for each fit; the last fit is the user's, if there is one."""
        fits, act = listing()
        search = make_search(n_trials=2, estimator=Peak(act=act)).fit(X, Y)
        assert [n for _, n, *_ in fits] == [8] * 6 + [12]
        assert [verbose for *_, verbose, _ in fits] == [0] * 6 + [1]
        assert fits[-1][0] == search.best_params_["x"]
        fits.clear()
        search.set_params(refit=False).fit(X, Y)
        assert len(fits) == 6
        assert search.best_params_
        assert not hasattr(search, "best_estimator_")
        assert not hasattr(search, "predict")
        with pytest.raises(AttributeError) as caught:
            search.predict(X)
        assert "'predict' needs refit=True" in str(caught.value.__cause__)

    def test_a_resumed_search_goes_on_as_a_whole_one(self, tmp_path):
        storage = tmp_path / "study.journal"
        make_search(storage, n_trials=5).fit(X, Y)
        values = make_search(storage, n_trials=15).fit(X, Y).cv_results_["param_x"]
        whole = make_search(n_trials=15).fit(X, Y).cv_results_["param_x"]
        np.testing.assert_array_equal(values, whole)
        assert len(set(values)) == 15


class TestSpaces:
    def test_default_space(self, tiny_bert):
        """Losses with their parameters, and rates around that of the estimator."""
        tagger = DiceTokenTagger(lr=5e-5, loss="tversky", alpha=0.3, class_weight="balanced")
        space, first = default_space(tagger)
        trial = FixedTrial(first)
        assert space(trial)["lr"] == 5e-5
        assert trial.params["loss"] == "ce"
        lr, loss = trial.distributions["lr"], trial.distributions["loss"]
        assert (lr.low, lr.high, lr.log) == (tagger.lr / 4, tagger.lr * 4, True)
        assert "wce" not in loss.choices, "the estimator has weights of its own"
        with pytest.raises(ValueError, match="dsc_memory"):
            space(FixedTrial({"lr": 2e-5, "loss": "dsc", "dsc_alpha": 0.1, "dsc_gamma": 1.0}))
        encoder = describe_encoder(tiny_bert, sees_case=False)
        lr, head_lr = open_rates(encoder, has_adapters=False)
        for given, expected in ({}, head_lr), ({"head_lr": 1e-3}, None):
            space, first = default_space(DiceTokenTagger(tiny_bert, **given))
            drawn = space(FixedTrial(first))
            assert drawn["lr"] == lr
            assert drawn.get("head_lr") == (expected and pytest.approx(expected))

    @pytest.mark.parametrize("given, drawn, expected", [
        ({"loss": "tversky", "alpha": 0.3, "beta": 0.7}, {"loss": "ce"}, ["alpha", "beta"]),
        ({"loss": "tversky", "gamma": 2.0}, {"loss": "tversky", "alpha": 0.1}, []),
        ({"loss": "dsc", "alpha": 0.3}, {"loss": "tversky", "alpha": 0.1}, []),
        ({"loss": "focal", "gamma": 1.0, "K": 2.0}, {"loss": "wce"}, ["K", "gamma"]),
        ({"loss": "dice", "ce_weight": 0.1}, {"loss": DiceLoss()}, ["ce_weight"]),
        ({}, {"loss": "ce", "alpha": None, "K": None}, []),
    ])  # fmt: skip
    def test_what_another_loss_was_given_is_reset(self, given, drawn, expected):
        tagger = DiceTokenTagger(**given)
        parameters = draw_parameters(lambda trial: drawn, None, tagger)
        assert sorted(name for name in parameters if parameters[name] is None) == expected
        clone(tagger).set_params(**parameters).check_parameters()

    @pytest.mark.parametrize("estimator, drawn, message", [
        (Peak(), {"z": 1}, "Peak cannot be set to.*'z'"),
        (DiceTokenTagger(), {"loss__gamma": 1}, "'loss__gamma' needs a loss object"),
        (DiceTokenTagger(), {"loss": "dize"}, "Got 'dize' instead"),
        (Pipeline([("peak", Peak())]), {"peak__z": 1}, "Pipeline cannot be set to.*'z'"),
    ])  # fmt: skip
    @pytest.mark.parametrize("error_score", ["raise", np.nan])
    def test_unknown_parameters(self, estimator, drawn, message, error_score, monkeypatch):
        def fit(self, X, y):
            raise AssertionError("nothing must be fitted")

        monkeypatch.setattr(type(estimator), "fit", fit)
        search = make_search(estimator=estimator, space=lambda _: drawn, error_score=error_score)
        with pytest.raises(ValueError, match=message):
            search.fit(X, Y)

    def test_an_error_of_the_space_costs_no_trial(self, tmp_path):
        """Nor does one that depends on more than the trial, or that is another one in a study."""
        storage, calls = tmp_path / "study.journal", iter(range(1000))
        with pytest.raises(ZeroDivisionError):
            make_search(storage, space=lambda trial: 1 / 0).fit(X, Y)
        assert len(make_search(storage).fit(X, Y).cv_results_["params"]) == 6
        other = make_search(storage, space=lambda trial: {"x": trial.suggest_float("u", 0, 1)})
        with pytest.raises(ValueError, match=r"does not fit trial 1 of the study.*'u'"):
            other.fit(X, Y)
        search = make_search(space=lambda trial: {"kind": str(next(calls))})
        with pytest.raises(ValueError, match=r"does not fit trial 0 .* other parameters than when"):
            search.fit(X, Y)

    def test_processes_that_train_together(self, monkeypatch):
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(RuntimeError, match=r"in 2 processes .* a program of its own"):
            make_search().fit(X, Y)


def test_pruning():
    search = make_search(n_trials=20, pruner="auto").fit(X, Y)
    results = pd.DataFrame(search.cv_results_)
    pruned = results[results["state"] == "PRUNED"]
    complete = results[results["state"] == "COMPLETE"]
    assert len(pruned) >= 3
    assert (results["state"][:4] == "COMPLETE").all()
    assert pruned[["mean_test_score", "std_test_score", "split2_test_score"]].isna().all(axis=None)
    assert pruned[["split0_test_score", "mean_fit_time"]].notna().all(axis=None)
    assert (pruned["rank_test_score"] == len(complete) + 1).all()
    assert complete["rank_test_score"].max() <= len(complete)
    assert search.study_.best_trial.number == results["trial_number"][search.best_index_]
    # What was stopped had been worse than the middle of those that were not.
    assert pruned["split0_test_score"].median() < complete["split0_test_score"].median()


class TestErrorsInFit:
    def test_raise(self, tmp_path):
        storage = tmp_path / "study.journal"
        search = make_search(storage, estimator=Peak(act=raise_if(lambda peak, X: True)))
        with pytest.raises(RuntimeError, match="no luck") as caught:
            search.fit(X, Y)
        (note,) = caught.value.__notes__
        assert re.fullmatch(r"In trial 0, with the parameters {'x': 0\.\d+}\.", note)
        (trial,) = trials_of(storage)
        assert trial.state == optuna.trial.TrialState.FAIL
        assert trial.user_attrs["error"].startswith("RuntimeError: no luck with x=")

    def test_nan(self):
        estimator = Peak(act=raise_if(lambda peak, X: peak.x > 0.5))
        search = make_search(n_trials=12, estimator=estimator, error_score=np.nan)
        with pytest.warns(FitFailedWarning, match="of 12 trials had .*nan.*RuntimeError: no luck"):
            search.fit(X, Y)
        states = [trial.state.name for trial in search.study_.trials]
        n_failed = states.count("FAIL")
        assert n_failed >= 1
        assert len(states) == 12
        assert len(search.cv_results_["params"]) == 12 - n_failed
        assert (search.cv_results_["param_x"] <= 0.5).all()
        search.set_params(n_trials=6, estimator__act=raise_if(lambda peak, X: True))
        with pytest.raises(ValueError, match=r"6 failed and 0 were pruned.*RuntimeError: no luck"):
            search.fit(X, Y)


class TestLimits:
    def test_timeout(self):
        estimator = Peak(act=Act(lambda peak, X: time.sleep(0.05)))
        start = time.perf_counter()
        search = make_search(n_trials=1000, estimator=estimator, timeout=0.4).fit(X, Y)
        assert time.perf_counter() - start < 5
        assert 1 <= len(search.cv_results_["params"]) < 20

    @pytest.mark.parametrize("parameters, message", [
        ({"n_trials": 0}, r"'n_trials' .* \[1, inf\). Got 0"),
        ({"timeout": 0}, "'timeout' .* None or a float"), ({"n_jobs": 0}, "n_jobs == 0"),
        ({"n_jobs": 2}, "n_jobs=2 needs a storage"),
        ({"refit": "f1"}, "'refit' .* {True, False}. Got 'f1'"),
        ({"error_score": "zero"}, "'error_score' .*'raise', 'a float'"),
        ({"pruner": "median"}, "'pruner' .* Got 'median'"),
        ({"random_state": -1}, "'random_state' .* Got -1"),
        ({"scoring": ["accuracy", "f1"]}, "must give a number"), ({"scoring": "f2"}, "f2"),
        ({"estimator": Pipeline([("a", DiceTokenTagger("x"))]), "scoring": "f1_macro"},
         "entity_f1_scorer or tag_f1_scorer .* 'f1_macro'"),
        ({"scoring": lambda estimator, X, y: np.nan}, "must give a number"),
        ({"pruner": optuna.pruners.ThresholdPruner(10)}, "0 failed and 6 were pru"),
        ({"estimator": Ridge(), "space": None}, "Ridge has no parameter 'loss'"),
        ({"space": lambda trial: None}, "must return a dict of parameters"),
        ({"estimator": Peak}, "'estimator' .* must be an estimator"), ({"cv": []}, "no folds"),
        ({"storage": 3}, "'storage' .* Got 3"), ({"space": {}}, "Got {} instead"),
        ({"space": {"x": [1]}}, r"'space' .* None or a callable that takes .* Got {'x': \[1\]}"),
    ])  # fmt: skip
    def test_parameters(self, parameters, message):
        with pytest.raises((TypeError, ValueError), match=message):
            make_search(**parameters).fit(X, Y)


class TestAsAnEstimator:
    def test_tags_and_methods(self):
        search, tagger = make_search(), DiceSearchCV(DiceTokenTagger())
        assert is_classifier(search)
        assert is_classifier(DiceSearchCV(DicePairClassifier()))
        assert not is_classifier(make_search(estimator=Ridge()))
        assert not is_classifier(tagger)
        has = [hasattr(search, n) for n in ("predict_proba", "predict_spans", "classes_")]
        assert has == [True, False, False]
        assert [hasattr(tagger, n) for n in ("predict_spans", "decision_function")] == [True, False]
        with pytest.raises(NotFittedError):
            search.predict(X)

    def test_metadata_routing(self):
        fits, act = listing()
        search = make_search(estimator=Peak(act=act), n_trials=1)
        with sklearn.config_context(enable_metadata_routing=True):
            search.set_fit_request(sample_weight=True)
            cross_val_score(search, X, Y, cv=2, params={"sample_weight": np.ones(12)})
        assert [len(weight) for *_, weight in fits] == [4, 4, 4, 6] * 2

    def test_optuna_is_as_talkative_as_before(self, capfd):
        before = optuna.logging.get_verbosity()
        make_search().fit(X, Y)
        assert optuna.logging.get_verbosity() == before
        assert capfd.readouterr() == ("", "")
        make_search(verbose=1).fit(X, Y)
        err = capfd.readouterr().err
        assert "6/6" in err
        assert "best=0." in err


def test_with_a_tagger(tiny_bert):
    X, y = easy_corpus(16)
    tagger = DiceTokenTagger(tiny_bert, **FAST, loss="tversky", alpha=0.3, beta=0.7)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        search = make_search(estimator=tagger, space=None, cv=2, n_trials=5).fit(X, y)
    first = search.cv_results_["params"][0]
    assert (first["loss"], first["lr"]) == ("ce", tagger.lr)
    best = search.best_params_
    assert search.best_estimator_.loss == best["loss"]
    assert all(value is not None or tagger.get_params()[name] for name, value in best.items())
    clone(tagger).set_params(**best).check_parameters()
    assert [len(row) for row in search.predict(X)] == [len(row) for row in y]
    assert search.predict_spans(X).shape == (16,)
    assert len(list(search.predict_iter(X))) == 16
    whole = search.predict_entities(["john saw oslo"], lambda text: [(0, len(text))])
    assert all(entity[:2] == (0, 13) for entity in whole[0])
    assert not any(search.predict_spans(X, threshold=1.0))
    assert 0 <= search.score(X, y) <= 1
    assert search.best_estimator_.verbose == 1
