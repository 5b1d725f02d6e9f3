"""Runs the checks, all at once or one by one."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import SkipTest

from ..datasets import make_pairs, make_questions, make_tagging
from ..estimators import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier
from ._case import Case
from ._conduct import CONDUCT_CHECKS
from ._learning import LEARNING_CHECKS

# The checks of sklearn.utils.estimator_checks that pass no data to the estimator. Its other checks
# fit on matrices of numbers; the text versions here have their names.
_SKLEARN_CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
)


def check_text_estimator(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Check that a text estimator keeps scikit-learn's contract and the one of this package.

    ``sklearn.utils.estimator_checks.check_estimator`` fits on matrices of numbers, so it can say
    next to nothing about an estimator of text. This runs its checks that need no data, and versions
    of the others for rows of text: about fitting, predictions, weights, pickling, cloning and what
    a fit must leave alone (random generators, threads, warnings, logging, environment, files).

    Parameters
    ----------
    estimator : estimator instance
        Configured to be cheap: a tiny model, one or two epochs. It is fitted some thirty times, and
        only as a clone, with ``verbose=0`` and a fixed ``random_state``.
    X, y : sequences of n_rows rows, optional
        Rows that the estimator can be fitted on: a dozen or more, the classes mixed and unequally
        frequent. By default pairs or texts with labels for a subclass of our classifiers, questions
        with answers for one of our extractor, for others sentences as lists of words with entity
        tags.
    expected_failed_checks : dict of {check name: reason}, optional
        Checks that may fail. One that passes all the same is reported as "passed".

    Returns
    -------
    list of dict
        A dict for each check: ``check_name``; ``status``, which is "passed", "xfail" (failed as
        expected) or "skipped" (does not apply to this estimator); ``exception``, what was raised,
        or None; ``expected_to_fail`` and ``expected_to_fail_reason``.

    Raises
    ------
    AssertionError
        At the first check that fails unexpectedly; it names the check and says what is wrong.
    TypeError
        If a class is given instead of an instance.
    ValueError
        If ``expected_failed_checks`` names a check that does not exist, or only one of ``X`` and
        ``y`` is given.

    See Also
    --------
    text_estimator_checks : The same checks one by one, for instance for pytest.

    Examples
    --------
    >>> from skdice import DiceTokenTagger
    >>> from skdice.estimator_checks import check_text_estimator
    >>> tagger = DiceTokenTagger("path/to/a/tiny/model", max_epochs=1)
    >>> results = check_text_estimator(tagger)  # doctest: +SKIP
    """
    expected = dict(expected_failed_checks or {})
    checks = dict(text_estimator_checks(estimator, X, y))
    unknown = [name for name in expected if name not in checks]
    if unknown:
        raise ValueError(
            f"expected_failed_checks names {unknown[0]!r}, which is no check; the checks are "
            f"{', '.join(checks)}."
        )
    return [_run(name, check, estimator, expected) for name, check in checks.items()]


def text_estimator_checks(
    estimator: Any, X: Any = None, y: Any = None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the checks of :func:`check_text_estimator` one by one.

    The names do not depend on the estimator, and nothing is run before a check is called.

    Parameters
    ----------
    estimator : estimator instance
    X, y : sequences of n_rows rows, optional
        See :func:`check_text_estimator`.

    Yields
    ------
    name : str
    check : callable without arguments
        Raises an exception if the estimator fails it, ``unittest.SkipTest`` if it does not apply.

    Raises
    ------
    TypeError
        If a class is given instead of an instance.
    ValueError
        If only one of ``X`` and ``y`` is given.

    Examples
    --------
    >>> from skdice import DiceTokenTagger
    >>> from skdice.estimator_checks import text_estimator_checks
    >>> checks = dict(text_estimator_checks(DiceTokenTagger()))
    >>> checks["check_estimator_repr"]()

    In a test module, where a fixture makes the estimator:

    >>> import pytest
    >>> @pytest.mark.parametrize("name", list(checks))
    ... def test_contract(tiny_tagger, name):
    ...     dict(text_estimator_checks(tiny_tagger))[name]()
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an instance, got the class {estimator.__name__}. Pass "
            f"{estimator.__name__}(...), configured to be cheap."
        )
    if (X is None) != (y is None):
        given, missing = ("X", "y") if y is None else ("y", "X")
        raise ValueError(f"X and y go together; got {given} without {missing}.")
    return _checks(estimator, X, y)


def _checks(estimator: Any, X: Any, y: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    for name in _SKLEARN_CHECKS:
        yield name, partial(_run_sklearn_check, name, estimator)
    for check in (*CONDUCT_CHECKS, *LEARNING_CHECKS):
        yield check.__name__, partial(_run_check, check, estimator, X, y)


def _run(
    name: str, check: Callable[[], None], estimator: Any, expected: Mapping[str, str]
) -> dict[str, Any]:
    status = "passed"
    exception: Exception | None = None
    try:
        check()
    except SkipTest as skip:
        status, exception = "skipped", skip
    except Exception as error:
        if name not in expected:
            reason = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{type(estimator).__name__} fails {name}: {reason}") from error
        status, exception = "xfail", error
    return {
        "check_name": name,
        "status": status,
        "exception": exception,
        "expected_to_fail": name in expected,
        "expected_to_fail_reason": expected.get(name),
    }


def _run_sklearn_check(name: str, estimator: Any) -> None:
    from sklearn.utils import estimator_checks

    # One of the names has become a plural in newer versions.
    check = getattr(estimator_checks, name, None) or getattr(estimator_checks, name + "s")
    check(type(estimator).__name__, estimator)


def _run_check(check: Callable[[Case], None], estimator: Any, X: Any, y: Any) -> None:
    if X is None:
        X, y = _make_rows(estimator)
    check(Case(estimator, X, y))


def _make_rows(estimator: Any) -> tuple[Any, Any]:
    """Return rows that suit a subclass of one of our estimators, else sentences."""
    if isinstance(estimator, DiceSpanExtractor):
        return make_questions(16, ratio=14, unanswerable_share=0.25, random_state=0)
    if not isinstance(estimator, DicePairClassifier | DiceTextClassifier):
        return make_tagging(24, ratio=2, n_types=2, random_state=0)
    pairs, y = make_pairs(24, positive_share=0.4, random_state=0)
    if isinstance(estimator, DicePairClassifier):
        return pairs, y
    return [first for first, _ in pairs], y
