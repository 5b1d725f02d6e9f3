"""How much the labels of a row would teach a fitted estimator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from ..text import by_label

_OF_PARTS = ("least_confident", "least_confident_sum", "least_confident_max")
# The strategies by the name of the task; "auto" has the score of the first one.
_STRATEGIES = {
    "tagging": (*_OF_PARTS, "mnlp", "expected"),
    "query-tagging": (*_OF_PARTS, "expected"),
    "texts": ("margin", "expected"),
    "pairs": ("margin", "expected"),
    "questions": ("least_confident", "expected"),
}
# Pairs with log-odds by their similarities that far below the threshold are ruled out: judgement.
_TOO_FAR = np.log(10)


def strategies_of(inner: Any) -> tuple[str, ...]:
    """Return the names of the strategies that an estimator has, but for "random"."""
    if not inner.estimator.__sklearn_is_fitted__():
        return ("spread",)
    task = inner.task
    names = _STRATEGIES[task.info.name]
    is_same = task.info.is_classifier and not task.is_multilabel and len(task.classes) > 2
    has_no_entities = task.info.is_tagger and task.scheme is None
    return names[:-1] if is_same or has_no_entities else names


def score_rows(inner: Any, rows: Sequence[Any], strategy: str) -> tuple[Any, Any]:
    """Return the score of each row, which has words, and its expected entities or labels."""
    task, found = inner.task, inner.decision_scores(rows)
    if task.info.name == "tagging":
        score, expected = _score_words(task, rows, found, strategy)
    elif task.info.name == "query-tagging":
        cuts = by_label(inner.estimator.threshold_, task.labels)
        score, expected = _score_spans(task, rows, found, cuts, strategy)
    elif task.info.name == "questions":
        score, expected = _score_questions(task, found)
    else:
        score, expected = _score_classes(task, rows, np.stack(found), inner.estimator.threshold_)
    return expected if strategy == "expected" else score, expected


def _score_words(task: Any, rows: Any, logits: Any, strategy: str) -> tuple[Any, Any]:
    tags, offsets = task.class_names, np.cumsum([0, *map(len, rows)])
    first, flat = offsets[:-1], np.concatenate(logits)
    p = np.concatenate(task.decoder.probabilities(flat, offsets))
    starts = np.full(len(p), np.nan)  # Tags that are no chunk tags make no entities.
    if task.scheme is not None:
        starts = p[:, [tag[0] in "BSU" for tag in tags]].sum(axis=1)
    if task.scheme == "IOB1":  # There an "I" begins an entity unless it continues one.
        inside = p[:, [tag != "O" for tag in tags]].sum(axis=1)
        before = np.roll(inside, 1)
        before[first] = 0
        starts = np.maximum(starts, inside - before)
    unsure = 1 - p.max(axis=1)
    if strategy == "mnlp":
        best = [tags.index(tag) for row in task.decoder.tags(flat, offsets) for tag in row]
        unsure = -np.log(np.maximum(p[np.arange(len(p)), best], np.finfo(np.float64).tiny))
    return _of_parts(np.split(unsure, first[1:]), rows, strategy), np.add.reduceat(starts, first)


def _score_spans(task: Any, rows: Any, found: Any, cuts: Any, strategy: str) -> tuple[Any, Any]:
    expected = [sum((entity.score for entity in row), 0.0) for row in task.entities(found)]
    cuts = {label: logit(threshold) for label, threshold in cuts.items()}
    distances = [[abs(value - cuts[span.label]) for value, span in spans] for spans in found]
    unsure = [expit(-np.array(row, dtype=np.float64)) for row in distances]
    return _of_parts(unsure, rows, strategy), np.array(expected)


def _of_parts(unsure: Sequence[np.ndarray], rows: Any, strategy: str) -> np.ndarray:
    """Return the score of each row from how unsure each of its words or spans is."""
    if strategy == "least_confident_max":
        return np.array([part.max(initial=0.0) for part in unsure])
    total = np.array([part.sum() for part in unsure])
    return total if strategy == "least_confident_sum" else total / [len(row) for row in rows]


def _score_classes(task: Any, rows: Any, logits: np.ndarray, threshold: Any) -> tuple[Any, Any]:
    if task.is_multilabel:
        distance = np.abs(logits - logit(threshold)).min(axis=1)
        return np.exp(-distance), expit(logits).sum(axis=1)
    p = softmax(logits, axis=1)
    if len(task.classes) > 2:
        ahead = np.sort(logits - np.log(threshold), axis=1)
        return np.exp(ahead[:, -2] - ahead[:, -1]), p.sum(axis=1)
    other, cut = 1 - task.positive, logit(threshold)
    score = np.exp(-np.abs(logits[:, task.positive] - logits[:, other] - cut))
    if (similar := getattr(task, "similarities", None)) is not None:
        alone = similar.features(rows) @ similar.slope + similar.start
        score *= alone[:, task.positive] - alone[:, other] > cut - _TOO_FAR
    return score, p[:, task.positive]


def _score_questions(task: Any, found: Any) -> tuple[Any, Any]:
    best = np.array([spans[0][2] if spans else 0.0 for spans, _ in found])
    ahead = [no_answer if spans else 0.0 for spans, no_answer in found]
    none = np.where(best > 0, best * np.exp(ahead), 1.0)
    if task.null_threshold == np.inf:  # A fit without unanswerable questions.
        best, none = best / np.where(best > 0, 1 - none, 1.0), np.where(best > 0, 0.0, 1.0)
    return 1 - np.maximum(best, none), 1 - none
