"""Taggers that score the tags of a sentence together."""

import pickle
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from sklearn.base import clone

from skdice import DiceTokenTagger
from skdice.nn import TagChain
from skdice.text import allowed_transitions

from ..spies import internals

PARAMETERS = {"lr": 1e-3, "head_lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
X = [["in", "new", "york"], ["york"], ["new", "in", "york", "new"]] * 8
Y = [["O", "B-X", "I-X"], ["B-X"], ["O", "O", "B-X", "O"]] * 8
OFFSETS = np.cumsum([0, *map(len, X)])


@pytest.fixture(scope="module")
def fitted(quick_bert):
    return DiceTokenTagger(quick_bert, max_epochs=8, crf=True, **PARAMETERS).fit(X, Y)


def scores(tagger):
    return np.concatenate(list(tagger.predict_proba(X)))


def without_crf(tagger):
    """Return the same network that scores each word by itself."""
    other = pickle.loads(pickle.dumps(tagger))
    return internals(other).with_task(replace(internals(other).task, crf=False))


def test_probabilities_are_those_of_sequences(fitted):
    assert fitted.score(X, Y) == 1.0
    logits = np.log(scores(without_crf(fitted))).astype(np.float32)
    allowed = allowed_transitions(fitted.classes_.tolist(), "IOB2")
    expected = np.exp(TagChain(allowed, OFFSETS).predict(logits))
    np.testing.assert_allclose(scores(fitted), expected, atol=1e-5)
    inside = fitted.classes_.tolist().index("I-X")
    assert max(p[0, inside] for p in fitted.predict_proba(X)) < 1e-6


def test_loss_is_of_sequences(quick_bert):
    rates = {"lr": 1e-12, "head_lr": 1e-12, "batch_size": len(X), "loss": "ce"}
    tagger = DiceTokenTagger(quick_bert, crf=True, max_epochs=1, **(PARAMETERS | rates)).fit(X, Y)

    def loss(fitted):
        tags = {tag: i for i, tag in enumerate(fitted.classes_)}
        gold = [tags[tag] for row in Y for tag in row]
        return -np.log(scores(fitted)[range(len(gold)), gold]).mean()

    found = tagger.history_["train_loss"].iloc[0]
    assert found == pytest.approx(loss(tagger), rel=0.005)
    assert found != pytest.approx(loss(without_crf(tagger)), rel=0.05)


def test_broken_tags_are_learned(fitted):
    """A few chunks that start with I are no reason to fail, nor to allow them."""
    tags = [*Y[:-3], ["O", "I-X", "I-X"], *Y[-2:]]
    for loss in ("auto", "focal"):
        tagger = clone(fitted).set_params(loss=loss).fit(X, tags)
        assert tagger.history_["train_loss"].iloc[-1] < 1
        assert tagger.score(X, Y) == 1.0
    others = [["X" if tag == "O" else "Y" for tag in row] for row in Y]
    message = r"'crf' parameter .* must be False or 'auto' .* the tags 'X', 'Y'"
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, others)


def test_long_sentences(fitted):
    """Training windows cut entities; sentences are scored whole."""
    long, tags = ([list(chain(*rows[:3]))] * 24 for rows in (X, Y))
    tagger = clone(fitted).set_params(max_length=6, stride=1, max_epochs=12).fit(long, tags)
    assert np.isfinite(tagger.history_["train_loss"]).all()
    assert tagger.score(long, tags) > 0.9
    assert list(map(len, tagger.predict_proba(long))) == list(map(len, long))


def test_steps_in_parts(fitted):
    """Windows are scored by themselves, so that a step may be cut anywhere."""
    one, parts = (
        clone(fitted).set_params(max_epochs=1, batch_size=size, accumulate=n).fit(X, Y)
        for size, n in ((24, 1), (6, 4))
    )
    np.testing.assert_allclose(scores(parts), scores(one), atol=1e-4)
