"""Fits and predictions on a GPU: python -m tests.nn.wait_job <pretended or real> <model> <file>.

The file has, as JSON, how often the GPU is waited for in each case and by which line, and how many
operators a step has more than that of a loop of plain torch, which is not counted on a real GPU.
"""

import sys  # isort: skip

if sys.argv[1] == "real":
    from .real_gpu import gpu, operators, waits
else:
    from .pretended_gpu import gpu, operators, waits  # Before torch.

import json
import os
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import torch
from torch.nn.functional import cross_entropy
from torch.optim.optimizer import register_optimizer_step_post_hook
from transformers import AutoModelForTokenClassification

import skdice
from skdice.datasets import make_tagging
from skdice.losses import DiceLoss, make_loss
from skdice.nn import _batching, _net, _step
from skdice.nn._speedups import own_attention

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
def ends_of_steps(counter):
    """Yield a list that gets what was counted up to the end of each step."""
    seen = []
    counter.clear()
    with register_optimizer_step_post_hook(lambda *_: seen.append(Counter(counter))), gpu():
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
        with ends_of_steps(waits) as seen:
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


def bare_loop(model, loss):
    """Train on sentences of one length as a user of torch would, in bf16."""
    network = AutoModelForTokenClassification.from_pretrained(model, num_labels=3)
    network.to("cuda").train()
    groups = {}
    for name, parameter in network.named_parameters():
        groups.setdefault(("classifier" in name, parameter.ndim > 1), []).append(parameter)
    optimizer = torch.optim.AdamW([{"params": group} for group in groups.values()], fused=True)
    ids = torch.randint(5, 20, (8, 6))
    batch = {"input_ids": ids, "token_type_ids": torch.zeros_like(ids), "labels": ids % 3}
    losses = []
    with own_attention(network):
        for _ in range(4):
            optimizer.zero_grad()
            sent = {k: v.pin_memory().to("cuda", non_blocking=True) for k, v in batch.items()}
            labels = sent.pop("labels").flatten()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = network(**sent).logits
            value = loss(logits.float().flatten(0, 1), labels)
            value.backward()
            losses.append(value.detach())
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()


def more_operators(model, name, loss):
    """Return how many operators a step has more than one of a bare loop with a loss."""
    runs = {
        "ours": lambda: fit(model, "one length", {"loss": name}),
        "bare": lambda: bare_loop(model, loss),
    }
    totals = {}
    for kind, run in runs.items():
        with ends_of_steps(operators) as seen:
            run()
        totals[kind] = (seen[2] - seen[1]).total()
    return totals["ours"] - totals["bare"]


def main(kind, model, file):
    warnings.simplefilter("ignore")
    _batching._GPU_PIECES = 64  # So that predictions have several batches.
    found = {"waits": {name: waits_of(model, *case) for name, case in CASES.items()}}
    if kind == "pretended":
        found["more operators"] = {
            **{name: more_operators(model, name, make_loss(name)) for name in ("ce", "dice")},
            "cross_entropy of torch": more_operators(model, "ce", cross_entropy),
        }
    send = _net.to_device
    for fault in (looks, mixes):
        _net.to_device = _step.to_device = lambda *args, fault=fault: fault(send, *args)
        found[fault.__name__] = waits_of(model, *CASES["tagger, ce"])
    Path(file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
