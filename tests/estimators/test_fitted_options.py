"""Options of a tagger that its network is fitted with: ``crf`` and ``word_shapes``."""

import pickle

import numpy as np
import pytest

from skdice import DiceTokenTagger
from skdice.estimators import load_pretrained

from . import test_crf, test_word_shapes

ROWS = {"crf": (test_crf.X, test_crf.Y), "word_shapes": (test_word_shapes.X, test_word_shapes.Y)}
PARAMETERS = test_crf.PARAMETERS


def scores(tagger, option):
    return np.concatenate(list(tagger.predict_proba(ROWS[option][0])))


@pytest.fixture(scope="module", params=ROWS)
def option(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(quick_bert, option):
    tagger = DiceTokenTagger(quick_bert, max_epochs=8, **{option: True}, **PARAMETERS)
    return tagger.fit(*ROWS[option])


def test_saved_and_loaded(fitted, option, tmp_path):
    fitted.save_pretrained(tmp_path / "saved")
    loaded = load_pretrained(tmp_path / "saved")
    assert getattr(loaded, f"{option}_")
    expected = scores(fitted, option)
    np.testing.assert_array_equal(scores(loaded, option), expected)
    np.testing.assert_array_equal(scores(pickle.loads(pickle.dumps(fitted)), option), expected)


@pytest.mark.slow
def test_onnx(fitted, option, traced_once):
    pytest.importorskip("onnxruntime")
    other = pickle.loads(pickle.dumps(fitted)).set_params(runtime="onnx")
    np.testing.assert_allclose(scores(other, option), scores(fitted, option), atol=1e-4)
    other.set_params(runtime="onnx-int8")
    np.testing.assert_allclose(scores(other, option), scores(fitted, option), atol=0.05)


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
def test_auto(family, rows, more, has_shapes, has_crf, tiny_models):
    tagger = DiceTokenTagger(tiny_models(family), max_epochs=1, **(PARAMETERS | more)).fit(*rows)
    assert (tagger.word_shapes_, tagger.crf_) == (has_shapes, has_crf)
