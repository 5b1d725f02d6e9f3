"""Rows in the containers of other libraries are rows like any others, in every function."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
    imbalance_report,
)
from skdice._inputs import (
    check_pairs,
    check_sample_weight,
    check_tags,
    check_texts,
    check_token_lists,
    indexable_rows,
)
from skdice.inspection import EntityConfusionDisplay, TaggingErrors
from skdice.metrics import (
    bootstrap_interval,
    entity_f1_score,
    squad_f1_score,
    squad_report,
    tag_f1_score,
)
from skdice.model_selection import (
    DiceSearchCV,
    StratifiedTagKFold,
    compare_losses,
    cross_val_predict_proba,
    tune_decision,
)
from skdice.tasks import check_labels, check_questions

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .hypothesis_inputs import as_array, as_series
from .test_span import easy_questions

try:
    import datasets
except ImportError:
    datasets = None

FAST = {"max_epochs": 1, "random_state": 0, "verbose": 0}
pytestmark = [
    pytest.mark.filterwarnings("ignore:This fit"),
    pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
]


# -- containers ------------------------------------------------------------------------------------


def arrow_series(rows):
    """Return an Arrow-backed Series whose index does not start at 0."""
    array = pa.array(rows)
    return pd.Series(array, dtype=pd.ArrowDtype(array.type), index=range(7, 7 + len(rows)))


def chunked(rows):
    return pa.chunked_array([rows[:5], rows[5:]])


def arrow_frame(columns):
    return pd.DataFrame({name: arrow_series(rows) for name, rows in columns.items()})


def hub_column(rows):
    return datasets.Dataset.from_dict({"rows": rows})["rows"]


def hub_labels(rows):
    """Return a column of numbers with names: of labels, of tags, or of the labels of spans."""
    one = next(row[0] if isinstance(row, list) else row for row in rows if row)
    if not isinstance(one, str | dict):
        return hub_column(rows)
    items = [item for row in rows for item in (row if isinstance(row, list) else [row])]
    names = {item["label"] if isinstance(item, dict) else item for item in items}
    feature = datasets.ClassLabel(names=sorted(names, reverse=True))
    if isinstance(one, dict):
        number = datasets.Value("int32")
        feature = {"start": number, "end": number, "label": feature}
    if isinstance(rows[0], list):
        feature = datasets.Sequence(feature) if isinstance(one, str) else datasets.List(feature)
    # Names that are given become the numbers that are kept.
    return datasets.Dataset.from_dict(
        {"rows": rows}, features=datasets.Features({"rows": feature})
    )["rows"]


class Array:
    """What has ``__array__``, and nothing else."""

    def __init__(self, rows):
        self.array = as_array(rows)

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


needs_datasets = pytest.mark.skipif(datasets is None, reason="datasets is not installed")
# How columns, columns of labels and tables are made.
CONTAINERS = {
    "polars": (pl.Series, pl.Series, pl.DataFrame),
    "pyarrow": (pa.array, pa.array, pa.table),
    "chunked": (chunked, chunked, pa.RecordBatch.from_pydict),
    "pandas-arrow": (arrow_series, arrow_series, arrow_frame),
    "datasets": (hub_column, hub_labels, lambda columns: datasets.Dataset.from_dict(columns)),
    "array": (Array, Array, pd.DataFrame),
}
every_container = pytest.mark.parametrize(
    "container",
    [pytest.param(name, marks=[needs_datasets] * (name == "datasets")) for name in CONTAINERS],
)


# -- tasks -----------------------------------------------------------------------------------------


def words(column, labels, table, estimator=DiceTokenTagger):
    X, y = easy_corpus(12)
    return estimator, X, y, column(X), labels(y)


def tags_to_ask_for(column, labels, table):
    return words(column, labels, table, DiceQueryTagger)


def spans(column, labels, table):
    X, y = easy_corpus(12)
    rows = [[(i, i + 1, tag[2:]) for i, tag in enumerate(row) if tag != "O"] for row in y]
    dicts = [[dict(zip(("start", "end", "label"), span)) for span in row] for row in rows]
    return DiceQueryTagger, X, rows, column(X), labels(dicts)


def texts(column, labels, table):
    X, y = easy_texts(12)
    return DiceTextClassifier, X, y, column(X), labels(y)


def texts_in_tables(column, labels, table):
    X, y = easy_texts(12)
    return DiceTextClassifier, X, y, table({"text": X}), table({"label": y})


def several_labels(column, labels, table):
    X, Y = easy_labels(12)
    named = {"person": Y[:, 0].tolist(), "place": Y[:, 1].tolist()}
    return DiceTextClassifier, X, Y, column(X), table(named)


def rows_of_labels(column, labels, table):
    X, Y = easy_labels(12)
    return DiceTextClassifier, X, Y, column(X), column(Y.tolist())


def pairs(column, labels, table):
    X, y = easy_pairs(12)
    first, second = zip(*X)
    return DicePairClassifier, X, y, table({"one": first, "two": second}), labels(list(y))


def pairs_in_rows(column, labels, table):
    X, y = easy_pairs(12)
    is_place = [bool(label) for label in y]
    return DicePairClassifier, X, is_place, column([list(pair) for pair in X]), labels(is_place)


def questions(column, labels, table):
    X, y = easy_questions(12, unanswerable=0.3)
    asked, contexts = zip(*X)
    # By name, not by position.
    return DiceSpanExtractor, X, y, table({"context": contexts, "question": asked}), column(y)


def answers(column, labels, table):
    X, y = easy_questions(12, unanswerable=0.3)
    strings = [(row["text"] or [""])[0] for row in y]
    rows = [dict(zip(("question", "context"), row)) for row in X]
    return DiceSpanExtractor, X, strings, column(rows), column(strings)


TASKS = [
    words,
    tags_to_ask_for,
    spans,
    texts,
    texts_in_tables,
    several_labels,
    rows_of_labels,
    pairs,
    pairs_in_rows,
    questions,
    answers,
]


# -- uses: what is made of the rows of a task, so that it can be compared --------------------------


def fit(estimator, X, y, column):
    fitted = estimator.fit(X, y)
    return fitted.predict(X).tolist(), fitted.score(X, y)


def validate(estimator, X, y, column):
    """Return the histories of fits that validate on given rows, on a mask and on groups."""
    in_groups = clone(estimator).set_params(validation_fraction=0.4)
    groups = {
        "groups": column([i // 2 for i in range(12)]),
        "sample_weight": column([1.0, 2.0] * 6),
    }
    histories = [
        clone(estimator).fit(X, y, validation=(X, y)).history_,
        clone(estimator).fit(X, y, validation=column([True, False, False] * 4)).history_,
        in_groups.fit(X, y, **groups).history_,
    ]
    return [history.filter(regex="loss|score").to_dict() for history in histories]


def compare_and_decide(estimator, X, y, column):
    options = {"losses": ("dice",), "baseline": "dice", "seeds": (0,), "verbose": 0}
    frame = compare_losses(estimator, X, y, X, y, **options, tune_threshold=True).frame
    tuned = tune_decision(estimator.fit(X, y), X, y, cv=2)
    names = ("threshold_", "background_bias_", "null_threshold_")
    return frame.drop(columns="fit_seconds").to_dict(), [getattr(tuned, n, 0) for n in names]


def predict_in_folds(estimator, X, y, column):
    options = {"cv": StratifiedTagKFold(2), "sample_weight": [1, 2] * 6}
    return [p.tolist() for p in cross_val_predict_proba(estimator, X, y, **options)]


def search(estimator, X, y, column):
    found = DiceSearchCV(
        estimator,
        lambda trial: {"lr": trial.suggest_categorical("lr", [1e-3])},
        n_trials=1,
        cv=StratifiedTagKFold(2),
        random_state=0,
        verbose=0,
    ).fit(X, y)
    return found.best_score_, found.predict(X).tolist(), found.score(X, y)


def in_scikit_learn(estimator, X, y, column):
    options = {"cv": 2, "error_score": "raise"}
    scores = cross_val_score(estimator, X, y, **options)
    grid = GridSearchCV(estimator, {"lr": ["auto"]}, **options, refit=False).fit(X, y)
    train, test, y_train, _ = train_test_split(X, y, random_state=0, shuffle=False)
    fitted = make_pipeline(FunctionTransformer(), estimator).fit(train, y_train)
    return scores.tolist(), grid.best_score_, fitted.predict_proba(test).tolist()


def split(estimator, X, y, column):
    return [test.tolist() for _, test in StratifiedTagKFold(2).split(X, y)]


def score_tags(estimator, X, y, column):
    wrong = [["O"] * len(row) for row in easy_corpus(12)[1]]
    metrics = (entity_f1_score, tag_f1_score, bootstrap_interval)
    return (
        [(metric(y, wrong), metric(wrong, y)) for metric in metrics],
        TaggingErrors.from_predictions(X, y, wrong).frame.to_dict(),
        EntityConfusionDisplay.from_predictions(y, wrong).frame.to_dict(),
    )


def score_answers(estimator, X, y, column):
    numbers = np.linspace(0, 1, 12).tolist()
    weight = check_sample_weight(column(numbers), 12).tolist()
    # What is predicted is a str.
    predicted = [(row["text"] or [""])[0] for row in easy_questions(12, unanswerable=0.3)[1]]
    report = squad_report(y, predicted, no_answer_score=column(numbers))
    return squad_f1_score(y, predicted), report.to_dict(), weight


def report_imbalance(estimator, X, y, column):
    return imbalance_report(y, X).to_dict()


USES = {
    fit: TASKS,
    validate: [words, spans, pairs, questions],
    compare_and_decide: [words, pairs, questions],
    predict_in_folds: [words],
    search: [words],
    in_scikit_learn: [texts, pairs],
    split: [words],
    score_tags: [words],
    score_answers: [questions, answers],
    report_imbalance: [words, texts, questions],
}


@pytest.fixture(scope="module")
def by_lists(tiny_bert):
    """Return what comes of a use of the lists of a task."""

    @cache
    def get(use, task):
        cls, X, y, _, _ = task(*CONTAINERS["polars"])
        return repr(use(cls(tiny_bert, **FAST), X, y, list))

    return get


@every_container
@pytest.mark.parametrize("use, task", [(use, task) for use in USES for task in USES[use]])
def test_the_same_as_lists(use, task, container, tiny_bert, by_lists):
    cls, _, y, X_in, y_in = task(*CONTAINERS[container])
    if container == "array" and (use is split or (use, task) == (in_scikit_learn, texts)):
        pytest.skip("scikit-learn asks for a length, which __array__ alone is not")
    if container == "datasets" and (use, task) == (in_scikit_learn, pairs):
        pytest.skip("scikit-learn takes no rows from a Dataset")
    if use is in_scikit_learn and container in ("array", "datasets"):
        y_in = y  # scikit-learn takes no array without a length, and loses the names of a column.
    if isinstance(X_in, pa.RecordBatch) and use is not fit:
        X_in = pa.table(X_in.to_pydict())  # scikit-learn takes no rows from a RecordBatch.
    got = repr(use(cls(tiny_bert, **FAST), X_in, y_in, CONTAINERS[container][0]))
    assert got == by_lists(use, task)


@every_container
class TestAround:
    @pytest.mark.parametrize(
        "check, names, message",
        [
            (check_texts, "ab", r"must have one column of texts; got 2 columns: \['a', 'b'\]"),
            (check_pairs, "a", r"must have two columns of texts, the pairs; got 1 columns: \['a'"),
            (check_questions, "ab", r"'question' and 'context'; 'question' is not among \['a', "),
            (check_token_lists, "ab", r"lists of words; got a \w+. Pass one of its columns"),
        ],
    )
    def test_errors_say_what_is_needed(self, container, check, names, message):
        with pytest.raises((TypeError, ValueError), match=message):
            check(CONTAINERS[container][2]({name: ["x", "y"] for name in names}))

    @pytest.mark.parametrize(
        "check, rows",
        [
            (check_texts, ["a", None, "b"]),
            (lambda X: check_texts(indexable_rows(X)), ["a", None, "b"]),
            (check_token_lists, [["a"], None, ["b"]]),
            (check_token_lists, [["a"], ["b", None], ["b"]]),
            (lambda y: check_tags(y, [["x"], ["y", "z"], ["x"]]), [["a"], ["b", None], ["b"]]),
            (lambda y: check_labels(y, 3), ["a", None, "b"]),
            (lambda y: check_labels(y, 3), [1, None, 2]),
            (lambda weight: check_sample_weight(weight, 3), [1.0, None, 2.0]),
        ],
    )
    def test_errors_name_the_row_of_what_is_missing(self, container, check, rows):
        if container == "pandas-arrow" and rows[0] == 1.0:
            pytest.skip("numpy refuses the NA of pandas as a whole")
        with pytest.raises(ValueError, match=r"row 1\b"):
            check(CONTAINERS[container][0](rows))


# -- labels of classifiers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made, expected",
    [
        (torch.tensor([2, 0, 2]), [2, 0, 2]),
        (torch.tensor([2, 0, 2], dtype=torch.uint8), [2, 0, 2]),
        (torch.tensor([True, False, True]), [True, False, True]),
        (torch.tensor([2.0, 0.0, 2.0], requires_grad=True), [2, 0, 2]),
        (Array(["b", "a", "b"]), ["b", "a", "b"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["b", "a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="string[pyarrow]"), ["b", "a", "b"]),
        (pd.Series([2, 0, 2], dtype="Int64"), [2, 0, 2]),
        (memoryview(bytes([2, 0, 2])), [2, 0, 2]),
    ],
)
def test_labels(made, expected):
    assert check_labels(made, 3).tolist() == expected


# -- names of Hugging Face datasets ----------------------------------------------------------------


@needs_datasets
class TestNames:
    def test_labels_have_names(self, tiny_bert):
        _, _, _, X, y = texts(*CONTAINERS["datasets"])
        assert set(y[:]) == {0, 1}
        fitted = DiceTextClassifier(tiny_bert, **FAST).fit(X, y)
        assert fitted.classes_.tolist() == ["person", "place"]
        table = datasets.Dataset.from_dict({"text": X[:], "label": y[:]})
        table = table.cast_column("label", y.features)
        assert check_labels(table.select_columns("label"), 12).tolist() == indexable_rows(y)

    @pytest.mark.parametrize("kind", ["numpy", "torch"])
    @pytest.mark.parametrize("task", [words, texts, pairs_in_rows, questions])
    def test_rows_that_come_as_arrays(self, kind, task, tiny_bert, by_lists):
        cls, _, _, X, y = task(*CONTAINERS["datasets"])
        y = y.source.with_format(kind)["rows"]
        X = X.with_format(kind) if task is questions else X.source.with_format(kind)["rows"]
        assert repr(fit(cls(tiny_bert, **FAST), X, y, list)) == by_lists(fit, task)

    def test_unlabelled_rows_are_missing(self):
        feature = datasets.ClassLabel(names=["a", "b"])
        table = datasets.Dataset.from_dict({"y": [0, 1, -1]})
        y = table.cast_column("y", feature)["y"]
        with pytest.raises(ValueError, match="missing in row 2"):
            check_labels(y, 3)

    @pytest.mark.parametrize(
        "read",
        [
            lambda y: check_tags(y, [["a", "b"]]),
            lambda y: DiceQueryTagger().fit([["a", "b"]], y),
            lambda y: entity_f1_score(y, y),
            lambda y: next(StratifiedTagKFold(2).split(y, y)),
        ],
    )
    @pytest.mark.parametrize("convert", [list, pa.array, pl.Series])
    def test_numbers_without_names(self, read, convert):
        with pytest.raises((TypeError, ValueError), match=r"row 0 .*dataset\['ner_tags'\]"):
            read(convert([[0, 3]]))


# -- texts are not copied --------------------------------------------------------------------------


@pytest.mark.parametrize("contain", [list, tuple, as_series, as_array, Array])
def test_texts_are_passed_on(contain):
    rows = ["".join(["a text ", str(i)]) for i in range(4)]
    assert all(map(same, check_texts(contain(rows)), rows))
    table = pd.DataFrame({"first": rows, "second": rows}, dtype=object)
    assert all(map(same, check_texts(table[["first"]]), rows))
    assert all(first is second is row for (first, second), row in zip(check_pairs(table), rows))
    for sentence in check_token_lists(contain([rows, rows])):
        assert all(map(same, sentence, rows))
    for pair in check_pairs(contain([tuple(rows[:2]), rows[:2]])):
        assert all(map(same, pair, rows))


def same(one, other):
    return one is other


# -- inside scikit-learn ---------------------------------------------------------------------------


@needs_datasets
def test_scikit_learn_loses_the_names_of_tags(tiny_bert):
    _, _, _, X, y = words(*CONTAINERS["datasets"])
    with pytest.raises(ValueError, match="the names of its ClassLabel"):
        cross_val_score(DiceTokenTagger(tiny_bert, **FAST), X, y, cv=2, error_score="raise")


@pytest.mark.parametrize("output", ["polars", "pandas"])
def test_tables_that_transformers_put_out(output, tiny_bert):
    X, y = easy_pairs(12)
    frame = pl.DataFrame({"two": [b for _, b in X], "id": range(12), "one": [a for a, _ in X]})
    select = make_column_transformer(
        ("passthrough", ["one", "two"]), verbose_feature_names_out=False
    )
    classifier = DicePairClassifier(tiny_bert, **FAST)
    expected = clone(classifier).fit(X, y)
    set_here = make_pipeline(select, clone(classifier)).set_output(transform=output)
    with sklearn.config_context(transform_output=output):
        everywhere = make_pipeline(clone(select), classifier).fit(frame, y)
        assert everywhere[-1].feature_names_in_.tolist() == ["one", "two"]
        got = cross_val_predict_proba(everywhere, frame, y, cv=2)
        np.testing.assert_array_equal(got, cross_val_predict_proba(classifier, X, y, cv=2))
        tagger = DiceTokenTagger(tiny_bert, **FAST).fit(*easy_corpus(12))
        assert isinstance(tagger.history_, pd.DataFrame)
    for pipeline in (everywhere, set_here.fit(frame, y)):
        np.testing.assert_array_equal(pipeline.predict_proba(frame), expected.predict_proba(X))
