"""Every bad input of DiceQueryTagger gets an error that says what was got, what is allowed and
which row."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skdice import DiceQueryTagger
from skdice.estimators._default_queries import default_query
from skdice.losses import DiceLoss

from ..corpora import easy_corpus

FAST = {"max_epochs": 1, "lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
QUERIES = {"PER": "john mary", "LOC": "oslo paris"}
X, TAGS = easy_corpus(12)
SPANS = [[(0, 1, "PER")] for _ in X]


def with_row(rows, i, row):
    return [row if j == i else old for j, old in enumerate(rows)]


def make(model, **parameters):
    return DiceQueryTagger(model, **{"queries": QUERIES, **FAST, **parameters})


@pytest.mark.parametrize(
    "span, message",
    [
        ((0, 99, "PER"), r"must lie in its sentence; row 3 has \d words and the span \(0, 99, 'P"),
        ((-1, 1, "PER"), r"must lie in its sentence; row 3 has \d words and the span \(-1, 1, 'P"),
        ((2, 1, "PER"), r"larger than its start; row 3 has \(2, 1, 'PER'\)"),
        ((1, 1, "PER"), r"larger than its start; row 3 has \(1, 1, 'PER'\)"),
        ((0.0, 1, "PER"), r"start of a span must be an int; row 3 has \(0.0, 1, 'PER'\)"),
        ((0, "1", "PER"), r"end of a span must be an int; row 3 has \(0, '1', 'PER'\)"),
        ((True, 1, "PER"), r"start of a span must be an int; row 3 has \(True, 1, 'PER'\)"),
        ((0, None, "PER"), r"end of a span must be an int; row 3 has \(0, None, 'PER'\)"),
        ((0, 1, 7), r"label of a span must be a str .*; row 3 has \(0, 1, 7\)"),
        ((0, 1, None), r"label of a span must be a str .*; row 3 has \(0, 1, None\)"),
        ((0, 1, ""), r"label of a span must be a str that is not empty; row 3 has \(0, 1, ''\)"),
        ((0, 1), r"must be \(start, end, label\), end exclusive; row 3 has \(0, 1\)"),
        ((0, 1, "PER", 0.9, 1), r"must be \(start, end, label\), .*; row 3 has \(0, 1, 'PER', 0.9"),
        (7, r"must be \(start, end, label\), end exclusive; row 3 has 7"),
        ({0: 1}, r"must be \(start, end, label\), end exclusive; row 3 has \{0: 1\}"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "score"])
def test_spans(tiny_bert, span, message, method):
    y = with_row(SPANS, 3, [(0, 1, "LOC"), span])
    tagger = make(tiny_bert)
    if method == "score":
        tagger.fit(X, TAGS)
    with pytest.raises(ValueError, match=message):
        getattr(tagger, method)(X, y)


@pytest.mark.parametrize(
    "X, y, message",
    [
        (X, None, "requires y to be passed, but the target y is None"),
        (X, SPANS[:-1], "got 12 sentences and 11 rows of spans"),
        (X, TAGS[:-1], "got 12 sentences and 11 rows of tags"),
        (X, [[]] * 11, "got 12 sentences and 11 rows of spans"),
        (X, with_row(TAGS, 3, ["O"]), r"row 3 has \d words and 1 tags"),
        (X, with_row(TAGS, 3, [(0, 1, "PER")]), "position 0 of row 3 of y is .* of type tuple"),
        (X, with_row(SPANS, 3, None), "must be a list of .*; row 3 is None"),
        (X, with_row(SPANS, 3, 5), r"must be a list of .*; row 3 is 5 of type int"),
        (X, with_row(TAGS, 3, "B-PER"), "row 3 is the bare string 'B-PER'"),
        (X, [["NOUN"] * len(row) for row in X], "the tag 'NOUN'. .*there is DiceTokenTagger"),
        (X, [[""] * len(row) for row in X], "the tag ''"),
        (X, [["O"] * len(row) for row in X], "needs an entity in y; got 12 rows without any"),
        (X, [[] for _ in X], "needs an entity in y; got 12 rows without any"),
        ([], [], "no sentence to train on"),
        ([[], []], [[], []], "needs an entity in y; got 2 rows"),
        (with_row(X, 2, "john lives"), SPANS, "row 2 is the bare string 'john lives'"),
        (with_row(X, 1, [1, 2]), SPANS, r"position 0 of row 1 of X is 1 of type int"),
        (pd.DataFrame({"words": X}), SPANS, "got a DataFrame"),
        (X, {"a": 1}, "y must be a list"),
    ],
)
def test_data(tiny_bert, X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(tiny_bert).fit(X, y)


@pytest.mark.parametrize(
    "row, shown",
    [
        ([(0, 2, "PER"), (1, 2, "LOC")], r"\(0, 2, 'PER'\) and \(1, 2, 'LOC'\)"),
        ([(1, 2, "LOC"), (0, 2, "PER")], r"\(0, 2, 'PER'\) and \(1, 2, 'LOC'\)"),
        ([(0, 2, "PER"), (1, 3, "PER")], r"\(0, 2, 'PER'\) and \(1, 3, 'PER'\)"),
        ([(0, 1, "PER"), (0, 1, "LOC")], r"\(0, 1, 'LOC'\) and \(0, 1, 'PER'\)"),
        ([(0, 1, "PER"), (1, 2, "PER"), (0, 3, "LOC")], r"\(0, 1, 'PER'\) and \(0, 3, 'LOC'\)"),
    ],
)
def test_overlap_needs_nested_decoding(tiny_bert, row, shown):
    y = with_row(SPANS, 5, row)
    message = rf"Row 5 of y has the overlapping entities {shown}, .* take decode='nested'"
    with pytest.raises(ValueError, match=message):
        make(tiny_bert).fit(X, y)
    make(tiny_bert, decode="nested").fit(X, y)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(SPANS, index=range(12, 0, -1)),
        [[list(span) for span in row] for row in SPANS],
        [tuple(row) for row in SPANS],
        [
            [(np.int64(start), np.int32(end), np.str_(label)) for start, end, label in row]
            for row in SPANS
        ],
        [row * 2 for row in SPANS],
        [np.array(row, dtype=object) for row in SPANS],
    ],
    ids=["Series", "lists", "tuples", "numpy scalars", "twice", "arrays"],
)
def test_spans_may_come_in_many_forms(tiny_bert, y):
    losses = [make(tiny_bert).fit(X, rows).history_.train_loss.tolist() for rows in (y, SPANS)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    "parameters, message",
    [
        (
            {"queries": ["john"]},
            r"'queries' parameter .* a dict of label to text. Got \['john'\]",
        ),
        ({"queries": {"PER": ""}}, r"'queries' .* text that is not empty. Got '' for 'PER'"),
        ({"queries": {"PER": "  "}}, r"'queries' .* Got '  ' for 'PER'"),
        ({"queries": {"PER": None}}, r"'queries' .* Got None for 'PER'"),
        ({"queries": {1: "john"}}, r"'queries' .* Got 'john' for 1"),
        ({"queries": {"UNUSED": 3}}, r"'queries' .* Got 3 for 'UNUSED'"),
        (
            {"queries": {"PER": "a " * 70, "LOC": "oslo"}},
            "has 70 pieces, which leaves 0 of max_length=64",
        ),
        ({"max_length": 5}, "which leaves 0 of max_length=5"),
        ({"max_length": 3}, r"'max_length' parameter .*\[4, 64\].*Got 3"),
        ({"max_length": 16, "stride": 12}, r"leaves 11 of max_length=16.* least 13"),
        ({"span_weights": (1, 1)}, r"'span_weights' .* three numbers .* Got \(1, 1\)"),
        ({"span_weights": (0, 0, 0)}, "'span_weights' .* not all 0"),
        ({"span_weights": 1.0}, "'span_weights' .* Got 1.0"),
        ({"span_weights": (1, 1, -0.1)}, "'span_weights' .* Got -0.1"),
        ({"span_weights": (1, 1, "a")}, "'span_weights' .* Got 'a'"),
        ({"match_candidates": "some"}, "'match_candidates' .*'pred_gold_random'.* Got 'some'"),
        ({"negative_ratio": -1}, r"'negative_ratio' .* Got -1"),
        ({"negative_ratio": "all"}, r"'negative_ratio' .* Got 'all'"),
        ({"decode": "constrained"}, "'decode' parameter .*'flat', 'nested'"),
        ({"class_weight": {"PER": 2.0}}, r"keys 0 \(words that start .* not labels. Got {'PER': 2"),
        ({"loss": "dise"}, "'loss' parameter must be one of"),
        ({"loss": "dice", "alpha": 0.1}, "alpha=0.1 cannot be used with loss='dice'"),
        ({"loss": DiceLoss(), "gamma": 1.0}, "'gamma' must be None with a loss object"),
        ({"n_frozen_layers": 3}, r"'n_frozen_layers' parameter .*\[0, 2\]"),
        ({"validation_fraction": 0.99}, "leaves no row to train on"),
        ({"model": "no-such-directory/x"}, "is no directory here"),
    ],
)
def test_parameters(tiny_bert, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**{"model": tiny_bert, **parameters}).fit(X, TAGS)


class TestQueries:
    def test_given_ones_are_asked(self, tiny_bert):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tagger = make(tiny_bert, queries={**QUERIES, "UNUSED": "company"}).fit(X, TAGS)
        assert tagger.queries_ == QUERIES

    def test_missing_ones_are_warned_of_once(self, tiny_bert):
        y = [[(0, 1, "AGE_GROUP"), (1, 2, "AGE"), (2, 3, "PER")] for _ in X]
        with pytest.warns(UserWarning, match="queries has no query") as record:
            tagger = make(tiny_bert, queries={"PER": "john"}).fit(X, y)
        assert [str(w.message) for w in record] == [
            "queries has no query for 'AGE', 'AGE_GROUP'; asked is 'AGE', 'AGE GROUP'."
        ]
        assert tagger.queries_ == {"AGE": "AGE", "AGE_GROUP": "AGE GROUP", "PER": "john"}

    def test_without_queries_defaults_are_asked_silently(self, tiny_bert):
        y = [[(0, 1, "TEAM")] for _ in X]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tagger = make(tiny_bert, queries=None).fit(X, y)
        assert tagger.queries_ == {"TEAM": "TEAM"}

    @pytest.mark.parametrize("label", ["PER", "per", "Person", "PERS", "people"])
    def test_names_of_common_types(self, label):
        assert default_query(label).startswith("Which people are mentioned")

    @pytest.mark.parametrize(
        "label", ["LOC", "ORG", "MISC", "GPE", "Disease", "Chemical", "WORK_OF_ART", "DATE", "Gene"]
    )
    def test_common_types_have_a_question(self, label):
        query = default_query(label)
        assert query.startswith("Which ")
        assert query.endswith("?")

    def test_other_types_are_asked_by_name(self):
        assert default_query("blood_test") == "blood test"


@pytest.mark.parametrize(
    "method", ["predict", "predict_spans", "predict_entities", "predict_iter", "score"]
)
def test_not_fitted_comes_before_looking_at_X(tiny_bert, method):
    arguments = (42, 42) if method == "score" else (42,)
    with pytest.raises(NotFittedError):
        getattr(make(tiny_bert), method)(*arguments)


def test_failed_refit_is_not_half_of_two(tiny_bert):
    tagger = make(tiny_bert).fit(X, TAGS)
    with pytest.raises(ValueError, match="which leaves 0"):
        tagger.set_params(queries={"PER": "a " * 70, "LOC": "oslo"}).fit(X, SPANS)
    with pytest.raises(NotFittedError):
        tagger.predict(X)
