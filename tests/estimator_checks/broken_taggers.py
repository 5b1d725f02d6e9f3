"""Taggers that each break one rule of the contract, with the check that must notice."""

import logging
import os
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED

from skdice import DiceTokenTagger

BROKEN: list[tuple[type, str, str | None]] = []


def fails(check, reason=None):
    """Register a class under the check that it must fail, with a pattern of the message."""

    def register(broken):
        BROKEN.append((broken, check, reason))
        return broken

    return register


# -- parameters ------------------------------------------------------------------------------------


@fails("check_estimator_cloneable", "Cannot clone")
class ConvertsParameter(DiceTokenTagger):
    def __init__(self, model="bert-base-cased"):
        super().__init__(Path(model))


@fails("check_estimator_tags_renamed", "_more_tags")
class OldTags(DiceTokenTagger):
    def _more_tags(self):
        return {}


@fails("check_valid_tag_types", "Tag values need")
class WrongTags(DiceTokenTagger):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = "sometimes"
        return tags


@fails("check_estimator_repr", "no repr")
class NoRepr(DiceTokenTagger):
    def __repr__(self):
        raise RuntimeError("no repr")


@fails("check_no_attributes_set_in_init", "loaded")
class SetsAttributeInInit(DiceTokenTagger):
    def __init__(self, model="bert-base-cased"):
        super().__init__(model)
        self.loaded = False


@fails("check_do_not_raise_errors_in_init_or_set_param", "lr must be positive")
class ValidatesInInit(DiceTokenTagger):
    def __init__(self, model="bert-base-cased", *, lr=5e-5):
        super().__init__(model, lr=lr)
        if not lr > 0:
            raise ValueError("lr must be positive")


@fails("check_mixin_order", "wrong order")
class MixinLast(DiceTokenTagger, ClassifierMixin):
    pass


@fails("check_parameters_default_constructible", "'callbacks'")
class MutableDefault(DiceTokenTagger):
    def __init__(self, model="bert-base-cased", *, callbacks=[]):  # noqa: B006
        super().__init__(model, callbacks=callbacks)


@fails("check_get_params_invariance")
class LosesDeepParameters(DiceTokenTagger):
    def get_params(self, deep=True):
        params = super().get_params(deep)
        if deep:
            del params["model"]
        return params


@fails("check_set_params", "what was passed to set_params")
class IgnoresSetParams(DiceTokenTagger):
    def set_params(self, **params):
        return self


@fails("check_parameters_round_trip", "unknown parameter must raise")
class TakesAnyParameter(DiceTokenTagger):
    def set_params(self, **params):
        for name, value in params.items():
            setattr(self, name, value)
        return self


@fails("check_fit_score_takes_y", "must take sample_weight")
class NoSampleWeight(DiceTokenTagger):
    def fit(self, X, y):
        return super().fit(X, y)


@fails("check_sample_weight_routing", "sample_weight")
class NoRouting(DiceTokenTagger):
    __metadata_request__fit = {"sample_weight": UNUSED}  # noqa: RUF012


@fails("check_html_repr", "_repr_html_ must show")
class NoHtml(DiceTokenTagger):
    def _repr_html_(self):
        return "<b>an estimator</b>"


# -- the state of an estimator ---------------------------------------------------------------------


@fails("check_estimators_unfitted", "predict before fit.*raised TypeError")
class LooksAtXFirst(DiceTokenTagger):
    def predict(self, X):
        return super().predict(list(X))


@fails("check_estimators_unfitted", "predict_iter before fit.*raised StopIteration")
class LazyBeforeFit(DiceTokenTagger):
    def predict_iter(self, X):
        yield from ()


@fails("check_fit_check_is_fitted", "nothing was raised")
class AlwaysFitted(DiceTokenTagger):
    def __sklearn_is_fitted__(self):
        return True


@fails("check_fit_check_is_fitted", "after fit raised")
class NeverFitted(DiceTokenTagger):
    def __sklearn_is_fitted__(self):
        return False


@fails("check_estimators_fit_returns_self", "must return self")
class FitReturnsNone(DiceTokenTagger):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)


