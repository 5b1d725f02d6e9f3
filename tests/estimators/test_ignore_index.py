"""An estimator says itself what counts in training, whatever its loss object ignores."""

import pytest

from skdice.losses import DiceLoss

from ..io.conftest import CASES, make

# An answer longer than what windows share: those with a part of it are ignored.
ANSWER = "in the new city near the old market"
CUT = [("city ?", f"{'the small company ' * n}{ANSWER} today") for n in range(4)], [ANSWER] * 4
WINDOWS = {"tagger": {"max_length": 6}, "answers that are cut": {"max_length": 12}}
pytestmark = pytest.mark.filterwarnings("ignore:.*lie in no window as a whole")
each_case = pytest.mark.parametrize("case", [*CASES, "answers that are cut"])


def fit(model, case, loss):
    parameters = {"loss": loss, "batch_size": 4, "precision": "fp32"}
    if case in WINDOWS:
        parameters |= {**WINDOWS[case], "stride": 1}
    estimator, *rows = make(case if case in CASES else "questions", model, **parameters)
    return estimator.fit(*(rows if case in CASES else CUT))


@each_case
def test_any_negative_number_gives_the_same_fit(tiny_bert, case):
    losses = []
    for ignore_index in (-100, -1):
        given = DiceLoss(ignore_index=ignore_index)
        losses.append(fit(tiny_bert, case, given).history_.train_loss.tolist())
        assert given.ignore_index == ignore_index, "the loss of the user is left alone"
    assert losses[0] == losses[1]


@each_case
@pytest.mark.parametrize("ignore_index", [0, 255])
def test_the_number_of_a_class_is_refused_before_anything_is_loaded(case, ignore_index):
    with pytest.raises(ValueError, match=f"ignore_index={ignore_index}"):
        fit("no such model", case, DiceLoss(ignore_index=ignore_index))
