import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings

from skdice.inspection import EntityConfusionDisplay, TaggingErrors
from skdice.metrics import get_entities

from .conftest import CHUNK_TAGS, both, corpora

SENTENCES = [
    both("B-PER I-PER O B-LOC", "B-PER I-PER O B-PER"),  # correct, confused
    both("B-LOC O B-LOC I-LOC", "O B-PER B-LOC O"),  # missed, invented, wrong border
    both("B-ORG I-ORG O O", "B-PER O O O"),  # wrong border and label
]
Y_TRUE, Y_PRED = map(list, zip(*SENTENCES))
draw = EntityConfusionDisplay.from_predictions


def as_spans(y):
    return [get_entities(tags) for tags in y]


@pytest.mark.parametrize("true_kind", [list, as_spans])
@pytest.mark.parametrize("pred_kind", [list, as_spans])
def test_counts_by_hand(true_kind, pred_kind):
    frame = draw(true_kind(Y_TRUE), pred_kind(Y_PRED)).frame
    assert frame.index.tolist() == frame.columns.tolist() == ["LOC", "ORG", "PER", "none"]
    assert (frame.index.name, frame.columns.name) == ("gold", "predicted")
    assert (frame.dtypes == np.int64).all()
    assert frame.to_numpy().tolist() == [[0, 0, 1, 2], [0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 2, 0]]


def test_picture_shows_the_table():
    display = draw(Y_TRUE, Y_PRED)
    shown = [[text.get_text() if text else "0" for text in row] for row in display.text_]
    assert [list(map(int, row)) for row in shown] == display.frame.to_numpy().tolist()
    assert display.im_.get_array()[0].tolist() == pytest.approx([0, 0, 1 / 3, 2 / 3])
    for ticks in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [tick.get_text() for tick in ticks] == ["LOC", "ORG", "PER", "none"]
    assert display.figure_ is display.ax_.figure
    _, ax = plt.subplots()
    assert display.plot(ax) is display
    assert display.ax_ is ax


@given(corpora(CHUNK_TAGS))
@settings(max_examples=40, deadline=None)
def test_sums_are_those_of_the_errors(sentences):
    y_true, y_pred = map(list, zip(*sentences))
    display = draw(y_true, y_pred)
    plt.close(display.figure_)
    frame = display.frame
    X = [["w"] * len(tags) for tags in y_true]
    totals = TaggingErrors.from_predictions(X, y_true, y_pred).summary().loc["all"]
    n_borders = totals["wrong border"] + totals["wrong border and label"]
    assert np.trace(frame) == totals["correct"]
    assert frame["none"].sum() == totals["missed"] + n_borders
    assert frame.loc["none"].sum() == totals["spurious"] + n_borders
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
    display = draw([gold], [predicted])
    counts = display.frame.stack()
    assert set(counts) <= {0, 1}
    assert [gold + found for gold, found in counts[counts > 0].index] == expected
    display.figure_.canvas.draw()


@pytest.mark.parametrize("y_true, y_pred, error, message", [
    (Y_TRUE, [*Y_PRED[:2], ["O"]], ValueError, "row 2 of y_pred"),
    (Y_TRUE, [[], [(3, 5, "A")], []], ValueError, "row 1 of y_pred"),
    ([["B-none"]], [["O"]], ValueError, "'none'"),
    ([["O"]], [[(0, 1, "none", 0.5)]], ValueError, "'none'"),
])  # fmt: skip
def test_bad_input(y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        draw(y_true, y_pred)
