"""An estimator that costs nothing, to search over, and a search in a process of its own."""

import multiprocessing
import os
import sys
import time
import traceback

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.base import BaseEstimator, ClassifierMixin

from skdice.model_selection import DiceSearchCV

X = np.arange(12.0).reshape(-1, 1)
Y = np.arange(12) % 2
# What a fit does besides, which is no part of the study: "hang" or "dawdle".
CONDUCT = "SKDICE_TESTS_CONDUCT"
# Forks of a process that has imported all there is, and done nothing else.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


class Act:
    """What a fit does besides: a function of the estimator and X, which is no part of the study."""

    def __init__(self, function=None):
        self.function = function

    def __call__(self, estimator, X):
        self.function(estimator, X)

    def __reduce__(self):
        return Act, ()

    def __deepcopy__(self, memo):
        return self


class Peak(ClassifierMixin, BaseEstimator):
    """Scores ``1 - (x - 0.3) ** 2``, less a little that depends on the fold.

    An `Act` is called in every fit.
    """

    def __init__(self, x=0.0, kind="plain", act=None, verbose=1, random_state=None):
        self.x = x
        self.kind = kind
        self.act = act
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        conduct = os.environ.get(CONDUCT)
        if conduct is not None:
            sys.stdout.write("fitting\n")
            sys.stdout.flush()
            time.sleep(600 if conduct == "hang" else 0.05)
        self.sample_weight_ = sample_weight
        if self.act is not None:
            self.act(self, X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[0], len(X))

    def predict_proba(self, X):
        return np.tile([0.4, 0.6], (len(X), 1))

    def score(self, X, y):
        return 1 - (self.x - 0.3) ** 2 - X[0, 0] / 100


class Losses(Peak):
    """Has the parameters that the default space searches."""

    def __init__(
        self, loss="dice", lr=1.0, alpha=None, beta=None, gamma=None, memory=None, ce_weight=None,
        K=None, act=None,
    ):  # fmt: skip
        super().__init__(act=act)
        self.loss, self.lr, self.alpha, self.beta, self.gamma = loss, lr, alpha, beta, gamma
        self.memory, self.ce_weight, self.K = memory, ce_weight, K


def space(trial):
    return {"x": trial.suggest_float("x", 0.0, 1.0)}


def make_search(storage=None, **parameters):
    """Return a search that is quick, quiet and always the same."""
    defaults = {"n_trials": 6, "cv": 3, "pruner": None, "verbose": 0, "random_state": 0}
    estimator = parameters.pop("estimator", Peak())
    return DiceSearchCV(
        estimator, parameters.pop("space", space), storage=storage, **{**defaults, **parameters}
    )


def trials_of(storage, name="skdice"):
    if "://" not in str(storage):
        storage = JournalStorage(JournalFileBackend(str(storage)))
    return optuna.load_study(study_name=name, storage=storage).trials


def start_search(conduct, storage, **parameters):
    """Run :func:`make_search` in a new process; return it and a file of the lines that it prints.

    These are one for each fit, and the number of its rows at the end, or its error.
    """
    reader, writer = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_search, args=(conduct, storage, parameters, writer))
    process.start()
    writer.close()
    return process, os.fdopen(os.dup(reader.fileno()))


def _search(conduct, storage, parameters, output):
    os.environ[CONDUCT] = conduct
    sys.stdout = os.fdopen(os.dup(output.fileno()), "w")
    try:
        search = make_search(storage, **parameters).fit(X, Y)
        sys.stdout.write(f"{len(search.cv_results_['params'])}\n")
        sys.stdout.flush()
    except Exception:
        traceback.print_exc(file=sys.stdout)
        raise
