"""partial_match_report: counts by hand, and against the metrics of whole entities."""

import sys

import pytest
from hypothesis import given, settings

from skdice.inspection import partial_match_report
from skdice.metrics import entity_precision_recall_fscore_support, get_entities

from .tagged_sentences import CHUNK_TAGS, both, corpora

SENTENCES = [
    both("B-PER I-PER O B-LOC", "B-PER I-PER O B-PER"),  # correct, another label
    both("B-LOC O B-LOC I-LOC", "O B-PER B-LOC O"),  # missed, spurious, another border
]
Y_TRUE, Y_PRED = map(list, zip(*SENTENCES))


def test_by_hand():
    report = partial_match_report(Y_TRUE, Y_PRED)
    assert report.index.names == ["label", "match"]
    counts = report.loc["micro avg", ["correct", "incorrect", "partial", "missed", "spurious"]]
    assert counts.loc["strict"].tolist() == [1, 2, 0, 1, 1]
    assert counts.loc["border"].tolist() == [2, 1, 0, 1, 1]
    assert counts.loc["type"].tolist() == [2, 1, 0, 1, 1]
    assert counts.loc["partial"].tolist() == [2, 0, 1, 1, 1]
    assert report.loc[("micro avg", "partial"), "precision"] == pytest.approx(2.5 / 4)
    assert report.loc[("micro avg", "partial"), "recall"] == pytest.approx(2.5 / 4)


def test_spans_as_tags():
    spans = [[get_entities(tags) for tags in rows] for rows in (Y_TRUE, Y_PRED)]
    assert partial_match_report(*spans).equals(partial_match_report(Y_TRUE, Y_PRED))


@settings(max_examples=40, deadline=None)
@given(corpora(CHUNK_TAGS))
def test_strict_is_what_the_metrics_are(corpus):
    y_true, y_pred = map(list, zip(*corpus))
    report = partial_match_report(y_true, y_pred).loc[("micro avg", "strict")]
    expected = entity_precision_recall_fscore_support(y_true, y_pred, average="micro")[:3]
    assert report[["precision", "recall", "f1-score"]].tolist() == pytest.approx(expected)


def test_no_entities():
    report = partial_match_report([["O"], []], [["O"], []])
    assert report.index.get_level_values("label").unique().tolist() == ["micro avg"]
    assert (report == 0).all(axis=None)


def test_bad_rows():
    with pytest.raises(ValueError, match="row 0"):
        partial_match_report([["O"]], [["O", "O"]])


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "nervaluate", None)
    with pytest.raises(ImportError, match=r"skdice\[report\]"):
        partial_match_report([["O"]], [["O"]])
