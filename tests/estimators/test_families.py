"""What is taken for granted of a model, on many families: it holds, or is told and worked around.

Families differ in tokenizer, padding side, special tokens, token types, positions and the names of
their parts. Models are tiny and random; those with a configuration share one tokenizer.
"""

import functools
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers as tr

from skdice import DiceTokenTagger
from skdice.nn import MODULES, describe_encoder

from ..corpora import easy_corpus
from ..quick import quick
from ..tiny_models import BUILDERS, build_bert, save

N_PIECES = 300
N_LAYERS = 2
SMALL = {
    "vocab_size": N_PIECES, "hidden_size": 16, "num_hidden_layers": N_LAYERS,
    "num_attention_heads": 2, "intermediate_size": 24, "pad_token_id": 0, "bos_token_id": 2,
    "eos_token_id": 3,
}  # fmt: skip
BERT = {**SMALL, "max_position_embeddings": 64}
# Their positions start after that of the padding.
ROBERTA = {**SMALL, "max_position_embeddings": 65, "type_vocab_size": 1}
XLM = {"vocab_size": N_PIECES, "emb_dim": 16, "n_layers": N_LAYERS, "n_heads": 2}
XLM |= {"max_position_embeddings": 64, "pad_index": 0, "bos_index": 2, "eos_index": 3}
GPT = {"vocab_size": N_PIECES, "n_positions": 64, "n_embd": 16, "n_layer": N_LAYERS, "n_head": 2}
GPT |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
T5 = {"vocab_size": N_PIECES, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": N_LAYERS}
T5 |= {"num_heads": 2, "eos_token_id": 3}
NO_LAYERS = "it has no one list of all its layers"


class Family(NamedTuple):
    """What is expected of a family; those without a configuration have a tokenizer of their own."""

    config: Callable[[], Any] | None = None
    takes_types: bool = False
    limit: int | None = 64
    pads_left: bool = False
    cannot_freeze: str | None = None
    has_dropout: bool = True
    keeps_dropout: bool = False


FAMILIES = {
    **dict.fromkeys(("bert", "electra"), Family(takes_types=True)),
    **dict.fromkeys(("roberta", "distilbert", "mpnet", "deberta_v2", "modernbert"), Family()),
    "xlnet": Family(takes_types=True, limit=None, pads_left=True),
    "XLM-R": Family(lambda: tr.XLMRobertaConfig(**ROBERTA)),
    "Longformer": Family(lambda: tr.LongformerConfig(**ROBERTA, attention_window=8)),
    "DeBERTa": Family(lambda: tr.DebertaConfig(**BERT, relative_attention=True, type_vocab_size=0)),
    "ALBERT": Family(
        lambda: tr.AlbertConfig(**BERT, embedding_size=8), takes_types=True, cannot_freeze=NO_LAYERS
    ),
    "XLM": Family(lambda: tr.XLMConfig(**XLM), cannot_freeze=NO_LAYERS),
    # The first layer hands the relative positions on to the others.
    "T5": Family(lambda: tr.T5Config(**T5), limit=None),
    "GPT-2": Family(lambda: tr.GPT2Config(**GPT)),
    "BioGPT": Family(lambda: tr.BioGptConfig(**BERT), keeps_dropout=True),
    "Llama": Family(lambda: tr.LlamaConfig(**BERT), has_dropout=False),
}
OWN = [name for name, family in FAMILIES.items() if family.config is None]
FREEZABLE = [name for name, family in FAMILIES.items() if not family.cannot_freeze]
X, Y = easy_corpus(8)
FAST = {"max_epochs": 1, "lr": 1e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
FAST |= {"loss": "dice", "precision": "fp32"}
QUICK = ["bert", "roberta", "xlnet", "deberta_v2"]
every_family = pytest.mark.parametrize("name", quick(QUICK, FAMILIES))


def save_model(config, path, tokenizer):
    with torch.random.fork_rng(devices=[]):
        save(tr.AutoModelForTokenClassification.from_config(config), path, std=0.2)
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
def models(tmp_path_factory, tiny_models, tokenizer):
    """Return the directory of the tiny model of a family, built when first asked for."""

    @functools.cache
    def model(name):
        make_config = FAMILIES[name].config
        if make_config is None:
            return tiny_models(name)
        return save_model(make_config(), tmp_path_factory.mktemp("m"), tokenizer)

    return model


@functools.cache
def load(model, n_frozen_layers=None):
    """Return a module, which tests may not change."""
    with warnings.catch_warnings(action="ignore"):
        return MODULES["tagging"](model, 3, n_frozen_layers)


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


@every_family
def test_scores_do_not_depend_on_the_batch(models, name, capfd):
    model = models(name)
    capfd.readouterr()
    with warnings.catch_warnings(action="error"):
        tagger = DiceTokenTagger(model, **FAST).fit(X, Y)
    together = tagger.predict_proba(X)
    for words, p in zip(X, together):
        np.testing.assert_allclose(tagger.predict_proba([words])[0], p, atol=1e-5)
    assert capfd.readouterr() == ("", "")


@every_family
def test_token_types(models, name):
    """They are read, or not passed: a text of type 0 is one without types."""
    module = load(models(name)).eval()
    assert module.takes_types == FAMILIES[name].takes_types
    if module.takes_types:
        given = (None, [0] * 6, [0, 0, 0, 1, 1, 1])
        none, one, two = (hidden_states(module, types)[-1] for types in given)
        torch.testing.assert_close(none, one)
        assert not torch.equal(one, two)


@every_family
def test_longest_text(models, name):
    model, limit = models(name), FAMILIES[name].limit
    assert describe_encoder(model, sees_case=False).n_positions == limit
    if limit is not None:
        ids = torch.full((1, limit), 20)
        module = load(model).eval()
        with torch.no_grad():
            scores = module(ids, ids * 0, ids[0] * 0, torch.arange(limit), torch.ones_like(ids))
        assert scores.isfinite().all()


@pytest.mark.parametrize("name", quick(QUICK, FREEZABLE))
@pytest.mark.parametrize("n_frozen_layers", [0, 1, N_LAYERS])
def test_what_is_below_is_frozen_and_what_is_above_is_not(models, name, n_frozen_layers):
    """Against the gradients of the hidden states."""
    k, whole = n_frozen_layers, load(models(name)).eval()
    module = load(models(name), k)
    frozen = {name for name, p in module.named_parameters() if not p.requires_grad}
    # The last state may be that after a norm.
    assert parameters_behind(whole, hidden_states(whole)[min(k, N_LAYERS - 1)]) <= frozen
    # Names of parameters have the number of their layer first.
    layers = [(re.search(r"\.(\d+)\.", name), p) for name, p in module.named_parameters()]
    assert all(p.requires_grad == (int(found[1]) >= k) for found, p in layers if found)
    assert all(p.requires_grad for p in module.head_parameters())


@pytest.mark.parametrize("name", quick(QUICK, FREEZABLE))
def test_frozen_layers_have_no_dropout_and_others_have(models, name):
    for k in range(N_LAYERS):
        module = load(models(name), k).train()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            one, two = hidden_states(module), hidden_states(module)
        assert torch.equal(one[k], two[k]) != FAMILIES[name].keeps_dropout
        assert torch.equal(one[-1], two[-1]) != FAMILIES[name].has_dropout


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - set(FREEZABLE)))
@pytest.mark.parametrize("n_frozen_layers", [0, 1, N_LAYERS])
def test_layers_that_cannot_be_told_apart(models, name, n_frozen_layers):
    message = f"'n_frozen_layers' parameter must be None for .*{FAMILIES[name].cannot_freeze}"
    with pytest.raises(ValueError, match=message):
        MODULES["tagging"](models(name), 3, n_frozen_layers)


