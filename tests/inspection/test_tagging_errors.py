from types import SimpleNamespace

import pytest
from hypothesis import given, settings

from skdice.inspection import TaggingErrors
from skdice.metrics import entity_precision_recall_fscore_support, get_entities

from .tagged_sentences import CHUNK_TAGS, both, compare, corpora


@pytest.mark.parametrize(
    "gold, predicted, expected",
    [
        pytest.param("B-PER I-PER O", "B-PER I-PER O", ["correct"], id="same"),
        pytest.param("B-PER I-PER O", "B-LOC I-LOC O", ["wrong label"], id="label"),
        pytest.param("B-PER I-PER O", "B-PER O O", ["wrong border"], id="too short"),
        pytest.param("B-PER I-PER O", "O B-PER I-PER", ["wrong border"], id="shifted"),
        pytest.param("B-PER I-PER O", "B-LOC O O", ["wrong border and label"], id="both"),
        pytest.param("B-PER I-PER O", "O O O", ["missed"], id="missed"),
        pytest.param("O O O", "O B-PER I-PER", ["spurious"], id="spurious"),
        pytest.param("B-PER O O", "O B-PER O", ["missed", "spurious"], id="side by side"),
        pytest.param("S-PER O", "B-PER O", ["correct"], id="other scheme"),
        pytest.param("I-PER I-PER", "B-PER I-PER", ["correct"], id="IOB1"),
    ],
)
def test_kinds_of_entities(gold, predicted, expected):
    errors = compare([both(gold, predicted)])
    assert errors.frame["kind"].tolist() == expected


@pytest.mark.parametrize(
    "gold, predicted, expected",
    [
        pytest.param("B-PER I-PER I-PER", "B-LOC B-PER I-PER", [(0, 1)], id="more words"),
        pytest.param(
            "B-PER I-PER I-PER", "B-PER B-LOC I-LOC", [(0, 1)], id="before the same label"
        ),
        pytest.param("B-PER I-PER", "B-LOC B-PER", [(0, 1)], id="the same label in a tie"),
        pytest.param("B-PER I-PER", "B-PER B-PER", [(0, 0)], id="then the first predicted entity"),
        pytest.param("B-PER B-PER", "B-PER I-PER", [(0, 0)], id="or the first gold entity"),
    ],
)
def test_pairs_of_first_words(gold, predicted, expected):
    frame = compare([both(gold, predicted)]).frame
    pairs = frame[["gold_start", "predicted_start"]].dropna()
    assert list(pairs.itertuples(index=False, name=None)) == expected


@given(corpora(CHUNK_TAGS))
@settings(max_examples=150, deadline=None)
def test_entities_are_counted_as_the_metrics_count(sentences):
    errors = compare(sentences)
    y_true, y_pred = zip(*sentences)
    for side, y in (("gold", y_true), ("predicted", y_pred)):
        columns = ["row", f"{side}_start", f"{side}_end", f"{side}_label"]
        found = errors.frame[columns].dropna().itertuples(index=False, name=None)
        expected = [(row, *span) for row, tags in enumerate(y) for span in get_entities(tags)]
        assert sorted(found) == expected
    totals = errors.summary().iloc[0]
    precision, recall, _, support = entity_precision_recall_fscore_support(
        y_true, y_pred, average="micro"
    )
    n_gold, n_predicted = totals.sum() - totals["spurious"], totals.sum() - totals["missed"]
    assert n_gold == support
    assert totals["correct"] == pytest.approx(recall * n_gold)
    assert totals["correct"] == pytest.approx(precision * n_predicted)


def test_frame():
    words = [["Anna", "Lee", "met", "Bo"], [], ["in", "New", "to", "Rome"]]
    gold = [["B-PER", "I-PER", "O", "O"], [], ["O", "B-LOC", "O", "B-LOC"]]
    predicted = [["O", "B-PER", "O", "B-PER"], [], ["O", "B-LOC", "O", "O"]]
    frame = compare(list(zip(gold, predicted)), words).frame
    expected = [
        (0, "wrong border", "PER", "PER", 0, 2, 1, 2, "Anna Lee"),
        (0, "spurious", None, "PER", None, None, 3, 4, "Bo"),
        (2, "correct", "LOC", "LOC", 1, 2, 1, 2, "New"),
        (2, "missed", "LOC", None, 3, 4, None, None, "Rome"),
    ]
    plain = frame.astype(object).where(frame.notna(), None)
    assert list(plain.itertuples(index=False, name=None)) == expected
    assert frame["gold_start"].dtype == frame["predicted_end"].dtype == "Int64"
    assert frame["kind"].cat.categories[-1] == "spurious"
    tags = ["B-LOC", "I-LOC"]
    assert compare([(tags, tags)], [["北", "京"]]).frame["text"].tolist() == ["北京"]


TAGS = [["B-PER", "O"], ["O", "O"]]
X = [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    "X, y_true, y_pred, error, message",
    [
        (X[:1], TAGS, TAGS, ValueError, "got 1 rows of X and 2 of y"),
        (X, TAGS, TAGS[:1], ValueError, "got 2 and 1"),
        ([["a", "b"], ["c"]], TAGS, TAGS, ValueError, "row 1 has 1 words and 2 tags"),
        (X, TAGS, [["O", "O"], ["O"]], ValueError, "row 1 has 2 and 1"),
    ],
)
def test_bad_input(X, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        TaggingErrors.from_predictions(X, y_true, y_pred)


def test_from_estimator():
    tagger = SimpleNamespace(predict=lambda X: [["B-PER"] * len(words) for words in X])
    errors = TaggingErrors.from_estimator(tagger, X, TAGS)
    assert errors.frame["kind"].tolist() == ["correct", "spurious", "spurious", "spurious"]
