"""Adapters of peft: they and the head are trained, saved and loaded, and nothing else."""

import copy
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.base import clone
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

from skdice import DiceTokenTagger
from skdice._digest import digest
from skdice._pretrained import quiet_transformers
from skdice.estimators import load_pretrained
from skdice.io._values import from_json, to_json

from ..corpora import easy_corpus
from ..io.conftest import CASES, FAST, make, scores
from ..io.test_load_errors import change, content_of, sign
from ..spies import Spy, stop
from ..tiny_models import change_weights

peft = pytest.importorskip("peft")

R = 4
LORA = peft.LoraConfig(r=R)
# peft has defaults for the other families.
OF_FAMILY = {"distilbert": peft.LoraConfig(r=R, target_modules=["q_lin", "v_lin"])}
# Of each family the linear layers that LoRA has by default, all from 32 to 32, in two layers.
N_LORA = 2 * 2 * R * (32 + 32)
KINDS = {
    "dora": peft.LoraConfig(r=R, use_dora=True, lora_dropout=0.1),
    "all linear": peft.LoraConfig(r=R, target_modules="all-linear", use_rslora=True),
    "biases": peft.LoraConfig(r=R, bias="all"),
    "embeddings": peft.LoraConfig(r=R, target_modules=["query", "word_embeddings"]),
    "whole modules": peft.LoraConfig(r=R, modules_to_save=["classifier", "LayerNorm"]),
    "by pattern": peft.LoraConfig(r=R, target_modules=r".*\.1\..*(query|dense)"),
    "ia3": peft.IA3Config(),
    "loha": peft.LoHaConfig(r=R, target_modules=["query", "value"]),
    "lokr": peft.LoKrConfig(r=R, target_modules=["query", "value"]),
    "oft": peft.OFTConfig(oft_block_size=8, target_modules=["query"]),
    "norms": peft.LNTuningConfig(target_modules=["LayerNorm"]),
}


@pytest.fixture(scope="module")
def fitted(tiny_models):
    """Return a fitted estimator with its rows, by case and what is set; fitted once."""
    done = {}

    def fit(case="tagger", family="bert", **params):
        key = case, family, repr(params)
        if key not in done:
            estimator, X, y = make(
                case, tiny_models(family), **{"peft_config": OF_FAMILY.get(family, LORA), **params}
            )
            done[key] = estimator.fit(X, y), X, y
        return done[key]

    return fit


class TestTraining:
    @pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
    def test_adapters_and_head_change_and_nothing_else(self, tiny_models, family):
        before = {}

        def keep(net, _):
            before.update((n, w.detach().clone()) for n, w in net.module_.named_parameters())

        config = OF_FAMILY.get(family, LORA)
        tagger, X, y = make("tagger", tiny_models(family), peft_config=config, max_epochs=2)
        tagger.set_params(callbacks=[Spy("on_train_begin", keep)]).fit(X, y)
        after = dict(tagger.net_.module_.named_parameters())
        changed = {n for n, w in after.items() if not torch.equal(w, before[n])}
        trained = {name for name, weight in after.items() if weight.requires_grad}
        assert changed == trained == set(tagger.net_.module_.state_dict())
        assert all("lora_" in name or "classifier" in name for name in trained)
        n_head = 32 * len(tagger.classes_) + len(tagger.classes_)
        assert sum(after[name].numel() for name in trained) == N_LORA + n_head

    def test_the_head_has_no_adapters(self, fitted):
        """As it has in peft, where they are for all linear layers, or for all of one name."""
        for family, target in (("bert", "all-linear"), ("roberta", ["dense"])):
            config = peft.LoraConfig(r=R, target_modules=target)
            classifier, _, _ = fitted("texts", family, peft_config=config)
            names = list(classifier.net_.module_.state_dict())
            assert any("lora_A" in name and "layer.0" in name for name in names)
            assert not any("lora_A" in name and "classifier" in name for name in names)


