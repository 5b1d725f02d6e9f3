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
from skdice._digest import digest
from skdice._inputs import (
    check_pairs,
    check_sample_weight,
    check_tags,
    check_texts,
    check_token_lists,
    indexable_rows,
)
from skdice.estimators._labels import check_indicator, check_labels
from skdice.estimators._questions import check_questions
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


def arrow_frame(columns):
    return pd.DataFrame({name: arrow_series(rows) for name, rows in columns.items()})


def hub_column(rows):
    return datasets.Dataset.from_dict({"rows": rows})["rows"]


def hub_labels(rows):
    """Return a column of numbers with names: of labels, of tags, or of the labels of spans."""
    one = next(row[0] if isinstance(row, list) else row for row in rows if row)
    if not isinstance(one, str | dict):
        return hub_column(rows)
    names, name = [], datasets.ClassLabel
    for row in rows:
        for item in row if isinstance(row, list) else [row]:
            names.append(item["label"] if isinstance(item, dict) else item)
    feature = name(names=sorted(set(names), reverse=True))
    if isinstance(one, dict):
        number = datasets.Value("int32")
        feature = {"start": number, "end": number, "label": feature}
    if isinstance(rows[0], list):
        feature = datasets.Sequence(feature) if isinstance(one, str) else datasets.List(feature)
    # Names that are given become the numbers that are kept.
    return datasets.Dataset.from_dict(
        {"rows": rows}, features=datasets.Features({"rows": feature})
    )["rows"]


def hub_table(columns):
    return datasets.Dataset.from_dict(columns)


class Array:
    """What has ``__array__``, and nothing else."""

    def __init__(self, rows):
        self.array = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            self.array[i] = row

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


needs_datasets = pytest.mark.skipif(datasets is None, reason="datasets is not installed")
# How columns, columns of labels and tables are made.
CONTAINERS = {
    "polars": (pl.Series, pl.Series, pl.DataFrame),
    "pyarrow": (pa.array, pa.array, pa.table),
    "chunked": (
        lambda rows: pa.chunked_array([rows[:5], rows[5:]]),
        lambda rows: pa.chunked_array([rows[:5], rows[5:]]),
        pa.RecordBatch.from_pydict,
    ),
    "pandas-arrow": (arrow_series, arrow_series, arrow_frame),
    "datasets": (hub_column, hub_labels, hub_table),
    "array": (Array, Array, pd.DataFrame),
}
every_container = pytest.mark.parametrize(
    "container",
    [pytest.param(name, marks=[needs_datasets] * (name == "datasets")) for name in CONTAINERS],
)


# -- tasks -----------------------------------------------------------------------------------------


def words(column, labels, table):
    X, y = easy_corpus(12)
    return DiceTokenTagger, X, y, column(X), labels(y)


def tags_to_ask_for(column, labels, table):
    X, y = easy_corpus(12)
    return DiceQueryTagger, X, y, column(X), labels(y)


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


@pytest.fixture(scope="module")
def by_lists(tiny_bert):
    """Return what an estimator predicts and scores that is fitted on the lists of a task."""

    @cache
    def get(task):
        cls, X, y, _, _ = task(*CONTAINERS["polars"])
        fitted = cls(tiny_bert, **FAST).fit(X, y)
        return fitted.predict(X).tolist(), fitted.score(X, y)

    return get


