import copy
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from transformers import pipeline

from skdice import DiceTokenTagger
from skdice.text import SHAPES

from ..quick import quick
from . import test_crf

PARAMETERS = {"lr": 1e-3, "head_lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
# The encoder sees the same sentence twice; the tags depend on the case of a word alone.
X = [["the", "Rome", "met", "john"], ["the", "rome", "met", "John"]] * 16
Y = [["O", "B-X", "O", "O"], ["O", "O", "O", "B-X"]] * 16


@pytest.fixture(
    scope="module", params=quick(["bert", "distilbert"], ["bert", "distilbert", "mpnet"])
)
def model(request, quick_bert, tiny_models):
    """An encoder with a table of token types, and two without."""
    return quick_bert if request.param == "bert" else tiny_models(request.param)


@pytest.fixture(scope="module")
def fitted(model):
    return DiceTokenTagger(model, max_epochs=8, word_shapes=True, **PARAMETERS).fit(X, Y)


def scores(tagger):
    return np.concatenate(list(tagger.predict_proba(X)))


def table(tagger):
    module = tagger.net_.module_
    if module.type_table is not None:
        return module.type_table
    return module.transformer.base_model.embeddings.token_type_embeddings


def test_only_the_shapes_tell(model, fitted):
    assert fitted.score(X, Y) == 1.0
    plain = DiceTokenTagger(model, max_epochs=8, word_shapes=False, **PARAMETERS).fit(X, Y)
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
    words = tagger.net_.module_.transformer.get_input_embeddings().weight
    assert words.requires_grad == (n_frozen_layers is None)


def test_going_on(fitted, tmp_path):
    """A saved model keeps its table, and transformers loads it without the shapes."""
    fitted.save_pretrained(tmp_path / "saved")
    model = str(tmp_path / "saved")
    again = clone(fitted).set_params(model=model, max_epochs=1, lr=1e-12, n_frozen_layers=0)
    tagger = clone(again).set_params(head_lr=1e-12).fit(X, Y)
    assert torch.allclose(table(tagger).weight, table(fitted).weight, atol=1e-6)
    assert tagger.score(X, Y) == 1.0
    # It goes on to learn as the head does.
    assert not torch.allclose(table(again.fit(X, Y)).weight, table(fitted).weight, atol=1e-3)
    with warnings.catch_warnings(action="error"):
        tag = pipeline("token-classification", model)
    assert len(tag("the rome met john", aggregation_strategy="first")) <= 4


def test_network_begins_as_the_encoder_is(model):
    tagger = DiceTokenTagger(model, max_epochs=1, **(PARAMETERS | {"lr": 1e-12, "head_lr": 1e-12}))
    with_table, plain = (clone(tagger).set_params(word_shapes=w).fit(X, Y) for w in (True, False))
    np.testing.assert_allclose(scores(with_table), scores(plain), atol=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_does_not_count(fitted, side):
    if side == "left" and fitted.net_.module_.type_table is None:
        pytest.skip("BERT counts it before a text among its positions")
    tagger = copy.deepcopy(fitted)
    tagger.tokenizer_.tokenizer.padding_side = side
    (p,) = tagger.predict_proba([X[0]])
    np.testing.assert_allclose(tagger.predict_proba([X[0], X[0] * 4])[0], p, atol=1e-5)


def test_errors(fitted):
    tagger = clone(fitted).set_params(n_frozen_layers=1)
    with pytest.raises(ValueError, match=r"'n_frozen_layers' .* be None or 0 .* Got 1"):
        tagger.fit(X, Y)
    peft = pytest.importorskip("peft")
    tagger.set_params(n_frozen_layers=None, peft_config=peft.LoraConfig(r=2))
    with pytest.raises(ValueError, match=r"'peft_config' .* must be None with word_shapes"):
        tagger.fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "option, rows", [("crf", (test_crf.X, test_crf.Y)), ("word_shapes", (X, Y))]
)
def test_onnx(option, rows, quick_bert, traced_once):
    pytest.importorskip("onnxruntime")
    tagger = DiceTokenTagger(quick_bert, max_epochs=8, **{option: True}, **PARAMETERS).fit(*rows)
    expected = np.concatenate(tagger.predict_proba(rows[0]))
    for runtime, atol in (("onnx", 1e-4), ("onnx-int8", 0.05)):
        found = np.concatenate(tagger.set_params(runtime=runtime).predict_proba(rows[0]))
        np.testing.assert_allclose(found, expected, atol=atol)


CAPITALISED = [["the", "Rome", "met"]] * 8, [["O", "B-X", "O"]] * 8
LOWER = [["the", "rome", "met"]] * 8, [["O", "B-X", "O"]] * 8
HALF = CAPITALISED[0] + [["The", "rome", "met"]] * 8, CAPITALISED[1] * 2
# Sentences without a capital are never told shapes, and say nothing of the others.
MOSTLY_LOWER = CAPITALISED[0] + LOWER[0] * 3, CAPITALISED[1] * 4
OTHER_TAGS = HALF[0], [["NOUN", "NAME", "NOUN"]] * 16


@pytest.mark.parametrize("family, rows, more, has_shapes, has_crf", [
    ("bert", CAPITALISED, {}, True, False),
    ("bert", LOWER, {}, False, False),
    ("bert", HALF, {}, False, True),
    ("bert", MOSTLY_LOWER, {}, True, False),
    ("bert", OTHER_TAGS, {}, False, False),
    ("bert", CAPITALISED, {"n_frozen_layers": 1}, False, False),
    ("bert", HALF, {"crf": False}, False, False),
    ("roberta", HALF, {}, False, True),
])  # fmt: skip
def test_auto_options(family, rows, more, has_shapes, has_crf, tiny_models):
    tagger = DiceTokenTagger(tiny_models(family), max_epochs=1, **(PARAMETERS | more)).fit(*rows)
    assert (tagger.word_shapes_, tagger.crf_) == (has_shapes, has_crf)
