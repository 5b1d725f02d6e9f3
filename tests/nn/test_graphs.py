"""Steps as CUDA graphs: batches padded to few shapes have the loss and the gradient they had.

Without a GPU a graph is a function that is called again. With one, it is a graph.
"""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.losses import DiceLoss
from skdice.nn import _graphs

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from ..estimators.test_span import easy_questions
from ..quick import quick

N = 48
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CLOSE = 3e-4 if DEVICE == "cuda" else 1e-5
SAMPLED = make_tagging(96, ratio=30, random_state=0)
DRAWN = {"negative_ratio": 1, "word_shapes": False}
FITS = {
    "tags, ce": (DiceTokenTagger, easy_corpus(N), {"loss": "ce", "crf": False}),
    "tags, dice, crf": (DiceTokenTagger, easy_corpus(N), {"loss": "dice", "crf": True}),
    "memory": (DiceTokenTagger, easy_corpus(N), {"loss": "dsc", "memory": 5.0}),
    "class weights": (DiceTokenTagger, easy_corpus(N), {"loss": "ce", "class_weight": "balanced"}),
    "sampled, ce": (DiceTokenTagger, SAMPLED, {"loss": "ce", **DRAWN}),
    "sampled, dice": (DiceTokenTagger, SAMPLED, {"loss": "dice", **DRAWN}),
    "members": (DiceTokenTagger, easy_corpus(N), {"loss": "dice", "n_members": 2}),
    "texts": (DiceTextClassifier, easy_texts(N, n_classes=3), {"loss": "dice"}),
    "labels": (DiceTextClassifier, easy_labels(N), {"loss": "focal"}),
    "pairs": (DicePairClassifier, easy_pairs(N), {"loss": "dice"}),
    "questions, ce": (DiceSpanExtractor, easy_questions(N, unanswerable=0.3), {"loss": "ce"}),
    "questions, dice": (DiceSpanExtractor, easy_questions(N, unanswerable=0.3), {"loss": "dice"}),
}


@pytest.fixture
def replays(monkeypatch):
    """Have all fits use graphs; return a list that gets an entry for every replay."""
    found = []
    capture = _graphs.capture

    def counted(function, pool):
        replay = capture(function, pool) if DEVICE == "cuda" else lambda: function().clone()

        def count():
            found.append(None)
            return replay()

        return count

    monkeypatch.setattr(_graphs, "capture", counted)
    if DEVICE == "cpu":
        monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
        monkeypatch.setattr("skdice.fitting._plan.works_on", lambda device: True)
    return found


def fit(case, model, **parameters):
    make, (X, y), own = FITS[case]
    fixed = {"max_epochs": 3, "lr": 3e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
    options = {**fixed, "precision": "fp32", "negative_ratio": None, "device": DEVICE}
    return make(model, **{**options, **own, **parameters}).fit(X, y), X


def scores(estimator, X):
    """Return scores of spans for extractors: a shift of all logits alike means nothing there."""
    if hasattr(estimator, "predict_proba"):
        return np.concatenate([np.ravel(row) for row in estimator.predict_proba(X)])
    return np.array([row[0].score for row in estimator.predict_spans(X)])


@pytest.mark.parametrize("case", quick(list(FITS)[1::2], FITS))
def test_a_fit_with_graphs_equals_one_without(case, quick_bert, request):
    plain, X = fit(case, quick_bert, callbacks=[Callback()])
    replays = request.getfixturevalue("replays")
    graphed, X = fit(case, quick_bert)
    assert len(replays) >= 6
    losses = [each.history_["train_loss"] for each in (plain, graphed)]
    np.testing.assert_allclose(*losses, rtol=CLOSE)
    np.testing.assert_allclose(scores(plain, X), scores(graphed, X), atol=CLOSE)


@pytest.mark.parametrize("parameters", [
    {"accumulate": 2, "batch_size": 4}, {"callbacks": [Callback()]}, {"precision": "fp16"},
], ids=lambda parameters: next(iter(parameters)))  # fmt: skip
def test_what_no_graph_can_hold_is_left_out(parameters, quick_bert, replays):
    if parameters.get("precision") == "fp16" and DEVICE == "cpu":
        pytest.skip("fp16 is for GPUs")
    tagger, _ = fit("tags, dice, crf", quick_bert, **parameters)
    assert replays == []
    row = tagger.choices_.set_index("parameter").loc["cuda_graphs"]
    assert not row["value"]
    assert "callbacks" not in parameters or "callback" in row["why"]


class OwnDice(DiceLoss):
    pass


class SteadyDice(DiceLoss, graphable=True):
    pass


@pytest.mark.parametrize(("loss", "expected"), [
    (DiceLoss(), True), (OwnDice(), False), (SteadyDice(), True), (DiceLoss(ohem_ratio=1.0), False),
])  # fmt: skip
def test_an_own_loss_is_in_a_graph_if_it_says_that_it_can(loss, expected, quick_bert, replays):
    tagger, _ = fit("tags, ce", quick_bert, loss=loss, max_epochs=1)
    assert bool(replays) is expected
    assert tagger.choices_.set_index("parameter").loc["cuda_graphs", "value"] is expected


def test_a_resumed_fit_equals_one_that_was_not_stopped(quick_bert, replays, tmp_path):
    whole, X = fit("memory", quick_bert)
    assert whole.choices_.set_index("parameter").loc["cuda_graphs", "value"]
    fit("memory", quick_bert, checkpoint_dir=tmp_path)
    again, X = fit("memory", quick_bert, checkpoint_dir=tmp_path)
    np.testing.assert_allclose(scores(whole, X), scores(again, X), atol=CLOSE)
    assert len(replays) > 6


def test_a_step_that_cannot_be_captured_runs_as_it_is(quick_bert, replays, monkeypatch):
    def fails(function, pool):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    plain, X = fit("tags, ce", quick_bert)
    monkeypatch.setattr(_graphs, "capture", fails)
    with pytest.warns(UserWarning, match="cannot be CUDA graphs.*stream is capturing$"):
        tagger, X = fit("tags, ce", quick_bert)
    np.testing.assert_allclose(scores(plain, X), scores(tagger, X), atol=CLOSE)