class TestParameters:
    def test_clones_and_copies(self):
        config = peft.LoraConfig(r=2, target_modules=["query", "key"])
        tagger = DiceTokenTagger(peft_config=config)
        assert tagger.peft_config is config
        for other in (clone(tagger), copy.deepcopy(tagger), pickle.loads(pickle.dumps(tagger))):
            assert other.peft_config == config
            assert other.peft_config is not config
            assert digest(other.peft_config) == digest(config)

    def test_fields_are_parameters(self):
        config = peft.LoraConfig(r=2, target_modules=["query"])
        tagger = DiceTokenTagger(peft_config=config)
        assert tagger.get_params()["peft_config__r"] == 2
        assert not any("peft_config__" in name for name in tagger.get_params(deep=False))
        tagger.set_params(peft_config__r=8, peft_config__lora_alpha=32)
        assert (tagger.peft_config.r, tagger.peft_config.lora_alpha) == (8, 32)
        assert tagger.peft_config.target_modules == {"query"}
        assert config.r == 2
        tagger.set_params(peft_config=peft.IA3Config(), peft_config__fan_in_fan_out=True)
        assert tagger.peft_config.fan_in_fan_out
        with pytest.raises(ValueError, match="'rank' is no field of IA3Config; these are"):
            tagger.set_params(peft_config__rank=3)
        with pytest.raises(ValueError, match="'peft_config__r' needs a configuration of peft"):
            DiceTokenTagger().set_params(peft_config__r=3)

    def test_parts_of_configurations_in_json(self):
        config = peft.LoraConfig(
            task_type="TOKEN_CLS",
            runtime_config=peft.LoraRuntimeConfig(ephemeral_gpu_offload=True),
            rank_pattern={"query": 2},
        )
        again = from_json(to_json(config, "peft_config"))
        assert again == config
        assert again.runtime_config == config.runtime_config

    @pytest.mark.parametrize("name", ["PeftModel", "nothing", "tuners", "get_peft_model"])
    def test_other_things_of_peft_are_not_made(self, name):
        with pytest.raises(ValueError, match=f"'{name}' is no configuration of peft"):
            from_json({"type": "peft", "class": name, "parameters": {}})


