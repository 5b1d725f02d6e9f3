"""Classifying: a text, or a pair of texts, gets a label or several labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import accuracy_score, f1_score

from .._inputs import check_pairs, check_texts, list_rows, list_some
from .._parameters import not_allowed
from ..exceptions import TruncationWarning, warn
from ..losses import Loss, check_loss_classes
from ..metrics import RowCounts, count_rows
from ..text import EncodedDataset, Similarities, TextReader, encode_rows
from ._decisions import BinaryThreshold, Decision, LabelThresholds, ShiftedArgmax
from ._goal import F1, Goal
from ._rows import ClassLabels, Labelled, Row, Rows, TeacherLabels
from ._targets import check_indicator, check_known_columns, check_labels, is_indicator
from ._task import HeadSpec, LabelFacts, Network, TaskInfo, TeachableTask, TrainingSet

# A row without a label is not learned as a class that is less probable than this.
_UNLIKELY = 0.03


@dataclass(frozen=True, eq=False, kw_only=True)
class Classifying(TeachableTask):
    """The base of the classifiers' tasks."""

    truncation: str = "longest_first"  # or "second", "error"
    pos_label: Any = None  # the positive one of two classes; None is the larger label
    # The parameter: the probability above which the positive class, or a label, is predicted.
    threshold: float | None = None
    # An argmax of no classes until they are known.
    decision: Decision = field(default_factory=lambda: ShiftedArgmax(np.empty(0)))

    def __post_init__(self) -> None:
        n_classes = len(self.decision.cuts) if self.positive is None else 2
        if n_classes != len(self.classes) or self.positive not in (None, 0, 1):
            raise ValueError(
                f"The decision must be between the {len(self.classes)} classes of the "
                f"{self.owner}; got {self.decision}."
            )

    def read_y(self, y: object, rows: Sequence[Any]) -> ClassLabels:
        return ClassLabels(check_labels(y, len(rows)), None)

    def facts(self, rows: Rows) -> LabelFacts:
        labels, names, share = rows.y.values, rows.y.names, None
        classes = np.unique(labels) if names is None else names
        if names is None and len(classes) == 2:
            positive = classes[1] if self.pos_label is None else self.pos_label
            share = float(np.average(labels == positive, weights=rows.weight))
        return LabelFacts(classes=classes, positive_share=share)

    def check_learnable(self, rows: Rows, facts: LabelFacts, loss: str | Loss) -> None:
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
        allowed, are_several = f"a label of y: {list_some(classes)}", len(classes) > 2
        if are_several:
            several = f"with more than two classes; y has {list_some(classes)}"
            allowed = f"None {several}"
            if self.threshold is not None and not len(self.classes):
                words = f"'auto' or 'cv' {several}"
                raise not_allowed(self.owner, "threshold", words, self.threshold)
        if self.pos_label is not None and (are_several or self.pos_label not in classes):
            raise not_allowed(self.owner, "pos_label", allowed, self.pos_label)

    def learn(self, rows: Rows, facts: LabelFacts, reader: TextReader) -> Self:
        classes = np.asarray(facts.classes)
        decision: Decision = ShiftedArgmax(np.zeros(len(classes)))
        if rows.y.names is not None:
            decision = LabelThresholds(np.zeros(len(classes)))
        elif len(classes) == 2:
            positive = 1 if self.pos_label is None else classes.tolist().index(self.pos_label)
            decision = BinaryThreshold(np.zeros(1), positive)
        if not isinstance(decision, ShiftedArgmax):
            decision = decision.with_threshold(self.threshold, self.owner)
        return replace(self, classes=classes, decision=decision)

    def encode(
        self, rows: Sequence[Row], reader: TextReader, number: np.ndarray | None = None
    ) -> EncodedDataset:
        """Return rows as windows of pieces, each an item. A warning names the rows that are cut."""
        dataset, needed = encode_rows(rows, self.info.n_texts, reader, self.truncation, number)
        if len(cut := np.flatnonzero(needed > reader.max_length)):
            n_rows = len(rows)
            if number is not None:  # A row may be there several times, with several labels.
                n_rows, cut = len(np.unique(number)), np.unique(number[cut])
            warn(
                f"{len(cut)} of {n_rows} {self.info.row}s are longer than max_length="
                f"{reader.max_length} pieces and were cut (truncation={self.truncation!r}): "
                f"{list_rows(cut.tolist())}. If the encoder reads as many, "
                f"max_length={needed.max()} would hold them all.",
                TruncationWarning,
            )
        return replace(dataset, offset=self.offset(rows))

    def offset(self, rows: Sequence[Row]) -> np.ndarray | None:
        """Return what is added to the logits of a network, or None."""
        return None

    def targets(self, rows: Rows) -> np.ndarray:
        """Return the class index of each row or, for several labels, a matrix of 0 and 1."""
        labels = rows.y.values
        target = labels if self.is_multilabel else np.searchsorted(self.classes, labels)
        return np.asarray(target, dtype=np.int64)

    def training_set(self, rows: Rows, reader: TextReader, sampled: bool) -> TrainingSet:
        target = self.targets(rows)
        dataset = self.encode(rows.X, reader, rows.number)
        dataset = replace(dataset, target=target, weight=rows.weight)
        weight = dataset.text_weight
        if self.is_multilabel:
            counts = np.stack([weight @ (1 - target), weight @ target], axis=1)
            group = dataset.positives_first(np.any(target, axis=1))
        else:
            counts = np.bincount(target, weight, minlength=len(self.classes))
            by_frequency = np.argsort(np.bincount(target), kind="stable")
            group = np.argsort(by_frequency)[target]  # The rank of the class of each text.
        positive = self.positive
        return TrainingSet(
            dataset=dataset,
            labels=self.class_names,
            counts=counts,
            background=None if positive is None else 1 - positive,
            binary=positive is not None,
            group=group,
            shift=dataset.offset,
        )

    @property
    def is_multilabel(self) -> bool:
        """Whether a row may have several labels."""
        return isinstance(self.decision, LabelThresholds)

    @property
    def positive(self) -> int | None:
        """The index of the positive one of two classes; None of others, or of several labels."""
        return self.decision.positive if isinstance(self.decision, BinaryThreshold) else None

    @property
    def head(self) -> HeadSpec:
        kind = "multi" if self.is_multilabel else "single"
        return HeadSpec(
            suffix="ForSequenceClassification",
            n_outputs=len(self.classes),
            classes=self.class_names,
            problem_type=f"{kind}_label_classification",
        )

    def metric(
        self, y_true: np.ndarray, y_pred: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Return the metric of ``score``."""
        if self.metric_name == "accuracy":
            return float(accuracy_score(y_true, y_pred, sample_weight=weight))
        labels = None if self.positive is None else [self.classes[self.positive]]
        average = "micro" if self.is_multilabel else "macro"
        options = {"labels": labels, "average": average, "zero_division": 0.0}
        return float(f1_score(y_true, y_pred, sample_weight=weight, **options))

    def decide(self, logits: np.ndarray) -> np.ndarray:
        """Return labels, or a 0/1 matrix, from logits of shape (n_rows, n_classes)."""
        return self.labels_of(self.decision.predict(self.decision.values(logits)))

    def labels_of(self, predicted: np.ndarray) -> np.ndarray:
        """Return the labels that a decision predicts, or its 0/1 matrix as it is."""
        return predicted if self.is_multilabel else self.classes[predicted]

    def row_logits(self, rows: Sequence[Row], network: Network) -> np.ndarray:
        """Return the float64 logits of rows, of shape (n_rows, n_classes)."""
        return network.logits(self.encode(rows, network.reader)).astype(np.float64)

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

    def validator(self, rows: Rows, network: Network) -> Callable[[], float]:
        dataset = self.encode(rows.X, network.reader, number=rows.number)
        labels = self.known(rows.y)

        def validate() -> float:
            predicted = self.decide(network.logits(dataset).astype(np.float64))
            return self.metric(labels, predicted, rows.weight)

        return validate

    def scores(self, rows: Sequence[Row], network: Network) -> list[np.ndarray]:
        return list(self.row_logits(rows, network))

    def tune(self, rows: Rows, scores: Sequence[np.ndarray], goal: Goal = F1) -> Self:
        labels = self.known(rows.y)
        weight = None if rows.weight is None else rows.weight.astype(np.float64)
        if goal.has_floor and isinstance(self.decision, ShiftedArgmax):
            raise ValueError(
                f"min_precision and min_recall need two classes, of which one is looked for, or "
                f"several labels; this classifier has {len(self.classes)} classes."
            )
        values = self.decision.values(np.stack(scores))

        def counts(decision: Decision) -> np.ndarray:
            """Return correct, predicted and actual rows of the positive class, or each label."""
            is_predicted, is_actual = decision.predict(values), labels
            if self.positive is not None:
                is_predicted = is_predicted == self.positive
                is_actual = is_actual == self.classes[self.positive]
            cells = np.stack([is_actual & is_predicted, is_predicted, is_actual])
            if weight is not None:
                cells = cells * (weight[:, None] if self.is_multilabel else weight)
            return np.asarray(cells.sum(axis=1))

        def score(decision: Decision) -> float:
            if goal.has_floor:
                return float(goal.value(*counts(decision)).mean())
            predicted = self.labels_of(decision.predict(values))
            if goal.metric is not None:
                return float(goal.metric(predicted))
            return self.metric(labels, predicted, weight)

        decision = self.decision.tuned(values, score)
        if goal.has_floor:
            names = self.class_names if self.positive is None else [self.class_names[self.positive]]
            total = counts(decision).reshape(3, -1)
            reached = zip(goal.value(*total).tolist(), total[2].tolist())
            goal.warn_if_missed({f"the label {n!r}": found for n, found in zip(names, reached)})
        return replace(self, decision=decision)

    def label(self, rows: Sequence[Row], network: Network) -> TeacherLabels:
        found = self.row_logits(rows, network)
        p = expit(found) if self.is_multilabel else softmax(found, axis=1)
        predicted = ClassLabels((found > 0).astype(np.int64), self.classes)
        return TeacherLabels(self.class_names, predicted, p)

    def taught(self, said: TeacherLabels) -> Labelled:
        # A class that is in the rows to validate on only is not among those of its own networks.
        known = [c for c, name in enumerate(self.class_names) if name in said.classes]
        columns = [said.classes.index(self.class_names[c]) for c in known]
        p = said.p[:, columns]
        if self.is_multilabel:
            labels = said.predicted.values[:, columns]
            sure = np.where(labels == 1, p, 1 - p).min(axis=1)
            return [(ClassLabels(labels, self.classes), sure)]
        # The likeliest class alone would make a rare class rarer than it is.
        p[p < _UNLIKELY] = 0
        names = (np.repeat(self.classes[[c]], len(p)) for c in known)
        return [(ClassLabels(name, None), of_class) for name, of_class in zip(names, p.T)]

    def count_rows(self, measure: str, y_true: object, y_pred: Any) -> RowCounts:
        labels = self.known(self.read_y(y_true, y_pred))
        pos_label = None if self.positive is None else self.classes[self.positive]
        return count_rows(measure, labels, np.asarray(y_pred), pos_label)

    def with_decision(self, attribute: str, value: Any) -> Self:
        return replace(self, decision=self.decision.with_threshold(value, self.owner))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifyingTexts(Classifying):
    """A text gets a label, or several."""

    info = TaskInfo(
        name="texts",
        row="text",
        columns=("text",),
        decision={"threshold_": "decision.threshold"},
        choosable=("threshold",),
        pipeline_tag="text-classification",
        summary="classifies texts",
        call='model.predict(["You have won a prize! Call now."])',
    )

    reads_mean: bool = False  # whether the head reads the mean state of a text

    def read_X(self, X: object) -> list[tuple[str]]:
        return [(text,) for text in check_texts(X)]

    def read_y(self, y: object, rows: Sequence[Any]) -> ClassLabels:
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


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifyingPairs(Classifying):
    """A pair of texts gets a label."""

    info = TaskInfo(
        name="pairs",
        row="pair",
        columns=("first text", "second text"),
        decision={"threshold_": "decision.threshold"},
        n_texts=2,
        choosable=("threshold",),
        pipeline_tag="text-classification",
        summary="classifies pairs of texts",
        call='model.predict([("Is it cold?", "Is it warm?")])',
    )

    # What the texts share in characters, words and numbers, which gives a part of the logits.
    similarities: Similarities | None = None

    def read_X(self, X: object) -> list[tuple[str, str]]:
        return check_pairs(X)

    def offset(self, rows: Sequence[Row]) -> np.ndarray | None:
        return None if self.similarities is None else self.similarities.offset(rows)

    @property
    def metric_name(self) -> str:
        return "macro F1" if self.positive is None else "F1"
