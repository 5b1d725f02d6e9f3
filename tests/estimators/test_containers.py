"""Rows in containers of other libraries are rows like any others: what has to_list or to_pandas."""

import re

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone

import skdice
from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.inspection import TaggingErrors
from skdice.metrics import entity_f1_score, tag_f1_score
from skdice.model_selection import StratifiedTagKFold, cross_val_predict_proba, tune_decision

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from ..spies import internals
from .test_span import easy_questions

FAST = {"max_epochs": 1, "random_state": 0, "verbose": 0}
pytestmark = pytest.mark.filterwarnings("ignore:A column-vector y was passed")


def chunked(rows):
    return pa.chunked_array([rows[:5], rows[5:]])


def arrow_series(rows):
    """Return an Arrow-backed Series whose index does not start at 0."""
    array = pa.array(rows)
    return pd.Series(array, dtype=pd.ArrowDtype(array.type), index=range(7, 7 + len(rows)))


def hub_column(rows):
    return pytest.importorskip("datasets").Dataset.from_dict({"rows": rows})["rows"]


def hub_table(columns):
    return pytest.importorskip("datasets").Dataset.from_dict(columns)


# How columns and tables are made.
CONTAINERS = {
    "polars": (pl.Series, pl.DataFrame),
    "pyarrow": (pa.array, pa.table),
    "chunked": (chunked, pa.RecordBatch.from_pydict),
    "pandas": (arrow_series, pd.DataFrame),
    "datasets": (hub_column, hub_table),
}


# Of each task: the estimator, its rows as lists, and in columns and tables.


def words(column, table):
    X, y = easy_corpus(12)
    return DiceTokenTagger, X, y, column(X), column(y)


def spans(column, table):
    X, y = easy_corpus(12)
    rows = [[(i, i + 1, tag[2:]) for i, tag in enumerate(row) if tag != "O"] for row in y]
    dicts = [[dict(zip(("start", "end", "label"), span)) for span in row] for row in rows]
    return skdice.DiceQueryTagger, X, rows, column(X), column(dicts)


def texts(column, table):
    X, y = easy_texts(12)
    return DiceTextClassifier, X, y, column(X), column(y)


def several_labels(column, table):
    X, Y = easy_labels(12)
    named = {"person": Y[:, 0].tolist(), "place": Y[:, 1].tolist()}
    return DiceTextClassifier, X, pd.DataFrame(named), column(X), table(named)


def pairs(column, table):
    X, y = easy_pairs(12)
    first, second = zip(*X)
    return DicePairClassifier, X, y, table({"one": first, "two": second}), column(list(y))


def questions(column, table):
    X, y = easy_questions(12, unanswerable=0.3)
    y = [dict(sorted(answers.items())) for answers in y]  # As Arrow has them.
    asked, contexts = zip(*X)
    # By name, not by position.
    return DiceSpanExtractor, X, y, table({"context": contexts, "question": asked}), column(y)


TASKS = [words, spans, texts, several_labels, pairs, questions]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("task", TASKS)
def test_the_rows_are_those_of_lists(task, container):
    cls, X, y, X_in, y_in = task(*CONTAINERS[container])
    read = internals(cls()).task.read_training
    found, expected = (
        # The answers of a row may be an array.
        re.sub(r"array\((\[.*?\])(, dtype=\w+)?\)", r"\1", repr(read(*rows)))
        for rows in ((X_in, y_in), (X, y))
    )
    assert found == expected


# What is made of the rows of a task, so that it can be compared.


def fit(estimator, X, y):
    fitted = estimator.fit(X, y)
    return fitted.predict(X).tolist(), fitted.score(X, y)


def validate(estimator, X, y):
    history = clone(estimator).fit(X, y, validation=(X, y)).history_
    return history.filter(regex="loss|score").to_dict(), skdice.imbalance_report(y, X).to_dict()


def compare_and_decide(estimator, X, y):
    options = {"losses": ("dice",), "baseline": "dice", "seeds": (0,), "verbose": 0}
    frame = skdice.compare_losses(estimator, X, y, X, y, **options).frame
    tuned = tune_decision(estimator.fit(X, y), X, y, cv=2)
    return frame.drop(columns="fit_seconds").to_dict(), tuned.predict(X).tolist()


def search_in_folds(estimator, X, y):
    how = {"n_trials": 1, "cv": StratifiedTagKFold(2), "random_state": 0, "verbose": 0}
    found = skdice.DiceSearchCV(estimator, lambda trial: {"lr": 1e-3}, **how).fit(X, y)
    folds = cross_val_predict_proba(estimator, X, y, cv=StratifiedTagKFold(2))
    return found.best_score_, found.predict(X).tolist(), [p.tolist() for p in folds]


