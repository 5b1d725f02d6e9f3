"""Taggers that score the tags of a sentence together, and those that see the shapes of words."""

import pickle
import warnings
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch
from sklearn.base import clone
from transformers import pipeline

from skdice import DiceTokenTagger
from skdice.nn import TagChain
from skdice.text import N_SHAPES, allowed_transitions

from ..quick import quick
from ..spies import internals

PARAMETERS = {"lr": 1e-3, "head_lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}


def scores(tagger, X):
    return np.concatenate(list(tagger.predict_proba(X)))


WORDS = [["in", "new", "york"], ["york"], ["new", "in", "york", "new"]] * 8
TAGS = [["O", "B-X", "I-X"], ["B-X"], ["O", "O", "B-X", "O"]] * 8
OFFSETS = np.cumsum([0, *map(len, WORDS)])


@pytest.fixture(scope="module")
def with_crf(quick_bert):
    return DiceTokenTagger(quick_bert, max_epochs=8, crf=True, **PARAMETERS).fit(WORDS, TAGS)


def without_crf(tagger):
    """Return the same network that scores each word by itself."""
    other = pickle.loads(pickle.dumps(tagger))
    return internals(other).with_task(replace(internals(other).task, crf=False))


def test_probabilities_are_those_of_sequences(with_crf):
    assert with_crf.score(WORDS, TAGS) == 1.0
    logits = np.log(scores(without_crf(with_crf), WORDS)).astype(np.float32)
    allowed = allowed_transitions(with_crf.classes_.tolist(), "IOB2")
    expected = np.exp(TagChain(allowed, OFFSETS).predict(logits))
    np.testing.assert_allclose(scores(with_crf, WORDS), expected, atol=1e-5)
    inside = with_crf.classes_.tolist().index("I-X")
    assert max(p[0, inside] for p in with_crf.predict_proba(WORDS)) < 1e-6


def test_loss_is_of_sequences(quick_bert):
    rates = {"lr": 1e-12, "head_lr": 1e-12, "batch_size": len(WORDS), "loss": "ce"}
    tagger = DiceTokenTagger(quick_bert, crf=True, max_epochs=1, **(PARAMETERS | rates))
    tagger.fit(WORDS, TAGS)

    def loss(fitted):
        tags = {tag: i for i, tag in enumerate(fitted.classes_)}
        gold = [tags[tag] for row in TAGS for tag in row]
        return -np.log(scores(fitted, WORDS)[range(len(gold)), gold]).mean()

    found = tagger.history_["train_loss"].iloc[0]
    assert found == pytest.approx(loss(tagger), rel=0.005)
    assert found != pytest.approx(loss(without_crf(tagger)), rel=0.05)


def test_broken_tags_are_learned(with_crf):
    """A few chunks that start with I are no reason to fail, nor to allow them."""
    tags = [*TAGS[:-3], ["O", "I-X", "I-X"], *TAGS[-2:]]
    for loss in ("auto", "focal"):
        tagger = clone(with_crf).set_params(loss=loss).fit(WORDS, tags)
        assert tagger.history_["train_loss"].iloc[-1] < 1
        assert tagger.score(WORDS, TAGS) == 1.0
    others = [["X" if tag == "O" else "Y" for tag in row] for row in TAGS]
    message = r"'crf' parameter .* must be False or 'auto' .* the tags 'X', 'Y'"
    with pytest.raises(ValueError, match=message):
        tagger.fit(WORDS, others)


def test_long_sentences(with_crf):
    """Training windows cut entities; sentences are scored whole."""
    long, tags = ([list(chain(*rows[:3]))] * 24 for rows in (WORDS, TAGS))
    tagger = clone(with_crf).set_params(max_length=6, stride=1, max_epochs=12).fit(long, tags)
    assert np.isfinite(tagger.history_["train_loss"]).all()
    assert tagger.score(long, tags) > 0.9
    assert list(map(len, tagger.predict_proba(long))) == list(map(len, long))


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
    assert table(tagger).num_embeddings == 1 + N_SHAPES
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
    np.testing.assert_allclose(scores(with_table, X), scores(plain, X), atol=1e-6)


def test_errors_of_word_shapes(fitted):
    tagger = clone(fitted).set_params(n_frozen_layers=1)
    with pytest.raises(ValueError, match=r"'n_frozen_layers' .* be None or 0 .* Got 1"):
        tagger.fit(X, Y)
    peft = pytest.importorskip("peft")
    tagger.set_params(n_frozen_layers=None, peft_config=peft.LoraConfig(r=2))
    with pytest.raises(ValueError, match=r"'peft_config' .* must be None with word_shapes"):
        tagger.fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("option, rows", [("crf", (WORDS, TAGS)), ("word_shapes", (X, Y))])
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
    ("bert", CAPITALISED, {}, True, False), ("bert", LOWER, {}, False, False),
    ("bert", HALF, {}, False, True), ("bert", MOSTLY_LOWER, {}, True, False),
    ("bert", OTHER_TAGS, {}, False, False),
    ("bert", CAPITALISED, {"n_frozen_layers": 1}, False, False),
    ("bert", HALF, {"crf": False}, False, False), ("roberta", HALF, {}, False, True),
])  # fmt: skip
def test_auto_options(family, rows, more, has_shapes, has_crf, tiny_models):
    tagger = DiceTokenTagger(tiny_models(family), max_epochs=1, **(PARAMETERS | more)).fit(*rows)
    assert (tagger.word_shapes_, tagger.crf_) == (has_shapes, has_crf)