class AfterFit(DiceTokenTagger):
    """Does something more in ``fit``."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.after_fit()
        return self

    def after_fit(self):
        raise NotImplementedError


@fails("check_estimators_overwrite_params", "'lr' was 0.01, now 0.005")
class ChangesParameter(AfterFit):
    def after_fit(self):
        self.lr = self.lr / 2


@fails("check_dont_overwrite_parameters", "added 'fitted'")
class AddsPublicAttribute(AfterFit):
    def after_fit(self):
        self.fitted = True


@fails("check_no_n_features_in", "n_features_in_")
class CountsFeatures(AfterFit):
    def after_fit(self):
        self.n_features_in_ = 1


@fails("check_dict_unchanged", r"\['n_calls_'\]")
class CountsCalls(AfterFit):
    def after_fit(self):
        self.n_calls_ = 0

    def predict(self, X):
        self.n_calls_ += 1
        return super().predict(X)


@fails("check_dict_unchanged", r"\['tuned_'\]")
class TunesOnTheTestRows(AfterFit):
    def after_fit(self):
        self.tuned_ = [0.0]

    def score(self, X, y, sample_weight=None):
        self.tuned_[0] += 1.0
        return super().score(X, y)


@fails("check_data_unchanged", "predict must not change .* it changed X")
class SortsTheRows(DiceTokenTagger):
    def predict(self, X):
        X.sort(key=len)
        return super().predict(X)


@fails("check_clone_is_unfitted", "'net_'")
class ClonesItself(DiceTokenTagger):
    def __sklearn_clone__(self):
        return self


@fails("check_clone_is_unfitted", "predict.* after its clone was trained")
class SharesWeights(AfterFit):
    shared = []  # noqa: RUF012

    def after_fit(self):
        self.shared.append(self.net_)
        self.shared[0].module_.load_state_dict(self.net_.module_.state_dict())
        self.net_ = self.shared[0]


@fails("check_estimators_pickle", "lambda")
class HoldsLambda(AfterFit):
    def after_fit(self):
        self.transform_ = lambda words: words


@fails("check_estimators_pickle", "after pickling")
class ForgetsInPickle(DiceTokenTagger):
    def __setstate__(self, state):
        super().__setstate__(state)
        self.background_bias_ = -20.0


# -- the world around ------------------------------------------------------------------------------


@fails("check_global_state_untouched", "torch's random")
class SeedsTorch(AfterFit):
    def after_fit(self):
        torch.manual_seed(0)


@fails("check_global_state_untouched", "numpy's random")
class SeedsNumpyIfUnseeded(AfterFit):
    def after_fit(self):
        if self.random_state is None:
            np.random.shuffle([1, 2, 3])


@fails("check_global_state_untouched", "predict must .*Python's random")
class DrawsInPredict(DiceTokenTagger):
    def predict(self, X):
        random.random()
        return super().predict(X)


@fails("check_global_state_untouched", "number of threads")
class SetsThreads(AfterFit):
    def after_fit(self):
        torch.set_num_threads(torch.get_num_threads() + 1)


@fails("check_global_state_untouched", "denormals")
class FlushesDenormals(AfterFit):
    def after_fit(self):
        torch.set_flush_denormal(True)


@fails("check_global_state_untouched", "warnings.filters")
class FiltersWarnings(AfterFit):
    def after_fit(self):
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="some.module")


@fails("check_global_state_untouched", "logging")
class SilencesLogging(AfterFit):
    def after_fit(self):
        logging.getLogger("transformers").setLevel(logging.CRITICAL)


@fails("check_global_state_untouched", "os.environ")
class SetsEnvironment(AfterFit):
    def after_fit(self):
        os.environ["SKDICE_FITTED"] = "1"


@fails("check_global_state_untouched", "working directory")
class WritesFile(AfterFit):
    def after_fit(self):
        Path("checkpoint.pt").touch()


@fails("check_quiet", "wrote 'done")
class Prints(AfterFit):
    def after_fit(self):
        sys.stdout.write("done\n")


@fails("check_quiet", "wrote 'done")
class PrintsBelowPython(AfterFit):
    def after_fit(self):
        os.write(2, b"done\n")


@fails("check_quiet", "wrote 'done")
class LogsWarning(AfterFit):
    def after_fit(self):
        logging.getLogger(__name__).warning("done")


# -- predictions -----------------------------------------------------------------------------------


@fails("check_outputs", "24 rows of X; got 23")
class LosesLastRow(DiceTokenTagger):
    def predict(self, X):
        return super().predict(X)[:-1]


@fails("check_outputs", "must return an array")
class ReturnsList(DiceTokenTagger):
    def predict(self, X):
        return super().predict(X).tolist()


@fails("check_outputs", r"lie in \[0, 1\]")
class ReturnsLogits(DiceTokenTagger):
    def predict_proba(self, X):
        p = super().predict_proba(X)
        for i, row in enumerate(p):
            p[i] = np.log(row)
        return p


@fails("check_outputs", "5 classes; row 0 has 4")
class DropsClass(DiceTokenTagger):
    def predict_proba(self, X):
        p = super().predict_proba(X)
        for i, row in enumerate(p):
            p[i] = row[:, 1:]
        return p


@fails("check_rows_of_one_length", r"got the shape \(4, \d+\)")
class StacksRows(DiceTokenTagger):
    def predict(self, X):
        rows = super().predict(X)
        same = len({len(row) for row in rows}) == 1 and len(rows) > 1
        return np.array(rows.tolist()) if same else rows


@fails("check_score", "got -1")
class ScoresNegativeLoss(DiceTokenTagger):
    def score(self, X, y, sample_weight=None):
        return -1 - super().score(X, y)


@fails("check_score", "got nan")
class ScoresNan(DiceTokenTagger):
    def score(self, X, y, sample_weight=None):
        return float("nan")


@fails("check_classes", "sorted and unique")
class UnsortedClasses(AfterFit):
    def after_fit(self):
        self.classes_ = self.classes_[::-1]


@fails("check_classes", "row 23 is predicted as")
class InventsTag(DiceTokenTagger):
    def predict(self, X):
        rows = super().predict(X)
        rows[-1] = ["?" for _ in rows[-1]]
        return rows


@fails("check_fit_idempotent", "after a second fit")
class ContinuesSeeds(DiceTokenTagger):
    def _draw_seed(self):
        self._n_fits = getattr(self, "_n_fits", 0) + 1
        return super()._draw_seed() + self._n_fits


@fails("check_methods_subset_invariance", "predict_proba of single rows")
class DependsOnOtherRows(DiceTokenTagger):
    def predict_proba(self, X):
        p = super().predict_proba(X)
        for i, row in enumerate(p):
            p[i] = row * (1 - 1e-4 * len(X))
        return p


@fails("check_methods_sample_order_invariance", "another order")
class SortsByLength(DiceTokenTagger):
    def predict(self, X):
        return super().predict(sorted(X, key=len))


@fails("check_input_containers")
class IndexesByLabel(DiceTokenTagger):
    def predict(self, X):
        return super().predict([X[i] for i in range(len(X))])


# -- data and weights ------------------------------------------------------------------------------


@fails("check_requires_y_none", "raised TypeError")
class FailsWithoutY(DiceTokenTagger):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, [list(row) for row in y], sample_weight)


@fails("check_requires_y_none", "'bad input'")
class UnclearWithoutY(DiceTokenTagger):
    def fit(self, X, y=None, sample_weight=None):
        if y is None:
            raise ValueError("bad input")
        return super().fit(X, y, sample_weight)


@fails("check_estimators_empty_data_messages", "no rows.* nothing was raised")
class FitsNothing(DiceTokenTagger):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight) if len(X) else self


@fails("check_one_sample", "raised IndexError")
class FailsOnOneRow(DiceTokenTagger):
    def fit(self, X, y, sample_weight=None):
        if len(X) == 1:
            raise IndexError("index 1 is out of bounds")
        return super().fit(X, y, sample_weight)


@fails("check_class_weight", "must change what is learned")
class IgnoresClassWeight(DiceTokenTagger):
    def _make_loss(self, dataset, tags):
        return super()._make_loss(dataset, tags).set_params(class_weight=None)


@fails("check_sample_weight_equivalence", "with weight 0")
class IgnoresSampleWeight(DiceTokenTagger):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)