def score_tags(estimator, X, y):
    wrong = [["O"] * len(row) for row in easy_corpus(12)[1]]
    errors = TaggingErrors.from_predictions(X, y, wrong).frame
    return errors.to_dict(), entity_f1_score(y, wrong), tag_f1_score(wrong, y)


USES = [
    (fit, several_labels), (validate, words), (compare_and_decide, questions),
    (search_in_folds, words), (score_tags, words),
]  # fmt: skip


@pytest.mark.parametrize("use, task", USES)
def test_what_is_made_of_them_is_the_same(use, task, tiny_bert):
    container = list(CONTAINERS)[USES.index((use, task)) % 5]
    cls, X, y, X_in, y_in = task(*CONTAINERS[container])
    expected = repr(use(cls(tiny_bert, **FAST), X, y))
    assert repr(use(cls(tiny_bert, **FAST), X_in, y_in)) == expected


@pytest.mark.parametrize("cls, rows, names, other, message", [
    (DicePairClassifier, easy_pairs, ["a", "b"], ["b", "a"], r"\['a', 'b'\]; got \['b', 'a'\]"),
    (DiceSpanExtractor, easy_questions, ["question", "context"], ["question", "id"],
     "'context' is not among"),
])  # fmt: skip
def test_columns_are_those_of_the_fit(cls, rows, names, other, message, tiny_bert):
    X, y = rows(12)
    table = pd.DataFrame(X, columns=names).assign(id=range(12))
    fitted = cls(tiny_bert, **FAST).fit(table[names], y)
    assert fitted.feature_names_in_.tolist() == names
    assert fitted.predict(X).tolist() == fitted.predict(table[names]).tolist()
    with pytest.raises(ValueError, match=message):
        fitted.predict(table[other])
    fitted.fit(table[names].to_numpy(), y)
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("cls, names, message", [
    (DiceTextClassifier, "ab", r"must have one column of texts; got 2 columns: \['a', 'b'\]"),
    (DicePairClassifier, "a", r"must have two columns of texts, the pairs; got 1 columns"),
    (DiceSpanExtractor, "ab", r"'question' and 'context'; 'question' is not among \['a', "),
    (DiceTokenTagger, "ab", r"lists of words; got a \w+. Pass one of its columns"),
])  # fmt: skip
def test_errors_say_what_is_needed(container, cls, names, message):
    table = CONTAINERS[container][1]({name: ["x", "y"] for name in names})
    with pytest.raises((TypeError, ValueError), match=message):
        cls().fit(table, ["x", "y"])


@pytest.mark.parametrize("container", CONTAINERS)
def test_errors_name_the_row_of_what_is_missing(container):
    column = CONTAINERS[container][0]
    for cls, X, y in [
        (DiceTextClassifier, ["a", None, "b"], ["x", "y", "x"]),
        (DiceTextClassifier, ["a", "b", "c"], ["x", None, "x"]),
        (DiceTokenTagger, [["a"], None, ["b"]], [["O"], ["O"], ["O"]]),
        (DiceTokenTagger, [["a"], ["b", None], ["b"]], [["O"], ["O", "O"], ["O"]]),
        (DiceTokenTagger, [["a"], ["b", "c"], ["b"]], [["O"], ["O", None], ["O"]]),
    ]:
        with pytest.raises(ValueError, match=r"row 1\b"):
            cls().fit(column(X), column(y))


@pytest.mark.parametrize("made, expected", [
    (torch.tensor([2, 0, 2]), [2, 0, 2]),
    (torch.tensor([2.0, 0.0, 2.0], requires_grad=True), [2, 0, 2]),
    (pa.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
    (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["b", "a", "b"]),
    (pd.Series(["b", "a", "b"], dtype="string[pyarrow]"), ["b", "a", "b"]),
    (pd.Series([2, 0, 2], dtype="Int64"), [2, 0, 2]),
])  # fmt: skip
def test_labels(made, expected):
    read = internals(DiceTextClassifier()).task.read_training
    found, wanted = (read(["a", "b", "c"], y)[1].values for y in (made, expected))
    assert found.tolist() == wanted.tolist()


def test_class_labels_get_their_names_as_the_error_says():
    datasets = pytest.importorskip("datasets")
    X, y = easy_corpus(12)
    label = datasets.ClassLabel(names=sorted({tag for row in y for tag in row}))
    kinds = {"tokens": datasets.List(datasets.Value("string")), "ner_tags": datasets.List(label)}
    rows = {"tokens": X, "ner_tags": [label.str2int(row) for row in y]}
    ds = datasets.Dataset.from_dict(rows, features=datasets.Features(kinds))
    with pytest.raises(ValueError, match="Tags must be str; position 0 of row 0 of y is") as error:
        DiceTokenTagger().fit(ds["tokens"], ds["ner_tags"])
    names = {"ds": ds}
    exec(str(error.value).partition("\n")[2], names)
    assert names["y"] == y
