import copy
import pickle
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice.estimators import load_pretrained

from ..io.conftest import CASES, make, scores
from ..quick import quick
from ..spies import Spy, stop

peft = pytest.importorskip("peft")

R = 4
LORA = peft.LoraConfig(r=R)
KINDS = {
    "dora": peft.LoraConfig(r=R, use_dora=True, lora_dropout=0.1),
    "all linear": peft.LoraConfig(r=R, target_modules="all-linear", use_rslora=True),
    "biases": peft.LoraConfig(r=R, bias="all"),
    "whole modules": peft.LoraConfig(r=R, modules_to_save=["classifier", "LayerNorm"]),
    "by pattern": peft.LoraConfig(r=R, target_modules=r".*\.1\..*(query|dense)"),
    "ia3": peft.IA3Config(),
    "lokr": peft.LoKrConfig(r=R, target_modules=["query", "value"]),
}


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_adapters_and_head_are_trained_and_nothing_else(tiny_models, family):
    before, after = {}, {}

    def keep(kept):
        return lambda net, _: kept.update(
            (name, weight.detach().clone()) for name, weight in net.module_.named_parameters()
        )

    # peft has defaults for the other families.
    modules = ["q_lin", "v_lin"] if family == "distilbert" else None
    config = peft.LoraConfig(r=R, target_modules=modules)
    tagger, X, y = make("tagger", tiny_models(family), peft_config=config, max_epochs=2)
    spies = [Spy("on_train_begin", keep(before)), Spy("on_train_end", keep(after))]
    tagger.set_params(callbacks=spies).fit(X, y)
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert all("lora_" in name or "classifier" in name for name in changed)
    n_head = 32 * len(tagger.classes_) + len(tagger.classes_)
    # Two linear layers, from 32 to 32, in each of two layers.
    assert sum(after[name].numel() for name in changed) == 2 * 2 * R * (32 + 32) + n_head


@pytest.mark.filterwarnings("ignore:Unsupported layer type:UserWarning")
@pytest.mark.parametrize("kind", quick(["dora", "whole modules"], KINDS))
def test_every_kind_is_merged(tiny_models, kind):
    """A fitted network has the weights of any other, and predicts what the adapters did."""
    scored = []
    tagger, X, y = make("tagger", tiny_models("bert"), peft_config=KINDS[kind])
    tagger.set_params(validation_fraction=0.5)
    spy = Spy("on_train_end", lambda net, _: scored.append(scores_of(net)))
    plain = clone(tagger).set_params(peft_config=None).fit(X, y).net_.module_.state_dict()
    merged = tagger.set_params(callbacks=[spy]).fit(X, y).net_.module_
    assert {name: w.shape for name, w in merged.state_dict().items()} == {
        name: w.shape for name, w in plain.items()
    }
    np.testing.assert_allclose(scores_of(tagger.net_), scored[0], atol=1e-5)


def scores_of(net):
    """Return the logits of a net for a text of a few pieces."""
    ids = torch.tensor([[2, 20, 30, 40, 50, 3]])
    with torch.no_grad():
        return net.module_.eval()(ids, ids * 0, ids[0] * 0, torch.arange(6), ids * 0 + 1).numpy()


@pytest.mark.parametrize("case", quick(["tagger", "queries"], CASES))
def test_saved_and_loaded(tiny_models, tmp_path, case):
    estimator, X, y = make(case, tiny_models("bert"), peft_config=LORA)
    with pytest.warns(UserWarning, match=r"peft_config is not saved \(LoraConfig\)"):
        estimator.fit(X, y).save_pretrained(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"config.json", "model.safetensors"} <= names
    assert not any("adapter" in name for name in names)
    loaded = load_pretrained(tmp_path)
    assert loaded.get_params(deep=False) == estimator.get_params(deep=False) | {"peft_config": None}
    for other in (loaded, pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        np.testing.assert_array_equal(scores(other, X), scores(estimator, X))


@pytest.mark.parametrize("config, message", [
    ("lora", "must be None or a configuration of peft"),
    (peft.PromptTuningConfig(num_virtual_tokens=3), "Got PromptTuningConfig"),
    (peft.PeftConfig(), "Got PeftConfig"),
    (peft.LoraConfig(target_modules=["q_proj"]), "'all-linear'.*layers classifier, dense, key"),
    (peft.VeraConfig(), "Got VeraConfig"),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_what_is_not_allowed(tiny_models, config, message, monkeypatch):
    tagger, X, y = make("tagger", tiny_models("bert"), peft_config=config)
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y)
    tagger.set_params(peft_config=LORA, n_frozen_layers=1)
    with pytest.raises(ValueError, match="n_frozen_layers must be None with peft_config"):
        tagger.fit(X, y)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ImportError, match=r"pip install peft.*skdice\[peft\]"):
        tagger.set_params(n_frozen_layers=None).fit(X, y)


def test_checkpoints_and_the_best_epoch(tiny_models, tmp_path):
    die = stop(OSError("no more power"), lambda net, _: len(net.history) == 2)
    tagger, X, y = make("tagger", tiny_models("bert"), peft_config=LORA, max_epochs=3)
    tagger.set_params(checkpoint_dir=tmp_path, validation_fraction=0.3, patience=4, lr="auto")
    whole = clone(tagger).set_params(checkpoint_dir=None).fit(X, y)
    with pytest.raises(OSError, match="no more power"):
        clone(tagger).set_params(callbacks=[Spy("on_epoch_begin", die)]).fit(X, y)
    np.testing.assert_array_equal(scores(clone(tagger).fit(X, y), X), scores(whole, X))
    # Another configuration is another fit; without one the open rate is lower.
    plain = clone(tagger).set_params(peft_config=None).fit(X, y)
    assert len(list(tmp_path.iterdir())) == 2
    assert whole.lr_ == pytest.approx(5 * plain.lr_)
