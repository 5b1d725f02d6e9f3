import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger
from skdice.nn import TextNet

PARAMETERS = {"lr": 1e-3, "head_lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
X = [["john", "lives", "in", "rome"], ["mary", "met", "peter", "today"]] * 8
Y = [["O", "O", "O", "B-X"], ["O", "O", "O", "O"]] * 8
UNLABELED = [["anna", "lives", "in", "oslo"], [], ["peter", "works", "near", "paris", "today"]]


class Teacher:
    """A teacher that says what it is told to, by default of other classes or of no use."""

    def __init__(self, classes, predict=None, predict_proba=None):
        self.classes_ = classes
        self.predict = predict or (lambda X: [["O"] * len(row) for row in X])
        halves = lambda X: [np.full((len(row), len(classes)), 0.5) for row in X]  # noqa: E731
        self.predict_proba = predict_proba or halves


def says(classes, predicted=None, p=None):
    """Return a teacher that says so of any rows."""
    return Teacher(classes, predicted and (lambda X: predicted), p is not None and (lambda X: p))


def of(*lengths, p=0.5):
    """Return two probabilities p for each word of sentences."""
    return [np.full((n, 2), p) for n in lengths]


TAGS = [["O"] * len(row) for row in UNLABELED]


@pytest.fixture
def tagger(quick_bert):
    return DiceTokenTagger(quick_bert, max_epochs=3, loss="dice", **PARAMETERS)


@pytest.fixture
def classifier(quick_bert):
    return DiceTextClassifier(quick_bert, max_epochs=1, **PARAMETERS)


def weights(estimator):
    return np.concatenate([p.detach().numpy().ravel() for p in estimator.net_.module_.parameters()])


def test_a_class_that_is_only_in_rows_to_validate_on(classifier):
    texts, groups = [" ".join(row) for row in X], [i // 4 for i in range(len(X))]
    y = ["a", "b"] * 6 + ["c"] * 4
    for seed in range(4):  # One of them holds out the last group.
        classifier.set_params(random_state=seed, validation_fraction=0.25)
        classifier.fit(texts, y, groups=groups, unlabeled=["mary lives"])
        assert classifier.classes_.tolist() == ["a", "b", "c"]


def test_three_networks_label_what_one_learns_from(tagger, seen):
    weight = np.linspace(1, 2, len(X), dtype=np.float32)
    tagger.fit(X, Y, weight, unlabeled=UNLABELED)
    taught, labelled = seen.pop(), seen.pop()
    assert not seen
    assert len(labelled) == len(X)
    assert not tagger.net_.module_.members
    teacher = clone(tagger).set_params(n_members=3).fit(X, Y, weight)
    # A sentence without words says nothing.
    assert [*X, *X, UNLABELED[0], UNLABELED[2]] == taught.X
    assert [*Y, *Y, *teacher.predict(UNLABELED)[[0, 2]]] == taught.y
    sure = [p.max(1).min() for p in teacher.predict_proba([UNLABELED[0], UNLABELED[2]])]
    expected = [*weight, *weight, *np.multiply(sure, 1.5)]
    np.testing.assert_allclose(taught.weight, expected, rtol=1e-5)


def test_a_sentence_weighs_as_its_least_sure_tag(tagger, seen):
    """The tag is what the teacher says, which need not be its most probable one."""
    p = [np.array([[0.3, 0.7]] * len(row)) for row in UNLABELED]
    teacher = says(["B-X", "O"], [["B-X"] * 4, [], ["O"] * 5], p)
    tagger.fit(X, Y, unlabeled=UNLABELED, teacher=teacher)
    np.testing.assert_allclose(seen[-1].weight[-2:], [0.3, 0.7])


def test_a_fit_can_be_repeated(tagger):
    """With the same three networks as its teacher as well."""
    first = clone(tagger).fit(X, Y, unlabeled=UNLABELED)
    second = clone(tagger).fit(X, Y, unlabeled=np.array([*UNLABELED, None], dtype=object)[:3])
    assert np.array_equal(weights(first), weights(second))
    assert not np.array_equal(weights(first), weights(clone(tagger).fit(X, Y)))
    assert first.history_["n_texts"].tolist() == [2 * len(X) + 2] * 3
    teacher = clone(tagger).set_params(n_members=3).fit(X, Y)
    taught = clone(tagger).fit(X, Y, unlabeled=UNLABELED, teacher=teacher)
    np.testing.assert_allclose(weights(taught), weights(first), atol=1e-6)


def test_rows_to_validate_on_are_taught_by_nobody(tagger, seen):
    tagger.set_params(validation_fraction=0.25, patience=1, background_bias="auto")
    tagger.fit(X, Y, groups=[i // 4 for i in range(len(X))], unlabeled=UNLABELED)
    labelled, taught = seen
    assert len(labelled) == 12
    first = taught.number[:12].tolist()
    assert taught.number.tolist() == [*first, *first, 16, 18]
    assert [X[i] for i in first] == labelled.X
    assert "valid_score" in tagger.history_


def test_decisions_out_of_fold_know_rows_without_labels(tagger, seen):
    tagger.set_params(background_bias="cv").fit(X, Y, unlabeled=UNLABELED)
    # The teacher and the fit, of all rows and of those of each of five folds.
    sizes = [len(rows) for rows in seen]
    assert sizes == [16, 34, *[n for k in (12, 13, 13, 13, 13) for n in (k, 2 * k + 2)]]


TEXTS = ["john met mary", "rome is old", "peter saw anna", "paris is large"] * 4
LABELS = ["person", "city", "person", "city"] * 4


def test_a_rare_class_stays_as_frequent_as_it_is_probable(quick_bert, seen):
    """Rows that are never most probably of it count for it as well."""
    labels = (["person"] + ["city"] * 7) * 2
    classifier = DiceTextClassifier(quick_bert, max_epochs=1, **PARAMETERS)
    classifier.fit(TEXTS, labels, unlabeled=TEXTS)
    teacher = clone(classifier).set_params(n_members=3).fit(TEXTS, labels)
    taught = seen[1].y.values[2 * len(TEXTS) :], seen[1].weight[2 * len(TEXTS) :]
    share = taught[1][taught[0] == "person"].sum() / taught[1].sum()
    assert share == pytest.approx(teacher.predict_proba(TEXTS)[:, 1].mean(), rel=1e-4)
    assert share > 0.03


def test_pairs_of_a_table(quick_bert, seen):
    pairs = pd.DataFrame({"a": TEXTS, "b": TEXTS[::-1]})
    classifier = DicePairClassifier(quick_bert, max_epochs=1, **PARAMETERS)
    classifier.fit(pairs, LABELS, unlabeled=pairs[:3])
    teacher = Teacher(["city", "person"])
    teacher.predict = None  # Other columns are refused before it predicts.
    assert len(seen[1]) == 2 * len(pairs) + 2 * 3
    expected = classifier.predict_proba(pairs)
    others = pairs.rename(columns={"a": "c"})
    unlabeled = {"unlabeled": others}
    for wrong in (unlabeled, unlabeled | {"teacher": teacher}, {"validation": (others, LABELS)}):
        with pytest.raises(ValueError, match="columns of X must be those of the fit"):
            classifier.fit(pairs, LABELS, **wrong)
        np.testing.assert_array_equal(classifier.predict_proba(pairs), expected)


def test_no_fold_cuts_rows_without_labels(tagger, seen):
    """scikit-learn cuts a list of as many rows as X has, but no function."""
    n = len(X)
    more = [UNLABELED[0]] * n
    cross_validate(tagger, X, Y, cv=2, params={"unlabeled": lambda: more})
    assert [len(rows) for rows in seen] == [8, 16 + n] * 2
    GridSearchCV(tagger, {"lr": [1e-3]}, cv=2).fit(X, Y, unlabeled=lambda: more)
    assert [len(rows) for rows in seen[4:]] == [8, 16 + n, 8, 16 + n, 16, 32 + n]


def test_progress_and_card_tell_of_teachers(tagger, capsys, tmp_path):
    tagger.set_params(verbose=1).fit(X, Y, unlabeled=UNLABELED)
    assert "teacher 3 of 3" in "".join(capsys.readouterr())
    tagger.save_pretrained(tmp_path)
    assert "16, and 3 without labels" in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert DiceTokenTagger.from_pretrained(tmp_path).score(X, Y) == tagger.score(X, Y)


class TestTeacher:
    """A fitted estimator labels the rows in place of three networks."""

    def test_one_of_scikit_learn_and_folds_without_a_class(self, quick_bert, seen):
        """Columns go by the names of the classes; a fold learns the classes that it has."""
        labels = ["rare", *["person", "city"] * 7, "city"]
        teacher = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, labels)
        texts = ["anna met peter", "oslo is new"]
        classifier = DiceTextClassifier(quick_bert, max_epochs=1, threshold="cv", **PARAMETERS)
        backwards = Teacher(
            teacher.classes_[::-1], teacher.predict, lambda X: teacher.predict_proba(X)[:, ::-1]
        )
        classifier.fit(TEXTS, labels, unlabeled=texts, teacher=backwards)
        p = teacher.predict_proba(texts)
        taught, *folds = seen
        assert taught.y.values[-6:].tolist() == np.repeat(teacher.classes_, 2).tolist()
        np.testing.assert_allclose(taught.weight[-6:], p.T.ravel(), rtol=1e-6)
        assert {len(set(rows.y.values)) for rows in folds} == {2, 3}

    @pytest.mark.parametrize("kind", [OneVsRestClassifier, MultiOutputClassifier])
    def test_several_labels(self, classifier, seen, kind):
        """The second one's predict_proba is an array of two columns for each label."""
        y, more = np.array([[1, 0], [0, 1]] * 8), ["anna met peter"]
        teacher = make_pipeline(TfidfVectorizer(), kind(LogisticRegression())).fit(TEXTS, y)
        classifier.fit(TEXTS, y, unlabeled=more, teacher=teacher)
        [taught], p = seen, np.array(teacher.predict_proba(more))[..., -2:].reshape(-1)
        assert taught.y.values[-1].tolist() == teacher.predict(more)[0].tolist()
        assert taught.weight[-1] == pytest.approx(np.maximum(p, 1 - p).min())
        named = pd.DataFrame(y, columns=["a", "b"])
        with pytest.raises(ValueError, match="classes of y, 'a', 'b'; it has 0, 1"):
            classifier.fit(TEXTS, named, unlabeled=more, teacher=teacher)

    @pytest.mark.parametrize("params, error, message", [
        ({"unlabeled": []}, ValueError, "unlabeled must have a row; got none"),
        ({"unlabeled": "john"}, TypeError, "unlabeled is read as X is. X must be a list"),
        ({"unlabeled": None, "teacher": Teacher(["O"])}, ValueError,
         "teacher labels the rows of unlabeled, which must not be None"),
        ({"teacher": "a name"}, TypeError, "must be a fitted estimator .* has no classes_"),
        ({"teacher": LogisticRegression()}, TypeError, "has no classes_"),
        ({"teacher": Teacher(["B-X"])}, ValueError, "classes of y, 'B-X', 'O'; it has 'B-X'"),
        *(({"teacher": says(["B-X", "O"], *what)}, ValueError, message) for what, message in [
            (([["O"]],), "3"),
            ((None, np.ones((3, 3))), "shape .4, 2. in"),
            (([*TAGS[:2], ["B-Y"] * 5],), "row 2 .*'B-Y'"),
            ((None, of(4, 0, 4)), "5, 2. in row 2"),
            ((None, of(4, 1, 5)), "0, 2. in row 1"),
            ((None, of(4, 0, 5, p=0.7)), "row 0, which add up to 1; got"),
        ]),
    ])  # fmt: skip
    def test_others_are_refused(self, tagger, params, error, message):
        with pytest.raises(error, match=message):
            tagger.fit(X, Y, **{"unlabeled": UNLABELED, **params})
        assert not hasattr(tagger, "net_")

    @pytest.mark.parametrize("p, message", [
        ([[np.nan, np.nan]], r"numbers in \[0, 1\] .* row 1, .*; got \[nan"),
        (np.log([[0.9, 0.1]]), r"numbers in \[0, 1\] .* row 1, .*; got array\(\[-0.1"),
        ([[45.0, 5.0]], r"numbers in \[0, 1\] .* row 1, .*; got \[45"),
        ([[0.9, 0.9]], r"row 1, which add up to 1; got \[0.9, 0.9\]"),
        ([[0.5]], r"shape \(2,\) in row 1, .*; got \[0.5\]"),
        ([["sure", 0]], r"shape \(2,\) in row 1, .*; got \['sure', 0"),
        ([], "2 rows, as unlabeled has; got 1 rows"),
    ])  # fmt: skip
    def test_probabilities_are_checked(self, classifier, p, message):
        teacher = says(["city", "person"], ["city"] * 2, [[0.25, 0.75], *p])
        with pytest.raises(ValueError, match=f"predict_proba of teacher must have .*{message}"):
            classifier.fit(TEXTS, LABELS, unlabeled=TEXTS[:2], teacher=teacher)

    def test_a_network_reads_each_row_once(self, tagger, classifier, monkeypatch):
        calls, predict = [], TextNet.predict_logits
        for student, rows, more in (
            (tagger.set_params(max_epochs=1), (X, Y), UNLABELED),
            (classifier, (TEXTS, LABELS), TEXTS[:2]),
        ):
            teacher = clone(student).fit(*rows)
            with monkeypatch.context() as patch:
                count = lambda *args, **how: calls.append(1) or predict(*args, **how)  # noqa: E731
                patch.setattr(TextNet, "predict_logits", count)
                student.fit(*rows, unlabeled=more, teacher=teacher)
        assert len(calls) == 2
