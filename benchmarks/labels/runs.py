"""One run: rounds of labelling, played with gold labels, each followed by a fit and a score."""

import json
import math
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from skdice import DiceTokenTagger
from skdice.labeling import choose_rows
from skdice.metrics import get_entities

from ..study.corpora import CORPORA, Part, draw
from ..study.runs import ESTIMATORS, PRECISION, count, encoder_path, score

SCORES = Path(__file__).with_name("scores.csv")
KEY = ("corpus", "contender", "draw")
N_ROUND, MOST_ROUNDS = 50, 8
N_BUDGET = 250  # Random rows whose time of labelling is the budget.
SECONDS = (0.3, 3.0)  # To read a word, and to mark an entity or a label.


class Contender(NamedTuple):
    """A way to choose rows, and what learns from them."""

    strategy: str = "auto"  # of choose_rows: least confident, of rows that are classified "margin"
    first: str = "random"  # or "auto", which spreads the rows before there is a model
    random_share: float = 0.1
    chooser: str = "auto"  # the loss of the fit that chooses
    learner: str = "auto"  # the loss of the fit that is scored
    encoder: str = "MiniLM"  # of the fit that is scored


CONTENDERS = {
    "random": Contender("random"),
    "least confident": Contender(),
    "least confident, sum": Contender("least_confident_sum"),
    "least confident, max": Contender("least_confident_max"),
    "mnlp": Contender("mnlp"),
    "expected": Contender("expected"),
    "half random": Contender(random_share=0.5),
    "spread, then random": Contender("random", first="auto"),
    "spread, then least confident": Contender(first="auto"),
    # With few entities the defaults learn with cross-entropy, as "random" does.
    "dice for ce": Contender(chooser="dice", learner="ce"),
    "random, for MPNet": Contender("random", encoder="MPNet"),
    "MiniLM for MPNet": Contender(encoder="MPNet"),
}


def execute(key: tuple[str, str, int], data: Path, encoders: Path) -> dict[str, Any]:
    """Label in rounds until the budget is spent, and return the row of the run."""
    torch.set_num_threads(1)
    started = time.process_time()
    name, contender, seed = key[0], CONTENDERS[key[1]], key[2]
    corpus = CORPORA[name]
    parts = draw(name, str(N_ROUND), seed, data)
    pool = Part(parts.train.X + parts.others.X, parts.train.y + parts.others.y)
    costs = np.array([cost(x, y, corpus.task) for x, y in zip(*pool)])
    budget = N_BUDGET * float((costs @ SECONDS).mean())

    def make(encoder: str, loss: str) -> Any:
        how = {"precision": PRECISION, "random_state": seed, "verbose": 0, "loss": loss}
        kind = ESTIMATORS.get(corpus.task, DiceTokenTagger)
        return kind(encoder_path(encoder, encoders), **how)

    chooser = make("MiniLM", contender.chooser)
    is_one = contender.encoder == "MiniLM" and contender.learner == contender.chooser
    learner = chooser if is_one else make(contender.encoder, contender.learner)
    labelled: list[int] = []
    curve: list[list[float]] = []  # rows, words, marks and F1 after each round
    is_over = False
    while not is_over:
        labelled += choose_rows(
            chooser,
            pool.X,
            min(N_ROUND, len(pool.X) - len(labelled)),
            strategy=contender.strategy if labelled else contender.first,
            labeled=[pool.X[i] for i in labelled],
            random_share=contender.random_share,
            random_state=seed,
        )["row"].tolist()
        rows, spent = pool.take(np.array(labelled)), costs[labelled].sum(axis=0)
        is_over = spent @ SECONDS >= budget or len(curve) + 1 == MOST_ROUNDS
        if not is_one and contender.strategy != "random" and not is_over:
            chooser.fit(*rows)
        f1 = math.nan
        if is_one or is_over:  # Another model learns at the end only.
            predicted = list(learner.fit(*rows).predict(parts.test.X))
            f1 = score(corpus, parts.test, predicted)
        curve.append([len(labelled), *spent.tolist(), f1])
    right, n_found, _ = count(corpus, parts.test.y, predicted).sum(0, dtype=np.int64)
    types, scores = Counter[str](), [math.nan]
    if corpus.task == "entities":
        types = Counter(span[2] for y in rows.y for span in get_entities(y))
        found = learner.predict_spans(parts.test.X)
        scores = [entity.score for entities in found for entity in entities]
    return dict(zip(KEY, key)) | {
        "budget": round(budget),
        "curve": json.dumps(curve),
        "precision": 100 * right / max(n_found, 1),
        "confidence": 100 * sum(scores) / max(len(scores), 1),
        "types": json.dumps(types),
        "mean_words": costs[:, 0].mean(),
        "mean_marks": costs[:, 1].mean(),
        "seconds": round(time.process_time() - started),
    }


def cost(x: Any, y: Any, task: str) -> tuple[int, int]:
    """Return the words that a person reads in a row, and what is marked: entities, or one label."""
    if task == "entities":
        return len(x), len(get_entities(y))
    return len((x if isinstance(x, str) else " ".join(x)).split()), 1
