from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve

from skdice.inspection import EntityConfusionDisplay, EntityPrecisionRecallDisplay, TaggingErrors
from skdice.metrics import entity_precision_recall_fscore_support, get_entities
from skdice.text import Entity

from .conftest import CHUNK_TAGS, both, corpora

SENTENCES = [
    both("B-PER I-PER O B-LOC", "B-PER I-PER O B-PER"),  # correct, confused
    both("B-LOC O B-LOC I-LOC", "O B-PER B-LOC O"),  # missed, invented, wrong border
    both("B-ORG I-ORG O O", "B-PER O O O"),  # wrong border and label
]
NAMES = ["LOC", "ORG", "PER", "wrong border", "none"]
Y_TRUE, Y_PRED = map(list, zip(*SENTENCES))
draw_counts = EntityConfusionDisplay.from_predictions


def as_spans(y):
    return [get_entities(tags) for tags in y]


@pytest.mark.parametrize("true_kind", [list, as_spans])
@pytest.mark.parametrize("pred_kind", [list, as_spans])
def test_counts_by_hand(true_kind, pred_kind):
    frame = draw_counts(true_kind(Y_TRUE), pred_kind(Y_PRED)).frame
    assert frame.index.tolist() == frame.columns.tolist() == NAMES
    assert (frame.index.name, frame.columns.name) == ("gold", "predicted")
    assert (frame.dtypes == np.int64).all()
    assert frame.to_numpy().tolist() == [
        [0, 0, 1, 1, 1], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0], [1, 0, 1, 0, 0], [0, 0, 1, 0, 0]
    ]  # fmt: skip


def test_picture_shows_the_table():
    display = draw_counts(Y_TRUE, Y_PRED)
    shown = [[text.get_text() if text else "0" for text in row] for row in display.text_]
    assert [list(map(int, row)) for row in shown] == display.frame.to_numpy().tolist()
    assert display.im_.get_array()[0].tolist() == pytest.approx([0, 0, *[1 / 3] * 3])
    for ticks in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [tick.get_text() for tick in ticks] == NAMES
    assert display.figure_ is display.ax_.figure
    _, ax = plt.subplots()
    assert display.plot(ax) is display
    assert display.ax_ is ax


@given(corpora(CHUNK_TAGS))
@settings(max_examples=40, deadline=None)
def test_sums_are_those_of_the_errors(sentences):
    y_true, y_pred = map(list, zip(*sentences))
    display = draw_counts(y_true, y_pred)
    plt.close(display.figure_)
    frame = display.frame
    X = [["w"] * len(tags) for tags in y_true]
    totals = TaggingErrors.from_predictions(X, y_true, y_pred).summary().loc["all"]
    n_borders = totals["wrong border"] + totals["wrong border and label"]
    assert np.trace(frame) == totals["correct"]
    assert frame["none"].sum() == totals["missed"]
    assert frame.loc["none"].sum() == totals["spurious"]
    assert frame["wrong border"].sum() == frame.loc["wrong border"].sum() == n_borders
    assert frame.to_numpy().sum() == totals.sum() + n_borders


@pytest.mark.parametrize("gold, predicted, expected", [
    ([(0, 3, "A"), (2, 3, "B")], [(0, 3, "A"), (2, 3, "B")], ["AA", "BB"]),
    # The same entity comes first, then that of the same words.
    ([(1, 3, "A")], [(0, 4, "A"), (1, 3, "A")], ["AA", "noneA"]),
    ([(1, 3, "A")], [(0, 4, "A"), (1, 3, "B")], ["AB", "noneA"]),
    ([(0, 2, "A"), (0, 2, "B")], [(0, 2, "B"), (0, 2, "C")], ["AC", "BB"]),
    ([], [], []),
])  # fmt: skip
def test_nested_entities(gold, predicted, expected):
    display = draw_counts([gold], [predicted])
    counts = display.frame.stack()
    assert set(counts) <= {0, 1}
    assert [gold + found for gold, found in counts[counts > 0].index] == expected
    display.figure_.canvas.draw()


TAGS = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC", "O"], []]
SPANS = [[(0, 2, "PER"), (3, 4, "LOC")], [(1, 2, "LOC")], []]
FOUND = [
    [Entity(0, 2, "PER", 0.9), Entity(3, 4, "LOC", 0.6)],
    [Entity(0, 1, "LOC", 0.6), Entity(2, 3, "ORG", 0.7)],
    [],
]
TAGGER = SimpleNamespace(predict_spans=lambda X: FOUND)
draw_curves = EntityPrecisionRecallDisplay.from_predictions


def assert_curve(curve, precision, recall, thresholds, n_gold):
    np.testing.assert_allclose(curve.precision, precision)
    np.testing.assert_allclose(curve.recall, recall)
    np.testing.assert_allclose(curve.thresholds, thresholds)
    assert curve.n_gold == n_gold


@pytest.mark.parametrize("y_true", [TAGS, SPANS])
def test_curves_by_hand(y_true):
    display = draw_curves(y_true, FOUND)
    assert list(display.curves) == ["LOC", "ORG", "PER"]
    assert_curve(display.curves["PER"], [1, 1], [1, 0], [0.9], 1)
    # Both LOC have one score: one point.
    assert_curve(display.curves["LOC"], [1 / 2, 1], [1 / 2, 0], [0.6], 2)
    assert_curve(display.curves["ORG"], [0, 1], [0, 0], [0.7], 0)
    assert_curve(display.micro, [2 / 4, 1 / 2, 1, 1], [2 / 3, 1 / 3, 1 / 3, 0], [0.6, 0.7, 0.9], 3)
    assert display.micro.chosen == pytest.approx((2 / 4, 2 / 3, 4 / 7))
    # Equal entities count once, with the highest score.
    display = draw_curves([["B-PER"]], [[(0, 1, "PER", 0.2), (0, 1, "PER", 0.8)]])
    assert_curve(display.micro, [1, 1], [1, 0], [0.8], 1)


