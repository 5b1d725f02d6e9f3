"""Checks of an estimator's conduct: parameters, copies, and the world around a fit."""

import inspect
import io
import logging
import os
import pickle
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import joblib
import numpy as np
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ._case import Case, fingerprint, outputs, raises, require, require_same_outputs, take


def check_parameters_round_trip(case: Case) -> None:
    """Parameters go in and come out as they are, and unknown ones are refused."""
    estimator = clone(case.estimator)
    params = estimator.get_params(deep=False)
    again = type(estimator)(**params).get_params(deep=False)
    for name, value in params.items():
        require(again[name] is value, f"the parameter {name!r} does not come back as it was given.")
    require(estimator.set_params(**params) is estimator, "set_params must return self.")
    with raises(ValueError, "set_params with an unknown parameter"):
        estimator.set_params(no_such_parameter=1)


def check_fit_score_takes_y(case: Case) -> None:
    """The signatures are fit(X, y, sample_weight=None) and score(X, y, ...)."""
    fit = inspect.signature(case.estimator.fit).parameters
    require(list(fit)[:2] == ["X", "y"], f"fit must take X and y first; it takes {list(fit)}.")
    require("sample_weight" in fit, "fit must take sample_weight, one weight per row.")
    require(fit["sample_weight"].default is None, "fit must have sample_weight=None.")
    score = inspect.signature(case.estimator.score).parameters
    require(list(score)[:2] == ["X", "y"], f"score must take X and y first; takes {list(score)}.")


def check_sample_weight_routing(case: Case) -> None:
    """Meta-estimators can be asked to pass sample_weight on to fit."""
    require(has_fit_parameter(case.estimator, "sample_weight"), "fit must take sample_weight.")
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = clone(case.estimator).set_fit_request(sample_weight=True)
        requests = estimator.get_metadata_routing().fit.requests
    require(
        requests.get("sample_weight") is True,
        f"set_fit_request(sample_weight=True) must be kept; the requests are {requests}.",
    )


def check_html_repr(case: Case) -> None:
    """Notebooks can show the estimator, before and after fit."""
    for estimator in (case.new(), case.fitted()):
        require(
            type(estimator).__name__ in estimator._repr_html_(),
            "_repr_html_ must show the name of the class.",
        )


