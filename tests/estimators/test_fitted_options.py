"""Options of a tagger that its network is fitted with: ``crf`` and ``word_shapes``."""

import numpy as np
import pytest

from skdice import DiceTokenTagger

from . import test_crf, test_word_shapes

ROWS = {"crf": (test_crf.X, test_crf.Y), "word_shapes": (test_word_shapes.X, test_word_shapes.Y)}
PARAMETERS = test_crf.PARAMETERS


@pytest.mark.slow
@pytest.mark.parametrize("option", ROWS)
def test_onnx(option, quick_bert, traced_once):
    pytest.importorskip("onnxruntime")
    X, y = ROWS[option]
    tagger = DiceTokenTagger(quick_bert, max_epochs=8, **{option: True}, **PARAMETERS).fit(X, y)
    expected = np.concatenate(tagger.predict_proba(X))
    for runtime, atol in (("onnx", 1e-4), ("onnx-int8", 0.05)):
        found = np.concatenate(tagger.set_params(runtime=runtime).predict_proba(X))
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
def test_auto(family, rows, more, has_shapes, has_crf, tiny_models):
    tagger = DiceTokenTagger(tiny_models(family), max_epochs=1, **(PARAMETERS | more)).fit(*rows)
    assert (tagger.word_shapes_, tagger.crf_) == (has_shapes, has_crf)
