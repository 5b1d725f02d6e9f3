import random
from functools import partial

import numpy as np
import pytest

from skdice.datasets import make_pairs, make_questions, make_tagging

GENERATORS = [make_tagging, partial(make_tagging, nested=True), make_pairs, make_questions]


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("kind", [int, np.int64, np.random.RandomState, np.random.default_rng])
def test_random_state(make, kind):
    state = kind(7)
    first = repr(make(40, random_state=state))
    assert repr(make(40, random_state=kind(7))) == first
    is_int = isinstance(state, int | np.integer)
    assert (repr(make(40, random_state=state)) == first) is is_int


@pytest.mark.parametrize("make", GENERATORS)
def test_global_random_states_are_untouched(make):
    before, before_numpy = random.getstate(), np.random.get_state()[1].copy()
    assert repr(make(20)) != repr(make(20))
    make(20, random_state=0)
    assert random.getstate() == before
    np.testing.assert_array_equal(np.random.get_state()[1], before_numpy)


NAN, INF = float("nan"), float("inf")
STATES = [-1, 1.5, "0", True, random.Random(0)]


@pytest.mark.parametrize("make, name, values", [
    (make_tagging, "n_sentences", [0, -1, 1.0, True, None, "9"]),
    (make_tagging, "ratio", [1.9, -1, INF, NAN, None, "1", True]),
    (make_tagging, "ambiguity", [-0.1, 1.1, NAN, None, "1"]),
    (make_tagging, "nested", [1, 0, "yes", None]),
    (make_tagging, "random_state", STATES),
    (make_pairs, "n_samples", [1, 0, -1, 10.0, True, None, "9"]),
    (make_pairs, "positive_share", [0, 1, -0.1, 1.5, NAN, None, "0.5", True]),
    (make_pairs, "hard_share", [-0.1, 1.1, None, "0.5", True]),
    (make_pairs, "random_state", STATES),
    (make_questions, "n_samples", [0, -1, 10.0, True, None, "9"]),
    (make_questions, "ratio", [9.9, 0, -1, 10_001, NAN, INF, None, "20", True]),
    (make_questions, "unanswerable_share", [1, 1.0, -0.1, NAN, None, "0.5", True]),
    (make_questions, "random_state", STATES),
])  # fmt: skip
def test_parameters(make, name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"'{name}' parameter of {make.__name__} must be"):
            make(**{name: value})


def test_contexts_have_three_sentences_at_least():
    with pytest.raises(ValueError, match="less than three sentences"):
        make_questions(ratio=20, unanswerable_share=0.5)
