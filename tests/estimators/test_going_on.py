"""``model`` may be a saved estimator: a fit goes on from it, head included."""

import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.base import clone

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.datasets import make_questions

from ..corpora import easy_corpus, easy_pairs, easy_texts

FAST = {"lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0, "precision": "fp32"}
QUERIES = {"PER": "john mary", "LOC": "oslo paris"}
CASES = [
    (DiceTokenTagger, {}, easy_corpus(16)),
    (DicePairClassifier, {}, easy_pairs(16)),
    (DiceTextClassifier, {}, easy_texts(16)),
    (DiceSpanExtractor, {}, make_questions(12, ratio=10, random_state=0)),
    (DiceQueryTagger, {"queries": QUERIES}, easy_corpus(16)),
]


@pytest.mark.parametrize("cls, parameters, rows", CASES)
def test_all_weights_go_on(cls, parameters, rows, tiny_bert, tmp_path):
    first = cls(tiny_bert, max_epochs=1, **FAST, **parameters).fit(*rows)
    first.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*was trained for")
        still = clone(first).set_params(model=tmp_path, lr=1e-30).fit(*rows)
    weights = still.net_.module_.state_dict()
    for name, weight in first.net_.module_.state_dict().items():
        assert torch.equal(weights[name], weight), name


def test_no_warning_for_a_base_model(tiny_bert, tmp_path):
    DiceTextClassifier(tiny_bert, max_epochs=1, **FAST).fit(*easy_texts(16)).save_pretrained(
        tmp_path
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*was trained for")
        DiceTokenTagger(tiny_bert, max_epochs=1, **FAST).fit(*easy_corpus(16))
        # Another task takes the encoder alone.
        DiceTokenTagger(tmp_path, max_epochs=1, **FAST).fit(*easy_corpus(16))


@pytest.mark.parametrize(
    "names, start", [(["a", "b"], "that head, class by class"), (["a", "b", "c"], "a new head")]
)
def test_other_classes(names, start, tiny_bert, tmp_path):
    X, y = easy_texts(18)
    first = DiceTextClassifier(tiny_bert, max_epochs=1, **FAST).fit(X, y)
    first.save_pretrained(tmp_path)
    other = clone(first).set_params(model=tmp_path, lr=1e-30)
    message = rf"for the classes 'person', 'place'; those of this fit are 'a', 'b'.*from {start}"
    with pytest.warns(UserWarning, match=message):
        other.fit(X, np.resize(names, 18))
    head = "transformer.classifier.bias"
    kept = other.net_.module_.state_dict()[head], first.net_.module_.state_dict()[head]
    assert torch.equal(*kept) == (start != "a new head")


def test_a_query_head_of_another_size_is_new(tiny_bert, tmp_path):
    rows = easy_corpus(16)
    first = DiceQueryTagger(tiny_bert, queries=QUERIES, max_epochs=1, **FAST).fit(*rows)
    first.save_pretrained(tmp_path)
    path = tmp_path / "head.safetensors"
    weights = load_file(path)
    save_file({name: weight[:2].contiguous() for name, weight in weights.items()}, path)
    again = clone(first).set_params(model=tmp_path).fit(*rows)
    assert len(again.net_.module_.head.bias) == len(first.net_.module_.head.bias)