def texts_of_legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_lines_and_legend():
    X = [["w"] * len(tags) for tags in TAGS]
    _, ax = plt.subplots()
    display = EntityPrecisionRecallDisplay.from_estimator(TAGGER, X, TAGS, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    shown = {"PER": display.curves["PER"], "LOC": display.curves["LOC"], "micro": display.micro}
    for label, curve in shown.items():
        line = {**display.lines_, "micro": display.micro_line_}[label]
        np.testing.assert_array_equal(line.get_xdata(), curve.recall)
        np.testing.assert_array_equal(line.get_ydata(), curve.precision)
        assert line.get_markevery() == [0]  # What is predicted without a threshold.
    assert not len(display.lines_["ORG"].get_xdata())
    assert texts_of_legend(display) == ["0.57 micro", "0.50 LOC", "– ORG (no gold)", "1.00 PER"]


@st.composite
def scored_corpora(draw_):
    """Sentences of gold tags and predicted tags, and scores with ties of the latter's entities."""
    y_true, y_pred = map(list, zip(*draw_(corpora(CHUNK_TAGS))))
    scores = st.sampled_from([0.1, 0.5, 0.7, 1 / 3])
    found = [[Entity(*span, draw_(scores)) for span in get_entities(tags)] for tags in y_pred]
    return y_true, y_pred, found


@given(scored_corpora())
@settings(max_examples=60, deadline=None)
def test_points_are_those_of_the_metrics_and_of_scikit_learn(corpus):
    y_true, y_pred, found = corpus
    display = draw_curves(y_true, found)
    plt.close(display.figure_)
    expected = entity_precision_recall_fscore_support(y_true, y_pred, average="micro")
    assert display.micro.chosen == pytest.approx(expected[:3])
    assert display.micro.n_gold == expected[3]
    by_label = np.transpose([curve.chosen for curve in display.curves.values()])
    expected = entity_precision_recall_fscore_support(y_true, y_pred, average=None)
    np.testing.assert_allclose(by_label.reshape(3, -1), expected[:3])
    # Of the entities found, the curve is scikit-learn's, with the recall scaled to all gold ones.
    assert sum(curve.n_gold for curve in display.curves.values()) == display.micro.n_gold
    gold = {(i, *span) for i, row in enumerate(y_true) for span in get_entities(row)}
    everything = [(i, *entity) for i, row in enumerate(found) for entity in row]
    for label, curve in [(None, display.micro), *display.curves.items()]:
        rows = [row for row in everything if label in (None, row[3])]
        is_correct = [row[:4] in gold for row in rows]
        if any(is_correct):
            expected = precision_recall_curve(is_correct, [row[4] for row in rows])
            np.testing.assert_allclose(curve.precision, expected[0])
            np.testing.assert_allclose(curve.recall, expected[1] * sum(is_correct) / curve.n_gold)
            np.testing.assert_array_equal(curve.thresholds, expected[2])


@pytest.mark.parametrize("y_true, found, legend", [
    ([], [], ["– micro (no gold)"]),
    ([["B-A"]], [[]], ["– micro (none found)", "– A (none found)"]),
    ([["O"]], [[(0, 1, "A", 0.5)]], ["– micro (no gold)", "– A (no gold)"]),
    ([["B-$x"]], [[(0, 1, "$x", 0.5)]], ["1.00 micro", r"1.00 \$x"]),
])  # fmt: skip
def test_nothing_to_draw(y_true, found, legend):
    display = draw_curves(y_true, found)
    assert texts_of_legend(display) == legend
    display.figure_.canvas.draw()


@pytest.mark.parametrize("draw, y_true, y_pred, error, message", [
    (draw_counts, Y_TRUE, [*Y_PRED[:2], ["O"]], ValueError, "row 2 of y_pred"),
    (draw_counts, Y_TRUE, [[], [(3, 5, "A")], []], ValueError, "row 1 of y_pred"),
    (draw_counts, [["B-none"]], [["O"]], ValueError, "'none'"),
    (draw_counts, [["O"]], [[(0, 1, "none", 0.5)]], ValueError, "'none'"),
    (draw_counts, [["O"]], [[(0, 1, "wrong border", 0.5)]], ValueError, "'wrong border'"),
    (draw_curves, TAGS, FOUND[:2], ValueError, "rows of y_true and 2 of entities"),
    (draw_curves, [TAGS[0], "O", []], FOUND, TypeError, "row 1 of y_true"),
    (draw_curves, TAGS, [[], [None], []], ValueError, "row 1 of entities"),
    (draw_curves, TAGS, [[], [(0, 1, "A", np.nan)], []], ValueError, "row 1 of entities"),
    (draw_curves, TAGS, [[], [(0, 9, "A", 1)], []], ValueError, "row 1 of entities has 3 words"),
])  # fmt: skip
def test_bad_input(draw, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        draw(y_true, y_pred)
