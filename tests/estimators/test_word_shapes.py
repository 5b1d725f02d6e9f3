"""Taggers whose uncased encoder is told the shapes of words."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice import DiceTokenTagger
from skdice.text._encoding import SHAPES

PARAMETERS = {"lr": 1e-3, "head_lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
# The encoder sees the same sentence twice; the tags depend on the case of a word alone.
X = [["the", "Rome", "met", "john"], ["the", "rome", "met", "John"]] * 16
Y = [["O", "B-X", "O", "O"], ["O", "O", "O", "B-X"]] * 16


@pytest.fixture(scope="module")
def fitted(quick_bert):
    return DiceTokenTagger(quick_bert, max_epochs=8, word_shapes=True, **PARAMETERS).fit(X, Y)


def scores(tagger):
    return np.concatenate(list(tagger.predict_proba(X)))


def table(tagger):
    return tagger.net_.module_.transformer.base_model.embeddings.token_type_embeddings


def test_only_the_shapes_tell(quick_bert, fitted):
    assert fitted.score(X, Y) == 1.0
    plain = DiceTokenTagger(quick_bert, max_epochs=8, word_shapes=False, **PARAMETERS).fit(X, Y)
    assert plain.score(X, Y) < 0.7


def test_lower_case_is_tagged_as_well(quick_bert):
    """The shapes are left out there, and now and then in training."""
    rng = np.random.default_rng(0)
    names, others = ["Rome", "John", "Oslo", "Mary"], ["the", "saw", "house", "went"]
    X = [[*rng.choice(others, 2), rng.choice(names), *rng.choice(others, 2)] for _ in range(80)]
    X = [[str(word) for word in words] for words in X]
    y = [["O", "O", "B-X", "O", "O"]] * 80
    tagger = DiceTokenTagger(quick_bert, max_epochs=6, **PARAMETERS).fit(X, y)
    assert tagger.word_shapes_
    assert tagger.score([[word.lower() for word in words] for words in X], y) > 0.9


@pytest.mark.parametrize("n_frozen_layers", [None, 0])
def test_table_is_trained(fitted, n_frozen_layers):
    tagger = clone(fitted).set_params(n_frozen_layers=n_frozen_layers, max_epochs=1).fit(X, Y)
    assert table(tagger).num_embeddings == 1 + len(SHAPES)
    assert float(table(tagger).weight.detach().std(0).max()) > 1e-3
    words = tagger.net_.module_.get_input_embeddings().weight
    assert words.requires_grad == (n_frozen_layers is None)


def test_going_on(fitted, tmp_path):
    """A saved model keeps its table."""
    fitted.save_pretrained(tmp_path / "saved")
    model = str(tmp_path / "saved")
    again = clone(fitted).set_params(model=model, max_epochs=1, lr=1e-12, n_frozen_layers=0)
    tagger = clone(again).set_params(head_lr=1e-12).fit(X, Y)
    assert torch.allclose(table(tagger).weight, table(fitted).weight, atol=1e-6)
    assert tagger.score(X, Y) == 1.0
    # It goes on to learn as the head does.
    assert not torch.allclose(table(again.fit(X, Y)).weight, table(fitted).weight, atol=1e-3)


class TestErrors:
    @pytest.mark.parametrize("family", ["distilbert", "modernbert", "xlnet"])
    def test_no_table(self, tiny_models, family):
        tagger = DiceTokenTagger(tiny_models(family), word_shapes=True, **PARAMETERS)
        with pytest.raises(ValueError, match=r"'word_shapes' parameter must be False for \w+"):
            tagger.fit(X, Y)

    def test_frozen_layers(self, fitted):
        tagger = clone(fitted).set_params(n_frozen_layers=1)
        with pytest.raises(ValueError, match=r"'n_frozen_layers' .* be None or 0 .* Got 1"):
            tagger.fit(X, Y)

    def test_adapters(self, fitted):
        peft = pytest.importorskip("peft")
        tagger = clone(fitted).set_params(peft_config=peft.LoraConfig(r=2))
        with pytest.raises(ValueError, match=r"'peft_config' .* must be None with word_shapes"):
            tagger.fit(X, Y)
