"""Dropout of attention on its output, so that its kernel stays fused."""

import shutil

import pytest
import torch
from transformers import AutoConfig

from skdice import DiceTokenTagger
from skdice.nn import TokenModule
from skdice.nn._speedups import own_attention

from ..corpora import easy_corpus
from .test_modules import N_CLASSES, make_inputs

FAMILIES = ["bert", "distilbert", "electra", "roberta", "modernbert"]


@pytest.fixture
def attended(monkeypatch):
    """What the fused kernel is told to drop of its weights."""
    attend, seen = torch.nn.functional.scaled_dot_product_attention, []

    def look(*args, dropout_p=0.0, **kwargs):
        seen.append(dropout_p)
        return attend(*args, dropout_p=dropout_p, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", look)
    return seen


@pytest.fixture
def dropped(monkeypatch):
    """Shares that are dropped of what attention gives."""
    drop, seen = torch.nn.functional.dropout, []

    def look(input, p=0.5, *args):
        output = drop(input, p, *args)
        if input.ndim == 4:  # By heads.
            seen.append((p, float((output == 0).float().mean())))
        return output

    monkeypatch.setattr(torch.nn.functional, "dropout", look)
    return seen


def module_with(dropout, model, directory):
    """Return a network whose configuration has so much dropout of attention."""
    config = AutoConfig.from_pretrained(model)
    names = ("attention_probs_dropout_prob", "attention_dropout")
    setattr(config, next(name for name in names if hasattr(config, name)), dropout)
    shutil.copytree(model, directory, dirs_exist_ok=True)
    config.save_pretrained(directory)
    return TokenModule(str(directory), N_CLASSES)


@pytest.mark.parametrize("family", FAMILIES)
def test_output_is_dropped(tiny_models, tmp_path, attended, dropped, family):
    module = module_with(0.3, tiny_models(family), tmp_path)
    torch.manual_seed(0)
    with own_attention(module):
        module.train()(**make_inputs())
        assert set(attended) == {0.0}
        assert {p for p, _ in dropped} == {0.3}
        shares = [share for _, share in dropped]
        assert sum(shares) / len(shares) == pytest.approx(0.3, abs=0.05)
        dropped.clear()
        module.eval()(**make_inputs())
        assert {share for _, share in dropped} <= {0.0}
    attended.clear()
    module.train()(**make_inputs())
    assert set(attended) == {0.3}


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_else_changes(tiny_models, tmp_path, family):
    """Without dropout outputs and gradients are the same."""
    module = module_with(0.0, tiny_models(family), tmp_path).train()
    found = []
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    for block in (torch.enable_grad(), own_attention(module)):
        with block:
            module.zero_grad()
            logits = module(**make_inputs())
            logits.square().sum().backward()
        gradients = [p.grad.clone() for p in module.parameters() if p.grad is not None]
        found.append([logits.detach(), *gradients])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize("family, is_fused", [("bert", True), ("xlnet", False)])
def test_put_back_after_an_error(tiny_models, family, is_fused):
    """That of XLNet is not torch's fused kernel, and is left alone."""
    transformer = TokenModule(tiny_models(family), N_CLASSES).transformer
    before = transformer.config._attn_implementation
    assert (before == "sdpa") is is_fused
    with own_attention(transformer):
        assert (transformer.config._attn_implementation != before) is is_fused
    with pytest.raises(KeyError), own_attention(transformer):
        raise KeyError
    assert transformer.config._attn_implementation == before


def test_in_a_fit(tiny_bert, attended, dropped):
    tagger = DiceTokenTagger(tiny_bert, max_epochs=1, random_state=0, verbose=0)
    tagger.fit(*easy_corpus(8))
    assert set(attended) == {0.0}
    assert {p for p, _ in dropped} == {0.1}
    assert tagger.net_.module_.transformer.config._attn_implementation == "sdpa"
