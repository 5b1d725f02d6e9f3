"""Only the rows that occur are trained, with the steps of a plain optimiser."""

import numpy as np
import pytest
import torch
from torch import nn

from skdice import DiceTokenTagger
from skdice.nn import _net
from skdice.nn._speedups import compact_embedding

from ..corpora import easy_corpus


class Model(nn.Module):
    def __init__(self, n_rows=20, **parameters):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(n_rows, 3, **parameters)
        self.head = nn.Linear(3, n_rows, bias=False)

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


@pytest.mark.parametrize("padding_idx", [None, 0, 5, 11])
def test_the_steps_are_those_of_the_whole_matrix(padding_idx):
    plain, model = (Model(padding_idx=padding_idx) for _ in range(2))
    train(plain, IDS)
    with compact_embedding(model, np.array(IDS)):
        train(model, IDS)
    assert type(model.embedding) is nn.Embedding
    assert model.embedding.weight.requires_grad
    torch.testing.assert_close(model.embedding.weight, plain.embedding.weight, rtol=0, atol=1e-6)
    torch.testing.assert_close(model.head.weight, plain.head.weight, rtol=0, atol=1e-6)


def test_other_rows_do_not_decay():
    model = Model()
    before = model.embedding.weight.detach().clone()
    with compact_embedding(model, np.array(IDS)):
        optimizer = train(model, IDS, weight_decay=0.5)
        n_kept = sum(state["exp_avg"].numel() for state in optimizer.state.values())
    changed = (model.embedding.weight != before).any(1)
    assert changed.nonzero().ravel().tolist() == [0, 3, 5, 7]
    assert n_kept == 4 * 3 + model.head.weight.numel()


def test_other_pieces_can_be_looked_up_in_eval_mode():
    model = Model()
    with compact_embedding(model, np.array(IDS)):
        train(model, IDS)
        trained = model(torch.tensor(IDS))
        model.eval()
        assert torch.equal(model(torch.tensor(IDS)), trained)
        inside = model(torch.arange(20))
        model.train()
        train(model, IDS)
        assert not torch.equal(model(torch.tensor(IDS)), trained)
    model.eval()
    assert not torch.equal(model(torch.tensor(IDS)), trained)
    assert not torch.equal(model(torch.arange(20)), inside)


def test_put_together_after_an_error():
    model = Model()
    before = model.embedding.weight.detach().clone()

    def interrupted():
        train(model, IDS)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), compact_embedding(model, np.array(IDS)):
        interrupted()
    assert model.embedding.weight.requires_grad
    assert not torch.equal(model.embedding.weight, before)


def test_the_state_is_that_of_the_whole_matrix():
    model, other = Model(), Model()
    names = list(model.state_dict())
    with compact_embedding(model, np.array(IDS)):
        train(model, IDS)
        saved = {name: weight.clone() for name, weight in model.state_dict().items()}
        assert list(saved) == names
        other.load_state_dict(saved)
        trained = model(torch.tensor(IDS))
        assert torch.equal(other(torch.tensor(IDS)), trained)
        train(model, IDS)
        model.load_state_dict(saved)
        assert torch.equal(model(torch.tensor(IDS)), trained)
        with pytest.raises(RuntimeError, match=r"embedding\.used"):
            model.load_state_dict({"head.weight": saved["head.weight"]})
    assert torch.equal(model.embedding.weight, other.embedding.weight)


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
    """Up to rounding and, since nothing decays here, for all rows."""
    X, y = easy_corpus(12)
    tagger = DiceTokenTagger(
        tiny_models(family), max_epochs=2, lr=1e-3, weight_decay=0, batch_size=4, random_state=0,
        validation_fraction=0.25, precision="fp32", verbose=0,
    )  # fmt: skip
    compact = tagger.fit(X, y).predict_proba(X)
    sizes = []

    def whole(module, pieces):
        sizes.append((len(np.unique(pieces)), module.get_input_embeddings().num_embeddings))
        return compact_embedding(module, np.arange(sizes[-1][1]))

    monkeypatch.setattr(_net, "compact_embedding", whole)
    plain = tagger.fit(X, y).predict_proba(X)
    assert sizes[0][0] < 0.9 * sizes[0][1], "nothing was left out, so nothing is shown"
    np.testing.assert_allclose(np.concatenate(compact), np.concatenate(plain), rtol=0, atol=1e-5)
