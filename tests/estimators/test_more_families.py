"""What is taken for granted of a model, on many families: it holds, or is told and worked around.

Models are tiny and random; all have the same tokenizer.
"""

import functools
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers as tr

from skdice import DiceTextClassifier, DiceTokenTagger
from skdice._pretrained import loading
from skdice.nn._freezing import find_layers
from skdice.nn._loading import position_limit
from skdice.nn._modules import TokenModule

from ..corpora import easy_corpus, easy_texts
from ..tiny_models import BERT_SPECIAL, build_bert

N_PIECES = 300
N_LAYERS = 2
SMALL = {
    "vocab_size": N_PIECES,
    "hidden_size": 16,
    "num_hidden_layers": N_LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
BERT = {**SMALL, "max_position_embeddings": 64}
# Their positions start after that of the padding.
ROBERTA = {**SMALL, "max_position_embeddings": 65, "type_vocab_size": 1}
XLM = {"vocab_size": N_PIECES, "emb_dim": 16, "n_layers": N_LAYERS, "n_heads": 2}
XLM |= {"max_position_embeddings": 64, "pad_index": 0, "bos_index": 2, "eos_index": 3}
GPT = {"vocab_size": N_PIECES, "n_positions": 64, "n_embd": 16, "n_layer": N_LAYERS, "n_head": 2}
GPT |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
T5 = {"vocab_size": N_PIECES, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": N_LAYERS}
T5 |= {"num_heads": 2, "eos_token_id": 3}
FUNNEL = {"vocab_size": N_PIECES, "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 24}
GROUPS = ("q_groups", "k_groups", "v_groups", "post_attention_groups", "intermediate_groups")
SQUEEZE = {"embedding_size": 16, "output_groups": 1, **dict.fromkeys(GROUPS, 1)}
LAYERS_IN_PARTS = "its layers lie in parts in several lists"
NO_LAYERS = "its layers were not found"


class Family(NamedTuple):
    """What is expected of a family."""

    config: Callable[[], Any]
    takes_types: bool = False
    limit: int | None = 64
    masks_padding: bool = True
    cannot_freeze: str | None = None
    keeps_dropout: bool = False


FAMILIES = {
    "BERT": Family(lambda: tr.BertConfig(**BERT), takes_types=True),
    "RoBERTa": Family(lambda: tr.RobertaConfig(**ROBERTA)),
    "XLM-R": Family(lambda: tr.XLMRobertaConfig(**ROBERTA)),
    "X-MOD": Family(lambda: tr.XmodConfig(**ROBERTA, default_language="en_XX")),
    "CamemBERT": Family(lambda: tr.CamembertConfig(**ROBERTA)),
    "data2vec": Family(lambda: tr.Data2VecTextConfig(**ROBERTA)),
    "I-BERT": Family(lambda: tr.IBertConfig(**ROBERTA)),
    "MPNet": Family(lambda: tr.MPNetConfig(**ROBERTA), limit=63),
    "ESM": Family(lambda: tr.EsmConfig(**ROBERTA, mask_token_id=4)),
    "LUKE": Family(lambda: tr.LukeConfig(**ROBERTA, entity_vocab_size=9, entity_emb_size=16)),
    "Longformer": Family(lambda: tr.LongformerConfig(**ROBERTA, attention_window=8)),
    "DeBERTa": Family(lambda: tr.DebertaConfig(**BERT, relative_attention=True, type_vocab_size=0)),
    "ERNIE": Family(lambda: tr.ErnieConfig(**BERT), takes_types=True),
    "RemBERT": Family(lambda: tr.RemBertConfig(**BERT, input_embedding_size=8), takes_types=True),
    "RoFormer": Family(lambda: tr.RoFormerConfig(**BERT, embedding_size=16), takes_types=True),
    "Megatron-BERT": Family(lambda: tr.MegatronBertConfig(**BERT), takes_types=True),
    "LayoutLM": Family(lambda: tr.LayoutLMConfig(**BERT), takes_types=True),
    "BigBird": Family(lambda: tr.BigBirdConfig(**BERT), takes_types=True),
    "ALBERT": Family(
        lambda: tr.AlbertConfig(**BERT, embedding_size=8),
        takes_types=True,
        cannot_freeze=NO_LAYERS,
    ),
    "ConvBERT": Family(
        lambda: tr.ConvBertConfig(**BERT, embedding_size=16), takes_types=True, masks_padding=False
    ),
    "FNet": Family(lambda: tr.FNetConfig(**BERT), takes_types=True, masks_padding=False),
    "Nystromformer": Family(
        lambda: tr.NystromformerConfig(**BERT), takes_types=True, masks_padding=False
    ),
    "YOSO": Family(lambda: tr.YosoConfig(**BERT), masks_padding=False),
    "SqueezeBERT": Family(lambda: tr.SqueezeBertConfig(**BERT, **SQUEEZE), takes_types=True),
    "Funnel": Family(
        lambda: tr.FunnelConfig(**FUNNEL, block_sizes=[2, 2], num_decoder_layers=1),
        takes_types=True,
        limit=None,
        masks_padding=False,
        cannot_freeze=NO_LAYERS,
    ),
    "XLM": Family(lambda: tr.XLMConfig(**XLM), cannot_freeze=LAYERS_IN_PARTS),
    "FlauBERT": Family(lambda: tr.FlaubertConfig(**XLM), cannot_freeze=LAYERS_IN_PARTS),
    # The first layer hands the relative positions on to the others.
    "T5": Family(lambda: tr.T5Config(**T5), limit=None),
    "mT5": Family(lambda: tr.MT5Config(**T5), limit=None),
    "umT5": Family(lambda: tr.UMT5Config(**T5), limit=None),
    "GPT-2": Family(lambda: tr.GPT2Config(**GPT)),
    "GPT-NeoX": Family(lambda: tr.GPTNeoXConfig(**BERT)),
    "BioGPT": Family(lambda: tr.BioGptConfig(**BERT), keeps_dropout=True),
    "Llama": Family(lambda: tr.LlamaConfig(**BERT)),
    "Qwen2": Family(lambda: tr.Qwen2Config(**BERT, num_key_value_heads=2)),
}
HAS_NO_DROPOUT = {"RemBERT", "Llama", "Qwen2", "GPT-NeoX"}
FREEZABLE = [name for name, family in FAMILIES.items() if not family.cannot_freeze]
X, Y = easy_corpus(8)
FAST = {"max_epochs": 1, "lr": 1e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
FAST |= {"loss": "dice", "precision": "fp32"}


def save_model(config, auto_class, path, tokenizer):
    with torch.random.fork_rng(devices=[]), loading(str(path)):
        torch.manual_seed(0)
        model = auto_class.from_config(config)
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.2)
        model.save_pretrained(path)
    shutil.copytree(tokenizer, path, dirs_exist_ok=True)
    return str(path)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Directory of a tokenizer alone."""
    path = tmp_path_factory.mktemp("tokenizer")
    build_bert(path)
    for file in ("config.json", "model.safetensors"):
        Path(path, file).unlink()
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory, tokenizer):
    """Return the directory of the tiny model of a family, built when first asked for."""
    built = {}

    def model(name):
        if name not in built:
            config = FAMILIES[name].config()
            auto_class = tr.AutoModelForTokenClassification
            built[name] = save_model(config, auto_class, tmp_path_factory.mktemp("m"), tokenizer)
        return built[name]

    return model


def fit(model, n_frozen_layers=None):
    """Return a fitted tagger and the warnings of its fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tagger = DiceTokenTagger(model, n_frozen_layers=n_frozen_layers, **FAST).fit(X, Y)
    return tagger, [str(warning.message) for warning in caught]


@functools.cache
def load(model, n_frozen_layers=None):
    """Return a module, which tests may not change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TokenModule(model, 3, n_frozen_layers)


def hidden_states(module, types=None):
    ids = torch.tensor([[2, 20, 30, 40, 50, 3]])
    inputs = {} if types is None else {"token_type_ids": torch.tensor([types])}
    return module.transformer(
        input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True, **inputs
    ).hidden_states


def parameters_behind(module, hidden):
    named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    gradients = torch.autograd.grad(hidden.sum(), [p for _, p in named], allow_unused=True)
    return {name for (name, _), gradient in zip(named, gradients) if gradient is not None}


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_do_not_depend_on_the_batch(models, name):
    tagger, messages = fit(models(name))
    told = [m for m in messages if "scores a text differently if it is padded" in m]
    assert len(told) == len(messages) == (0 if FAMILIES[name].masks_padding else 1)
    together = tagger.predict_proba(X)
    for words, p in zip(X, together):
        np.testing.assert_allclose(tagger.predict_proba([words])[0], p, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_token_types(models, name):
    """They are read, or not passed: a text of type 0 is one without types."""
    module = load(models(name)).eval()
    assert module._takes_types == FAMILIES[name].takes_types
    if module._takes_types:
        given = (None, [0] * 6, [0, 0, 0, 1, 1, 1])
        none, one, two = (hidden_states(module, types)[-1] for types in given)
        torch.testing.assert_close(none, one)
        assert not torch.equal(one, two)


@pytest.mark.parametrize("name", FAMILIES)
def test_longest_text(models, name):
    model, limit = models(name), FAMILIES[name].limit
    assert position_limit(model) == limit
    if limit is not None:
        ids = torch.full((1, limit), 20)
        module = load(model).eval()
        with torch.no_grad():
            scores = module(ids, torch.ones_like(ids), ids * 0, ids[0] * 0, torch.arange(limit))
        assert scores.isfinite().all()


@pytest.mark.parametrize("name", FREEZABLE)
@pytest.mark.parametrize("n_frozen_layers", [0, 1, N_LAYERS])
def test_what_is_below_is_frozen_and_what_is_above_is_not(models, name, n_frozen_layers):
    """Against the gradients of the hidden states."""
    k, whole = n_frozen_layers, load(models(name)).eval()
    module = load(models(name), k)
    frozen = {name for name, p in module.named_parameters() if not p.requires_grad}
    # The last state may be that after a norm.
    assert parameters_behind(whole, hidden_states(whole)[min(k, N_LAYERS - 1)]) <= frozen
    layers = find_layers(module.transformer)
    assert not any(p.requires_grad for layer in layers[:k] for p in layer.parameters())
    assert all(p.requires_grad for layer in layers[k:] for p in layer.parameters())
    assert all(p.requires_grad for p in module.head_parameters())


@pytest.mark.parametrize("name", FREEZABLE)
def test_frozen_layers_have_no_dropout_and_others_have(models, name):
    for k in range(N_LAYERS):
        module = load(models(name), k).train()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            one, two = hidden_states(module), hidden_states(module)
        assert torch.equal(one[k], two[k]) != FAMILIES[name].keeps_dropout
        assert torch.equal(one[-1], two[-1]) == (name in HAS_NO_DROPOUT)


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - set(FREEZABLE)))
@pytest.mark.parametrize("n_frozen_layers", [0, 1, N_LAYERS])
def test_layers_that_cannot_be_told_apart(models, name, n_frozen_layers):
    message = f"'n_frozen_layers' parameter must be None for .*{FAMILIES[name].cannot_freeze}"
    with pytest.raises(ValueError, match=message):
        TokenModule(models(name), 3, n_frozen_layers)


def test_trying_the_model_out_does_not_change_the_fit(models, monkeypatch):
    expected, _ = fit(models("BERT"), 1)
    monkeypatch.setattr("skdice.estimators._network.padding_is_masked", lambda *_: True)
    tagger, _ = fit(models("BERT"), 1)
    for p, q in zip(expected.net_.module_.parameters(), tagger.net_.module_.parameters()):
        assert torch.equal(p, q)


def test_trying_the_model_out_leaves_its_parts_alone(models):
    """BigBird changes to full attention for good when it meets a short text."""
    module = TokenModule(models("BigBird"), 3, 1)
    assert module.transformer.bert.attention_type == "block_sparse"
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_a_loaded_model_that_does_not_mask_padding(models, tmp_path):
    tagger, _ = fit(models("FNet"))
    tagger.save_pretrained(tmp_path)
    loaded = DiceTokenTagger.from_pretrained(tmp_path)
    for words, p in zip(X, loaded.predict_proba(X)):
        np.testing.assert_allclose(loaded.predict_proba([words])[0], p, atol=1e-5)
    batches = list(loaded._batcher(loaded._encode(X), loaded.net_.pads).by_length())
    assert sorted(i for windows, _ in batches for i in windows) == list(range(len(X)))
    assert all(batch["attention_mask"].all() for _, batch in batches)


def classifier(config, path, tokenizer):
    auto_class = tr.AutoModelForSequenceClassification
    return DiceTextClassifier(save_model(config, auto_class, path, tokenizer), **FAST)


def test_gpt2_without_padding_scores_one_text_at_a_time_only(tmp_path, tokenizer):
    """Its head looks for the last piece that is no padding."""
    config = tr.GPT2Config(**{**GPT, "pad_token_id": None})
    with pytest.raises(ValueError, match=r"GPT2.* cannot score two short texts at once.*padding"):
        classifier(config, tmp_path, tokenizer).fit(*easy_texts(8))


@pytest.mark.parametrize("eos, is_taken", [("sep_token", True), ("mask_token", False)])
def test_bart_needs_its_end_of_text(tmp_path, tokenizer, eos, is_taken):
    config = tr.BartConfig(
        vocab_size=N_PIECES,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=list(BERT_SPECIAL.values()).index(BERT_SPECIAL[eos]),
    )
    X, y = easy_texts(8)
    if not is_taken:
        with pytest.raises(ValueError, match="cannot score two short texts at once"):
            classifier(config, tmp_path, tokenizer).fit(X, y)
        return
    fitted = classifier(config, tmp_path, tokenizer).fit(X, y)
    one = np.concatenate([fitted.predict_proba([text]) for text in X])
    np.testing.assert_allclose(fitted.predict_proba(X), one, atol=1e-5)


def test_scores_that_depend_on_the_batch_beyond_padding_are_refused(models, monkeypatch):
    forward = TokenModule.forward

    def with_neighbours(self, input_ids, *args, **kwargs):
        return forward(self, input_ids, *args, **kwargs) + input_ids.float().mean()

    monkeypatch.setattr(TokenModule, "forward", with_neighbours)
    tagger = DiceTokenTagger(models("BERT"), **FAST)
    with pytest.raises(ValueError, match="depends on the other texts of the batch"):
        tagger.fit(X, Y)
    assert not hasattr(tagger, "net_")
