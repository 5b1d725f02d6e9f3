"""digest: equal for equal values, in every process, and for nothing else."""

import textwrap
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdice import DiceTokenTagger
from skdice._digest import digest
from skdice._inputs import object_array
from skdice.losses import DiceLoss

SENTENCES = [["john", "saw"], ["oslo"], []]
RAGGED = object_array(SENTENCES)


class Plain:
    def __init__(self, word):
        self.word = word

    def get(self):
        return self.word


def always(word):
    return partial(Plain, word)


def first(words):
    return words[0]


@pytest.mark.parametrize(
    "one, other",
    [
        (SENTENCES, tuple(tuple(words) for words in SENTENCES)),
        (SENTENCES, RAGGED),
        (SENTENCES, pd.Series(SENTENCES, index=[5, 6, 7])),
        ([("a", "b")], np.array([["a", "b"]], dtype=object)),
        (["a", "b"], np.array(["a", "b"])),
        ([np.str_("a")], ["a"]),
        ([np.int64(1)], [1]),
        ([np.float64(1), np.float32(2)], [1.0, 2.0]),
        ([np.bool_(True)], np.array([True])),
        ([np.int64(1), None, "a"], [1, None, "a"]),
        (pd.DataFrame({"a": [np.int64(1)]}, dtype=object), pd.DataFrame({"a": [1]})),
        (pd.array(["a", "b"]), ["a", "b"]),
        (pl.Series(["a", "b"]), ["a", "b"]),
        (pl.DataFrame({"a": ["b"]}), pd.DataFrame([["b"]], columns=["a"])),
        ([0, 1], np.array([0, 1])),
        ([0, 1], pd.Series([0, 1])),
        (1.5, np.float64(1.5)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({np.int64(0): 1, np.str_("a"): 2}, {"a": 2, 0: 1}),
        ({"a", "b", "c"}, {"c", "b", "a"}),
        (Path("models/bert"), "models/bert"),
        (DiceTokenTagger(), DiceTokenTagger(verbose=0, device="cpu", checkpoint_dir="x")),
        (np.random.RandomState(0), np.random.RandomState(0)),
        (torch.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)),
        (sparse.csr_array(np.eye(3)), sparse.csc_array(np.eye(3))),
        (always("a"), always("a")),
    ],
)
def test_equal(one, other):
    assert digest(one) == digest(other)


DIFFERENT = [
    SENTENCES,
    [["john"], ["saw", "oslo"], []],
    [["john", "saw"], ["oslo"]],
    [["johns", "aw"], ["oslo"], []],
    [["john saw"], ["oslo"], []],
    [],
    [[]],
    "",
    "1",
    1,
    1.0,
    True,
    None,
    b"1",
    [1, 2],
    [12],
    ["1", "2"],
    [1, "2"],
    np.arange(6.0).reshape(2, 3),
    np.arange(6.0).reshape(3, 2),
    np.arange(6).reshape(2, 3),
    {"a": 1},
    {"a": 2},
    {"b": 1},
    {"text": ["a"], "answer_start": [0]},
    pd.DataFrame({"question": ["a"], "context": ["b"]}),
    pd.DataFrame({"context": ["a"], "question": ["b"]}),
    pl.DataFrame({"question": ["b"], "context": ["a"]}),
    pl.DataFrame({"context": ["b"], "question": ["a"]}),
    # Of these the repr leaves out what differs.
    *(pd.array([*map(str, range(50)), word, *map(str, range(50))]) for word in "xy"),
    *(pl.Series([*map(str, range(50)), word, *map(str, range(50))]) for word in "zu"),
    *(pl.DataFrame({"a": [*map(str, range(50)), w, *map(str, range(50))]}) for w in "vw"),
    sparse.csr_array(np.eye(3)),
    DiceTokenTagger(),
    DiceTokenTagger(lr=1e-4),
    DiceTokenTagger(loss=DiceLoss()),
    DiceTokenTagger(loss=DiceLoss(gamma=2.0)),
    DiceTokenTagger(class_weight={"O": 0.5}),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), LogisticRegression(C=2)),
    np.random.RandomState(0),
    np.random.RandomState(1),
    np.random.default_rng(0),
    np.random.default_rng(1),
    print,
    len,
    int,
    first,
    Plain,
    # The reprs of these objects are those of their classes.
    *(always(word) for word in "ab"),
    *(Plain(word) for word in "ab"),
    *(Plain(word).get for word in "ab"),
    torch.nn.Linear(1, 1),
]


def test_different():
    digests = [digest(value) for value in DIFFERENT]
    for i, one in enumerate(digests):
        for j in range(i):
            assert one != digests[j], (DIFFERENT[i], DIFFERENT[j])


def test_the_process_does_not_matter():
    """The text of a value depends on no address, no hash and no version of Unicode."""
    value = [
        SENTENCES,
        {"b", "a"},
        "\U0001fae8\ud83e\udee8",
        {"f": textwrap.dedent, 1: [0.1, None]},
    ]
    assert digest(value) == "a2d9da6f32344bcf"


def itself():
    plain = Plain("a")
    plain.word = plain.get
    return plain


@pytest.mark.parametrize(
    "value, message",
    [
        (threading.Lock(), "type lock cannot be told from others"),
        (lambda: 1, "<lambda> has no name by which another process could find it"),
        (itself(), "refers to itself"),
    ],
)
def test_what_cannot_be_told_from_others(value, message):
    with pytest.raises(ValueError, match=message):
        digest({"value": [Plain(value)]})
