import pytest
import skorch.callbacks
import torch
from sklearn.model_selection import cross_validate
from skorch import callbacks as skc

from skdice import DiceTextClassifier

from ..corpora import easy_texts

X, Y = easy_texts(24)


def make(model, *callbacks, **parameters):
    fixed = {"loss": "ce", "lr": 1e-3, "max_epochs": 2, "verbose": 0, "random_state": 0}
    parameters = {**fixed, "validation_fraction": 0.25, **parameters}
    return DiceTextClassifier(model, callbacks=list(callbacks), **parameters)


def check_early_stopping(model, tmp_path):
    stop = skc.EarlyStopping("valid_score", lower_is_better=False, patience=2, threshold=0)
    own = Collect()
    estimator = make(model, stop, own, max_epochs=9, lr=1e-9)
    # A clone collects by itself.
    scores = cross_validate(estimator, X, Y, cv=2, error_score="raise", return_estimator=True)
    assert not hasattr(own, "losses_")
    for fit in scores["estimator"]:
        assert len(fit.history_) < 9
        collected = dict(fit.net_.callbacks_)["Collect"]
        assert collected.losses_ == fit.history_["train_loss"].tolist()
    assert len(estimator.fit(X, Y).history_) == estimator.best_epoch_ == 3
    assert not estimator.interrupted_


def check_checkpoint(model, tmp_path):
    checkpoint = skc.Checkpoint(
        monitor="valid_score_best", dirname=tmp_path, f_optimizer=None, f_criterion=None
    )
    estimator = make(model, checkpoint).fit(X, Y)
    saved = torch.load(tmp_path / "params.pt", weights_only=True)
    assert saved.keys() == estimator.net_.module_.state_dict().keys()
    assert any(estimator.net_.history[:, "event_cp"])


def check_clipping(model, tmp_path):
    clip = skc.GradientNormClipping(gradient_clip_value=1e-12)
    weights = [
        make(model, *callbacks, lr=1e-2, weight_decay=0.0)
        .fit(X, Y)
        .net_.module_.state_dict()["transformer.classifier.bias"]
        for callbacks in ([clip], [])
    ]
    assert weights[0].abs().max() < 0.1 * weights[1].abs().max()


def check_passthrough(model, tmp_path):
    class Count(skc.Callback):
        def on_batch_end(self, net, batch, **kwargs):
            net.history.record_batch("n_texts", sum(len(part["input_ids"]) for part in batch))

    mean = skc.PassthroughScoring("n_texts", on_train=True)
    assert make(model, Count(), mean, batch_size=6).fit(X, Y).net_.history[:, "n_texts"] == [6, 6]


class Collect(skc.Callback):
    def initialize(self):
        self.losses_ = []

    def on_epoch_end(self, net, **kwargs):
        self.losses_.append(net.history[-1]["train_loss"])


class Weights(skc.Callback):
    """Copies the weights at the beginning, and after each epoch."""

    def on_train_begin(self, net, **kwargs):
        self.copies_ = []
        self.on_epoch_end(net)

    def on_epoch_end(self, net, **kwargs):
        state = net.module_.state_dict()
        self.copies_.append({name: weight.clone() for name, weight in state.items()})


def moved(model, part, *callbacks, **parameters):
    """Return how far the weights with a word in their name had moved by each epoch, at most."""
    estimator = make(model, *callbacks, Weights(), **parameters).fit(X, Y)
    first, *later = dict(estimator.net_.callbacks_)["Weights"].copies_
    return [
        max(float((copy[name] - first[name]).abs().max()) for name in first if part in name)
        for copy in later
    ]


def check_freezer(model, tmp_path):
    freezer = skc.Freezer("transformer.*embeddings*")
    assert moved(model, "embeddings", freezer) == [0, 0]
    assert moved(model, "attention", freezer)[0] > 0
    assert moved(model, "embeddings")[0] > 0


def check_unfreezer(model, tmp_path):
    callbacks = [skc.Freezer("*embeddings*"), skc.Unfreezer("*embeddings*", at=2)]
    frozen, free = moved(model, "embeddings", *callbacks)
    assert frozen == 0 < free


WORKING = {
    "Checkpoint": check_checkpoint,
    "EarlyStopping": check_early_stopping,
    "Freezer": check_freezer,
    "GradientNormClipping": check_clipping,
    "PassthroughScoring": check_passthrough,
    "Unfreezer": check_unfreezer,
}

REFUSED = {
    "BatchScoring": (skc.BatchScoring("accuracy"), r"have BatchScoring: texts are no arrays"),
    "EpochScoring": (skc.EpochScoring("accuracy"), r"history_\['valid_score'\]"),
    "InputShapeSetter": (skc.InputShapeSetter(), "leave it out"),
    "LRScheduler": (skc.LRScheduler(), "use lr and warmup"),
    "LoadInitState": (skc.LoadInitState(skc.Checkpoint()), "use checkpoint_dir"),
}
# Of these test_examples has real ones.
TRACKERS = {"MlflowLogger", "TensorBoard", "NeptuneLogger", "SacredLogger", "WandbLogger"}
# They need nothing of a net that the others above do not need.
OTHERS = {
    "Callback", "EpochTimer", "Initializer", "ParamMapper", "PrintLog", "ProgressBar",
    "TrainEndCheckpoint", "WarmRestartLR",
}  # fmt: skip


def test_all_are_tried():
    assert {*WORKING, *REFUSED, *TRACKERS, *OTHERS} == set(skorch.callbacks.__all__)


@pytest.mark.parametrize("name", WORKING)
def test_works(name, tiny_bert, tmp_path):
    WORKING[name](tiny_bert, tmp_path)


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name, tiny_bert):
    callback, message = REFUSED[name]
    for callbacks in ([callback], [("mine", callback)]):
        with pytest.raises(ValueError, match=message):
            make(tiny_bert, *callbacks).fit(X, Y)


@pytest.mark.parametrize("callback, parameters, message", [
    (skc.EarlyStopping(), {}, r"monitor='valid_loss': a fit records train_loss"),
    (skc.Checkpoint(), {}, r"monitor='valid_loss_best'"),
    (skc.EarlyStopping("valid_score", lower_is_better=False), {"validation_fraction": None},
     "has no validation rows"),
    (skc.EarlyStopping, {}, r"objects of skorch's Callback.*Got <class"),
    ("early", {}, "Got 'early'"),
    (skc.WarmRestartLR, {}, "Got <class"),
    (skc.EarlyStopping("train_loss", load_best=True), {}, "load_best=True: use patience"),
])  # fmt: skip
def test_settings_that_cannot_work(callback, parameters, message, tiny_bert):
    with pytest.raises(ValueError, match=message):
        make(tiny_bert, callback, **parameters).fit(X, Y)
