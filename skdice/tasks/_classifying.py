"""Classifying: a text, or a pair of texts, gets a label or several labels."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.metrics import accuracy_score, f1_score

from .._inputs import check_pairs, check_texts, list_rows, list_some
from .._parameters import check_number, not_allowed
from ..exceptions import TruncationWarning, warn
from ..losses import check_loss_classes
from ..metrics import RowCounts, count_rows
from ..text import EncodedDataset, Similarities, TextReader, encode_rows
from ._goal import F1, Goal, tune_thresholds
from ._rows import ClassLabels, Rows
from ._targets import check_indicator, check_known_columns, check_labels, is_indicator
from ._task import (
    SOFTMAX,
    CardTexts,
    HeadSpec,
    LabelFacts,
    Logits,
    TaskInfo,
    TeachableTask,
    TrainingSet,
    positives_first,
)

# Rows without labels are not learned as classes that are less probable.
_UNLIKELY = 0.03


@dataclass(frozen=True, eq=False, kw_only=True)
class Classifying(TeachableTask):
    """The base of the classifiers' tasks."""

    truncation: str = "longest_first"  # or "second", "error"
    pos_label: Any = None  # the positive one of two classes; None is the larger label
    # A probability, of the positive one of two classes or of each label, until classes are known.
    threshold: float | None = None
    # Two classes: the log-odds of classes[1] above which it is predicted. Several classes,
    # (n_classes,): is subtracted from the logits. Several labels: the logits above which they are
    # predicted.
    cut: Any = 0.0
    classes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))
    is_multilabel: bool = False

    def read_y(self, y: Any, rows: Sequence[Any]) -> ClassLabels:
        return ClassLabels(check_labels(y, len(rows)), None)

    def facts(self, rows: Rows) -> LabelFacts:
        if rows.y.names is not None:
            return LabelFacts(classes=rows.y.names)
        classes = np.unique(rows.y.values)
        if len(classes) != 2:
            return LabelFacts(classes=classes)
        positive = classes[1] if self.pos_label is None else self.pos_label
        share = float(np.average(rows.y.values == positive, weights=rows.weight))
        return LabelFacts(classes=classes, positive_share=share)

    def check_learnable(self, rows: Rows, facts: LabelFacts, loss: Any) -> None:
        labels, names = rows.y.values, rows.y.names
        if names is not None:
            if self.pos_label is not None:
                allowed = "None with a multi-label y, where every label is looked for"
                raise not_allowed(self.owner, "pos_label", allowed, self.pos_label)
            if not labels.any():
                raise ValueError(
                    f"{self.owner} needs a row with a label; got {len(labels)} rows and no 1 in y."
                )
            check_loss_classes(loss, len(names), is_multilabel=True)
            return
        classes = np.asarray(facts.classes).tolist()
        if len(classes) < 2:
            raise ValueError(
                f"{self.owner} needs at least two classes in y; got one class, {classes[0]!r}."
            )
        check_loss_classes(loss, len(classes))
        several = f"with more than two classes; y has {list_some(classes)}"
        is_asked = self.threshold is not None and not len(self.classes)
        if len(classes) > 2 and is_asked:
            raise not_allowed(self.owner, "threshold", f"'auto' or 'cv' {several}", self.threshold)
        if self.pos_label is None:
            return
        if len(classes) > 2:
            raise not_allowed(self.owner, "pos_label", f"None {several}", self.pos_label)
        if self.pos_label not in classes:
            allowed = f"a label of y: {list_some(classes)}"
            raise not_allowed(self.owner, "pos_label", allowed, self.pos_label)

    def learn(self, rows: Rows, facts: LabelFacts, reader: TextReader) -> Self:
        is_multilabel = rows.y.names is not None
        task = replace(self, classes=np.asarray(facts.classes), is_multilabel=is_multilabel)
        assert self.threshold is not None
        log_odds = float(logit(self.threshold))
        if not task.is_binary:
            return replace(task, cut=np.full(len(task.classes), log_odds))
        return replace(task, cut=log_odds if task.positive else -log_odds)

    def encode(
        self,
        rows: Sequence[tuple[str, ...]],
        reader: TextReader,
        target: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        number: np.ndarray | None = None,
    ) -> EncodedDataset:
        """Return rows as windows of pieces, each an item; a warning names those that are cut."""
        dataset, cut = self.windows(rows, reader, number)
        if len(cut):
            n_rows = len(rows)
            if number is not None:  # Rows with labels are there twice beside those without.
                n_rows, cut = len(np.unique(number)), np.unique(number[cut])
            warn(
                f"{len(cut)} of {n_rows} {self.info.row}s are longer than max_length="
                f"{reader.max_length} pieces and were cut (truncation={self.truncation!r}): "
                f"{list_rows(cut.tolist())}.",
                TruncationWarning,
            )
        return replace(dataset, target=target, weight=weight, offset=self.offset(rows))

    def offset(self, rows: Sequence[Any]) -> np.ndarray | None:
        """Return what is added to the logits of a network, if anything is."""
        return None

    def windows(
        self,
        rows: Sequence[tuple[str, ...]],
        reader: TextReader,
        number: np.ndarray | None = None,
    ) -> tuple[EncodedDataset, np.ndarray]:
        """Return rows as windows of pieces, and which rows are cut."""
        return encode_rows(rows, self.info.n_texts, reader, self.truncation, number)

    def targets(self, rows: Rows) -> np.ndarray:
        """Return the class index of each row; of several labels, 0 and 1 in a column of each."""
        labels = rows.y.values
        target = labels if self.is_multilabel else np.searchsorted(self.classes, labels)
        indices: np.ndarray = target.astype(np.int64)
        return indices

    def training_set(self, rows: Rows, reader: TextReader, sampled: bool) -> TrainingSet:
        target = self.targets(rows)
        dataset = self.encode(rows.X, reader, target, rows.weight, rows.number)
        weight, shift = dataset.text_weight, dataset.offset
        if self.is_multilabel:
            counts = np.stack([weight @ (1 - target), weight @ target], axis=1)
            group = positives_first(dataset, np.any(target, axis=1))
        else:
            counts = np.bincount(target, weight, minlength=len(self.classes))
            by_frequency = np.argsort(np.bincount(target), kind="stable")
            group = np.argsort(by_frequency)[target]  # The rank of the class of each text.
        background = 1 - self.positive if self.is_binary else None
        return TrainingSet(
            dataset, self.class_names, counts, background, self.is_binary, group, shift=shift
        )

    @property
    def class_names(self) -> list[Any]:
        return list(self.classes.tolist())

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, of which a row has one."""
        return len(self.classes) == 2 and not self.is_multilabel

    @property
    def positive(self) -> int:
        """The index of the positive one of two classes."""
        return 1 if self.pos_label is None else self.class_names.index(self.pos_label)

    @property
    def head(self) -> HeadSpec:
        kind = "multi" if self.is_multilabel else "single"
        return HeadSpec(
            suffix="ForSequenceClassification",
            n_outputs=len(self.classes),
            classes=self.class_names,
            problem_type=f"{kind}_label_classification",
        )

    @abstractmethod
    def metric(self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: Any = None) -> float:
        """Return the metric of ``score``."""

    def decision_values(self, logits: np.ndarray) -> np.ndarray:
        """Return the log-odds of the second one of two classes, or the logits of all classes."""
        return logits[:, 1] - logits[:, 0] if self.is_binary else logits

    def labels_of(self, values: np.ndarray, cut: Any) -> np.ndarray:
        """Return the labels, or the 0/1 matrix, that the values of a decision mean."""
        is_above: np.ndarray = (values > cut).astype(np.int64)
        if self.is_multilabel:
            return is_above
        number = is_above if values.ndim == 1 else (values - cut).argmax(axis=1)
        labels: np.ndarray = self.classes[number]
        return labels

    def decide(self, logits: np.ndarray) -> np.ndarray:
        """Return labels, or a 0/1 matrix, from logits of shape (n_rows, n_classes)."""
        return self.labels_of(self.decision_values(logits), self.cut)

    def row_logits(self, rows: Sequence[Any], reader: TextReader, logits: Logits) -> np.ndarray:
        """Return the float64 logits of rows, of shape (n_rows, n_classes)."""
        return logits(self.encode(rows, reader)).astype(np.float64)

    def known(self, labels: ClassLabels) -> np.ndarray:
        """Return labels to compare predictions with; they must be of the kind of the fit."""
        names = labels.names
        if len(labels.values) and (names is not None) != self.is_multilabel:
            wanted, got = "a label per row", "a 0/1 matrix"
            if self.is_multilabel:
                wanted, got = f"a 0/1 matrix of {len(self.classes)} columns", wanted
            raise ValueError(f"y must be {wanted}, as in the fit; got {got}.")
        if names is not None:
            check_known_columns(names.tolist(), self.class_names)
            return labels.values
        is_str = isinstance(self.class_names[0], str)
        for i, label in enumerate(labels.values.tolist()):
            if isinstance(label, str) != is_str:
                known = f"labels such as {list_some(self.class_names)}"
                raise ValueError(
                    f"y must have {known}, as in the fit; that of row {i} is {label!r}."
                )
        return labels.values

    def validator(self, rows: Rows, reader: TextReader) -> Callable[[Logits], float]:
        dataset, labels = self.encode(rows.X, reader, number=rows.number), self.known(rows.y)

        def validate(logits: Logits) -> float:
            predicted = self.decide(logits(dataset).astype(np.float64))
            return self.metric(labels, predicted, rows.weight)

        return validate

    def scores(self, rows: Sequence[Any], reader: TextReader, logits: Logits) -> list[np.ndarray]:
        return list(self.row_logits(rows, reader, logits))

    def tune(self, rows: Rows, scores: Sequence[np.ndarray], goal: Goal = F1) -> Self:
        labels = self.known(rows.y)
        weight = None if rows.weight is None else rows.weight.astype(np.float64)
        decision = self.decision_values(np.stack(scores))
        if goal.has_floor and decision.ndim == 2 and not self.is_multilabel:
            raise ValueError(
                f"min_precision and min_recall need two classes, of which one is looked for, or "
                f"several labels; this classifier has {len(self.classes)} classes."
            )

        def values(cut: Any) -> np.ndarray:
            """Return the value of each label, or of the positive class."""
            is_predicted = self.labels_of(decision, cut)
            is_actual = labels
            if not self.is_multilabel:
                positive = self.classes[self.positive]
                is_predicted, is_actual = is_predicted == positive, is_actual == positive
            cells = np.stack([is_actual & is_predicted, is_predicted, is_actual])
            if weight is not None:
                cells = cells * (weight[:, None] if self.is_multilabel else weight)
            return goal.value(*cells.sum(axis=1))

        def score(cut: Any) -> float:
            if goal.has_floor:
                return float(values(cut).mean())
            predicted = self.labels_of(decision, cut)
            if goal.metric is not None:
                return float(goal.metric(predicted))
            return self.metric(labels, predicted, weight)

        cut = tune_thresholds(decision, score, is_multilabel=self.is_multilabel)
        if goal.has_floor:
            goal.warn_if_missed(float(values(cut).min()))
        return replace(self, cut=cut)

    def label(
        self, rows: Sequence[Any], reader: TextReader, logits: Logits
    ) -> list[tuple[ClassLabels, np.ndarray]]:
        found = self.row_logits(rows, reader, logits)
        p = expit(found) if self.is_multilabel else softmax(found, axis=1)
        predicted = ClassLabels((found > 0).astype(np.int64), self.classes)
        return self.taught(self.class_names, predicted, p)

    def taught(
        self, classes: list[Any], predicted: ClassLabels, p: np.ndarray
    ) -> list[tuple[ClassLabels, np.ndarray]]:
        columns = [classes.index(name) for name in self.class_names]
        p = p[:, columns]
        if self.is_multilabel:
            labels = predicted.values[:, columns]
            sure = np.where(labels == 1, p, 1 - p).min(axis=1)
            return [(ClassLabels(labels, self.classes), sure)]
        # The likeliest class alone would make a rare class rarer than it is.
        p[p < _UNLIKELY] = 0
        names = (np.repeat(self.classes[[c]], len(p)) for c in range(len(self.classes)))
        return [(ClassLabels(name, None), of_class) for name, of_class in zip(names, p.T)]

    def count_rows(self, measure: str, y_true: Any, y_pred: Any) -> RowCounts:
        labels = self.known(self.read_y(y_true, y_pred))
        pos_label = self.classes[self.positive] if len(self.classes) == 2 else None
        return count_rows(measure, labels, np.asarray(y_pred), pos_label)

    @property
    def fitted_threshold(self) -> Any:
        """The decision as probabilities, see ``threshold_`` of the estimators."""
        if self.is_binary:
            p = float(expit(self.cut if self.positive else -self.cut))
            return float(f"{p:.15g}")  # The probability that was given, not one next to it.
        return expit(self.cut) if self.is_multilabel else softmax(self.cut)

    def with_threshold(self, threshold: Any) -> Self:
        """Return the task with another decision, as probabilities."""
        given = np.asarray(threshold, dtype=object)
        n, kind = len(self.classes), "labels" if self.is_multilabel else "classes"
        if given.ndim and (self.is_binary or given.shape != (n,)):
            each = "" if self.is_binary else f", or an array of {n}, one for each of the {kind}"
            got = f"{len(given)} of them" if given.ndim == 1 else f"an array of shape {given.shape}"
            raise ValueError(
                f"The 'threshold_' of this {self.owner} must be one float in the range [0, 1]"
                f"{each}. Got {got} instead."
            )
        # Of several classes, all whose threshold is 0 would be infinitely more probable than it.
        closed = "both" if self.is_binary or self.is_multilabel else "right"
        for value in given.ravel().tolist():
            check_number(self.owner, "threshold_", value, low=0, high=1, closed=closed)
        with np.errstate(divide="ignore"):
            if self.is_binary:
                log_odds = float(logit(threshold))
                return replace(self, cut=log_odds if self.positive else -log_odds)
            values = np.broadcast_to(np.asarray(threshold, np.float64), self.classes.shape)
            return replace(self, cut=logit(values) if self.is_multilabel else np.log(values))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifyingTexts(Classifying):
    """A text gets a label, or several."""

    info = TaskInfo(
        name="texts",
        row="text",
        columns=("text",),
        decision={"threshold_": "fitted_threshold"},
        choosable=("threshold",),
        card=CardTexts(
            "text-classification",
            "classifies texts",
            'model.predict(["You have won a prize! Call now."])',
            SOFTMAX,
        ),
    )

    reads_mean: bool = False  # whether the head reads the mean state of a text

    def read_X(self, X: Any) -> list[tuple[str]]:
        return [(text,) for text in check_texts(X)]

    def read_y(self, y: Any, rows: Sequence[Any]) -> ClassLabels:
        if is_indicator(y):
            return ClassLabels(*check_indicator(y, len(rows)))
        return super().read_y(y, rows)

    @property
    def head(self) -> HeadSpec:
        head = super().head
        return replace(head, reads_mean=True, suffix=None) if self.reads_mean else head

    @property
    def metric_name(self) -> str:
        return "micro F1" if self.is_multilabel else "accuracy"

    def metric(self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: Any = None) -> float:
        if y_pred.ndim == 1:
            return float(accuracy_score(y_true, y_pred, sample_weight=sample_weight))
        options = {"average": "micro", "zero_division": 0.0}
        return float(f1_score(y_true, y_pred, sample_weight=sample_weight, **options))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifyingPairs(Classifying):
    """A pair of texts gets a label."""

    info = TaskInfo(
        name="pairs",
        row="pair",
        columns=("first text", "second text"),
        decision={"threshold_": "fitted_threshold"},
        n_texts=2,
        choosable=("threshold",),
        card=CardTexts(
            "text-classification",
            "classifies pairs of texts",
            'model.predict([("Is it cold?", "Is it warm?")])',
            SOFTMAX,
        ),
    )

    # What the texts share in characters, words and numbers, which gives a part of the logits.
    similarities: Similarities | None = None

    def read_X(self, X: Any) -> list[tuple[str, str]]:
        return check_pairs(X)

    def offset(self, rows: Sequence[Any]) -> np.ndarray | None:
        return None if self.similarities is None else self.similarities.offset(rows)

    @property
    def metric_name(self) -> str:
        return "F1" if self.is_binary else "macro F1"

    def metric(self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: Any = None) -> float:
        labels = [self.classes[self.positive]] if len(self.classes) == 2 else None
        options = {"labels": labels, "average": "macro", "zero_division": 0.0}
        return float(f1_score(y_true, y_pred, sample_weight=sample_weight, **options))
