"""Fits and predictions on a GPU: python -m tests.nn.wait_job <pretended or real> <model> <file>.

The file has, as JSON, how often the GPU is waited for in each case and by which line.
"""

import sys  # isort: skip

if sys.argv[1] == "real":
    from .real_gpu import gpu, waits
else:
    from .pretended_gpu import gpu, waits  # Before torch.

import json
import os
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import skdice
from skdice.datasets import make_tagging
from skdice.losses import DiceLoss
from skdice.nn import _batching, _net, _step

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from ..estimators.test_span import easy_questions

N = 48  # Six steps.
# Four words of a piece each.
ALIKE = [[part[:3] + part[-1:] for part in rows] for rows in easy_corpus(N)]
QUERIES = {"PER": "john mary", "LOC": "oslo paris"}
MADE = {"crf": False, "word_shapes": False, "negative_ratio": 1}
FITS = {
    "tagger": (skdice.DiceTokenTagger, easy_corpus(N), {"crf": False}),
    "one length": (skdice.DiceTokenTagger, ALIKE, {"crf": False}),
    "tagger of many O": (skdice.DiceTokenTagger, make_tagging(96, ratio=30, random_state=0), MADE),
    "texts": (skdice.DiceTextClassifier, easy_texts(N, n_classes=3), {}),
    "labels": (skdice.DiceTextClassifier, easy_labels(N), {}),
    "pairs": (skdice.DicePairClassifier, easy_pairs(N), {}),
    "questions": (skdice.DiceSpanExtractor, easy_questions(N, unanswerable=0.3), {}),
    "queries": (skdice.DiceQueryTagger, easy_corpus(N), {"queries": QUERIES}),
}
CASES = {
    **{f"{kind}, {loss}": (kind, {"loss": loss}) for kind in FITS for loss in ("ce", "dice")},
    "chain, ce": ("tagger", {"loss": "ce", "crf": True}),
    "chain, dice": ("tagger", {"loss": "dice", "crf": True}),
    "class weights": ("tagger", {"loss": "ce", "class_weight": "balanced"}),
    "hard examples": ("tagger", {"loss": DiceLoss(ohem_ratio=1.0)}),
    "accumulation": ("tagger", {"loss": "dsc", "memory": 5.0, "accumulate": 2, "batch_size": 4}),
    "progress": ("tagger", {"loss": "ce", "verbose": 1}),
    "fp32": ("pairs", {"loss": "dice", "precision": "fp32"}),
}


def looks(send, *args):
    """Ask the GPU for a number in every step."""
    found = send(*args)
    found["input_ids"].sum().item()
    return found


def mixes(send, *args):
    found = send(*args)
    found["input_ids"] + torch.zeros(found["input_ids"].shape)
    return found


@contextmanager
def ends_of_steps():
    """Yield a list that gets the waits up to the end of each step."""
    seen = []
    waits.clear()
    with register_optimizer_step_post_hook(lambda *_: seen.append(Counter(waits))), gpu():
        yield seen


def fit(model, kind, parameters):
    make, (X, y), own = FITS[kind]
    fixed = {"max_epochs": 1, "lr": 3e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
    options = {**fixed, "negative_ratio": None, "device": "cuda", **own, **parameters}
    return make(model, **options).fit(X, y), X


def waits_of(model, kind, parameters):
    """Return the waits of the second to the last step of an epoch, and those of a prediction.

    A prediction copies its logits to the host once, however many batches there are.
    """
    try:
        with ends_of_steps() as seen:
            estimator, X = fit(model, kind, parameters)
            predicted = []
            for rows in (X[:1], X):
                waits.clear()
                estimator.predict(rows)
                predicted.append(Counter(waits))
    except RuntimeError as error:  # Of two devices.
        return {str(error): 1}
    assert len(seen) > 4, "steps are compared"
    assert next(estimator.net_.module_.parameters()).is_cuda
    return (seen[-1] - seen[0]) + (predicted[1] - predicted[0])


def main(kind, model, file):
    warnings.simplefilter("ignore")
    _batching._GPU_PIECES = 64  # So that predictions have several batches.
    found = {"waits": {name: waits_of(model, *case) for name, case in CASES.items()}}
    send = _net.to_device
    for fault in (looks, mixes):
        _net.to_device = _step.to_device = lambda *args, fault=fault: fault(send, *args)
        found[fault.__name__] = waits_of(model, *CASES["tagger, ce"])
    Path(file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