# Of twelve rows: which to validate on, which belong together, and what they weigh.
MASK, GROUPS, WEIGHTS = [True, False, False] * 4, [i // 2 for i in range(12)], [1.0, 2.0] * 6


@pytest.fixture(scope="module")
def history_by_lists(tiny_bert):
    """Return the scores of a fit on the lists of a task that validates in some way."""

    @cache
    def get(task, kind):
        cls, X, y, _, _ = task(*CONTAINERS["polars"])
        parameters, extra = {
            "rows": ({}, {"validation": (X, y)}),
            "mask": ({}, {"validation": MASK}),
            "groups": ({"validation_fraction": 0.4}, {"groups": GROUPS, "sample_weight": WEIGHTS}),
        }[kind]
        fitted = cls(tiny_bert, **FAST, **parameters).fit(X, y, **extra)
        return fitted.history_.filter(regex="loss|score")

    return get


@pytest.fixture(scope="module")
def decided_by_lists(tiny_bert):
    """Return a comparison and a decision that were made on the lists of a task."""

    @cache
    def get(task):
        cls, X, y, _, _ = task(*CONTAINERS["polars"])
        return compared_and_decided(cls(tiny_bert, **FAST), X, y)

    return get


def compared_and_decided(estimator, X, y):
    """Return a comparison of a loss with itself, and the decision that is best in folds."""
    options = {"losses": ("dice",), "baseline": "dice", "seeds": (0,), "verbose": 0}
    frame = compare_losses(estimator, X, y, X, y, **options, tune_threshold=True).frame
    tuned = tune_decision(estimator.fit(X, y), X, y, cv=2)
    names = ("threshold_", "background_bias_", "null_threshold_")
    return frame.drop(columns="fit_seconds"), [getattr(tuned, name, 0) for name in names]


@pytest.fixture(scope="module")
def shared_folds(tiny_bert):
    """Return the probabilities of tags of a cross-validation, and what a search finds, on lists."""
    _, X, y, _, _ = words(*CONTAINERS["polars"])
    return predicted_in_folds(tiny_bert, X, y), make_search(tiny_bert).fit(X, y)


def predicted_in_folds(model, X, y):
    options = {"cv": StratifiedTagKFold(2), "sample_weight": [1, 2] * 6}
    return cross_val_predict_proba(DiceTokenTagger(model, **FAST), X, y, **options)


def make_search(model):
    return DiceSearchCV(
        DiceTokenTagger(model, **FAST),
        lambda trial: {"lr": trial.suggest_categorical("lr", [1e-3])},
        n_trials=1,
        cv=StratifiedTagKFold(2),
        random_state=0,
        verbose=0,
    )


@every_container
@pytest.mark.parametrize("task", TASKS)
def test_the_same_as_lists(task, container, tiny_bert, by_lists):
    cls, _, _, X, y = task(*CONTAINERS[container])
    fitted = cls(tiny_bert, **FAST).fit(X, y)
    assert (fitted.predict(X).tolist(), fitted.score(X, y)) == by_lists(task)


@every_container
class TestAround:
    def test_tags(self, container):
        _, X, y, X_in, y_in = words(*CONTAINERS[container])
        wrong = [["O"] * len(row) for row in y[:6]] + y[6:]
        for metric in (entity_f1_score, tag_f1_score, bootstrap_interval):
            assert metric(y_in, wrong) == metric(y, wrong)
            assert metric(wrong, y_in) == metric(wrong, y)
        assert imbalance_report(y_in, X_in).equals(imbalance_report(y, X))
        for inspect in (
            lambda X, y: TaggingErrors.from_predictions(X, y, wrong).frame,
            lambda X, y: EntityConfusionDisplay.from_predictions(y, wrong).frame,
        ):
            assert inspect(X_in, y_in).equals(inspect(X, y))

    def test_other_labels(self, container):
        for task in (texts, several_labels, questions, answers):
            _, X, y, X_in, y_in = task(*CONTAINERS[container])
            if task is several_labels:
                y = pd.DataFrame(y, columns=["person", "place"])
            if task is answers:
                X, _ = easy_questions(12, unanswerable=0.3)
                X = pd.DataFrame(X, columns=["question", "context"])
            assert imbalance_report(y_in, X_in).equals(imbalance_report(y, X))
        gold = [row if isinstance(row, str) else row["text"] for row in y]
        assert squad_f1_score(y_in, y_in) == squad_f1_score(gold, gold) == 1
        numbers = np.linspace(0, 1, 12).tolist()
        column = CONTAINERS[container][0]
        got = squad_report(y_in, y_in, no_answer_score=column(numbers))
        assert got.equals(squad_report(gold, gold, no_answer_score=numbers))
        np.testing.assert_array_equal(check_sample_weight(column(numbers), 12), np.float32(numbers))

    def test_folds(self, container, tiny_bert, shared_folds):
        _, X, y, X_in, y_in = words(*CONTAINERS[container])
        if container != "array":  # Splitters of scikit-learn ask for a length.
            got, expected = (
                [test.tolist() for _, test in StratifiedTagKFold(2).split(*data)]
                for data in ((X_in, y_in), (X, y))
            )
            assert got == expected
        for p, q in zip(predicted_in_folds(tiny_bert, X_in, y_in), shared_folds[0], strict=True):
            np.testing.assert_array_equal(p, q)

    @pytest.mark.parametrize("task", [words, spans, pairs, questions])
    def test_rows_to_validate_on(self, container, task, tiny_bert, history_by_lists):
        cls, _, _, X_in, y_in = task(*CONTAINERS[container])
        column = CONTAINERS[container][0]
        if container == "chunked" and task in (pairs, questions):
            X_in = pa.table(X_in.to_pydict())  # scikit-learn takes no rows from a RecordBatch.
        mask, weighted = column(MASK), {"groups": column(GROUPS), "sample_weight": column(WEIGHTS)}
        for kind, parameters, extra in (
            ("rows", {}, {"validation": (X_in, y_in)}),
            ("mask", {}, {"validation": mask}),
            ("groups", {"validation_fraction": 0.4}, weighted),
        ):
            fitted = cls(tiny_bert, **FAST, **parameters).fit(X_in, y_in, **extra)
            history = fitted.history_.filter(regex="loss|score")
            assert history.shape[1] > 1
            assert history.equals(history_by_lists(task, kind))

    @pytest.mark.parametrize("task", [words, pairs, questions])
    def test_comparisons_and_decisions(self, container, task, tiny_bert, decided_by_lists):
        cls, _, _, X_in, y_in = task(*CONTAINERS[container])
        if container == "chunked" and task is not words:
            X_in = pa.table(X_in.to_pydict())  # scikit-learn takes no rows from a RecordBatch.
        frame, decision = compared_and_decided(cls(tiny_bert, **FAST), X_in, y_in)
        expected_frame, expected_decision = decided_by_lists(task)
        assert frame.equals(expected_frame)
        assert decision == expected_decision

    def test_search(self, container, tiny_bert, shared_folds):
        _, X, y, X_in, y_in = words(*CONTAINERS[container])
        got, expected = make_search(tiny_bert).fit(X_in, y_in), shared_folds[1]
        assert got.best_score_ == expected.best_score_
        assert got.predict(X_in).tolist() == expected.predict(X).tolist()
        assert got.score(X_in, y_in) == expected.score(X, y)

    def test_digest(self, container):
        column, labels, table = CONTAINERS[container]
        rows = [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"]]
        assert digest(column(rows)) == digest(rows) == digest(labels(rows))
        long, other = (table({"a": [*map(str, range(50)), end]}) for end in "xy")
        assert digest(long) == digest(table({"a": [*map(str, range(50)), "x"]}))
        assert digest(long) != digest(other)

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
        (torch.tensor([[2], [0], [2]]), [2, 0, 2]),
        (torch.tensor([True, False, True]), [True, False, True]),
        (torch.tensor([2.0, 0.0, 2.0], requires_grad=True), [2, 0, 2]),
        (Array(["b", "a", "b"]), ["b", "a", "b"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["b", "a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="string[pyarrow]"), ["b", "a", "b"]),
        (memoryview(bytes([2, 0, 2])), [2, 0, 2]),
    ],
)
def test_labels(made, expected):
    assert check_labels(made, 3).tolist() == expected


@pytest.mark.parametrize(
    "convert", [torch.tensor, lambda Y: torch.tensor(Y, requires_grad=True), Array, pa.array]
)
def test_matrices_of_labels(convert):
    Y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    matrix, names = check_indicator(convert(Y), 3)
    assert matrix.tolist() == Y
    assert names.tolist() == [0, 1]


def test_tensors_as_labels(tiny_bert):
    X, y = easy_pairs(12)
    one, other = (DicePairClassifier(tiny_bert, **FAST).fit(X, y) for y in (y, torch.tensor(y)))
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.score(X, y) == other.score(X, torch.tensor(y))


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
        cls, _, _, X, y = task(hub_column, hub_labels, hub_table)
        y = y.source.with_format(kind)["rows"]
        X = X.with_format(kind) if task is questions else X.source.with_format(kind)["rows"]
        fitted = cls(tiny_bert, **FAST).fit(X, y)
        assert (fitted.predict(X).tolist(), fitted.score(X, y)) == by_lists(task)

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


@pytest.fixture(scope="module")
def among_sklearn_by_lists(tiny_bert):
    """Return the scores of folds, and the probabilities of the last rows, on the lists of a task.

    The texts may have numbers for labels.
    """

    @cache
    def get(task, has_numbers):
        cls, X, y, _, numbers = task(*CONTAINERS["datasets" if has_numbers else "polars"])
        y = list(numbers) if has_numbers else y
        scores = cross_val_score(cls(tiny_bert, **FAST), X, y, cv=2, error_score="raise")
        train, test, y_train, _ = train_test_split(X, y, shuffle=False)
        return scores, cls(tiny_bert, **FAST).fit(train, y_train).predict_proba(test)

    return get


@every_container
@pytest.mark.parametrize("task", [texts, pairs])
def test_scikit_learn_takes_rows(task, container, tiny_bert, among_sklearn_by_lists):
    cls, _, y, X_in, y_in = task(*CONTAINERS[container])
    if container == "array" and task is texts:
        pytest.skip("scikit-learn asks for a length, which __array__ alone is not")
    if task is pairs and container in ("chunked", "datasets"):
        pytest.skip("scikit-learn takes no rows from a RecordBatch or a Dataset")
    # scikit-learn takes the numbers of a column and loses their names.
    scores, proba = among_sklearn_by_lists(task, has_numbers=container == "datasets")
    if container == "array":
        y_in = y
    estimator = cls(tiny_bert, **FAST)
    options = {"cv": 2, "error_score": "raise"}
    np.testing.assert_array_equal(cross_val_score(estimator, X_in, y_in, **options), scores)
    grid = GridSearchCV(estimator, {"lr": ["auto"]}, **options, refit=False).fit(X_in, y_in)
    assert grid.best_score_ == scores.mean()
    train, test, y_train, _ = train_test_split(X_in, y_in, random_state=0, shuffle=False)
    fitted = make_pipeline(FunctionTransformer(), estimator).fit(train, y_train)
    np.testing.assert_array_equal(fitted.predict_proba(test), proba)


@needs_datasets
def test_scikit_learn_loses_the_names_of_tags(tiny_bert):
    _, _, _, X, y = words(*CONTAINERS["datasets"])
    with pytest.raises(ValueError, match="with the names of its ClassLabel"):
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
