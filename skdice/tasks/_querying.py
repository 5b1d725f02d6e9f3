"""Querying: entities are found by asking for each type in plain words (BERT-MRC)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.special import expit, logit

from .._parameters import not_allowed
from ..exceptions import warn
from ..losses import Loss, QueryLoss, check_loss_classes
from ..text import (
    EncodedQueries,
    Entity,
    TextReader,
    Threshold,
    are_characters,
    best_disjoint,
    by_label,
    encode_queries,
    find_spans,
    write_tags,
)
from ._goal import F1, Goal, choose_decision
from ._rows import Row, Rows
from ._tagging import WordTask
from ._targets import GoldEntities, check_entities
from ._task import HeadSpec, LabelFacts, Network, TaskInfo, TrainingSet, correct_draw

# Size of the vectors of a word, as start and as end, whose product scores a match.
_MATCH_SIZE = 64
# Sentences predicted at a time: the logits have 130 numbers for each word and query.
_CHUNK_SENTENCES = 512
# Logits to try as thresholds; of equally good ones the first is taken.
_THRESHOLDS: list[float] = sorted((np.arange(-40, 41) / 10).tolist(), key=abs)

# The queries of common types of entities, by the names that a type may have.
_ASKED = {
    "person per pers people": "Which people are mentioned by their name, be they real or invented?",
    "location loc place": (
        "Which places are mentioned: countries, cities, regions, mountains, rivers, roads?"
    ),
    "organization org organisation company": (
        "Which organisations are mentioned: companies, parties, teams, agencies?"
    ),
    "misc miscellaneous": (
        "Which other names are mentioned: nationalities, languages, events, works, products?"
    ),
    "gpe": "Which countries, cities and states are mentioned that have a government?",
    "facility fac": "Which buildings, airports, bridges and other constructions are mentioned?",
    "vehicle veh": "Which cars, ships, planes and other vehicles are mentioned?",
    "weapon wea": "Which weapons are mentioned, such as guns, bombs and missiles?",
    "norp": "Which nationalities, religions and political groups are mentioned?",
    "product": "Which products are mentioned by their name?",
    "event": "Which events are mentioned by their name, such as wars, storms and games?",
    "work_of_art": "Which titles of books, songs, films and other works are mentioned?",
    "law": "Which laws and treaties are mentioned by their name?",
    "language": "Which languages are mentioned?",
    "date": "Which dates and periods are mentioned?",
    "time": "Which times of the day are mentioned?",
    "percent": "Which percentages are mentioned?",
    "money": "Which sums of money are mentioned, with their unit?",
    "quantity": "Which measured amounts are mentioned, such as weights and distances?",
    "ordinal": "Which ordinal numbers are mentioned, such as first and second?",
    "cardinal": "Which plain numbers are mentioned?",
    "disease": "Which diseases, disorders and symptoms are mentioned?",
    "chemical drug": "Which chemicals and drugs are mentioned?",
    "gene protein dna": "Which genes and proteins are mentioned?",
    "species": "Which species of animals, plants and microbes are mentioned?",
}
_QUERIES = {name: query for names, query in _ASKED.items() for name in names.split()}

# The spans of each sentence: pairs of the lowest of its three logits and the entity.
Found: TypeAlias = list[list[tuple[float, Entity]]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Querying(WordTask):
    """Each type of entity is asked for in plain words."""

    info = TaskInfo(
        name="query-tagging",
        row="sentence",
        columns=("words",),
        decision={"threshold_": "threshold"},
        n_texts=2,
        adjustable=("decode",),
        pipeline_tag="token-classification",
        summary="finds the entities of a sentence by asking for each type",
        call='model.predict([["John", "lives", "in", "Oslo"]])',
        scores="The score of an entity is a sigmoid of the lowest of its three logits.",
    )

    # Pieces of the sentence that windows share; a quarter of the room beside the query if None.
    stride: int | None = None
    queries: dict[str, str] | None = None
    span_weights: tuple[float, ...] = (1, 1, 0.1)  # of the losses of starts, ends and matches
    match_candidates: str = "pred_gold_random"
    decode: str = "flat"  # or "nested"
    # What the score of an entity has to exceed, for all labels or by label.
    threshold: Threshold = 0.5
    labels: list[str] = field(default_factory=list)
    # How the training tags spell I, E and S where they do not use these letters.
    roles: dict[str, str] = field(default_factory=dict)

    def read_y(self, y: object, rows: Sequence[Any]) -> GoldEntities:
        return check_entities(y, rows)

    def measure(self, y: Any) -> str:
        return "entities"

    def facts(self, rows: Rows) -> LabelFacts:
        return LabelFacts(classes=sorted({label for row in rows.y.spans for _, _, label in row}))

    def check_learnable(self, rows: Rows, facts: LabelFacts, loss: str | Loss) -> None:
        for i, spans in zip(rows.number, rows.y.spans) if self.decode == "flat" else ():
            for one, other in pairwise(sorted(spans)):
                if other[0] < one[1]:
                    raise ValueError(
                        f"Row {i} of y has the overlapping entities {one} and {other}, which "
                        f"decode='flat' cannot give; take decode='nested'."
                    )
        if not any(rows.y.spans):
            raise ValueError(
                f"{self.owner} needs an entity in y; got {len(rows)} rows without any."
            )
        check_loss_classes(loss, 1)

    def learn(self, rows: Rows, facts: LabelFacts, reader: TextReader) -> Self:
        labels, given = list(facts.classes), self.queries or {}
        queries = {label: given.get(label) or default_query(label) for label in labels}
        missing = [label for label in labels if label not in given]
        if given and missing:
            warn(
                f"queries has no query for {', '.join(map(repr, missing))}; asked is "
                f"{', '.join(repr(queries[label]) for label in missing)}."
            )
        return replace(
            self,
            splitter="characters" if are_characters(rows.X) else "words",
            labels=labels,
            queries=queries,
            scheme=rows.y.scheme or "IOB2",
            roles=rows.y.roles,
            threshold=0.5,
        )

    def encode(
        self, sentences: Sequence[Row], reader: TextReader, learned: Rows | None = None
    ) -> EncodedQueries:
        """Return sentences with each query as windows of pieces; of rows to learn with targets."""
        assert self.queries is not None
        spans = None
        if learned is not None:
            number = {label: i for i, label in enumerate(self.labels)}
            spans = [[(a, b, number[label]) for a, b, label in row] for row in learned.y.spans]
        queries = [self.queries[label] for label in self.labels]
        return encode_queries(sentences, queries, reader, self.stride, spans=spans)

    def training_set(self, rows: Rows, reader: TextReader, sampled: bool) -> TrainingSet:
        encoded = self.encode(rows.X, reader, rows)
        encoded = replace(encoded, dataset=replace(encoded.dataset, weight=rows.weight))
        if encoded.n_uncovered:
            warn(
                f"{encoded.n_uncovered} entities are longer than what neighbouring windows share "
                f"and lie in no window as a whole, so their start and end are learned, but not "
                f"that they belong together. A larger stride or max_length helps."
            )
        # Pairs of a word and a type: those that start an entity, and all. A weight repeats.
        starts = {(i, a, label) for i, row in enumerate(rows.y.spans) for a, _, label in row}
        weight = encoded.dataset.text_weight
        n_starts = sum(weight[i] for i, _, _ in starts)
        n_pairs = np.repeat(weight, [len(self.labels) * len(words) for words in rows.X]).sum()
        dataset, group, windows_per_text = encoded.dataset, None, len(self.labels)
        if sampled:  # Each sentence with each query is a text.
            dataset, windows_per_text = encoded.by_query(), 1
            assert dataset.target is not None
            group = dataset.positives_first(dataset.target[:, 0] == 1)
        return TrainingSet(
            dataset=dataset,
            labels=[0, 1],
            counts=np.array([n_pairs - n_starts, n_starts]),
            background=0,
            binary=True,
            group=group,
            windows_per_text=windows_per_text,
        )

    @property
    def class_names(self) -> list[str]:
        return self.labels

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(
            suffix=None,
            n_outputs=2,  # The logits of starts and of ends.
            module={"match_size": _MATCH_SIZE},
            windows_per_text=len(self.labels),
        )

    def criterion(self, loss: Loss) -> QueryLoss:
        return QueryLoss(loss, tuple(self.span_weights), self.match_candidates)

    def correct(
        self, training_set: TrainingSet, loss: Loss, weight: np.ndarray, share: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        assert training_set.dataset.target is not None
        shift, each = correct_draw(training_set.dataset.target, 2, weight, share)
        # A match is scored by a product, not by a logit to shift, so it is weighted by 1 / share.
        shift = np.append(shift, np.zeros(2 * _MATCH_SIZE, dtype=np.float32))
        each = np.column_stack([each, 1 / share]).astype(np.float32)
        return shift, each

    @property
    def entity_labels(self) -> list[str]:
        return self.labels

    def find(
        self, sentences: Sequence[Row], network: Network, cut: Threshold | None = None
    ) -> Found:
        """Return all spans with the lowest of their three logits, which exceeds the cut.

        By default, that is the logit of the threshold.
        """
        if cut is None:
            each = by_label(self.threshold, self.labels)
            cut = {label: float(logit(p)) for label, p in each.items()}
        found: Found = []
        for start in range(0, len(sentences), _CHUNK_SENTENCES):
            encoded = self.encode(sentences[start : start + _CHUNK_SENTENCES], network.reader)
            found += find_spans(encoded, network.logits(encoded.dataset), self.labels, cut)
        return found

    def entities(self, found: Found) -> list[list[Entity]]:
        """Return the entities of each sentence, without overlaps unless they may be nested."""
        if self.decode == "flat":
            found = [best_disjoint(spans) for spans in found]
        return [[entity for _, entity in spans] for spans in found]

    def tags(self, found: Found, sentences: Sequence[Row]) -> list[list[str]]:
        """Return a tag for each word, of the entities without overlaps."""
        assert self.scheme is not None
        pairs = zip(replace(self, decode="flat").entities(found), sentences)
        return [write_tags(row, len(words), self.scheme, self.roles) for row, words in pairs]

    def predict_tags(self, sentences: Sequence[Row], network: Network) -> list[list[str]]:
        return self.tags(self.find(sentences, network), sentences)

    def predict_entities(self, sentences: Sequence[Row], network: Network) -> list[list[Entity]]:
        return self.entities(self.find(sentences, network))

    def validator(self, rows: Rows, network: Network) -> Callable[[], float]:
        def validate() -> float:
            found = self.predict_entities(rows.X, network)
            both = [({*true}, {span[:3] for span in row}) for true, row in zip(rows.y.spans, found)]
            counts = [(len(true & pred), len(pred), len(true)) for true, pred in both]
            weight = np.ones(len(rows)) if rows.weight is None else rows.weight
            return float(F1.value(*(weight @ counts)))

        return validate

    def scores(self, rows: Sequence[Row], network: Network) -> Found:
        return self.find(rows, network, min(_THRESHOLDS))

    def tune(self, rows: Rows, scores: Sequence[Any], goal: Goal = F1) -> Self:
        gold: GoldEntities = rows.y

        def above(cut: Threshold) -> Found:
            lowest = by_label(cut, self.labels)
            return [[span for span in spans if span[0] > lowest[span[1].label]] for spans in scores]

        def found(cut: Threshold) -> list[list[Entity]]:
            return self.entities(above(cut))

        cut: float | dict[str, float]
        if (metric := goal.metric) is None:
            cut = choose_decision(gold.spans, found, _THRESHOLDS, self.labels, goal, rows.weight)
        elif gold.scheme is None:
            cut = max(_THRESHOLDS, key=lambda cut: metric(found(cut)))
        else:
            cut = max(_THRESHOLDS, key=lambda cut: metric(self.tags(above(cut), rows.X)))
        if isinstance(cut, dict):
            return replace(self, threshold={label: float(expit(x)) for label, x in cut.items()})
        return replace(self, threshold=float(expit(cut)))


def default_query(label: str) -> str:
    """Return the query of a label: that of a common type, or else the name of the label."""
    return _QUERIES.get(label.lower(), label.replace("_", " "))


def check_queries(owner: str, name: str, queries: Any) -> None:
    """Raise a ValueError unless queries is None or a dict of label to text."""
    if queries is not None and not isinstance(queries, dict):
        raise not_allowed(owner, name, "None or a dict of label to text", queries)
    for label, query in (queries or {}).items():
        if not isinstance(label, str) or not isinstance(query, str) or not query.strip():
            raise ValueError(
                f"The {name!r} parameter of {owner} must be None or a dict of label to a text "
                f"that is not empty. Got {query!r} for {label!r}."
            )
