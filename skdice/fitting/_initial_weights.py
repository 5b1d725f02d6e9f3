"""Where a head begins: a regression on the states of the encoder, for pairs one on similarities."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from .._pretrained import quiet_transformers
from .._typing import Splits
from ..exceptions import silent
from ..nn import Encoder, PairModule, current_ranks, denormals_flushed, features_of, seeded
from ..tasks import Classifying, Rows, Task, TaskName
from ..text import Similarities, TextReader
from ._network import make_batcher, module_of
from ._settings import Settings
from .auto import Choice, choose_head, choose_similarities, is_informed

# benchmarks/RESULTS.md has the evidence. C of the regression on states, the most rows of each class
# that it sees, and C of the regression on similarities.
_C, _MOST_ROWS, _C_SIMILAR = 0.003, 2000, 0.1
# Folds in which both are compared, and the shares of the network that are tried.
_N_FOLDS, _SHARES = 5, np.linspace(0, 1, 21)


class InitialWeights(NamedTuple):
    """Where a head on the states of the encoder begins.

    ``slope`` and ``bias``, (n_classes, n_features) and (n_classes,), are a logistic regression on
    these states. They are None if the states say nothing, so that the head begins as drawn.
    ``share`` is what the network of pairs gives to the logits.
    """

    slope: np.ndarray | None
    bias: np.ndarray | None
    share: float = 1.0

    def apply(self, module: Any) -> None:
        """Set the weights of a network (Kumar et al. 2022, "LP-FT")."""
        is_of_pairs = isinstance(module, PairModule)
        with torch.no_grad():
            if is_of_pairs:
                module.share.fill_(self.share)
            if module.has_new_head and self.slope is not None and self.bias is not None:
                head = module.comparison if is_of_pairs else module.head
                head.weight.copy_(torch.from_numpy(self.slope))
                head.bias.copy_(torch.from_numpy(self.bias))


class _Regression(NamedTuple):
    """A regression of the labels on the states of the encoder."""

    rows: Rows  # each once; copies of a row add up to its weight
    target: np.ndarray  # the class of each row
    weight: np.ndarray  # of each row
    order: np.ndarray  # the rows with a weight, shuffled
    used: np.ndarray  # the rows that the regression sees
    slope: np.ndarray
    bias: np.ndarray
    folds: Splits
    log_p: np.ndarray  # log-probabilities of the classes of these rows, out of fold
    gain: float  # by how much the states raise the log-likelihood of the labels, out of fold


# The task with its head, where that begins (None: as drawn), and what was chosen of it.
Beginning: TypeAlias = tuple[Task, InitialWeights | None, Mapping[str, Choice]]


class Seen(NamedTuple):
    """What a beginning is found from: the training rows, and what reads them."""

    rows: Rows
    settings: Settings  # device and precision are not open
    reader: TextReader
    encoder: Encoder
    seed: int


def _begin_texts(task: Any, seen: Seen) -> Beginning:
    """Begin with a regression on the mean states of the texts, if these say something."""
    encoder = seen.encoder
    # The task of a fold has learned before, and may have another head.
    task, on_mean = replace(task, reads_mean=False), replace(task, reads_mean=True)
    if on_mean.head.continues(encoder.heads, encoder.n_labels):
        return on_mean, None, {}
    is_trained = task.head.continues(encoder.heads, encoder.n_labels)
    is_regressed = not (task.is_multilabel or is_trained or encoder.has_decoder)
    found = _regress(on_mean, seen) if is_regressed else None
    if found is None:
        return task, None, {}
    choices = {"head": choose_head(len(found.folds), found.gain)}
    if not is_informed(len(found.folds), found.gain):
        return task, None, choices
    return on_mean, InitialWeights(found.slope, found.bias), choices


def _begin_pairs(task: Any, seen: Seen) -> Beginning:
    """Begin with a regression on the states of the texts, and one on their similarities.

    Both are scored on folds that they have not seen. The share of the network is the mean over all
    shares, each weighted by the likelihood of the labels that the two scores have with it.
    """
    # The task of a fold has learned before, and has similarities of other rows.
    task = replace(task, similarities=None)
    is_compared = "frames" in module_of(task, seen.reader, seen.settings.model)[1]
    found = _regress(task, seen) if is_compared else None
    if found is None:
        return task, None, {}
    target, order, used, folds = found.target, found.order, found.used, found.folds
    pairs, n_classes = list(found.rows.X), len(task.classes)
    similarities = Similarities.of_texts(pairs, n_classes, found.weight)
    similar = similarities.features(pairs)
    scaler = StandardScaler().fit(similar[order])
    scaled = scaler.transform(similar)
    known, weights = target[used], found.weight[used]
    slope, start = _fit(_C_SIMILAR, scaled[order], target[order], found.weight[order])
    of_similar = found.log_p
    if folds:
        of_similar = _out_of_fold(_C_SIMILAR, scaled[used], known, weights, folds)
    likelihood = {
        s: _likelihood((1 - s) * of_similar + s * found.log_p, known, weights) for s in _SHARES
    }
    choice = choose_similarities(len(folds), seen.rows.groups is not None, found.gain, likelihood)
    share = current_ranks(seen.settings.device).gather(round(1 - choice.value, 2))[0]
    slope = slope / scaler.scale_
    start = start - slope @ scaler.mean_
    similarities = similarities._replace(slope=slope.T, start=start, share=share)
    initial = InitialWeights(None, None, share)
    if is_informed(len(folds), found.gain):
        initial = InitialWeights(found.slope, found.bias, share)
    return replace(task, similarities=similarities), initial, {"similarities": choice}


# How the fits of some tasks begin, in all processes of a job alike.
BEGINNINGS: dict[TaskName, Callable[[Any, Seen], Beginning]] = {
    "texts": _begin_texts,
    "pairs": _begin_pairs,
}


def _regress(task: Classifying, seen: Seen) -> _Regression | None:
    """Regress the labels on the states of the network of a task, and predict held-out folds.

    The rows of a group are in one fold. Rows with weight 0 count for nothing. Weights whose mean
    is less than 1 are scaled, since small weights would make the penalty of the regression too
    strong. Without a class, or with states that are not finite, it is None, and training says why.
    """
    settings, reader, device = seen.settings, seen.reader, seen.settings.device
    rows = seen.rows.distinct()
    trained = {name: getattr(settings, name) for name in ("n_frozen_layers", "peft_config")}
    kind, arguments = module_of(task, reader, settings.model, **trained)
    target, groups, n_classes = task.targets(rows), rows.group_numbers, len(task.classes)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight.astype(np.float64)
    weight = weight / min(1.0, weight[weight > 0].mean())
    order = np.random.default_rng(0).permutation(np.flatnonzero(weight > 0))
    by_class = [order[target[order] == c][:_MOST_ROWS] for c in range(n_classes)]
    used = np.sort(np.concatenate(by_class))
    if not min(map(len, by_class)):
        return None
    with seeded(seen.seed, device), denormals_flushed(), quiet_transformers():
        module = kind(**arguments).to(device)
        with silent():  # The fit itself warns of texts that are cut.
            dataset = task.encode(rows.X, reader, number=rows.number)
        batcher = make_batcher(dataset, reader, settings.batch_size, module)
        states = features_of(module, batcher, used, settings.precision, device)
        if not np.isfinite(states).all():
            return None
        known, weights = target[used], weight[used]
        share = np.bincount(known, weights, n_classes) / weights.sum()
        prior = np.bincount(target, weight, n_classes)  # of all rows
        balanced = weights / share[known] / n_classes
        slope, bias = _fit(_C, states, known, balanced)
        folds = _folds(known, n_classes, None if groups is None else groups[used])
        log_p = np.log(np.broadcast_to(share, (len(used), n_classes)))
        if folds:
            logits = _out_of_fold(_C, states, known, balanced, folds)
            scale = LogisticRegression(C=1e3, max_iter=1000).fit(logits, known, weights)
            log_p = scale.predict_log_proba(logits)
        return _Regression(
            rows=rows,
            target=target,
            weight=weight,
            order=order,
            used=used,
            slope=slope,
            bias=bias + np.log(prior / prior.sum()),
            folds=folds,
            log_p=log_p,
            gain=_likelihood(log_p, known, weights) - float(weights @ np.log(share[known])),
        )


def _folds(target: np.ndarray, n_classes: int, groups: np.ndarray | None) -> Splits:
    """Return up to five folds, by groups if there are; none unless all are trained on all classes.

    A class with one row, or with the rows of one group, would be missing where it is held out.
    """
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    units = np.arange(len(target)) if groups is None else groups
    most = min(len(np.unique(units[target == c])) for c in range(n_classes))
    if most < 2:
        return []
    cv = kind(min(_N_FOLDS, most), shuffle=True, random_state=0)
    folds = [(train, test) for train, test in cv.split(target, target, groups) if len(test)]
    is_whole = all(len(np.unique(target[train])) == n_classes for train, _ in folds)
    return folds if is_whole else []


def _fit(
    C: float, features: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope (n_classes, n_features) and the start (n_classes,) of a regression."""
    regression = LogisticRegression(C=C, max_iter=1000).fit(features, target, weight)
    slope, start = regression.coef_, regression.intercept_
    if len(slope) == 1:  # Of two classes the log-odds.
        slope, start = np.concatenate([-slope, slope]) / 2, np.append(-start, start) / 2
    return slope, start


def _out_of_fold(
    C: float, features: np.ndarray, target: np.ndarray, weight: np.ndarray, folds: Splits
) -> np.ndarray:
    """Return logits of shape (n_rows, n_classes), by regressions that have not seen the row."""
    logits = np.empty((len(target), target.max() + 1))
    for train, test in folds:
        slope, start = _fit(C, features[train], target[train], weight[train])
        logits[test] = features[test] @ slope.T + start
    return logits


def _likelihood(logits: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """Return the log-likelihood of the labels."""
    rows = np.arange(len(target))
    return float(weight @ log_softmax(logits, axis=1)[rows, target])
