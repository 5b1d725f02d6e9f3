"""digest: equal for equal values, in every process, and for nothing else."""

import copy
import shutil
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
from skorch.callbacks import Callback, EarlyStopping, PrintLog, ProgressBar

from skdice import DiceTokenTagger
from skdice._digest import base_model_digest, digest
from skdice._inputs import object_array
from skdice.losses import DiceLoss

from .processes import run_python
from .spies import Spy
from .tiny_models import change_weights

SENTENCES = [["john", "saw"], ["oslo"], []]


class Plain:
    def __init__(self, word):
        self.word = word

    def get(self):
        return self.word


@pytest.mark.parametrize("one, other", [
    (SENTENCES, tuple(tuple(words) for words in SENTENCES)),
    (SENTENCES, object_array(SENTENCES)), (SENTENCES, pd.Series(SENTENCES, index=[5, 6, 7])),
    ([["a"], ["a"]], [["a"]] * 2), (["a", "b"], np.array(["a", "b"])),
    ([np.int64(1), None, np.str_("a")], [1, None, "a"]), (pd.array(["a", "b"]), ["a", "b"]),
    (pl.Series(["a", "b"]), ["a", "b"]),
    (pl.DataFrame({"a": ["b"]}), pd.DataFrame([["b"]], columns=["a"])),
    ([0, 1], pd.Series([0, 1])),
    (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))),
    ({np.int64(0): 1, "a": [2]}, {"a": [2], 0: 1}), ({"a", "b", 1}, frozenset({1, "b", "a"})),
    (Path("models/bert"), "models/bert"),
    (DiceTokenTagger(), DiceTokenTagger(verbose=0, device="cpu", checkpoint_dir="x")),
    (np.random.RandomState(0), np.random.RandomState(0)),
    ({"a": torch.ones(2), "b": torch.zeros(1)}, {"b": torch.zeros(1), "a": torch.ones(2)}),
    (partial(Plain, "a"), partial(Plain, "a")),
])  # fmt: skip
def test_equal(one, other):
    assert digest(one) == digest(other)


DIFFERENT = [
    SENTENCES, [["john"], ["saw", "oslo"], []], [["johns", "aw"], ["oslo"], []],
    [["john saw"], ["oslo"], []], [], [[]], "", "1", 1, 1.0, True, None, b"1", [1, 2], [12],
    ["1", "2"], "['1', '2']", {"a": 1}, {"a": 2}, {"b": 1}, {"a"}, len, int, textwrap.dedent, Plain,
    np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2), np.arange(6).reshape(2, 3),
    torch.zeros(2, 3), torch.zeros(3, 2), torch.ones(()),
    *(torch.zeros(2, 3, dtype=dtype) for dtype in (torch.bfloat16, torch.float16)),
    pd.DataFrame({"question": ["a"], "context": ["b"]}),
    pd.DataFrame({"context": ["a"], "question": ["b"]}),
    pl.DataFrame({"question": ["b"], "context": ["a"]}),
    sparse.csr_array(np.eye(3)), np.random.default_rng(0), np.random.default_rng(1),
    DiceTokenTagger(), DiceTokenTagger(lr=1e-4), DiceTokenTagger(loss=DiceLoss()),
    DiceTokenTagger(loss=DiceLoss(gamma=2.0)),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), LogisticRegression(C=2)),
    # The reprs of these objects are those of their classes.
    *(value for word in "ab" for value in (partial(Plain, word), Plain(word), Plain(word).get)),
]  # fmt: skip


def test_different():
    assert len({digest(value) for value in DIFFERENT}) == len(DIFFERENT)


PROGRAM = """
import textwrap
from skdice import DiceTokenTagger
from skdice._digest import digest
from skdice.losses import DiceLoss

tagger = DiceTokenTagger("no/model", loss=DiceLoss(gamma=0.5), class_weight={"O": 0.5, "B-PER": 2})
value = {"set": {"b", "a", "c", 1}, "f": textwrap.dedent, 1: [0.1, None], "t": tagger}
print(digest([value, frozenset("xyz"), "\\U0001fae8\\ud83e"]))
"""


@pytest.mark.slow
def test_the_process_does_not_matter():
    """The order of sets and dicts, addresses and hash seeds differ between processes."""
    one, other = (run_python("-c", PROGRAM, PYTHONHASHSEED=seed).stdout for seed in "12")
    assert int(one, 16)
    assert one == other


@pytest.mark.parametrize("value", [threading.Lock(), lambda: 1], ids=["lock", "lambda"])
def test_what_cannot_be_told_from_others(value):
    with pytest.raises(ValueError, match=r"others in another process: .*(lock|<lambda>)"):
        digest({"value": [Plain(value)]})


class Shrink(Callback):
    def __init__(self, factor, lock=None):
        self.factor = factor
        self.lock = lock


def stop_early(patience):
    return EarlyStopping("train_loss", patience=patience, threshold=9.0)


@pytest.mark.parametrize(("one", "other"), [
    ([], [stop_early(2)]), ([stop_early(2)], [stop_early(3)]), ([Shrink(0.5)], [Shrink(0.25)]),
    ([("a", Shrink(stop_early))], [("a", Shrink(len))]),
])  # fmt: skip
def test_callbacks_count_if_they_do_not_only_watch(one, other):
    def of(callbacks):
        return digest(DiceTokenTagger("no/model", callbacks=callbacks))

    assert of(one) != of(other)
    assert of(one) == of(copy.deepcopy(one))
    watched = [*one, PrintLog(sink=threading.Lock()), ProgressBar(), Spy("on_epoch_end")]
    assert of(watched) == of(one)
    assert of(None) == of([])
    with pytest.raises(ValueError, match=r"callback Shrink .*lock.* only_watches = True"):
        of([Shrink(0.5, lock=threading.Lock())])


def test_a_base_model_counts_by_its_files(own_bert, tmp_path):
    """Whatever their path and times, and without what is never read."""
    first = base_model_digest(own_bert)
    assert first == base_model_digest(shutil.copytree(own_bert, tmp_path / "elsewhere"))
    (own_bert / "README.md").write_text("A model.")
    (own_bert / ".gitattributes").write_text("*")
    (own_bert / "runs").mkdir()
    assert first == base_model_digest(str(own_bert))
    assert digest(DiceTokenTagger(own_bert)) == digest(DiceTokenTagger(tmp_path / "elsewhere"))
    change_weights(own_bert)
    second = base_model_digest(own_bert)
    (own_bert / "config.json").write_text("{}")
    assert len({first, second, base_model_digest(own_bert)}) == 3
    assert digest(DiceTokenTagger(own_bert)) != digest(DiceTokenTagger(tmp_path / "elsewhere"))
    assert base_model_digest("nobody/nothing") == "nobody/nothing"
