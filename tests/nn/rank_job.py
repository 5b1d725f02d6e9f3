"""What each process of a job runs: python -m tests.nn.rank_job <directory> <free port>.

Each writes what it found to a file of its own.
"""

import multiprocessing
import os
import pickle
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from sklearn.base import clone

from skdice.nn import DirectoryCheckpoint
from skdice.tasks import split_rows

from .rank_cases import EXACT, OHEM, At, die, query_tagger, resumable, run_exact, tagger, weights_of

# What `accelerate launch` and torchrun set.
RANK = int(os.environ.get("RANK", "0"))
LEARNS = {"max_epochs": 3, "lr": 3e-3}


def stop(net):
    raise KeyboardInterrupt


def error_of(function):
    try:
        function()
    except Exception as error:
        return type(error).__name__, "\n".join([str(error), *getattr(error, "__notes__", ())])
    return None


def fitted(estimator, X, y):
    """Return what has to be alike in all processes."""
    estimator.fit(X, y)
    history = estimator.history_.drop(columns="dur").to_dict("list")
    return weights_of(estimator), history, estimator.best_epoch_


def killed(models, directory):
    """Return how two processes ended that were started by hand; 1 is killed in the third epoch."""
    forks = multiprocessing.get_context("fork")
    process = forks.Process(target=run_until_killed, args=(models, directory))
    process.start()
    process.join()
    return process.exitcode


def run_until_killed(models, directory):
    for name in list(os.environ):
        if name.startswith(("ACCELERATE_", "GROUP_", "LOCAL_", "ROLE_", "TORCHELASTIC_")):
            del os.environ[name]
    os.environ["MASTER_PORT"] = sys.argv[2]
    estimator, X, y = resumable(models["dropout"], directory / "checkpoints")
    if RANK == 1:
        estimator.set_params(callbacks=[At(3, 2, die)])
    error = error_of(lambda: estimator.fit(X, y))
    (directory / "killed.pickle").write_bytes(pickle.dumps(error))


def resumed(models, directory):
    """Return the weights of the fit that goes on, and of one that was never stopped."""
    estimator, X, y = resumable(models["dropout"], directory / "checkpoints")
    epochs = []
    again = clone(estimator).set_params(
        callbacks=[At(epoch, 1, lambda net: epochs.append(len(net.history))) for epoch in range(9)]
    )
    return {
        "epochs": (again.fit(X, y), epochs)[1],
        "again": weights_of(again),
        "plain": weights_of(clone(estimator).set_params(checkpoint_dir=None).fit(X, y)),
    }


def alike(models, directory):
    with_patience = {"validation_fraction": 0.3, "patience": 1, "max_epochs": 10, "lr": 1e-2}
    results = {}
    for name, params in {
        "dropout": LEARNS,
        "no seed": {**LEARNS, "random_state": None},
        "patience": with_patience,
        "fp16": {**LEARNS, "precision": "fp16"},
        "two networks": {**LEARNS, "n_members": 2},
    }.items():
        results[name] = fitted(*tagger(models["dropout"], **params))
    estimator, X, y = tagger(models["dropout"], **LEARNS)
    # Process 1 alone asks for the end, in the second of three epochs.
    estimator.set_params(callbacks=[At(2, 1, stop)] if RANK == 1 else None)
    results["stopped"] = fitted(estimator, X, y)
    random = {"match_candidates": "pred_gold_random", "loss": OHEM, **LEARNS}
    results["random pairs"] = fitted(*query_tagger(models["dropout"], **random))
    return results


def generators(models, directory):
    """Return the state of torch's generator in a step, and after the fit."""
    states = []
    estimator, X, y = tagger(models["dropout"], **LEARNS)
    before = torch.get_rng_state()
    estimator.set_params(callbacks=[At(2, 1, lambda net: states.append(torch.get_rng_state()))])
    estimator.fit(X, y)
    return {"inside": states[0].numpy(), "restored": torch.equal(before, torch.get_rng_state())}


def validated(models, directory):
    """Return the score of the held-out rows in the fit, and by the fitted estimator."""
    estimator, X, y = tagger(models["dropout"], validation_fraction=0.4, **LEARNS)
    estimator.fit(X, y)
    _, valid = split_rows(len(X), 0.4, np.random.default_rng(0))
    alone = estimator.score([X[i] for i in valid], [y[i] for i in valid])
    return {"inside": estimator.history_["valid_score"].iloc[-1], "after": alone}


def writes(models, directory):
    """Each process saves to places of its own; the first one's alone may be written."""
    saves = []
    estimator, X, y = resumable(models["dropout"], directory / "written", max_epochs=2, verbose=1)
    with patch.object(DirectoryCheckpoint, "save", lambda self, state: saves.append(state)):
        estimator.fit(X, y)
    estimator.save_pretrained(directory / f"saved-{RANK}")
    return {"n_saves": len(saves), "progress": [name for name, _ in estimator.net_.callbacks]}


def faults(models, directory):
    """Errors that are alike in all processes, after which they can go on."""
    estimator, X, y = tagger(models["plain"])

    def poison(net):
        weight = next(p for p in net.module_.parameters() if p.requires_grad)
        weight.register_hook(lambda gradient: gradient * torch.inf)

    def fit(rows=slice(None), y=y, **params):
        return error_of(lambda: clone(estimator).set_params(**params).fit(X[rows], y[rows]))

    renamed = [[tag.replace("PER", "PERSON") for tag in row] for row in y]
    seen = directory / "seen"
    fit(checkpoint_dir=seen)
    return {
        "input": fit(y=[*y[:4], ["O"], *y[5:]] if RANK else y),
        "kind of input": fit(y="tags" if RANK else y),
        "one class": fit(y=[["O"] * len(row) for row in y] if RANK else y),
        "device": fit(device="cpu" if RANK else "abacus"),
        "rows": fit(rows=slice(RANK, None)),
        "labels": fit(y=renamed if RANK else y),
        "parameters": fit(lr=1 + RANK),
        "seed": fit(random_state=RANK),
        # Process 1 does not see the checkpoint that process 0 has.
        "checkpoint": fit(checkpoint_dir=directory / "unseen" if RANK else seen),
        "gradient": fit(callbacks=[At(1, 2, poison)] if RANK == 1 else None),
        "none": fit(),
    }


def exact(models, directory):
    return {name: run_exact(name, models["plain"]) for name in EXACT}


PARTS = [killed, exact, alike, generators, validated, writes, faults, resumed]

if __name__ == "__main__":
    torch.set_num_threads(1)
    where = Path(sys.argv[1])
    models = {name: str(where / name) for name in ("plain", "dropout")}
    found = {part.__name__: part(models, where) for part in PARTS}
    (where / f"{RANK}.pickle").write_bytes(pickle.dumps(found))