class TestSaved:
    @pytest.mark.parametrize("case", CASES)
    def test_round_trip(self, fitted, tmp_path, case):
        estimator, X, y = fitted(case)
        estimator.save_pretrained(tmp_path / "saved")
        names = {path.name for path in (tmp_path / "saved").iterdir()}
        assert {"adapter_config.json", "adapter_model.safetensors", "model_config.json"} <= names
        assert not names & {"config.json", "model.safetensors"}
        loaded = load_pretrained(tmp_path / "saved")
        assert loaded.get_params(deep=False) == estimator.get_params(deep=False)
        for other in (loaded, pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
            np.testing.assert_array_equal(scores(other, X), scores(estimator, X))
            assert other.score(X, y) == estimator.score(X, y)
        loaded.save_pretrained(tmp_path / "again")
        for name in ("adapter_model.safetensors", "adapter_config.json", "model_config.json"):
            again = (tmp_path / "again" / name).read_bytes()
            assert again == (tmp_path / "saved" / name).read_bytes()

    @pytest.mark.filterwarnings("ignore:Unsupported layer type:UserWarning")
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind(self, fitted, tmp_path, kind):
        """Saved names are peft's, and merged weights compute the same."""
        case, X, _ = fitted(peft_config=KINDS[kind])
        case.save_pretrained(tmp_path / "saved")
        expected = scores(case, X)
        np.testing.assert_array_equal(scores(load_pretrained(tmp_path / "saved"), X), expected)
        saved = load_file(tmp_path / "saved" / "adapter_model.safetensors")
        own = {name.removeprefix("base_model.model."): weight for name, weight in saved.items()}
        transformer = case.net_.module_.transformer
        of_peft = peft.get_peft_model_state_dict(transformer, save_embedding_layers=False)
        assert of_peft.keys() | {"classifier.weight", "classifier.bias"} == own.keys()
        for name, weight in of_peft.items():
            assert torch.equal(own[name], weight)
        case.save_pretrained(tmp_path / "merged", merged=True)
        merged = load_pretrained(tmp_path / "merged")
        assert not merged.net_.module_.base_digest
        np.testing.assert_allclose(scores(merged, X), expected, atol=1e-5)

    @pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
    def test_transformers(self, fitted, tmp_path, family):
        tagger, X, _ = fitted(family=family)
        tagger.save_pretrained(tmp_path / "saved")
        tagger.save_pretrained(tmp_path / "merged", merged=True)
        config = AutoConfig.from_pretrained(tmp_path / "saved" / "model_config.json")
        assert list(config.id2label.values()) == list(tagger.classes_)
        with quiet_transformers():
            load = AutoModelForTokenClassification.from_pretrained
            models = load(tmp_path / "saved", config=config), load(tmp_path / "merged")
            tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
        sentences = [sentence for sentence in X if len(sentence) > 3][:4]
        for sentence, expected in zip(sentences, tagger.predict_proba(sentences)):
            words = tokenizer(sentence, is_split_into_words=True)
            first = [words.word_to_tokens(i).start for i in range(len(sentence))]
            inputs = tokenizer(" ".join(sentence), return_tensors="pt")
            for model in models:
                with torch.inference_mode():
                    p = model.eval()(**inputs).logits[0].softmax(-1).numpy()
                np.testing.assert_allclose(p[first], expected, atol=1e-5)

    def test_goes_on_from_merged_weights(self, fitted, tmp_path):
        tagger, X, y = fitted()
        tagger.save_pretrained(tmp_path / "merged", merged=True)
        new = DiceTokenTagger(tmp_path / "merged", **FAST).set_params(lr=1e-12).fit(X, y)
        np.testing.assert_allclose(scores(new, X), scores(tagger, X), atol=1e-5)
        tagger.save_pretrained(tmp_path / "saved")
        with pytest.raises(ValueError, match=r"has adapters of another model.*merged=True"):
            DiceTokenTagger(tmp_path / "saved", **FAST).fit(X, y)


class TestBase:
    @pytest.fixture
    def saved(self, own_bert, tmp_path):
        """Return what was saved of a fit, the scores of it and where its base model is."""
        tagger, X, y = make("tagger", str(own_bert), peft_config=LORA)
        tagger.fit(X, y).save_pretrained(tmp_path / "saved")
        return tmp_path / "saved", scores(tagger, X), Path(own_bert)

    def test_it_may_move(self, saved, tmp_path):
        directory, expected, base = saved
        moved = shutil.move(base, tmp_path / "moved")
        with pytest.raises(ValueError, match=r"cannot be loaded; from_pretrained\(directory, mod"):
            load_pretrained(directory)
        for load in (load_pretrained, DiceTokenTagger.from_pretrained):
            loaded = load(directory, model=moved)
            np.testing.assert_array_equal(scores(loaded, easy_corpus(16)[0]), expected)
        assert loaded.model == str(moved)

    def test_it_must_not_change(self, saved):
        directory, _, base = saved
        change_weights(base)
        with pytest.raises(ValueError, match="has adapters for other weights than those of"):
            load_pretrained(directory)

    def test_a_base_of_another_size(self, saved, tiny_models):
        directory, _, _ = saved
        with pytest.raises(ValueError, match="cannot be loaded"):
            load_pretrained(directory, model=tiny_models("distilbert"))


class TestDamaged:
    @pytest.fixture
    def saved(self, fitted, tmp_path):
        fitted()[0].save_pretrained(tmp_path / "saved")
        return tmp_path / "saved"

    def test_a_weight_is_missing(self, saved):
        from safetensors.torch import save_file

        path = saved / "adapter_model.safetensors"
        weights = load_file(path)
        weights.pop(next(name for name in weights if "lora_A" in name))
        save_file(weights, path)
        sign(saved)
        with pytest.raises(ValueError, match=r"lora_A.default.weight' is missing, left over"):
            load_pretrained(saved)

    @pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
    def test_another_network_beside_it(self, saved, name, tiny_models):
        shutil.copy(Path(tiny_models("bert"), name), saved / name)
        content = content_of(saved)
        if name == "config.json":
            with pytest.raises(ValueError, match=r"config.json.* is of another model"):
                load_pretrained(saved)
        change(saved, files={**content["files"], name: {}})
        with pytest.raises(ValueError, match=name):
            load_pretrained(saved)

    @pytest.mark.parametrize(
        "field, value, message",
        [
            ("r", 10**9, "cannot be loaded"),  # Nothing is allocated for what is not there.
            ("megatron_config", {"type": "dict", "items": []}, "megatron_config"),
        ],
    )
    def test_fields(self, saved, field, value, message):
        parameters = content_of(saved)["parameters"]
        parameters["peft_config"]["parameters"][field] = value
        change(saved, parameters=parameters)
        with pytest.raises(ValueError, match=message):
            load_pretrained(saved)

    def test_without_peft(self, saved, monkeypatch):
        monkeypatch.setitem(sys.modules, "peft", None)
        with pytest.raises(ImportError, match=r"peft.*skdice\[peft\]"):
            load_pretrained(saved)


class TestTogether:
    def test_members(self, fitted, tmp_path):
        tagger, X, _ = fitted(n_members=3)
        module = tagger.net_.module_
        assert len(module.members) == 2
        tagger.save_pretrained(tmp_path)
        n_own = sum(w.numel() for w in module.parameters() if w.requires_grad)
        head = load_file(tmp_path / "head.safetensors")
        assert sum(weight.numel() for weight in head.values()) == n_own * 2 // 3
        loaded = load_pretrained(tmp_path)
        for other in (loaded, pickle.loads(pickle.dumps(tagger))):
            np.testing.assert_array_equal(scores(other, X), scores(tagger, X))
        alone, _, _ = fitted()
        assert np.abs(scores(alone, X) - scores(tagger, X)).max() > 1e-4


@pytest.mark.parametrize(
    "config, message",
    [
        ("lora", "must be None or a configuration of peft"),
        (peft.PromptTuningConfig(num_virtual_tokens=3), "Got a PromptTuningConfig instead"),
        (peft.PeftConfig(), "Got a PeftConfig instead"),
        (
            peft.LoraConfig(target_modules=["q_proj"]),
            "fit BertForTokenClassification.*'all-linear'.*linear layers dense, key, query, value",
        ),
        (peft.VeraConfig(), "Got a VeraConfig instead"),
        (peft.LoraConfig(init_lora_weights="pissa"), "take another init_lora_weights"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_allowed(tiny_models, config, message):
    tagger, X, y = make("tagger", tiny_models("bert"), peft_config=config)
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y)
    tagger.set_params(peft_config=LORA, n_frozen_layers=1)
    with pytest.raises(ValueError, match="n_frozen_layers must be None with peft_config"):
        tagger.fit(X, y)


def test_without_peft(tiny_models, monkeypatch):
    tagger, X, y = make("tagger", tiny_models("bert"), peft_config=LORA)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ImportError, match=r"pip install peft.*skdice\[peft\]"):
        tagger.fit(X, y)


def test_what_cannot_be_merged(fitted, monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise NotImplementedError

    monkeypatch.setattr("peft.tuners.lora.Linear.merge", refuse)
    with pytest.raises(ValueError, match="cannot be merged into the weights"):
        fitted()[0].save_pretrained(tmp_path / "merged", merged=True)


def test_checkpoints_and_the_best_epoch(tiny_models, tmp_path):
    """Both are of the adapters and the head alone."""
    die = stop(OSError("no more power"), lambda net, _: len(net.history) == 2)
    tagger, X, y = make("tagger", tiny_models("bert"), peft_config=LORA, max_epochs=3)
    tagger.set_params(checkpoint_dir=tmp_path, validation_fraction=0.3, patience=4, lr="auto")
    whole = clone(tagger).set_params(checkpoint_dir=None).fit(X, y)
    with pytest.raises(OSError, match="no more power"):
        clone(tagger).set_params(callbacks=[Spy("on_epoch_begin", die)]).fit(X, y)
    (path,) = tmp_path.rglob("state.safetensors")
    base = Path(tiny_models("bert"), "model.safetensors")
    assert path.stat().st_size < base.stat().st_size / 2
    np.testing.assert_array_equal(scores(clone(tagger).fit(X, y), X), scores(whole, X))
    # Another configuration is another fit; without one the open rate is lower.
    plain = clone(tagger).set_params(peft_config=None).fit(X, y)
    assert len(list(tmp_path.rglob("state.safetensors"))) == 2
    assert whole.lr_ == pytest.approx(5 * plain.lr_)


def test_onnx_and_card(shallow_models, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    tagger, X, y = make("tagger", shallow_models("bert"), peft_config=LORA)
    tagger.fit(X, y).export_onnx(tmp_path / "net.onnx")  # It compares the outputs.
    assert any("lora_" in name for name in tagger.net_.module_.state_dict())
    tagger.save_pretrained(tmp_path / "tagger")
    card = (tmp_path / "tagger" / "README.md").read_text()
    assert "It has adapters and a head alone" in card
    assert "| Parameter `peft_config` | `LoraConfig(r=4)` |" in card
    assert "AutoConfig.from_pretrained('tagger/model_config.json')" in card
    tagger.save_pretrained(tmp_path / "tagger", merged=True)
    card = (tmp_path / "tagger" / "README.md").read_text()
    assert "adapters" not in card
    assert "pipeline('token-classification', model='tagger')" in card
