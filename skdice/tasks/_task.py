"""The base of the tasks, and what a fit learns from."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import torch

from .._inputs import check_sample_weight
from ..losses import Loss
from ..metrics import RowCounts, count_rows
from ..text import Draw, EncodedDataset, TextReader, capped
from ._goal import F1, Goal
from ._rows import Label, Labelled, Row, Rows, TeacherLabels

# The kinds of tasks, as the rules of "auto", the networks, the metrics and the command name them.
TaskName: TypeAlias = Literal["tagging", "query-tagging", "pairs", "texts", "questions"]
# The rows that a decision is tuned on: those held out, or the training rows, out of fold.
Tuning: TypeAlias = Literal["validation", "cv"] | None


class Network(NamedTuple):
    """A network as a task sees it."""

    reader: TextReader  # how it reads texts
    # Returns the logits of encoded texts, (n_items, n_outputs), with the weights of that moment.
    logits: Callable[[EncodedDataset], np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelFacts:
    """What is known of the labels of some rows."""

    # Sorted: tags, the labels of a classifier as an array, or the types of entities.
    classes: Sequence[Label] | np.ndarray = ()
    has_entities: bool = False  # whether the tags of a tagger are chunk tags
    n_entities: int = 0
    # Share of entities that are capitalised, in sentences with a capital letter; NaN without one.
    share_of_names: float = math.nan
    n_unanswered: int = 0  # questions without an answer
    positive_share: float | None = None  # of the positive one of two classes


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """What is known of a kind of task, before any rows are."""

    name: TaskName
    row: str  # what a row of X is called
    columns: tuple[str, ...]  # what a row of X has
    # What a model card says: the task on the hub, what it does, an example, and what scores are.
    pipeline_tag: str
    summary: str
    call: str
    scores: str = (
        "Scores and `predict_proba` are a softmax of the logits (a sigmoid for each label of a "
        "multi-label model), whatever the loss was."
    )
    # The fitted attributes that turn logits into predictions, and where the task has them.
    decision: Mapping[str, str]
    n_texts: int = 1  # in a window
    group_column: int | None = None  # of X, whose equal values stay together in a split
    choosable: tuple[str, ...] = ()  # fields of the task that a rule chooses where they are None
    adjustable: tuple[str, ...] = ()  # parameters that may be set on a fitted estimator

    @property
    def is_classifier(self) -> bool:
        """Whether a row gets a label, or several."""
        return self.name in ("texts", "pairs")

    @property
    def is_tagger(self) -> bool:
        """Whether each word of a row gets a tag."""
        return self.name in ("tagging", "query-tagging")


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadSpec:
    """What a network needs beside the encoder."""

    suffix: str | None  # the end of the names of transformers' classes that have the head
    n_outputs: int  # logits of an item
    classes: Sequence[Label] | None = None  # what the outputs stand for, if they are classes
    # Which tag may follow which, if the tags of a sentence are scored together.
    transitions: tuple[np.ndarray, ...] | None = None
    # More arguments of the network of the task.
    module: Mapping[str, Any] = field(default_factory=dict)
    reads_mean: bool = False  # whether it reads the mean state of a text
    windows_per_text: int = 1  # of a text that fits into one window
    problem_type: str | None = None  # as config.json has it

    def continues(self, heads: Sequence[str], n_labels: int) -> bool:
        """Tell whether a checkpoint with these heads and labels brings this one, trained."""
        if self.classes and len(self.classes) != n_labels:
            return False
        if self.reads_mean:
            return "MeanModule" in heads
        return self.suffix is not None and any(name.endswith(self.suffix) for name in heads)

    @property
    def model_config(self) -> dict[str, Any]:
        """Entries of ``config.json`` that say what the outputs mean."""
        if self.classes is None:
            return {}
        names = [str(label) for label in self.classes]
        config: dict[str, Any] = {
            "id2label": {str(i): name for i, name in enumerate(names)},
            "label2id": {name: i for i, name in enumerate(names)},
        }
        return config if self.problem_type is None else config | {"problem_type": self.problem_type}


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSet:
    """The encoded rows of a fit, and counts of them."""

    dataset: EncodedDataset  # with targets and weights
    labels: Sequence[Label]  # the classes of an item
    # Training items of each class, (n_classes,). For several labels, the rows without and with
    # each label, (n_classes, 2).
    counts: np.ndarray
    background: int | None  # the class that set losses leave out
    binary: bool  # whether one class is searched among the rest
    # The group of each text: 0 with positives, 1 without. For a classifier of several classes, the
    # rank of its class by frequency, 0 for the rarest.
    group: np.ndarray | None = None
    windows_per_text: int = 1  # of a text that fits into one window
    ratio: float | None = None  # what was taken for negative_ratio; None if an epoch has all texts
    draw: Draw | None = None  # the texts that an epoch draws
    # Is added to the logits in training: similarities of pairs and the correction of the draw,
    # (n_outputs,) or (n_items, n_outputs).
    shift: np.ndarray | None = None
    # The weight of each target that makes up for the draw, besides the weight of its text. It has
    # the shape of the targets, with a third column for the matches of queries.
    weight: np.ndarray | None = None

    @property
    def n_texts(self) -> np.ndarray | None:
        """Number of texts of each group; texts without a window are in no epoch."""
        if self.group is None:
            return None
        with_window = np.unique(self.dataset.text)
        return np.bincount(self.group[with_window], minlength=int(self.group.max(initial=1)) + 1)

    def count_positives(self, average: str) -> float:
        """Count the positive items in the set of a set loss, or in the smallest of its sets.

        With the ``average`` "micro" there is one set, otherwise one for each class. The number is
        infinite if every item is positive, because then no step has few.
        """
        counts, background = self.counts, self.background
        if counts.ndim == 1 and background is None and average == "micro":
            return math.inf
        if counts.ndim == 2:
            counts = counts[:, 1]
        elif background is not None:
            counts = np.delete(counts, background)
        counts = counts[counts > 0]
        is_one_set = average == "micro" or not len(counts)
        return float(counts.sum() if is_one_set else counts.min())

    def loss_of_constant(self, loss: Any, n_outputs: int) -> float:
        """Return the loss if every item gets the log shares of the classes as its logits.

        Cross-entropy is not lower for any other logits that are the same for all items. The result
        is infinite for set losses, whose value is not a mean, and for items with several labels.
        """
        dataset, target = self.dataset, self.dataset.target
        if target is None or target.ndim > 1 or not loss.separable:
            return math.inf
        share = np.ones(dataset.n_texts) if self.draw is None else self.draw.share
        weight = np.repeat(dataset.text_weight * share, np.diff(dataset.item_offsets))
        if self.weight is not None:
            weight = weight * self.weight
        of_class = np.bincount(target, weight, n_outputs)
        weighted = of_class * (1.0 if loss.class_weight is None else loss.class_weight)
        logits = np.log(np.maximum(weighted / weighted.sum(), np.finfo(np.float64).tiny))
        same = torch.from_numpy(logits).expand(n_outputs, -1)
        sums = loss.sums(same, torch.arange(n_outputs), torch.from_numpy(of_class))
        return float(loss.value(sums))

    def drawn(self, ratio: float | None) -> "TrainingSet":
        """Return the training set with a draw, or as it is if the ratio leaves no text out."""
        n_texts, group = self.n_texts, self.group
        if ratio is None or n_texts is None or (capped(n_texts, ratio) == n_texts).all():
            return self
        assert group is not None
        draw = Draw(group, n_texts, capped(n_texts, ratio))
        return replace(self, ratio=float(ratio), draw=draw)


def correct_draw(
    target: np.ndarray, n_classes: int, weight: np.ndarray, share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shift and the weights with which a network learns the probabilities of all rows.

    The shift is added to the logits, of shape (n_outputs,) or (n_items, n_outputs); the weights
    have the shape of the targets.

    Targets are class indices of shape (n_items,) for one softmax over ``n_classes``, or 0 and 1 of
    shape (n_items, n_columns). Each item has a weight, and the ``share`` of its group of texts that
    an epoch draws.

    The shift is the change of the log-odds of each class by the draw (King & Zeng 2001, section
    4.1), 0 for classes without items. A class may occur in texts of several groups, as "O" does. So
    an item is weighted by the share of its class divided by the share of its group.
    """

    def log_share(is_one: np.ndarray) -> np.ndarray:
        return np.asarray(np.log((weight * share) @ is_one) - np.log(weight @ is_one))

    with np.errstate(divide="ignore", invalid="ignore"):
        if target.ndim == 1:
            all_of, drawn = (np.bincount(target, w, n_classes) for w in (weight, weight * share))
            shift = np.log(drawn) - np.log(all_of)
            each = np.exp(shift[target]) / share
        else:
            zeros, ones = log_share(target != 1), log_share(target == 1)
            shift = ones - zeros
            each = np.exp(np.where(target == 1, ones, zeros)) / share[:, None]
    shift = np.where(np.isfinite(shift), shift, 0.0)
    return shift.astype(np.float32), each.astype(np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ABC):
    """What is asked of a text.

    A task is a frozen value. It begins with the parameters of an estimator, of which None is still
    open. :meth:`learn` returns the task with the facts of the training rows (classes, scheme), and
    :meth:`tune` the task with another decision. A task has no network: it gets one to predict with.
    """

    info: ClassVar[TaskInfo]

    owner: str = ""  # name of the estimator, for errors
    tuning: Tuning = None

    @abstractmethod
    def read_X(self, X: object) -> list[Any]:
        """Return checked rows."""

    @abstractmethod
    def read_y(self, y: object, rows: Sequence[Any]) -> Any:
        """Return checked labels to compare predictions with, as ``Rows`` has them."""

    def read_training(self, X: object, y: object) -> tuple[list[Any], Any, np.ndarray | None]:
        """Return checked rows and labels, and which of them can be learned from (None: all)."""
        rows = self.read_X(X)
        return rows, self.read_y(y, rows), None

    def read(self, X: object, y: object, weight: object = None) -> Rows:
        """Return rows with labels to compare predictions with."""
        rows = self.read_X(X)
        weight = check_sample_weight(weight, len(rows))
        return Rows(rows, self.read_y(y, rows), weight, None, np.arange(len(rows)))

    def groups(self, rows: Sequence[Row]) -> Sequence[Any] | None:
        """Return the group of each row; rows of one group are in the same part of a split."""
        column = self.info.group_column
        return None if column is None else [row[column] for row in rows]

    @abstractmethod
    def facts(self, rows: Rows) -> LabelFacts:
        """Return the facts of the labels of some rows."""

    @abstractmethod
    def check_learnable(self, rows: Rows, facts: LabelFacts, loss: str | Loss) -> None:
        """Raise a ValueError if nothing can be learned from the rows, or not with this loss."""

    @abstractmethod
    def learn(self, rows: Rows, facts: LabelFacts, reader: TextReader) -> Self:
        """Return the task with the facts of the training rows; no parameter may be open."""

    @abstractmethod
    def training_set(self, rows: Rows, reader: TextReader, sampled: bool) -> TrainingSet:
        """Return the encoded training rows; ``sampled`` is whether an epoch may leave texts out."""

    @property
    @abstractmethod
    def class_names(self) -> Sequence[Label]:
        """The classes, or the types of entities."""

    @property
    @abstractmethod
    def head(self) -> HeadSpec:
        """What a network needs beside the encoder."""

    def criterion(self, loss: Loss) -> Any:
        """Return the criterion of a step, which has the chosen loss."""
        return loss

    def correct(
        self, training_set: TrainingSet, loss: Loss, weight: np.ndarray, share: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what makes up for a draw, as :func:`correct_draw` does."""
        assert training_set.dataset.target is not None
        return correct_draw(training_set.dataset.target, self.head.n_outputs, weight, share)

    def corrected(self, training_set: TrainingSet, loss: Loss) -> TrainingSet:
        """Return a training set with a correction of what its draw changes.

        A set loss weighs each drawn text by the inverse of its probability to be drawn. For a mean
        of single losses, such weights would make the gradient noisy. So its logits are shifted by
        the change of the log-odds, and weights of about 1 correct the mixture within a class.
        """
        dataset, draw = training_set.dataset, training_set.draw
        assert draw is not None
        if loss.separable:
            counts = np.diff(dataset.item_offsets)
            weight = np.repeat(dataset.text_weight, counts)
            share = np.repeat(draw.share, counts)
            shift, each = self.correct(training_set, loss, weight, share)
            if training_set.shift is not None:
                shift = training_set.shift + shift
            return replace(training_set, shift=shift, weight=None if (each == 1).all() else each)
        weight = (dataset.text_weight / draw.share).astype(np.float32)
        return replace(training_set, dataset=replace(dataset, weight=weight))

    @abstractmethod
    def validator(self, rows: Rows, network: Network) -> Callable[[], float]:
        """Return a function that scores rows with a network; the rows are encoded once."""

    @abstractmethod
    def scores(self, rows: Sequence[Row], network: Network) -> list[Any]:
        """Return the scores of each row that the decision is made on."""

    @abstractmethod
    def tune(self, rows: Rows, scores: Sequence[Any], goal: Goal = F1) -> Self:
        """Return the task with the decision that is best on rows with these scores."""

    @property
    def metric_name(self) -> str:
        """The name of the metric of ``score``, once the task has learned its classes."""
        return "F1"

    def count_rows(self, measure: str, y_true: object, y_pred: Any) -> RowCounts:
        """Return what each row adds to the counts of the metrics."""
        return count_rows(measure, y_true, y_pred)

    def measure(self, y: Any) -> str:
        """Return the key of the metrics of these labels."""
        return self.info.name

    @property
    def decision_attributes(self) -> dict[str, Any]:
        """The fitted attributes that turn logits into predictions."""
        return {name: attrgetter(path)(self) for name, path in self.info.decision.items()}

    def with_decision(self, attribute: str, value: Any) -> Self:
        """Return the task with another value of one of these attributes."""
        return replace(self, **{self.info.decision[attribute]: value})


@dataclass(frozen=True, eq=False, kw_only=True)
class TeachableTask(Task):
    """A task that can be learned from rows without labels, once these have been labelled."""

    classes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))

    @property
    def class_names(self) -> Sequence[Label]:
        return list(self.classes.tolist())

    @abstractmethod
    def label(self, rows: Sequence[Row], network: Network) -> TeacherLabels:
        """Return what a network that has learned the task says of rows."""

    @abstractmethod
    def taught(self, said: TeacherLabels) -> Labelled:
        """Return labels of all rows with the probability of each row's, once or several times.

        A row with several labels has the probability of the least sure one.
        """
