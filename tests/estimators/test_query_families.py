"""DiceQueryTagger on every model family: they differ in tokenizer, padding side, special tokens,
token types and the names of their parts."""

import pickle

import numpy as np
import pytest
import torch

from skdice import DiceQueryTagger
from skdice.nn._modules import QueryModule

from ..corpora import easy_corpus
from ..tiny_models import BUILDERS

FAST = {
    "queries": {"PER": "john mary", "LOC": "oslo paris"},
    "max_epochs": 12,
    "lr": 7e-3,
    "batch_size": 8,
    "random_state": 3,
    "verbose": 0,
}


@pytest.fixture(scope="module", params=BUILDERS)
def model(request, tiny_models):
    return tiny_models(request.param)


@pytest.fixture(scope="module")
def fitted(model):
    return DiceQueryTagger(model, loss="dice", **FAST).fit(*easy_corpus(80))


def predict_logits(tagger, X):
    return tagger._predict_logits(tagger._encode(X).dataset)


def test_learns(fitted):
    assert fitted.score(*easy_corpus(40, seed=1)) > 0.9


def test_same_as_with_transformers_alone(fitted):
    """Its tokenizer, its padding, its batch: all that is ours in between must not show."""
    tokenizer, module = fitted.tokenizer_.tokenizer, fitted.net_.module_.eval()
    takes_types = module._takes_types
    X = [["john", "saw", "oslo"], ["mary"], ["the", "small", "company", "near", "rome"]]
    expected = []
    for words in X:
        for label in fitted.labels_:
            texts = [fitted.queries_[label], " " + " ".join(words)]
            if fitted.tokenizer_.pads_left:
                texts.reverse()
            inputs = tokenizer(*texts, return_token_type_ids=takes_types, return_tensors="pt")
            starts = [1 + sum(len(word) + 1 for word in words[:j]) for j in range(len(words))]
            which = 0 if fitted.tokenizer_.pads_left else 1
            pieces = [inputs.char_to_token(0, start, which) for start in starts]
            with torch.inference_mode():
                hidden = module.transformer(**inputs).last_hidden_state
                expected.append(module.head(hidden[0, pieces]).numpy())
    np.testing.assert_allclose(predict_logits(fitted, X), np.concatenate(expected), atol=1e-5)


def test_one_tag_per_word(fitted):
    X = [
        [],
        ["", "\u200b", "\x00", "\ud800", "<sep>", "[SEP]", "</s>", "😀", "x" * 500, "日本"],
        ["john"],
        [""],
        ["the"] * 100,
    ]
    assert [len(tags) for tags in fitted.predict(X)] == [len(words) for words in X]


def test_batch_size_and_order_do_not_matter(fitted):
    X = easy_corpus(20, seed=2)[0] + [["john"], ["the"] * 80, ["anna", "saw"] * 10]
    expected = fitted.predict_spans(X)
    copy = pickle.loads(pickle.dumps(fitted))
    for batch_size in (1, 64):
        copy.set_params(batch_size=batch_size)
        for rows in (copy.predict_spans(X), copy.predict_spans(X[::-1])[::-1]):
            for found, row in zip(rows, expected, strict=True):
                assert [entity[:3] for entity in found] == [entity[:3] for entity in row]
                np.testing.assert_allclose(
                    [entity.score for entity in found], [entity.score for entity in row], atol=1e-5
                )


@pytest.mark.parametrize("n_frozen_layers", [0, 1])
def test_frozen_part_stays_as_it_was(model, n_frozen_layers):
    """The layers below are as loaded and the head learns."""
    tagger = DiceQueryTagger(model, n_frozen_layers=n_frozen_layers, **{**FAST, "max_epochs": 1})
    module = tagger.fit(*easy_corpus(16)).net_.module_
    before = QueryModule(model, tagger.net_.module__n_classes)
    for i, (old, new) in enumerate(zip(_layers(before), _layers(module), strict=True)):
        same = all(torch.equal(a, b) for a, b in zip(old.parameters(), new.parameters()))
        assert same == (i < n_frozen_layers)
    assert all(p.requires_grad for p in module.head_parameters())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision(tiny_bert, precision):
    tagger = DiceQueryTagger(tiny_bert, precision=precision, **{**FAST, "max_epochs": 2})
    history = tagger.fit(*easy_corpus(24)).history_
    assert history.train_loss.iloc[1] < history.train_loss.iloc[0]


def _layers(module):
    (layers,) = [
        part
        for part in module.modules()
        if isinstance(part, torch.nn.ModuleList) and len(part) == 2
    ]
    return layers
