"""Tagging: every word of a sentence gets a tag."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._inputs import check_tags, check_token_lists, list_some
from .._parameters import check_number
from ..exceptions import warn
from ..losses import Loss, check_loss_classes
from ..metrics import (
    EntitySpan,
    RowCounts,
    are_chunk_tags,
    check_tag_kinds,
    count_rows,
    find_entities,
    infer_scheme,
)
from ..text import (
    N_SHAPES,
    EncodedDataset,
    Entity,
    TagDecoder,
    TextReader,
    Threshold,
    allowed_transitions,
    are_characters,
    by_label,
    encode_words,
    keep_above,
)
from ._goal import F1, Goal, choose_decision
from ._rows import Labelled, Row, Rows, TeacherLabels
from ._task import HeadSpec, LabelFacts, Network, Task, TaskInfo, TeachableTask, TrainingSet

# Larger biases would make the sum of the logits of a sentence infinite.
BIASES: dict[str, Any] = {"low": -1e6, "high": 1e6, "closed": "both"}
_BOUNDS = {"background_bias_": BIASES, "threshold_": {"low": 0, "high": 1, "closed": "both"}}
# Lowest scores of entities that are tried as thresholds.
_N_THRESHOLDS = 81
# A tag with a larger share of the words may stand for words outside entities.
_MOST_WORDS = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class WordTask(Task):
    """The base of the tasks that find tags or entities in sentences of words."""

    splitter: str = "words"  # of raw texts: "words" or "characters", as in training
    scheme: str | None = None  # of chunk tags

    def __post_init__(self) -> None:
        """Check the decision; labels that a decision by label lacks get the default."""
        for shown, name in self.info.decision.items():
            given, bounds = getattr(self, name), _BOUNDS[shown]
            if isinstance(given, Mapping) or (given and shown == "threshold_"):
                labels = self.entity_labels  # A ValueError says that there are none.
            if not isinstance(given, Mapping):
                check_number(self.owner, shown, given, **bounds)
                object.__setattr__(self, name, float(given))
                continue
            for label, value in given.items():
                if label not in labels:
                    raise ValueError(
                        f"The {shown!r} of this {self.owner} may have the labels "
                        f"{list_some(labels)}. Got {label!r} instead."
                    )
                check_number(self.owner, f"{shown} of {label}", value, **bounds)
            default = getattr(type(self), name)
            each = {label: float(given.get(label, default)) for label in labels}
            object.__setattr__(self, name, each)

    @property
    @abstractmethod
    def entity_labels(self) -> list[str]:
        """The labels that entities may have."""

    @abstractmethod
    def predict_tags(self, sentences: Sequence[Row], network: Network) -> list[list[str]]:
        """Return one tag for each word."""

    @abstractmethod
    def predict_entities(self, sentences: Sequence[Row], network: Network) -> list[list[Entity]]:
        """Return the entities of each sentence, positions in words."""

    def read_X(self, X: object) -> list[list[str]]:
        return check_token_lists(X)

    def count_rows(self, measure: str, y_true: object, y_pred: Any) -> RowCounts:
        return count_rows(measure, check_tags(y_true, y_pred), y_pred)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tagging(WordTask, TeachableTask):
    """Every word of a sentence gets a tag."""

    info = TaskInfo(
        name="tagging",
        row="sentence",
        columns=("words",),
        decision={"threshold_": "threshold", "background_bias_": "bias"},
        choosable=("word_shapes", "crf"),
        adjustable=("decode",),
        pipeline_tag="token-classification",
        summary="tags every word of a sentence",
        call='model.predict([["John", "lives", "in", "Oslo"]])',
    )

    stride: int | None = None  # pieces that windows share; a quarter of the window if None
    decode: str = "constrained"  # or "argmax"
    crf: bool | None = None  # whether the tags of a sentence are scored together; None is open
    # Whether the network gets the shape of each word as its token type; None is open.
    word_shapes: bool | None = None
    # The decision, for all labels or by label.
    bias: Threshold = 0.0  # added to the logit of "O"
    threshold: Threshold = 0.0  # entities with a lower score are dropped

    def read_y(self, y: object, rows: Sequence[Any]) -> list[list[str]]:
        tags = check_tags(y, rows)
        check_tag_kinds(tags, "y", self.classes.tolist())
        return tags

    def measure(self, y: Any) -> str:
        are_entities = are_chunk_tags(list({tag for row in y for tag in row}))
        return "entities" if are_entities else self.info.name

    def check_learnable(self, rows: Rows, facts: LabelFacts, loss: str | Loss) -> None:
        classes = list(facts.classes)
        if not classes:
            raise ValueError(
                f"Found no word to train on; X has {len(rows)} sentences and no words."
            )
        if len(classes) < 2:
            raise ValueError(
                f"{self.owner} needs at least two different tags in y; got one class, "
                f"{classes[0]!r}."
            )
        check_loss_classes(loss, len(classes))
        warn_of_background(rows.y)
        if self.crf and not facts.has_entities:
            raise ValueError(
                f"The 'crf' parameter of {self.owner} must be False or 'auto' unless the tags are "
                f"chunk tags ('O', 'B-x', 'I-x', ...). Got the tags {list_some(classes)}."
            )

    def facts(self, rows: Rows) -> LabelFacts:
        classes = sorted({tag for row in rows.y for tag in row})
        if not are_chunk_tags(classes):
            return LabelFacts(classes=classes)
        entities = [find_entities(row) for row in rows.y]
        first = [
            words[start]
            for words, found in zip(rows.X, entities)
            if any(word != word.lower() for word in words)  # Else the case tells nothing.
            for start, _, _ in found
        ]
        names = float(np.mean([word[:1].isupper() for word in first])) if first else math.nan
        return LabelFacts(
            classes=classes,
            has_entities=True,
            n_entities=sum(map(len, entities)),
            share_of_names=names,
        )

    def learn(self, rows: Rows, facts: LabelFacts, reader: TextReader) -> Self:
        capacity = reader.max_length - reader.tokenizer.frame.n_special
        stride = capacity // 4 if self.stride is None else int(self.stride)
        if stride >= capacity:
            raise ValueError(
                f"The 'stride' parameter of {self.owner} must be smaller than the {capacity} "
                f"pieces of text in a window. Got {self.stride!r} instead."
            )
        return replace(
            self,
            splitter="characters" if are_characters(rows.X) else "words",
            classes=np.array(facts.classes, dtype=object),  # A numpy str loses trailing NULs.
            scheme=infer_scheme(rows.y) if facts.has_entities else None,
            stride=stride,
            # A bias for each label was tuned on other rows.
            bias=0.0 if isinstance(self.bias, Mapping) else self.bias,
            threshold=0.0,
            # Without "O" among chunk tags there is nothing to tune.
            tuning=self.tuning if facts.has_entities and "O" in facts.classes else None,
        )

    def encode(self, sentences: Sequence[Row], reader: TextReader) -> EncodedDataset:
        """Return sentences as windows of pieces, an item for each word."""
        assert self.stride is not None
        return encode_words(sentences, reader, self.stride, with_shapes=bool(self.word_shapes))

    def training_set(self, rows: Rows, reader: TextReader, sampled: bool) -> TrainingSet:
        classes = self.classes.tolist()
        index = {tag: i for i, tag in enumerate(classes)}
        target = np.array([index[tag] for row in rows.y for tag in row], dtype=np.int64)
        dataset = replace(self.encode(rows.X, reader), target=target, weight=rows.weight)
        background = self.background
        weight = np.repeat(dataset.text_weight, np.diff(dataset.item_offsets))
        counts = np.bincount(target, weight, minlength=len(self.classes))
        group = None if background is None else dataset.positives_first(target != background)
        return TrainingSet(
            dataset=dataset,
            labels=classes,
            counts=counts,
            background=background,
            binary=False,
            group=group,
        )

    @property
    def background(self) -> int | None:
        """The index of "O" among chunk tags."""
        tags = self.classes.tolist()
        return None if self.scheme is None or "O" not in tags else tags.index("O")

    @property
    def head(self) -> HeadSpec:
        transitions = None
        if self.crf:
            assert self.scheme is not None
            transitions = allowed_transitions(self.classes.tolist(), self.scheme)
        return HeadSpec(
            suffix="ForTokenClassification",
            n_outputs=len(self.classes),
            classes=self.classes.tolist(),
            transitions=transitions,
            module={"n_token_types": 1 + N_SHAPES} if self.word_shapes else {},
        )

    @property
    def decoder(self) -> TagDecoder:
        """What makes tags and entities of logits."""
        transitions = None
        if self.scheme is not None and self.decode != "argmax":
            transitions = allowed_transitions(self.classes.tolist(), self.scheme)
        lowest = by_label(self.threshold, self.entity_labels) if self.threshold else {}
        return TagDecoder(self.classes, transitions, self.background, self.bias, lowest)

    @property
    def entity_labels(self) -> list[str]:
        if self.scheme is None:
            raise ValueError(
                f"Entities need chunk tags ('O', 'B-x', 'I-x', ...); the tags of this tagger are "
                f"{list_some(self.classes.tolist())}."
            )
        return sorted({tag[2:] for tag in self.classes.tolist() if tag != "O"})

    @property
    def metric_name(self) -> str:
        return "accuracy" if self.scheme is None else "F1"

    def predict_tags(self, sentences: Sequence[Row], network: Network) -> list[list[str]]:
        dataset = self.encode(sentences, network.reader)
        return self.decoder.tags(network.logits(dataset), dataset.item_offsets)

    def predict_entities(self, sentences: Sequence[Row], network: Network) -> list[list[Entity]]:
        dataset = self.encode(sentences, network.reader)
        return self.decoder.entities(network.logits(dataset), dataset.item_offsets)

    def predict_scored(
        self, sentences: Sequence[Row], network: Network
    ) -> tuple[list[list[str]], list[np.ndarray]]:
        """Return one tag for each word, and the probabilities of all tags."""
        dataset, decoder = self.encode(sentences, network.reader), self.decoder
        found = network.logits(dataset), dataset.item_offsets
        return decoder.tags(*found), decoder.probabilities(*found)

    def validator(self, rows: Rows, network: Network) -> Callable[[], float]:
        dataset = self.encode(rows.X, network.reader)
        measure = self.info.name if self.scheme is None else "entities"

        def validate() -> float:
            tags = self.decoder.tags(network.logits(dataset), dataset.item_offsets)
            return count_rows(measure, rows.y, tags).of_all_rows(rows.weight)["f1"]

        return validate

    def scores(self, rows: Sequence[Row], network: Network) -> list[np.ndarray]:
        dataset = self.encode(rows, network.reader)
        return np.split(network.logits(dataset), dataset.item_offsets[1:-1])

    def tune(self, rows: Rows, scores: Sequence[np.ndarray], goal: Goal = F1) -> Self:
        if self.background is None:
            raise TypeError(
                f"The decision of a tagger is the bias of 'O' among chunk tags; the tags of this "
                f"one are {list_some(self.classes.tolist())}."
            )
        logits = np.concatenate([np.empty((0, len(self.classes)), np.float32), *scores])
        offsets = np.cumsum([0, *map(len, rows.X)])
        labels, gold = self.entity_labels, [find_entities(row) for row in rows.y]
        decoder = replace(self, threshold=0.0).decoder
        if goal.min_precision is not None:
            # A large bias breaks the borders of an entity before it drops it: precision falls.
            scored = decoder.entities(logits, offsets)

            def keep(lowest: Threshold) -> list[list[Entity]]:
                return [keep_above(row, by_label(lowest, labels)) for row in scored]

            scores_found = [entity.score for row in scored for entity in row]
            steps = np.quantile(scores_found or [0.0], np.linspace(0, 1, _N_THRESHOLDS))
            candidates = np.unique([0.0, *steps]).tolist()
            threshold = choose_decision(gold, keep, candidates, labels, goal, rows.weight)
            return replace(self, threshold=threshold)
        biases = decoder.biases(logits)

        def tags(bias: Threshold) -> list[list[str]]:
            return replace(decoder, bias=bias).tags(logits, offsets)

        if (metric := goal.metric) is not None:
            best = max(biases, key=lambda bias: metric(tags(bias)))
            return replace(self, bias=best, threshold=0.0)

        def found(bias: Threshold) -> list[list[EntitySpan]]:
            return [find_entities(row) for row in tags(bias)]

        bias = choose_decision(gold, found, biases, labels, goal, rows.weight)
        return replace(self, bias=bias, threshold=0.0)

    def label(self, rows: Sequence[Row], network: Network) -> TeacherLabels:
        return TeacherLabels(self.class_names, *self.predict_scored(rows, network))

    def taught(self, said: TeacherLabels) -> Labelled:
        # Sentences without words, or with a tag that this fold does not have, are not used.
        known, index = set(self.classes.tolist()), said.classes.index
        sure = [
            min((p[index(tag)] for tag, p in zip(tags, row)), default=0.0) * known.issuperset(tags)
            for tags, row in zip(said.predicted, said.p)
        ]
        return [(said.predicted, np.array(sure))]


def warn_of_background(tags: Sequence[Row]) -> None:
    """Warn if one tag covers most words and the tags are not read as entities."""
    counts = Counter(tag for row in tags for tag in row)
    tag, n = max(counts.items(), key=lambda item: item[1], default=("", 0))
    share = n / max(1, counts.total())
    if share > _MOST_WORDS and not are_chunk_tags([*counts]):
        warn(
            f"The tag {tag!r} covers {share:.0%} of the words, and no tag has a B- or I- prefix. "
            f"So the tags are not read as entities, and score is accuracy, which is {share:.3f} if "
            f"every word gets {tag!r}. If they are entities, give their tags prefixes ('B-x', "
            f"'I-x', 'O'), or make tags of spans: skdice.datasets.words_from_spans."
        )
