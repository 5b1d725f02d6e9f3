import numpy as np
import pandas as pd
import pytest

from skdice import DiceTokenTagger
from skdice.augmentation import find_mentions, make_training_sets
from skdice.text._entities import Entity

from ..corpora import NAMES, easy_corpus
from .toy import FakeTagger, find

TEXTS = ["Bo left Oslo", "nothing", "OSLO", "Bo left Oslo"]
PAIRS = [("Bo left Oslo", "OSLO"), ("nothing", "Bo left Oslo"), ("OSLO", "OSLO")]


def test_texts():
    found = find_mentions(FakeTagger(), TEXTS)
    assert found == [
        [Entity(0, 2, "PER", 0.9), Entity(8, 12, "LOC", 0.9)],
        [],
        [Entity(0, 4, "LOC", 0.9)],
        [Entity(0, 2, "PER", 0.9), Entity(8, 12, "LOC", 0.9)],
    ]


def test_pairs():
    assert find_mentions(FakeTagger(), PAIRS) == [(find(a), find(b)) for a, b in PAIRS]


@pytest.mark.parametrize("X", [TEXTS, PAIRS])
def test_one_call_over_distinct_texts(X):
    tagger = FakeTagger()
    find_mentions(tagger, X)
    (texts,) = tagger.calls
    assert sorted(texts) == ["Bo left Oslo", "OSLO", "nothing"]


def test_results_are_not_shared_between_rows():
    found = find_mentions(FakeTagger(), TEXTS)
    found[0].clear()
    assert found[3] == find(TEXTS[3])


@pytest.mark.parametrize(
    "X",
    [
        tuple(PAIRS),
        pd.Series(PAIRS),
        np.array(PAIRS, dtype=object),
        np.array(PAIRS),
        pd.DataFrame(PAIRS, columns=["q", "q"]),
    ],
)
def test_containers(X):
    assert find_mentions(FakeTagger(), X) == find_mentions(FakeTagger(), PAIRS)


def test_array_of_lists_from_the_tagger():
    class ArrayTagger(FakeTagger):
        def predict_entities(self, texts):
            array = np.empty(len(texts), dtype=object)
            array[:] = super().predict_entities(texts)
            return array

    assert find_mentions(ArrayTagger(), TEXTS) == find_mentions(FakeTagger(), TEXTS)


@pytest.mark.parametrize("X", [[], np.empty((0, 2), dtype=object), pd.Series([], dtype=str)])
def test_no_rows(X):
    tagger = FakeTagger()
    assert find_mentions(tagger, X) == []
    assert tagger.calls == []


class ShortTagger:
    def predict_entities(self, texts):
        return [[]]


@pytest.mark.parametrize(
    "tagger, X, error, message",
    [
        (object(), TEXTS, TypeError, r"predict_entities\(texts\); got <object"),
        (ShortTagger(), TEXTS, ValueError, "got 3 texts and gave 1 lists"),
        (FakeTagger(), ["a", 1], ValueError, "row 1 of X is 1 of type int"),
        (FakeTagger(), ["a", None], ValueError, "row 1 of X is None"),
        (FakeTagger(), [("a", "b"), ("a",)], ValueError, r"row 1 of X is \('a',\) of type tuple"),
        (FakeTagger(), [("a", "b"), ("a", 1)], ValueError, "row 1 of X"),
        (FakeTagger(), [["a", "b"]], ValueError, "row 0 of X is .* of type list"),
        (FakeTagger(), ["a", ("a", "b")], ValueError, "row 0 is a text and row 1 is a pair"),
        (FakeTagger(), [("a", "b"), "a"], ValueError, "row 0 is a pair and row 1 is a text"),
        (FakeTagger(), np.array([["a", "b", "c"]]), ValueError, "two columns.*; got 3 columns"),
        (FakeTagger(), pd.DataFrame({"a": ["x"]}), ValueError, "two columns.*; got 1 columns"),
        (FakeTagger(), pd.DataFrame({"a": ["x"], "b": [None]}), ValueError, "second text of row 0"),
        (FakeTagger(), "text", TypeError, "X must be a list.* got 'text'"),
        (FakeTagger(), {"a": 1}, TypeError, "of type dict"),
    ],
)
def test_errors(tagger, X, error, message):
    with pytest.raises(error, match=message):
        find_mentions(tagger, X)


def test_a_fitted_tagger(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, max_epochs=8, lr=1e-2, random_state=0, verbose=0)
    tagger.fit(*easy_corpus(96))
    X = [("john saw the", "the saw john"), ("went to oslo", "by mary"), ("mary went", "in rome")]
    found = find_mentions(tagger, X)
    assert [[e[:3] for e in text] for text in found[0]] == [[(0, 4, "PER")], [(8, 12, "PER")]]
    sets = make_training_sets(X, [1, 0, 0], gazetteer=NAMES, tagger=tagger, random_state=0)
    (first, second), label = sets["+positive"][0][-1], sets["+positive"][1][-1]
    assert label == 1
    assert first.removesuffix(" saw the") == second.removeprefix("the saw ") != "john"
