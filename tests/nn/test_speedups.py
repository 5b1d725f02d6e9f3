"""What makes steps faster: dropout of attention on its output, and the trained rows alone.

Neither changes what is learned.
"""

import shutil
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig

from skdice import DiceTokenTagger
from skdice.nn import MODULES, _net
from skdice.nn._speedups import compact_embedding, own_attention

from ..corpora import easy_corpus
from .test_modules import N_CLASSES, make_inputs

FAMILIES = ["bert", "distilbert", "modernbert"]


@pytest.fixture
def seen(monkeypatch):
    """What attention drops of its weights, and the shares that are dropped of its output."""
    attend, drop = nn.functional.scaled_dot_product_attention, nn.functional.dropout
    seen = {"weights": [], "output": []}

    def look_at_weights(*args, dropout_p=0.0, **kwargs):
        seen["weights"].append(dropout_p)
        return attend(*args, dropout_p=dropout_p, **kwargs)

    def look_at_output(input, p=0.5, *args):
        output = drop(input, p, *args)
        if input.ndim == 4:  # By heads.
            seen["output"].append((p, float((output == 0).float().mean())))
        return output

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", look_at_weights)
    monkeypatch.setattr(nn.functional, "dropout", look_at_output)
    return seen


def module_with(dropout, model, directory):
    """Return a network whose configuration has so much dropout of attention."""
    config = AutoConfig.from_pretrained(model)
    names = ("attention_probs_dropout_prob", "attention_dropout")
    setattr(config, next(name for name in names if hasattr(config, name)), dropout)
    shutil.copytree(model, directory, dirs_exist_ok=True)
    config.save_pretrained(directory)
    return MODULES["tagging"](str(directory), N_CLASSES)


@pytest.mark.parametrize("family", FAMILIES)
def test_output_is_dropped(tiny_models, tmp_path, seen, family):
    module = module_with(0.3, tiny_models(family), tmp_path)
    torch.manual_seed(0)
    with own_attention(module):
        module.train()(**make_inputs())
        assert set(seen["weights"]) == {0.0}
        assert {p for p, _ in seen["output"]} == {0.3}
        shares = [share for _, share in seen["output"]]
        assert sum(shares) / len(shares) == pytest.approx(0.3, abs=0.05)
        seen["output"].clear()
        module.eval()(**make_inputs())
        assert {share for _, share in seen["output"]} <= {0.0}
    seen["weights"].clear()
    module.train()(**make_inputs())
    assert set(seen["weights"]) == {0.3}


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_else_changes(tiny_models, tmp_path, family):
    """Without dropout outputs and gradients are the same."""
    module = module_with(0.0, tiny_models(family), tmp_path).train()
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    found = []
    for block in (torch.enable_grad(), own_attention(module)):
        with block:
            module.zero_grad()
            logits = module(**make_inputs())
            logits.square().sum().backward()
        gradients = [p.grad.clone() for p in module.parameters() if p.grad is not None]
        found.append([logits.detach(), *gradients])
    torch.testing.assert_close(*found, rtol=0, atol=0)


class Model(nn.Module):
    def __init__(self, n_rows=20, **parameters):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(n_rows, 3, **parameters)
        self.head = nn.Linear(3, n_rows, bias=False)

    @property
    def transformer(self):
        return self

    def get_input_embeddings(self):
        return self.embedding

    def forward(self, ids):
        return self.head(self.embedding(ids)).square().sum()


def train(model, ids, n_steps=5, weight_decay=0.0):
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=0.1, weight_decay=weight_decay
    )
    for _ in range(n_steps):
        optimizer.zero_grad()
        model(torch.tensor(ids)).backward()
        optimizer.step()
    return optimizer


IDS = [[3, 5, 5], [7, 3, 0]]


def test_other_rows_do_not_decay():
    """Nor are they lost if the block ends by an error."""
    model = Model()
    before = model.embedding.weight.detach().clone()
    with suppress(KeyboardInterrupt), compact_embedding(model, np.array(IDS)):
        optimizer = train(model, IDS, weight_decay=0.5)
        n_kept = sum(state["exp_avg"].numel() for state in optimizer.state.values())
        # A state of other weights leaves the trained rows as they are.
        model.load_state_dict({"head.weight": model.head.weight.detach()}, strict=False)
        saved = {name: weight.clone() for name, weight in model.state_dict().items()}
        raise KeyboardInterrupt
    changed = (model.embedding.weight != before).any(1)
    assert changed.nonzero().ravel().tolist() == [0, 3, 5, 7]
    assert n_kept == 4 * 3 + model.head.weight.numel()
    assert model.embedding.weight.requires_grad
    # A state that is saved inside is that of the whole matrix.
    assert list(saved) == list(model.state_dict())
    torch.testing.assert_close(saved, dict(model.state_dict()), rtol=0, atol=0)


class Scaled(nn.Embedding):
    def forward(self, ids):
        return 2 * super().forward(ids)


LEFT_ALONE = {
    "frozen": lambda model: model.embedding.requires_grad_(False),
    "of another kind": lambda model: setattr(model, "embedding", Scaled(20, 3)),
    "with a largest norm": lambda model: setattr(model.embedding, "max_norm", 1.0),
    "tied": lambda model: setattr(model.head, "weight", model.embedding.weight),
    "used as a whole": lambda model: setattr(model, "embedding", nn.Embedding(8, 3)),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_left_alone(why):
    model = Model()
    LEFT_ALONE[why](model)
    embedding, requires_grad = model.embedding, model.embedding.weight.requires_grad
    with compact_embedding(model, np.arange(8)):
        assert model.embedding is embedding
    assert model.embedding.weight.requires_grad == requires_grad


@pytest.mark.parametrize("family", ["bert", "xlnet", "modernbert"])
def test_fits_are_the_same(family, tiny_models, monkeypatch):
    """Up to rounding and, since nothing decays here, for all rows, those to validate on too."""
    X, y = easy_corpus(12)
    tagger = DiceTokenTagger(
        tiny_models(family), max_epochs=2, lr=1e-3, weight_decay=0, batch_size=4, random_state=0,
        validation_fraction=0.25, precision="fp32", verbose=0,
    )  # fmt: skip
    compact = tagger.fit(X, y).predict_proba(X)
    scores, sizes = tagger.history_["valid_score"].tolist(), []

    def whole(module, pieces):
        n_rows = module.transformer.get_input_embeddings().num_embeddings
        sizes.append((len(np.unique(pieces)), n_rows))
        return compact_embedding(module, np.arange(n_rows))

    monkeypatch.setattr(_net, "compact_embedding", whole)
    plain = tagger.fit(X, y).predict_proba(X)
    assert sizes[0][0] < 0.9 * sizes[0][1], "nothing was left out, so nothing is shown"
    np.testing.assert_allclose(np.concatenate(compact), np.concatenate(plain), rtol=0, atol=1e-5)
    assert tagger.history_["valid_score"].tolist() == scores