def test_other_families(tmp_path, tokenizer):
    """Those that read padding are refused, and every tiny model is among those above."""
    model = save_model(tr.ConvBertConfig(**BERT, embedding_size=16), tmp_path, tokenizer)
    with pytest.raises(ValueError, match=r"'model' .* convbert, .* of the family 'convbert'"):
        DiceTokenTagger(model, **FAST).fit(X, Y)
    assert set(OWN) == set(BUILDERS)


@pytest.mark.parametrize("name", quick(QUICK, OWN))
def test_own_tokenizers_give_one_tag_per_word(name, tiny_models):
    how = {**FAST, "lr": 1e-2, "max_epochs": 5}
    tagger = DiceTokenTagger(tiny_models(name), **how).fit(*easy_corpus(96))
    assert tagger.score(*easy_corpus(40, seed=1)) > 0.9
    assert tagger.max_length_ == (FAMILIES[name].limit or 512)
    longest = tagger.max_length_ - tagger.tokenizer_.frame.n_special
    strange = ["", "\u200b", "\x00", "\ud800", "<sep>", "[SEP]", "</s>", "😀", "x" * 500]
    X = [[], strange, ["the"] * longest, ["the"] * 600, ["john"], [""]]
    assert [len(tags) for tags in tagger.predict(X)] == [len(words) for words in X]
    assert all(np.isfinite(p).all() for p in tagger.predict_proba(X))
