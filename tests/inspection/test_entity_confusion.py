"""EntityConfusionDisplay: counts by hand, and how they add up to those of the metrics."""

import re

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings

from skdice import DiceTokenTagger
from skdice.inspection import EntityConfusionDisplay, TaggingErrors
from skdice.inspection._entity_pairs import pair_entities
from skdice.metrics import EntitySpan, entity_precision_recall_fscore_support, get_entities

from ..corpora import easy_corpus
from .tagged_sentences import CHUNK_TAGS, both, corpora

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SENTENCES = [
    both("B-PER I-PER O B-LOC", "B-PER I-PER O B-PER"),  # correct, confused
    both("B-LOC O B-LOC I-LOC", "O B-PER B-LOC O"),  # missed, invented, wrong border
    both("B-ORG I-ORG O O", "B-PER O O O"),  # wrong border and label
]
Y_TRUE, Y_PRED = map(list, zip(*SENTENCES))
draw = EntityConfusionDisplay.from_predictions


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def as_spans(y):
    return [get_entities(tags) for tags in y]


@pytest.mark.parametrize("true_kind", [list, as_spans])
@pytest.mark.parametrize("pred_kind", [list, as_spans])
def test_counts_by_hand(true_kind, pred_kind):
    display = draw(true_kind(Y_TRUE), pred_kind(Y_PRED))
    labels = ["LOC", "ORG", "PER"]
    for frame, names in ((display.frame, [*labels, "none"]), (display.borders, labels)):
        assert frame.index.tolist() == frame.columns.tolist() == names
        assert (frame.index.name, frame.columns.name) == ("gold", "predicted")
        assert (frame.dtypes == np.int64).all()
    assert display.frame.to_numpy().tolist() == [
        [0, 0, 1, 1],
        [0, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
    ]
    assert display.borders.to_numpy().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_picture_shows_both_tables():
    display = draw(Y_TRUE, Y_PRED)
    shown = [[text and text.get_text() for text in row] for row in display.text_]
    assert shown == [
        [None, None, "1", "1", "1", None],
        [None, None, None, None, None, "1"],
        [None, None, "1", None, None, None],
        [None, None, "1", None, None, None],
    ]
    assert display.im_.get_array()[0].tolist() == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3, 0])
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == [
        *["LOC", "ORG", "PER", "none (missed)", "wrong border", "wrong border and label"]
    ]
    assert display.ax_.get_yticklabels()[-1].get_text() == "none (invented)"
    assert display.figure_ is display.ax_.figure

    _, ax = plt.subplots()
    assert display.plot(ax) is display
    assert display.ax_ is ax


@given(corpora(CHUNK_TAGS))
@settings(max_examples=40, deadline=None)
def test_sums_are_those_of_the_metrics_and_of_the_errors(sentences):
    y_true, y_pred = map(list, zip(*sentences))
    display = draw(y_true, y_pred)
    plt.close(display.figure_)
    frame, borders = display.frame, display.borders
    labels = borders.index
    diagonal = np.diag(frame)[:-1]
    gold = frame.loc[labels].sum(axis=1) + borders.sum(axis=1)
    predicted = frame[labels].sum() + borders.sum()
    precision, recall, _, support = entity_precision_recall_fscore_support(y_true, y_pred)
    assert gold.tolist() == support.tolist()
    np.testing.assert_allclose(diagonal, precision * predicted)
    np.testing.assert_allclose(diagonal, recall * gold)
    assert frame.loc["none", "none"] == 0

    X = [["w"] * len(tags) for tags in y_true]
    totals = TaggingErrors.from_predictions(X, y_true, y_pred).summary().loc["all"]
    assert frame["none"].sum() == totals["missed"]
    assert frame.loc["none"].sum() == totals["spurious"]
    assert np.trace(borders) == totals["wrong border"]
    assert borders.to_numpy().sum() - np.trace(borders) == totals["wrong border and label"]


@pytest.mark.parametrize(
    "gold, predicted, kinds",
    [
        pytest.param(
            [(0, 3, "A"), (2, 3, "B")],
            [(0, 3, "A"), (2, 3, "B")],
            ["correct", "correct"],
            id="nested, all right",
        ),
        pytest.param(
            [(1, 3, "A")], [(0, 4, "A"), (1, 3, "A")], ["spurious", "correct"], id="same first"
        ),
        pytest.param(
            [(1, 3, "A")], [(0, 4, "A"), (1, 3, "B")], ["spurious", "wrong label"], id="same words"
        ),
        pytest.param(
            [(0, 2, "A"), (0, 2, "B")],
            [(0, 2, "B"), (0, 2, "C")],
            ["wrong label", "correct"],
            id="two labels of the same words",
        ),
    ],
)
def test_nested_entities(gold, predicted, kinds):
    pairs = pair_entities(*([EntitySpan(*span) for span in spans] for spans in (gold, predicted)))
    assert sorted(pair.kind for pair in pairs) == sorted(kinds)
    counts = draw([gold], [predicted])
    assert np.trace(counts.frame) == kinds.count("correct")
    assert counts.borders.to_numpy().sum() == 0


@pytest.mark.parametrize("rows", [[], [[]], [["O", "O"]]])
def test_no_entities(rows):
    display = draw(rows, rows)
    assert display.frame.to_numpy().tolist() == [[0]]
    assert display.borders.shape == (0, 0)
    display.figure_.canvas.draw()


@pytest.mark.parametrize("convert", [pd.Series, pl.Series, lambda rows: pd.Series(rows).to_numpy()])
def test_containers(convert):
    assert draw(convert(Y_TRUE), convert(Y_PRED)).frame.equals(draw(Y_TRUE, Y_PRED).frame)


@pytest.mark.parametrize(
    "y_true, y_pred, error, message",
    [
        (Y_TRUE, Y_PRED[:2], ValueError, "y_pred must have one row for each sentence; got 2 rows"),
        (Y_TRUE, [*Y_PRED[:2], ["O"]], ValueError, "row 2 of y_pred has 1 for 4 words"),
        (Y_TRUE, [[], [(3, 5, "A")], []], ValueError, "row 1 of y_pred has 4 words and the span"),
        (Y_TRUE, [[], None, []], TypeError, "row 1 of y_pred is None"),
        ([["B-none"]], [["O"]], ValueError, "rename the one in row 0 of y_true"),
        ([["O"]], [[(0, 1, "none", 0.5)]], ValueError, "rename the one in row 0 of y_pred"),
    ],
)
def test_bad_input(y_true, y_pred, error, message):
    with pytest.raises(error, match=re.escape(message)):
        draw(y_true, y_pred)


def test_from_estimator(tiny_bert):
    X, y = easy_corpus(40)
    tagger = DiceTokenTagger(tiny_bert, max_epochs=2, lr=1e-3, random_state=0, verbose=0)
    tagger.fit(X, y)
    display = EntityConfusionDisplay.from_estimator(tagger, X, y)
    assert display.frame.equals(draw(y, tagger.predict(X)).frame)
    with pytest.raises(TypeError, match="with the method predict_spans; got None"):
        EntityConfusionDisplay.from_estimator(None, X, y)
