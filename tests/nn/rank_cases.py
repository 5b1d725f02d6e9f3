"""Fits that a job of several processes runs, and one process with batches as large as theirs."""

import importlib.util
import os
import signal

import numpy as np
from skorch.callbacks import Callback

import skdice
from skdice.losses import DiceLoss, SelfAdjustingDiceLoss

from ..corpora import easy_corpus, easy_labels, easy_pairs

BATCH_SIZE = 8
# Two steps of two batches of eight, and one of a single text, which one process gets.
N_ROWS = 33
OHEM = DiceLoss(ohem_ratio=1.0, background=0)
REMEMBERED = DiceLoss(ohem_ratio=1.0, background=0, memory=3)
QUERIES = {"PER": "who ?", "LOC": "where ?"}
# So small a rate that all steps meet the same weights, nearly.
PLAIN = {
    "max_epochs": 1, "batch_size": BATCH_SIZE, "lr": 1e-7, "clip_norm": None, "precision": "fp32",
    "random_state": 0, "verbose": 0,
}  # fmt: skip


def tagger(model, **params):
    params = {**PLAIN, "loss": "dice", **params}  # By default two networks, one after the other.
    return skdice.DiceTokenTagger(model, **params), *easy_corpus(N_ROWS)


def extractor(model, **params):
    """The question is who, or where; the answer is the only name in the context."""
    X, y = [], []
    for words, tags in zip(*easy_corpus(N_ROWS)):
        place = next(i for i, tag in enumerate(tags) if tag != "O")
        label, context = tags[place].removeprefix("B-"), " ".join(words)
        X.append((QUERIES[label], context))
        y.append({"text": [words[place]], "answer_start": [context.index(words[place])]})
    return skdice.DiceSpanExtractor(model, **{**PLAIN, **params}), X, y


def query_tagger(model, **params):
    params = {**PLAIN, "queries": QUERIES, "match_candidates": "pred_and_gold", **params}
    return skdice.DiceQueryTagger(model, **params), *easy_corpus(N_ROWS)


def pairs(model, **params):
    return skdice.DicePairClassifier(model, **{**PLAIN, **params}), *easy_pairs(N_ROWS)


def labels(model, **params):
    return skdice.DiceTextClassifier(model, **{**PLAIN, **params}), *easy_labels(N_ROWS)


EXACT = {
    "ce with class weights": (tagger, {"loss": "ce", "class_weight": "balanced"}),
    "dice": (tagger, {"loss": "dice"}),
    "example level": (tagger, {"loss": SelfAdjustingDiceLoss(level="example", average="sum")}),
    "memory of hard examples": (tagger, {"loss": REMEMBERED}),
    "memory of windows": (extractor, {"loss": "dsc", "memory": 3}),
    "sample weights": (tagger, {"loss": "tversky", "ce_weight": 0.3}),
    "accumulate": (tagger, {"loss": "dice", "accumulate": 2, "batch_size": BATCH_SIZE // 2}),
    "accumulate ohem": (tagger, {"loss": OHEM, "accumulate": 2, "batch_size": BATCH_SIZE // 2}),
    "windows": (tagger, {"loss": "dsc", "max_length": 6, "stride": 1}),
    "frozen": (tagger, {"loss": "dsc", "n_frozen_layers": 1}),
    "span ce": (extractor, {"loss": "ce"}), "span ohem": (extractor, {"loss": OHEM}),
    "query dice": (query_tagger, {"loss": "dice"}), "query ohem": (query_tagger, {"loss": OHEM}),
    "pairs": (pairs, {"loss": "dsc"}), "sampled": (pairs, {"loss": "dice", "negative_ratio": 1}),
    "sampled without weights": (pairs, {"loss": "ce", "negative_ratio": 1}),
    "multi-label": (labels, {"loss": "dice"}),
}  # fmt: skip
if importlib.util.find_spec("peft"):
    from peft import LoraConfig

    EXACT["adapters"] = tagger, {"loss": "dsc", "peft_config": LoraConfig(r=4)}


class Gradients(Callback):
    """Keeps the gradient of every step."""

    def __init__(self):
        self.steps_ = []

    def on_grad_computed(self, net, **kwargs):
        gradients = [p.grad.flatten() for p in net.module_.parameters() if p.grad is not None]
        self.steps_.append(np.concatenate(gradients))


class At(Callback):
    """Calls a function in one step of a fit."""

    only_watches = True

    def __init__(self, epoch, step, function):
        self.epoch = epoch
        self.step = step
        self.function = function

    def on_epoch_begin(self, net, **kwargs):
        self.n_steps_ = 0

    def on_batch_begin(self, net, **kwargs):
        self.n_steps_ += 1
        if (len(net.history), self.n_steps_) == (self.epoch, self.step):
            self.function(net)


def run_exact(name, model, times=1):
    """Return the gradient of each step and the loss; batches are larger so many times."""
    make, params = EXACT[name]
    estimator, X, y = make(model, **params)
    gradients = Gradients()
    estimator.set_params(callbacks=[gradients], batch_size=estimator.batch_size * times)
    weight = None
    if "sample weights" in name:
        weight = np.random.default_rng(0).choice([0.0, 0.5, 3.0], len(X))
    estimator.fit(X, y, sample_weight=weight)
    return gradients.steps_, estimator.history_["train_loss"].tolist()


def resumable(model, directory, **params):
    """Return a fit in which all that is random counts."""
    params = {"max_epochs": 4, "lr": 3e-3, "checkpoint_dir": directory, **params}
    return tagger(model, **params)


def die(net):
    os.kill(os.getpid(), signal.SIGKILL)


def weights_of(estimator):
    return [weight.numpy() for weight in estimator.net_.module_.state_dict().values()]
