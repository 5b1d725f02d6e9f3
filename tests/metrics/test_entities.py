"""Entities in tags, their scores by hand, and scorers; test_seqeval.py has many more."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import KFold, cross_validate

from skdice.metrics import (
    EntitySpan,
    entity_classification_report,
    entity_f1_score,
    entity_f1_scorer,
    entity_precision_recall_fscore_support,
    get_entities,
    squad_exact_match_scorer,
    squad_f1_scorer,
    tag_f1_score,
    tag_f1_scorer,
)


@pytest.mark.parametrize("tags, expected", [
    # B, I, E and S in any order are in test_seqeval.
    # M, L and U are I, E and S.
    (["B-PER", "M-PER", "E-PER"], [(0, 3, "PER")]),
    (["B-PER", "M-PER", "B-PER"], [(0, 2, "PER"), (2, 3, "PER")]),
    (["B-PER", "I-PER", "L-PER", "L-PER"], [(0, 3, "PER"), (3, 4, "PER")]),
    (["U-PER", "I-PER", "U-PER"], [(0, 1, "PER"), (1, 2, "PER"), (2, 3, "PER")]),
    # The type is all that follows the first hyphen.
    (["B-multi-part", "I-multi-part"], [(0, 2, "multi-part")]),
    (["B-PER.NAM", "I-PER.NOM"], [(0, 1, "PER.NAM"), (1, 2, "PER.NOM")]),
    (["B", "I", "O", "S"], [(0, 2, "_"), (3, 4, "_")]),
    (["B-", "I"], [(0, 2, "_")]),
    # Outside is also O with a type, and a full stop.
    (["B-PER", "O-PER", "I-PER"], [(0, 1, "PER"), (2, 3, "PER")]),
    (["B-PER", ".", "I-PER"], [(0, 1, "PER"), (2, 3, "PER")]),
    # Without a known prefix the tag is the type.
    (["PER", "PER", "O", "ORG", "LOC"], [(0, 2, "PER"), (3, 4, "ORG"), (4, 5, "LOC")]),
    (["art-music", "art-film", "art-film"], [(0, 1, "art-music"), (1, 3, "art-film")]),
    (["BPER", "X-PER"], [(0, 1, "BPER"), (1, 2, "X-PER")]),
])  # fmt: skip
def test_default_mode(tags, expected):
    assert get_entities(tags) == expected


@pytest.mark.parametrize("scheme, tags, expected", [
    ("BIOES", "B-X I-X E-X S-Y O", [(0, 3, "X"), (3, 4, "Y")]),
    ("BMES", "B-X M-X E-X S-Y O M-X E-X B-X", [(0, 3, "X"), (3, 4, "Y")]),
    ("BILOU", "B-multi-part L-multi-part U", [(0, 2, "multi-part"), (2, 3, "_")]),
])  # fmt: skip
def test_strict_mode(scheme, tags, expected):
    """What seqeval has no scheme or no type for; the others are in test_seqeval."""
    assert get_entities(tags.split(), mode="strict", scheme=scheme) == expected


@pytest.mark.parametrize(
    "container", [list, tuple, np.array, pd.Series, lambda tags: np.array(tags, dtype=object)]
)
def test_containers(container):
    entities = get_entities(container(["B-PER", "I-PER", "O", "numpy"]))
    assert entities == [(0, 2, "PER"), (3, 4, "numpy")]
    assert all(type(entity.label) is str for entity in entities)
    assert entities[0] == EntitySpan(start=0, end=2, label="PER")


MIXED = [
    (["o"], r"position 1 of row 1 has the tag 'o', others are as 'B-LOC'. Outside .* 'O'"),
    (["0", "-"], "position 1 of row 1 has the tag '0'"), (["O "], "tag 'O '.* It has white space"),
    ([" B-PER"], "tag ' B-PER'.* white space"), (["PER"], "tag 'PER'"), (["b-PER"], "tag 'b-PER'"),
]  # fmt: skip


@pytest.mark.parametrize("tags, message", MIXED)
def test_a_stray_tag_among_those_of_entities(tags, message):
    good = [["O", "B-PER", "I-PER", "O", "B-LOC"]] * 2
    bad = [good[0], ["O", *tags, *good[0]]]
    good = [good[0], ["O"] * len(bad[1])]
    for score in (entity_f1_score, entity_classification_report):
        for name, pair in (("y_true", (bad, good)), ("y_pred", (good, bad))):
            with pytest.raises(ValueError, match=f"The tags of {name} must .*{message}"):
                score(*pair)
    assert tag_f1_score(good, bad) < 1  # Each tag is a class.


def test_a_stray_tag_of_an_entity():
    rows = [["PER", "ORG", "O"], ["O", "B-PER", "LOC", "LOC"]]
    with pytest.raises(ValueError, match=r"position 1 of row 1 has the tag 'B-PER', .* as 'LOC'"):
        entity_f1_score(rows, rows)


@pytest.mark.parametrize("tags", [
    "PRP$ NN-x . `` , O", "S-Bahn E-mail U-turn PER O", "B-PER I-PER . O O-PER B I", "-LRB- I B",
])  # fmt: skip
def test_tags_that_are_not_mixed(tags):
    rows = [tags.split()]
    assert entity_f1_score(rows, rows) == 1


@pytest.mark.parametrize("tags, error, message", [
    ("B-PER", TypeError, "tags must be .* got 'B-PER'"),
    (["O", np.nan], TypeError, "tag 1 .* got nan"),
    ([1, 2], TypeError, "tag 0 .* got 1"),
    (["O", ""], ValueError, "tag 1 .* empty"),
])  # fmt: skip
def test_bad_tags(tags, error, message):
    with pytest.raises(error, match=message):
        get_entities(tags)


@pytest.mark.parametrize("options, message", [
    ({"mode": "lenient"}, "'mode'.*'lenient'"),
    ({"scheme": "IOB2"}, "mode='strict' only"),
    ({"mode": "strict"}, "'scheme' .*None"),
    ({"mode": "strict", "scheme": "IOE2"}, "'BILOU'.*'IOE2'"),
])  # fmt: skip
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        get_entities(["O"], **options)


@pytest.mark.parametrize("scheme, tag", [
    *[("IOB1", "E-PER"), ("IOBES", "M-PER"), ("BIOES", "U-PER"), ("BMES", "I-PER")],
    *[("BILOU", "E-PER"), *(("IOB2", tag) for tag in ("S-PER", "PER", "BPER", ".", "b-PER"))],
])  # fmt: skip
def test_tag_of_another_scheme(scheme, tag):
    with pytest.raises(ValueError, match=f"tag 1 is '{tag}', but the tags of {scheme}"):
        get_entities(["O", tag], mode="strict", scheme=scheme)


SCORES = [entity_f1_score, entity_precision_recall_fscore_support, entity_classification_report]


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("rows", [[], [[]], [["O", "O"]]])
def test_nothing_to_find_and_nothing_found(rows, average, zero_division):
    scores = entity_precision_recall_fscore_support(
        rows, rows, average=average, zero_division=zero_division
    )
    assert scores == (zero_division, zero_division, zero_division, 0)
    assert entity_f1_score(rows, rows, average=None).shape == (0,)
    if not any(rows):
        score = tag_f1_score(rows, rows, average=average, zero_division=zero_division)
        assert type(score) is float
        assert score == zero_division


@pytest.mark.parametrize("score", [*SCORES, tag_f1_score])
@pytest.mark.parametrize("y_true, y_pred, error, message", [
    ([["O"], ["O"]], [["O"]], ValueError, "got 2 and 1"),
    ([["O"], ["O", "O"]], [["O"], ["O", "O", "O"]], ValueError, "row 1 has 2 and 3"),
    (["O", "B-X"], [["O"], ["O"]], TypeError, "row 0 of y_true .* got 'O'"),
    ([["O"]], None, TypeError, "y_pred .* got None"),
    ([["O"]], [[None]], TypeError, "row 0 of y_pred: tag 0"),
])  # fmt: skip
def test_bad_tags_of_scores(score, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        score(y_true, y_pred)


@pytest.mark.parametrize("score", [*SCORES, tag_f1_score])
@pytest.mark.parametrize("options, message", [
    ({"zero_division": "warn"}, "'zero_division'.*'warn'"),
    ({"zero_division": 2}, "'zero_division'.*2"),
])  # fmt: skip
def test_bad_options_of_scores(score, options, message):
    with pytest.raises(ValueError, match=message):
        score(TAGS, TAGS, **options)


def test_tag_of_another_scheme_names_row_and_side():
    with pytest.raises(ValueError, match="row 1 of y_pred: tag 0 is 'E-X'"):
        entity_f1_score([["O"], ["O"]], [["O"], ["E-X"]], mode="strict", scheme="IOB2")


AVERAGES = ["micro", "macro", "weighted", None]


@pytest.mark.parametrize("average", AVERAGES)
def test_equals_sklearn_on_the_flat_tags(average):
    random = np.random.default_rng(0)
    for _ in range(20):
        lengths = random.integers(0, 9, 40)
        y_true = [random.choice(["O", "B-X", "I-X", "B-Y"], n).tolist() for n in lengths]
        y_pred = [random.choice(["O", "B-X", "I-X", "E-Z"], len(row)).tolist() for row in y_true]
        flat_true, flat_pred = np.concatenate(y_true), np.concatenate(y_pred)
        np.testing.assert_allclose(
            tag_f1_score(y_true, y_pred, average=average),
            f1_score(flat_true, flat_pred, average=average, zero_division=0),
            rtol=1e-12,
        )
        assert tag_f1_score(y_true, y_pred) == accuracy_score(flat_true, flat_pred)


SENTENCES = [["Ada", "sleeps"], ["in", "Paris", "now"]] * 6
TAGS = [["B-PER", "O"], ["O", "B-LOC", "O"]] * 6
QUESTIONS = [("Who?", "Ada Byron sleeps."), ("Where?", "In Paris or Rome.")] * 3
ANSWERS = [{"text": ["Ada Byron", "Ada Byron sleeps"]}, {"text": []}] * 3


class Guess(BaseEstimator):
    """Tags each capitalised word with one tag, or answers with the first word of the context."""

    def __init__(self, tag="B-PER"):
        self.tag = tag

    def fit(self, X, y):
        return self

    def predict(self, X):
        if self.tag is None:
            return np.array([context.split()[0] for _, context in X], dtype=object)
        return [[self.tag if word[0].isupper() else "O" for word in words] for words in X]


@pytest.mark.parametrize("container", [list, pd.Series])
@pytest.mark.parametrize("estimator, X, y, scoring, expected", [
    (Guess(), SENTENCES, TAGS, {"entity": entity_f1_scorer, "tag": tag_f1_scorer}, [0.5, 0.8]),
    (Guess(None), QUESTIONS, ANSWERS,
     {"exact_match": squad_exact_match_scorer, "f1": squad_f1_scorer}, [0, 1 / 3]),
])  # fmt: skip
def test_cross_validation(container, estimator, X, y, scoring, expected):
    scores = cross_validate(estimator, container(X), container(y), cv=KFold(3), scoring=scoring)
    found = [scores[f"test_{name}"] for name in scoring]
    np.testing.assert_allclose(found, np.repeat([expected], 3, axis=0).T)