def check_estimators_unfitted(case: Case) -> None:
    """Every prediction method raises NotFittedError before it looks at X."""
    estimator = case.new()
    methods = [name for name in dir(type(estimator)) if re.match(r"predict|(\w+_)?score$", name)]
    for name in (*methods, "decision_function", "transform", "exact_match", "save_pretrained"):
        method = getattr(estimator, name, None)
        if not callable(method):
            continue
        parameters = inspect.signature(method).parameters.values()
        needed = [
            p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        with raises(NotFittedError, f"{name} before fit, whatever X is,"):
            result = method(*(object() for _ in needed))
            if isinstance(result, Iterator):
                next(result)


def check_fit_check_is_fitted(case: Case) -> None:
    """``check_is_fitted`` tells a fitted estimator from an unfitted one."""
    estimator = case.new()
    with raises(NotFittedError, "check_is_fitted before fit"):
        check_is_fitted(estimator)
    estimator.fit(case.X, case.y)
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise AssertionError(f"check_is_fitted after fit raised {error}") from error


def check_estimators_fit_returns_self(case: Case) -> None:
    """``fit`` returns the estimator."""
    estimator = case.new()
    require(estimator.fit(case.X, case.y) is estimator, "fit must return self.")


def check_estimators_overwrite_params(case: Case) -> None:
    """``fit`` changes no constructor parameter."""
    estimator = case.new()
    before = estimator.get_params()
    prints = {name: fingerprint(value) for name, value in before.items()}
    estimator.fit(case.X, case.y)
    after = estimator.get_params()
    require(set(after) == set(before), "fit must not add or remove parameters.")
    for name, value in after.items():
        require(
            fingerprint(value) == prints[name],
            f"fit must not change parameters; {name!r} was {before[name]!r}, now {value!r}.",
        )


def check_dont_overwrite_parameters(case: Case) -> None:
    """``fit`` sets only attributes that start or end with an underscore."""
    estimator = case.new()
    before = dict(vars(estimator))
    estimator.fit(case.X, case.y)
    for name, value in vars(estimator).items():
        if name.startswith("_") or name.endswith("_"):
            continue
        require(name in before, f"fit must not add public attributes; it added {name!r}.")
        require(value is before[name], f"fit must not replace attributes; it replaced {name!r}.")


def check_dict_unchanged(case: Case) -> None:
    """Predicting and scoring change neither the estimator nor its later predictions."""
    estimator = case.fitted()
    before = dict(vars(estimator))
    # What a network holds is compared by the predictions, everything else by its contents.
    plain = (str, int, float, list, tuple, dict, np.ndarray, type(None))
    prints = {k: fingerprint(v) for k, v in before.items() if isinstance(v, plain)}
    first = case.outputs(estimator)
    estimator.score(case.X, case.y)
    after = vars(estimator)
    changed = set(after) ^ set(before)
    changed |= {k for k in before if k in after and after[k] is not before[k]}
    changed |= {k for k in prints if k in after and fingerprint(after[k]) != prints[k]}
    require(not changed, f"predict and score must change no attribute; changed: {sorted(changed)}.")
    require_same_outputs(case.outputs(estimator), first, "the second time")


def check_data_unchanged(case: Case) -> None:
    """No method changes the rows that it is given."""
    before = fingerprint(case.X), fingerprint(case.y)
    estimator = case.new()
    methods: dict[str, Callable[[], Any]] = {
        "fit": lambda: estimator.fit(case.X, case.y),
        "predict": lambda: case.outputs(estimator),
        "score": lambda: estimator.score(case.X, case.y),
    }
    for name, call in methods.items():
        call()
        after = fingerprint(case.X), fingerprint(case.y)
        for rows, same in zip("Xy", (after[0] == before[0], after[1] == before[1])):
            require(same, f"{name} must not change the rows it is given; it changed {rows}.")


def check_no_n_features_in(case: Case) -> None:
    """Rows of text have no number of features."""
    require(
        not hasattr(case.fitted(), "n_features_in_"),
        "a text estimator must not set n_features_in_: rows of text have no features.",
    )


def check_estimators_pickle(case: Case) -> None:
    """A pickle or joblib dump predicts the same, and can be fitted again."""
    estimator = case.fitted()
    expected = case.outputs(estimator)
    copy = pickle.loads(pickle.dumps(estimator))
    require_same_outputs(case.outputs(copy), expected, "after pickling")
    copy.fit(case.X, case.y)
    require_same_outputs(
        case.outputs(copy), expected, "after pickling and fitting again", atol=1e-5
    )
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    require_same_outputs(case.outputs(joblib.load(file)), expected, "after joblib.dump and load")


def check_clone_is_unfitted(case: Case) -> None:
    """A clone of a fitted estimator is unfitted, and training it leaves the original alone."""
    estimator = case.fitted()
    expected = case.outputs(estimator)
    copy = clone(estimator)
    params = copy.get_params(deep=False)
    extra = [name for name in vars(copy) if name not in params and not name.startswith("_")]
    require(not extra, f"a clone must hold parameters only; it has {extra}.")
    with raises(NotFittedError, "predict of a clone of a fitted estimator"):
        copy.predict(case.X)
    index = np.arange(len(case.X))[::-1]
    copy.fit(take(case.X, index), take(case.y, index))
    require_same_outputs(case.outputs(estimator), expected, "after its clone was trained")


def check_global_state_untouched(case: Case) -> None:
    """Random generators, torch's switches, warnings, logging, environment and files stay."""
    _set_up_libraries()
    estimators = [case.new()]
    if "random_state" in estimators[0].get_params(deep=False):
        estimators.append(case.new().set_params(random_state=None))
    for estimator in estimators:
        with _untouched("fit"):
            estimator.fit(case.X, case.y)
        with _untouched("predict"):
            outputs(estimator, case.X)
        with _untouched("score"):
            estimator.score(case.X, case.y)


def check_quiet(case: Case) -> None:
    """Nothing is printed or logged with ``verbose=0``; warnings are no output."""
    estimator = case.new()
    with _captured() as written:
        estimator.fit(case.X, case.y)
        case.outputs(estimator)
        estimator.score(case.X, case.y)
    text = "".join(written)
    require(
        not text, f"nothing must be printed with verbose=0; fit, predict or score wrote {text!r}."
    )


def _set_up_libraries() -> None:
    """Let libraries set up themselves now that otherwise would when a first fit imports them."""
    from transformers.utils.logging import get_logger

    get_logger()  # Its log goes to what is sys.stderr now.
    torch.compiler.disable(len)  # torch's compiler notes in os.environ where it caches.


@contextmanager
def _untouched(method: str) -> Iterator[None]:
    before = _global_state()
    yield
    after = _global_state()
    changed = [name for name in before if before[name] != after[name]]
    require(not changed, f"{method} must leave global state alone; it changed {changed}.")


def _global_state() -> dict[str, Any]:
    """Return everything that a fit might leave changed, under names for the report."""
    loggers = [logging.getLogger(name) for name in (None, "transformers", "skorch", "torch")]
    states = [torch.get_rng_state()]
    if torch.cuda.is_available():
        states += torch.cuda.get_rng_state_all()
    return {
        "Python's random generator": random.getstate(),
        "numpy's random generator": joblib.hash(np.random.get_state()),
        "torch's random generator": [state.numpy().tobytes() for state in states],
        "torch's number of threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch's flushing of denormals": bool(torch.tensor(1e-310, dtype=torch.float64) * 1 == 0),
        "torch's default dtype": torch.get_default_dtype(),
        "torch's grad mode": torch.is_grad_enabled(),
        "torch's deterministic mode": (
            torch.are_deterministic_algorithms_enabled(),
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
        ),
        "torch's matmul precision": torch.get_float32_matmul_precision(),
        "numpy's error handling": np.geterr(),
        "warnings.filters": list(warnings.filters),
        "logging": [(logger.level, logger.disabled, list(logger.handlers)) for logger in loggers],
        "os.environ": dict(os.environ),
        "the working directory": (os.getcwd(), sorted(os.listdir())),
    }


@contextmanager
def _captured() -> Iterator[list[str]]:
    """Collect what is written to stdout and stderr, by Python or below it, and what is logged."""
    _set_up_libraries()
    written: list[str] = []
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    loggers = [logging.getLogger(), logging.getLogger("transformers")]
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        saved = os.dup(1), os.dup(2)
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        for logger in loggers:
            logger.addHandler(handler)
        try:
            with redirect_stdout(stream), redirect_stderr(stream):
                yield written
        finally:
            for logger in loggers:
                logger.removeHandler(handler)
            for descriptor, copy in zip((1, 2), saved):
                os.dup2(copy, descriptor)
                os.close(copy)
            file.seek(0)
            written += [stream.getvalue(), file.read().decode(errors="replace")]


CONDUCT_CHECKS: tuple[Callable[[Case], None], ...] = (
    check_parameters_round_trip,
    check_fit_score_takes_y,
    check_sample_weight_routing,
    check_estimators_unfitted,
    check_html_repr,
    check_fit_check_is_fitted,
    check_estimators_fit_returns_self,
    check_estimators_overwrite_params,
    check_dont_overwrite_parameters,
    check_no_n_features_in,
    check_dict_unchanged,
    check_data_unchanged,
    check_clone_is_unfitted,
    check_estimators_pickle,
    check_global_state_untouched,
    check_quiet,
)
