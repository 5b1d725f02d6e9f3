"""What is known of pairs before training: a regression on states, and one on similarities."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import (
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..metrics import divide
from ..nn import Batcher, PairModule, TextNet, autocast
from ..tasks import ClassifyingPairs, Rows
from ..text import Similarities
from .auto import Choice, PairFacts, choose_similarities

# Evidence for all of these is in benchmarks/RESULTS.md. The C of the regression on states, the
# largest number of rows of each class that it sees, and the C of that on similarities.
_C, _MOST_ROWS, _C_SIMILAR = 0.003, 2000, 0.1
# The folds in which both are compared, and the shares of the network that are weighed.
_N_FOLDS, _SHARES = 5, np.linspace(0, 1, 21)
# The rows to train on and those to test on, of each fold.
_Splits: TypeAlias = Sequence[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class InitialWeights:
    """Where the comparison of two texts begins."""

    # A logistic regression on the states of the encoder, (n_classes, 2 * hidden_size) and
    # (n_classes,). None if these say nothing, so that the comparison begins as drawn.
    slope: np.ndarray | None
    bias: np.ndarray | None
    similarities: Similarities  # with their regression, and the share of the network
    choice: Choice  # of the share of the similarities
    # Of the positive class, at its best threshold, by both regressions out of folds. NaN if there
    # are no folds, or not two classes.
    best_f1: float

    def apply(self, module: Any) -> None:
        """Set the weights of a network (Kumar et al. 2022, "LP-FT")."""
        assert isinstance(module, PairModule)
        with torch.no_grad():
            module.share.fill_(self.similarities.share)
            if module.has_new_head and self.slope is not None and self.bias is not None:
                module.comparison.weight.copy_(torch.from_numpy(self.slope))
                module.comparison.bias.copy_(torch.from_numpy(self.bias))


def regress_pairs(
    net: TextNet, batcher: Batcher, task: ClassifyingPairs, rows: Rows
) -> InitialWeights | None:
    """Regress the labels on the states of the encoder and on similarities, before training.

    Both are scored on folds that they have not seen. The share of the network is the mean over all
    shares, each weighted by the likelihood of the labels that the two scores have with it.

    The pairs of a group are in one fold. Pairs with weight 0 count for nothing. Weights whose mean
    is less than 1 are scaled: else all pairs together would say less than a few do. If a class is
    missing or the states are not finite, it is None: training says so.
    """
    pairs, target, groups = list(rows.X), task.targets(rows), rows.group_numbers
    n_classes, positive = len(task.classes), task.positive if task.is_binary else 0
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight.astype(np.float64)
    weight = weight / min(1.0, weight[weight > 0].mean())
    order = np.random.default_rng(0).permutation(np.flatnonzero(weight > 0))
    by_class = [order[target[order] == c][:_MOST_ROWS] for c in range(n_classes)]
    used = np.sort(np.concatenate(by_class))
    if not min(map(len, by_class)):
        return None
    states = _compared(net, batcher, used)
    if not np.isfinite(states).all():
        return None
    similarities = Similarities.of_texts(pairs, n_classes)
    similar = similarities.features(pairs)
    known, weights = target[used], weight[used]
    slope, start = _fit(_on_similarities(), similar[order], target[order], weight[order])
    similarities = similarities._replace(slope=slope.T, start=start)
    share = np.bincount(known, weights, n_classes) / weights.sum()
    balanced = weights / share[known] / n_classes
    slope, bias = _fit(_on_states(), states, known, balanced)
    bias = bias + np.log(share)
    folds = _folds(known, n_classes, None if groups is None else groups[used])
    of_states = of_similar = np.log(np.broadcast_to(share, (len(used), n_classes)))
    if folds:
        of_states = _out_of_fold(_on_states(), states, known, balanced, folds)
        scale = LogisticRegression(C=1e3, max_iter=1000).fit(of_states, known, weights)
        of_states = scale.predict_log_proba(of_states)
        logits = _out_of_fold(_on_similarities(), similar[used], known, weights, folds)
        of_similar = log_softmax(logits, axis=1)
    of_nothing = float(weights @ np.log(share[known]))
    mixed = [(1 - s) * of_similar + s * of_states for s in _SHARES]
    facts = PairFacts(
        n_folds=len(folds),
        has_groups=groups is not None,
        gain=_likelihood(of_states, known, weights) - of_nothing,
        shares=_SHARES,
        likelihood=np.array([_likelihood(scores, known, weights) for scores in mixed]),
    )
    choice = choose_similarities(facts)
    network = round(1 - choice.value, 2)
    similarities = similarities._replace(share=network)
    best_f1 = math.nan
    if folds and n_classes == 2:
        # Rows of the larger class may have been left out.
        of_class = np.bincount(target[order], weight[order]) / np.bincount(known, weights)
        both = (1 - network) * of_similar + network * of_states
        log_odds = both[:, positive] - both[:, 1 - positive]
        precision, recall, _ = precision_recall_curve(
            known == positive, log_odds, sample_weight=weights * of_class[known]
        )
        best_f1 = float(divide(2 * precision * recall, precision + recall).max())
    if not facts.is_informed:
        return InitialWeights(None, None, similarities, choice, best_f1)
    return InitialWeights(slope, bias, similarities, choice, best_f1)


def _folds(target: np.ndarray, n_classes: int, groups: np.ndarray | None) -> _Splits:
    """Return up to five folds, by groups if there are; none unless all are trained on all classes.

    A class of one pair, or of pairs in one group, would be missing where it is held out.
    """
    by_class = [np.flatnonzero(target == c) for c in range(n_classes)]
    if groups is None:
        kind, most = StratifiedKFold, min(map(len, by_class))
    else:
        kind = StratifiedGroupKFold
        most = min(len(np.unique(groups[rows])) for rows in by_class)
    if most < 2:
        return []
    cv = kind(min(_N_FOLDS, most), shuffle=True, random_state=0)
    folds = [(train, test) for train, test in cv.split(target, target, groups) if len(test)]
    is_whole = all(len(np.unique(target[train])) == n_classes for train, _ in folds)
    return folds if is_whole else []


def _on_states() -> Any:
    return make_pipeline(LogisticRegression(C=_C, max_iter=1000))


def _on_similarities() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=_C_SIMILAR, max_iter=1000))


def _fit(
    model: Any, features: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope (n_classes, n_features) and the start (n_classes,) of a regression."""
    model.fit(features, target, logisticregression__sample_weight=weight)
    regression = model[-1]
    slope, start = regression.coef_, regression.intercept_
    if len(model) > 1:
        slope = slope / model[0].scale_
        start = start - slope @ model[0].mean_
    if len(slope) == 1:  # Of two classes the log-odds.
        slope, start = np.concatenate([-slope, slope]) / 2, np.append(-start, start) / 2
    return slope, start


def _out_of_fold(
    model: BaseEstimator,
    features: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    folds: _Splits,
) -> np.ndarray:
    """Return logits of shape (n_rows, n_classes), by regressions that have not seen the row."""
    logits: np.ndarray = cross_val_predict(
        model,
        features,
        target,
        cv=folds,
        method="decision_function",
        params={"logisticregression__sample_weight": weight},
    )
    return np.stack([-logits, logits], axis=1) / 2 if logits.ndim == 1 else logits


def _likelihood(logits: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """Return the log-likelihood of the labels."""
    rows = np.arange(len(target))
    return float(weight @ log_softmax(logits, axis=1)[rows, target])


def _compared(net: TextNet, batcher: Batcher, rows: np.ndarray) -> np.ndarray:
    """Compare the two texts of some rows, before anything is learned."""
    module = net.module_.eval()
    found: list[Any] = [None] * len(rows)
    place = {row: i for i, row in enumerate(rows.tolist())}
    with torch.inference_mode(), autocast(net.precision, net.device):
        for windows, batch in batcher.by_length(rows):
            compared = module.compare(net.send(batch))
            for window, row in zip(windows.tolist(), compared.float().cpu().numpy()):
                found[place[window]] = row
    return np.stack(found)
