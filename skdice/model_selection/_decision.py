"""Tuning of the decision that a fitted estimator makes."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._inputs import check_sample_weight, count_of, indexable_rows, list_some
from .._parameters import check_number
from .._typing import Labels, T, Weights
from ..estimators import TextEstimator
from ..exceptions import silent, told_once, warn
from ..tasks import Classifying, Goal, Rows, Task

# With 100 rows a tuned decision was level with the fitted one for entities, and better than .5 for
# pairs (benchmarks/RESULTS.md, "Decisions on spare rows and out of fold"). Fewer are a judgement.
_FEW_ROWS = 100
_N_FOLDS = 5


@told_once()
def tune_decision(
    estimator: T,
    X: Any,
    y: Any,
    *,
    metric: Callable[..., float] | None = None,
    sample_weight: Weights = None,
    per_label: bool = False,
    min_precision: float | None = None,
    min_recall: float | None = None,
    cv: int | None = None,
    groups: Labels | None = None,
) -> T:
    """Return the fitted estimator with its decision tuned on held-out rows, or by cross-fitting.

    Compare losses with tuned decisions only: cross-entropy with a tuned threshold may be as good as
    a loss that is ahead as fitted. A classifier with two classes has one threshold to tune, with
    more classes one for each (subtracted from its logit), with several labels one for each label. A
    token tagger has the bias of "O", a query tagger the threshold of entities, and an extractor the
    null threshold.

    Parameters
    ----------
    estimator : fitted estimator of this package
        Or a fitted Pipeline that ends in one. It is left as it is; the copy that is returned shares
        its network.
    X, y : rows and their labels
        Not those that the estimator was fitted on; with ``cv`` just those.
    metric : callable, optional
        ``metric(y_true, y_pred)`` (and ``sample_weight`` if given) to maximise, such as
        ``sklearn.metrics.f1_score``. By default what ``estimator.score`` computes: accuracy of
        texts with one label, F1 of everything else.
    sample_weight : array-like of shape (n_rows,), optional
        A weight of 2 counts as repetition.
    per_label : bool, default=False
        Whether each type of entity of a tagger gets a bias or threshold of its own, for F1 alone
        (``metric`` and the floors must be None). Types compete for words, so they are tuned one
        after the other for the F1 of all. The value of a type with n entities is shrunk towards the
        shared one: it keeps n / (n + 20) of the distance. Classifiers with several classes or
        labels have one each anyway.
    min_precision, min_recall : float, optional
        Maximise recall with at least this precision, or precision with at least this recall: of
        entities, of the positive one of two classes, of each of several labels, or of answers (by
        their F1 with the gold ones). For entities a margin of one standard error is added, so that
        other rows reach it most of the time; with too few of them for that margin, the surest
        decision is taken. All else reaches it on other rows about half of the time. If no decision
        reaches it, a warning says so.
    cv : int, optional
        Number of folds for tuning on the training rows, so that none has to be held out. For each
        fold a clone is fitted on the others and predicts this one; the decision is tuned on all of
        these predictions. Questions about one context are in one fold, and classes have equal
        shares in all of them. ``sample_weight`` then goes to the fits, too.
    groups : array-like of shape (n_rows,), optional
        With ``cv``: rows of one group, such as a document, are in one fold.

    Returns
    -------
    estimator
        A copy with another ``threshold_``, ``background_bias_`` or ``null_threshold_``: the best
        value, or of equally good ones the nearest to 0, of probabilities to .5. A tagger (without
        ``metric`` and minimum) gets the mean of five values, each the best one without another
        fifth of the rows. ``predict_proba`` and ``decision_function`` of a classifier do not
        change.

    Raises
    ------
    TypeError, NotFittedError
        If the estimator has no decision to tune, or is not fitted.

    Warns
    -----
    UserWarning
        If fewer than 100 rows have moved the decision, without a floor; it says what the decision
        would be without a fifth of the rows. Or if no decision reaches the floor.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : For other classifiers with two classes.

    Examples
    --------
    >>> from skdice.model_selection import tune_decision
    >>> tuned = tune_decision(classifier, X_valid, y_valid)  # doctest: +SKIP
    >>> sure = tune_decision(tagger, X_valid, y_valid, min_precision=0.9)  # doctest: +SKIP
    >>> tuned = tune_decision(tagger, X_train, y_train, cv=5)  # doctest: +SKIP
    """
    last: Any = estimator
    shared: dict[int, Any] = {}  # steps that a pipeline has in common with its copy
    while isinstance(last, Pipeline):
        for _, step in last.steps[:-1]:
            shared[id(step)] = step
            if hasattr(step, "transform"):  # Others, such as samplers, only change what is fitted.
                X = step.transform(X)
        last = last.steps[-1][1]
    if not isinstance(last, TextEstimator):
        got = f"the class {last.__name__}" if isinstance(last, type) else repr(last)
        raise TypeError(
            f"tune_decision takes a fitted classifier, tagger or extractor of skdice; got {got}. "
            f"For other classifiers see sklearn.model_selection.TunedThresholdClassifierCV."
        )
    check_is_fitted(last, "net_")
    X, y = indexable_rows(X), indexable_rows(y)
    weight = check_sample_weight(sample_weight, _num_samples(X))

    def goal_on(some: np.ndarray) -> Goal:
        """Return what the decision is tuned for on some of the rows."""

        def of_predictions(predicted: Any) -> float:
            weights = {} if weight is None else {"sample_weight": weight[some]}
            return float(metric(_safe_indexing(y, some), predicted, **weights))  # type: ignore[misc]

        own = None if metric is None else of_predictions
        return Goal(per_label, min_precision, min_recall, own)

    goal = goal_on(np.arange(_num_samples(X)))
    goal.check()
    check_number("tune_decision", "cv", cv, low=2, integer=True, optional=True)
    if not _num_samples(X):
        raise ValueError("tune_decision needs a row to tune the decision on; got none.")
    inner = last.internals
    rows = inner.read_labelled(X, y, weight)
    _check_labels_of_fit(inner.task, rows, are_of_fit=cv is not None)
    if cv is None:
        scores = inner.decision_scores(rows.X)
    else:
        scores = inner.out_of_fold_scores(X, y, weight, groups, n_folds=cv)
    task = inner.task.tune(rows, scores, goal)
    if len(rows) < _FEW_ROWS and not goal.has_floor:
        _warn_of_few(inner.task, task, rows, scores, goal_on)
    return copy.deepcopy(estimator, shared | {id(last): inner.with_task(task)})


def _warn_of_few(
    fitted: Task, tuned: Task, rows: Rows, scores: Sequence[Any], goal_on: Callable[..., Goal]
) -> None:
    """Warn that a decision was tuned on few rows, and how far it depends on which rows they are."""
    every, decisions = np.arange(len(rows)), [fitted, tuned]
    for fold in range(min(_N_FOLDS, len(rows))):
        some = every[every % _N_FOLDS != fold]
        if not len(some) or (rows.weight is not None and not rows.weight[some].any()):
            continue
        with silent():
            decisions.append(fitted.tune(rows.take(some), [scores[i] for i in some], goal_on(some)))
    for name, value in tuned.decision_attributes.items():
        found = [each.decision_attributes[name] for each in decisions]
        numbers = [list(each.values()) if isinstance(each, Mapping) else each for each in found]
        before, now, *others = np.broadcast_arrays(*(np.array(each, float) for each in numbers))
        if np.array_equal(before, now):
            continue
        low, high = np.min([now, *others], axis=0), np.max([now, *others], axis=0)
        with np.errstate(invalid="ignore"):  # Infinity less infinity
            i = np.unravel_index(np.argmax(np.where(before == now, -1.0, high - low)), low.shape)
        names = value if isinstance(value, Mapping) else tuned.class_names
        label = f" of {list(names)[i[0]]!r}" if low.ndim else ""
        warn(
            f"tune_decision moved {name}{label} from {before[i]:.2f} to {now[i]:.2f} on "
            f"{count_of(len(rows), 'row')}, which are few: without one fifth of them or another it "
            f"is {low[i]:.2f} to {high[i]:.2f}. On other rows it may be worse than what was fitted."
            f" Tune on {_FEW_ROWS} rows or more."
        )


def _check_labels_of_fit(task: Task, rows: Rows, *, are_of_fit: bool) -> None:
    """Raise a ValueError unless the fit had the labels of its own rows, or one of those of others.

    A label that only other rows have counts as missed, whatever the decision is.
    """
    if isinstance(task, Classifying):
        task.known(rows.y)  # A ValueError says that they are of another kind than those of the fit.
        if task.is_multilabel:
            return
    labels, known = np.asarray(task.facts(rows).classes).tolist(), task.class_names
    unknown = [label for label in labels if label not in known]
    if unknown and (are_of_fit or len(unknown) == len(labels)):
        what = "with cv, y must be that of the fit" if are_of_fit else "y has no label of the fit"
        raise ValueError(
            f"tune_decision: {what}, which had the labels {list_some(known)}. Got "
            f"{list_some(unknown)}."
        )
