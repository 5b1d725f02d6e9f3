"""A fit as a function, prepare, choose, train, decide, and what it has learned as one value."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from .._inputs import count_of
from ..io import Fitted
from ..losses import LossName
from ..nn import NotFiniteError, NotLearningError, TextNet
from ..tasks import Logits, Rows, Task, TeacherLabels
from ._network import Plan, history_of, logits_of, train_members
from ._plan import Prepared, choose, choose_again, prepare, shared_seed
from ._settings import Settings
from .auto import Choice, table_of

# Folds in which a decision is tuned on the training rows.
N_FOLDS = 5
# Losses that "cv" compares.
_CV_LOSSES: tuple[LossName, ...] = ("ce", "dice")
# Networks that label rows without labels (benchmarks/RESULTS.md, "Self-training").
_N_TEACHERS = 3

Splits = Sequence[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class FitResult:
    """How a fit ended: what was learned until then, and the error that ended it, if one did."""

    fitted: Fitted
    error: BaseException | None = None

    def complete(self) -> Fitted:
        """Return the fitted value; the error is raised if there is one."""
        if self.error is not None:
            raise self.error
        return self.fitted


def fit(
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None = None,
    unlabeled: Rows | None = None,
    *,
    feature_names: np.ndarray | None = None,
    kind: str = "member",
) -> FitResult:
    """Fine-tune a network to the rows; the task has learned nothing yet.

    ``valid`` are other rows, to score after every epoch; those of ``validation_fraction`` are held
    out of ``rows``. ``unlabeled`` are rows without labels, which an ensemble of three networks
    labels first, or whose labels are ``TeacherLabels``. ``kind`` is what the progress bar calls one
    of several networks. An error or Ctrl-C that ends the training is in the result.
    """
    task.check_learnable(rows, settings.loss)
    seed, choices = shared_seed(settings), dict[str, Choice]()
    if settings.loss == "cv":
        splits = split_folds(task, rows, N_FOLDS, seed)
        choices["loss"] = _compare_losses(task, settings, rows, valid, unlabeled, splits)
        settings = replace(settings, loss=choices["loss"].value)
    n_unlabeled = 0 if unlabeled is None else len(unlabeled)
    prepared = prepare(
        task, settings, rows, valid, n_unlabeled=n_unlabeled, seed=seed, choices=choices
    )
    if unlabeled is not None:
        prepared = replace(prepared, rows=_with_taught(prepared, unlabeled))
    plan, nets, error = train(prepared, choose(prepared, kind))
    nets[0].module_.members.extend([net.module_ for net in nets[1:]])
    fitted = Fitted(
        task=plan.task,
        reader=plan.reader,
        net=nets[0],
        loss=plan.loss,
        choices=table_of(plan.choices),
        history=history_of(nets),
        best_epoch=max(net.best_epoch_ for net in nets),
        negative_ratio=plan.sampled.ratio,
        n_rows=prepared.facts.n_rows,
        n_unlabeled=n_unlabeled,
        feature_names=feature_names,
        interrupted=error is not None,
    )
    if error is not None or not plan.task.is_tuned:
        return FitResult(fitted=fitted, error=error)
    return decide(fitted, plan, rows, given=valid, unlabeled=unlabeled)


def train(prepared: Prepared, plan: Plan) -> tuple[Plan, list[TextNet], BaseException | None]:
    """Train the networks, once more with a third of an open rate if they learn nothing."""
    again = copy.deepcopy(prepared.rng)
    nets, error = train_members(plan, prepared.seed, prepared.rng)
    if isinstance(error, NotLearningError | NotFiniteError) and plan.settings.lr == "auto":
        plan = choose_again(plan, error)
        nets, error = train_members(plan, prepared.seed, again)
    return plan, nets, error


def decide(
    fitted: Fitted, plan: Plan, rows: Rows, *, given: Rows | None, unlabeled: Rows | None
) -> FitResult:
    """Tune the decision.

    ``rows`` are all rows with labels, ``given`` those that were given to validate on.
    """
    try:
        tuned, where = fitted.task, ""
        if tuned.tuning == "cv":
            scores = out_of_fold_scores(
                tuned, plan.settings, rows, valid=given, unlabeled=unlabeled
            )
            tuned = tuned.tune(rows, scores)
            where = "the training rows, as fits without them predict them"
        elif len(plan.valid):
            valid, logits = plan.valid, _logits_of(fitted, plan.settings)
            scores = tuned.scores(valid.X, fitted.reader, logits)
            tuned, where = tuned.tune(valid, scores), f"the {len(valid):,} rows that are held out"
        if where:
            choices = dict(plan.choices)
            for name, value in tuned.decision.items():
                if name != "scheme_":
                    choices[name.removesuffix("_")] = Choice(value, f"It was tuned on {where}.")
            fitted = replace(fitted, task=tuned, choices=table_of(choices))
    except BaseException as error:
        return FitResult(fitted=replace(fitted, interrupted=True), error=error)
    return FitResult(fitted=fitted)


def _logits_of(fitted: Fitted, settings: Settings) -> Logits:
    return logits_of(fitted.task, fitted.net, fitted.reader, settings)


def out_of_fold_scores(
    task: Task,
    settings: Settings,
    rows: Rows,
    *,
    valid: Rows | None = None,
    unlabeled: Rows | None = None,
    n_folds: int = N_FOLDS,
    splits: Splits | None = None,
) -> list[Any]:
    """Return the scores of each row by a network that has not seen it.

    The task has learned from all rows. Logits have its classes; those that a fold's network does
    not know get the lowest logit there is. There are ``n_folds``, fewer if there are not so many
    rows, groups of rows, or rows of a class; or those of ``splits``, where each row is in one test
    part. Two folds at least, or a ValueError.
    """
    found: list[Any] = [None] * len(rows)
    splits = splits or split_folds(task, rows, n_folds, shared_seed(settings))
    for part, logits, test in _fold_fits(task, settings, rows, valid, unlabeled, splits):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # The fit of all rows says it.
            scores = part.task.scores(rows.take(test).X, part.reader, logits)
        known, classes = part.task.class_names, task.class_names
        if task.head.classes is not None and known != classes:
            lowest = min((float(row.min()) for row in scores if row.size), default=0.0)
            scores = [in_columns(row, known, classes, lowest) for row in scores]
        for i, score in zip(test, scores):
            found[i] = score
    return found


def _fold_fits(
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None,
    unlabeled: Rows | None,
    splits: Splits,
) -> Iterator[tuple[Fitted, Logits, np.ndarray]]:
    """Fit the training rows of each split; yield the fit, its network and the test rows."""
    asked = _without_folds(task)
    for train, test in splits:
        # Callbacks collect what they see of one fit.
        callbacks = clone(settings.callbacks, safe=False)
        of_part = replace(settings, runtime="torch", callbacks=callbacks)
        with warnings.catch_warnings():
            # What is wrong with rows, the fit of all rows has said.
            warnings.simplefilter("ignore", UserWarning)
            part = fit(asked, of_part, rows.take(train).used(), valid, unlabeled).complete()
        yield part, _logits_of(part, of_part), test


def _compare_losses(
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None,
    unlabeled: Rows | None,
    splits: Splits,
) -> Choice:
    """Return the loss with the better mean score in the folds, each weighted by its test rows.

    Folds whose training rows no network can learn from are left out for both.
    """
    used, problems = [], []
    for i, (train, test) in enumerate(splits, 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                task.check_learnable(rows.take(train), _CV_LOSSES[0])
            used.append((train, test))
        except ValueError as error:
            problems.append(f"Fold {i} is left out of both: {error}")
    if not used:
        raise ValueError(
            f"loss='cv' compares losses in {len(splits)} folds, and none has training rows that a "
            f"network can learn from. {problems[0]}"
        )
    means, metric = {}, ""
    for name in _CV_LOSSES:
        tried = replace(settings, loss=name, checkpoint_dir=None)
        scores, weights = [], []
        for part, logits, test in _fold_fits(task, tried, rows, valid, unlabeled, used):
            tested, metric = rows.take(test), part.task.metric_name
            scores.append(part.task.validator(tested, part.reader)(logits))
            weights.append(len(tested) if tested.weight is None else tested.weight.sum())
        means[name] = float(np.average(scores, weights=weights))
    best = max(means, key=lambda name: means[name])
    shown = " and ".join(f"{mean:.3f} with {name}" for name, mean in means.items())
    why = f"The mean {metric} of {count_of(len(used), 'fold')} of the training rows is {shown}."
    return Choice(best, " ".join([why, *problems]))


def split_folds(
    task: Task, rows: Rows, n_folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test rows of each fold: by groups, else by classes if there are."""
    groups = task.groups(rows.X) if rows.groups is None else rows.groups
    classes = rows.strata if groups is None else None
    kinds = classes if classes is not None else range(len(rows)) if groups is None else groups
    _, number, sizes = np.unique(kinds, return_inverse=True, return_counts=True)
    most, needed = len(sizes), "two rows"
    if groups is not None:
        needed = "rows of two groups"
    elif classes is not None:
        most, needed = sizes.min(), "two rows of each class"
        if len(sizes) > 2:  # A class may be missing in a fold.
            most, needed = sizes.max(), "two rows of a class"
    if most < 2:
        raise ValueError(f"Out-of-fold predictions need {needed}; got {len(rows)} rows.")
    kind = StratifiedKFold if classes is not None else KFold if groups is None else GroupKFold
    cv = kind(min(n_folds, int(most)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Of a class with fewer rows than folds.
        return list(cv.split(number, number, number))


def in_columns(row: np.ndarray, known: list[Any], classes: list[Any], fill: float) -> np.ndarray:
    """Return scores of some classes among those of all, which are filled up."""
    whole = np.full((*row.shape[:-1], len(classes)), fill, dtype=row.dtype)
    whole[..., [classes.index(name) for name in known]] = row
    return whole


def _with_taught(prepared: Prepared, unlabeled: Rows) -> Rows:
    """Return training rows twice, and then those without labels, as a teacher labels them.

    These weigh as much as their labels are probable, times the mean weight of the training rows.
    """
    rows, given = prepared.rows, unlabeled.y
    if isinstance(given, TeacherLabels):
        labelled = prepared.task.taught(given.classes, given.predicted, given.p)
    else:
        labelled = _labelled_by_networks(prepared, unlabeled)
    mean = 1.0 if rows.weight is None else rows.weight.mean()
    taught = rows.join(rows)
    for labels, p in labelled:
        weight = (p * mean).astype(np.float32)
        taught = taught.join(replace(unlabeled, y=labels, weight=weight).used())
    return taught


def _labelled_by_networks(prepared: Prepared, unlabeled: Rows) -> list[tuple[Any, np.ndarray]]:
    """Return labels and probabilities of rows, by three networks that learn from the others.

    Of their fit the progress alone is shown: the fit that follows warns of the same.
    """
    rows, settings, valid = prepared.rows, prepared.settings, prepared.valid
    teacher = replace(
        settings,
        n_members=max(_N_TEACHERS, settings.n_members),
        random_state=prepared.seed,
        validation_fraction=None,
        checkpoint_dir=None,
        callbacks=None,
        runtime="torch",
    )
    held_out = valid if len(valid) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        asked = _without_folds(prepared.task)
        fitted = fit(asked, teacher, rows.used(), held_out, kind="teacher").complete()
        return fitted.task.label(unlabeled.X, fitted.reader, _logits_of(fitted, teacher))


def _without_folds(task: Task) -> Task:
    """Return a task that tunes no decision out of fold."""
    return replace(task, tuning=None) if task.tuning == "cv" else task
