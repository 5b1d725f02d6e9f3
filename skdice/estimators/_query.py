"""Entities by asking for each type: BERT-MRC named entity recognition."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from .._inputs import check_tags, check_token_lists
from .._parameters import Parameter, check_number, not_allowed, number, option, parametrised
from .._typing import TokenLists
from ..datasets import write_tags
from ..io import CardTexts
from ..losses import Candidates, QueryLoss
from ..nn import QueryModule
from ..text import (
    EncodedDataset,
    EncodedQueries,
    Entity,
    best_disjoint,
    by_label,
    encode_queries,
    find_spans,
)
from ._default_queries import check_queries, choose_queries
from ._goal import Goal, choose_decision
from ._lesson import Lesson, Rule, positives_first, prior_shift
from ._loss import check_loss_classes
from ._rows import Rows, Task
from ._targets import check_entities, find_overlap, span_f1_score
from ._words import WordTagger, count_tagged

# Numbers that stand for a word in the score of a match, as start and as end.
_MATCH_SIZE = 64
# Sentences that are predicted at a time: their logits are 130 numbers for each word and query.
_CHUNK_SENTENCES = 512
# Thresholds tried, in the order of preference among equally good ones.
_THRESHOLDS: list[float] = sorted((np.arange(-40, 41) / 10).tolist(), key=abs)

Found = list[list[tuple[float, Entity]]]

_STRIDE = """
Pieces of the sentence that neighbouring windows share; by default a quarter of what fits beside
the query. An entity that no window has as a whole cannot be found.
"""
_QUERIES = """
What to ask for each label. Labels without a query get a default one, if they are common (PER, LOC,
ORG, Disease, ...), or else their name, with a warning.
"""
# A sentence is shown with several queries (benchmarks/STUDY.md).
_RULE = Rule(ratio=1.0, rare=1.0, presentations=2400)
_CANDIDATES = """
Pairs of words on which the match of a start with an end is trained: all pairs of a window, those of
a gold start and a gold end, those of a predicted or gold start and end, or these and some random
ones. Random pairs are drawn anew for each batch.
"""
_DECODE = """
"flat" gives the best set of entities without overlap, "nested" all whose start, end and match are
above the threshold. ``predict`` always gives flat tags.
"""


def _check_span_weights(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, tuple | list) or len(value) != 3 or not any(value):
        allowed = "three numbers that are not all 0: of starts, ends and matches"
        raise not_allowed(owner, name, allowed, value)
    for weight in value:
        check_number(owner, name, weight, low=0)


@parametrised
class DiceQueryTagger(WordTagger):
    """Find entities, also nested ones, by asking for each type in plain words (BERT-MRC).

    For each type of entity a query ("Which people are mentioned?") is read together with the
    sentence, and words are scored as starts and ends of entities, pairs of them as belonging
    together. X is a list, Series or object array of sentences, each a list of str; y has a list of
    chunk tags for each, one per word, or of entities (start, end, label), ``end`` exclusive, which
    may be nested or overlap with ``decode="nested"``.

    %(containers)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    labels_ : list of str
        The types of entities, sorted.
    queries_ : dict of label to str
        What is asked.
    scheme_ : str
        Scheme of the predicted tags: that of the training tags, "IOB2" if y was rows of spans.
    splitter_ : {"words", "characters"}
        How ``predict_entities`` splits raw texts: as the training sentences were, whose words may
        be single characters.
    cut_words_ : list of str
        Training words that the splitter "words" would cut most often (``'@name'``, ``"'s"``); empty
        if it would cut less than one in twenty.
    threshold_ : float, or dict of label to float
        What the lowest of the three logits of an entity is held against: 0 after ``fit``, see
        :func:`skdice.model_selection.tune_decision`.
    %(attributes)s

    See Also
    --------
    skdice.DiceTokenTagger : Reads each sentence once, for all types.

    Notes
    -----
    The method is that of "A Unified MRC Framework for Named Entity Recognition" (Li et al., ACL
    2020). Each of the three losses is taken over single words or pairs of words, with a sigmoid
    each; class weights are about the classes 0 and 1, from the counts of starts among words. The
    score of a pair is the product of two vectors of 64 numbers, so that memory does not
    grow with pairs times hidden size.

    ``score`` counts an entity as found if start, end and label are right, and all gold entities
    count, also those that no window has as a whole, or whose label was not in training.

    Examples
    --------
    >>> from skdice import DiceQueryTagger
    >>> tagger = DiceQueryTagger(random_state=0)
    >>> tagger.fit(sentences, tags)  # doctest: +SKIP
    >>> tagger.predict_spans([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    """

    _module_class = QueryModule
    _task = Task(
        row="sentence",
        reads_two_texts=True,
        read_X=check_token_lists,
        read_y=check_tags,
        find_measure=lambda y: "entities",
        count_rows=count_tagged,
        state={
            "labels_": list,
            "queries_": dict,
            "scheme_": str,
            "_roles": dict,
            "splitter_": str,
            "cut_words_": list,
            "threshold_": (int, float, dict),
        },
        card=CardTexts(
            "token-classification",
            "finds the entities of a sentence by asking for each type",
            'model.predict([["John", "lives", "in", "Oslo"]])',
            None,
            "The score of an entity is a sigmoid of the lowest of its three logits.",
        ),
    )

    stride: Annotated[int | None, number(_STRIDE, low=0, integer=True, optional=True)] = None
    queries: Annotated[
        dict[str, str] | None, Parameter("dict of label to str", _QUERIES, check_queries)
    ] = None
    span_weights: Annotated[
        Sequence[float],
        Parameter(
            "tuple of 3 floats",
            "Weights of the losses of starts, ends and matches; divided by their sum.",
            _check_span_weights,
        ),
    ] = (1, 1, 0.1)
    match_candidates: Annotated[Candidates, option(_CANDIDATES)] = "pred_gold_random"
    decode: Annotated[Literal["flat", "nested"], option(_DECODE)] = "flat"

    def _read_labelled(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        sentences = check_token_lists(X)
        return sentences, check_entities(y, sentences)

    def _check_learnable(self, rows: Rows) -> None:
        for i, spans in zip(rows.number, rows.y.spans):
            overlap = find_overlap(spans) if self.decode == "flat" else None
            if overlap:
                raise ValueError(
                    f"Row {i} of y has the overlapping entities {overlap[0]} and {overlap[1]}, "
                    f"which decode='flat' cannot give; take decode='nested'."
                )
        if not any(rows.y.spans):
            raise ValueError(
                f"{type(self).__name__} needs an entity in y; got {len(rows)} rows without any."
            )
        check_loss_classes(self.loss, 1)

    def _learn(self, rows: Rows) -> None:
        self.labels_ = sorted({label for spans in rows.y.spans for _, _, label in spans})
        self.queries_ = choose_queries(self.labels_, self.queries)
        self.scheme_ = rows.y.scheme or "IOB2"
        self._roles = rows.y.roles
        self._learn_splitter(rows.X)
        self.threshold_: float | dict[str, float] = 0.0

    def _prepare(self, rows: Rows, rng: np.random.Generator) -> Lesson:
        spans = rows.y.spans
        encoded = self._encode(rows.X, spans, rows.weight)
        if encoded.n_uncovered:
            warnings.warn(
                f"{encoded.n_uncovered} entities are longer than what neighbouring windows share "
                f"and lie in no window as a whole, so their start and end are learned, but not "
                f"that they belong together. A larger stride or max_length helps.",
                stacklevel=3,
            )
        counts = _count(encoded, spans)
        lesson = Lesson(encoded.dataset, [0, 1], counts, 0, binary=True)
        if self.negative_ratio is None:
            return replace(lesson, windows_per_text=len(self.labels_))
        # Each sentence with each query is a text.
        dataset = encoded.by_query()
        assert dataset.target is not None
        group = positives_first(dataset, dataset.target[:, 0] == 1)
        return replace(lesson, dataset=dataset, group=group, rule=_RULE)

    def _choose_loss(self, rows: Rows, lesson: Lesson) -> tuple[str, str]:
        return "dice", "dice, as few words start or end an entity of one type"

    def _shift(self, lesson: Lesson) -> np.ndarray:
        shift = np.zeros(2 + 2 * _MATCH_SIZE, dtype=np.float32)
        target = lesson.dataset.target
        assert target is not None
        shift[:2] = prior_shift(target, 2, lesson.item_weight, lesson.item_share)
        return shift

    def _criterion(self, loss: Any) -> Any:
        return QueryLoss(loss, tuple(self.span_weights), self.match_candidates)

    def _n_outputs(self) -> int:
        return 2  # Starts and ends.

    def _module_parameters(self) -> dict[str, Any]:
        return {"match_size": _MATCH_SIZE}

    def _validator(self, rows: Rows) -> Callable[[], float]:
        return lambda: span_f1_score(rows.y.spans, self._decide(self._find(rows.X)))

    def _predicted(self, logits: np.ndarray, dataset: EncodedDataset) -> np.ndarray:
        return logits[:, :2].max(0) > 0

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        return None if predicted.all() else "found no entity"

    def _score_sentences(self, sentences: Sequence[Sequence[str]], y: Any) -> float:
        gold = check_entities(y, sentences)
        return span_f1_score(gold.spans, self._find_entities(sentences))

    def _tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return self._tags_of(self._find(sentences), sentences)

    def _tags_of(self, found: Found, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [
            write_tags(row, len(sentence), self.scheme_, self._roles)
            for row, sentence in zip(_entities(map(best_disjoint, found)), sentences)
        ]

    def _entity_labels(self) -> list[str]:
        return self.labels_

    def _find_entities(self, sentences: Sequence[Sequence[str]]) -> list[list[Entity]]:
        return self._decide(self._find(sentences))

    def _find(
        self,
        sentences: Sequence[Sequence[str]],
        threshold: float | Mapping[str, float] | None = None,
    ) -> Found:
        """Return all spans above the threshold, with their logits."""
        threshold = self.threshold_ if threshold is None else threshold
        found: Found = []
        for start in range(0, len(sentences), _CHUNK_SENTENCES):
            encoded = self._encode(sentences[start : start + _CHUNK_SENTENCES])
            logits = self._predict_logits(encoded.dataset)
            found += find_spans(encoded, logits, self.labels_, threshold)
        return found

    def _decide(self, found: Found) -> list[list[Entity]]:
        if self.decode == "flat":
            found = [best_disjoint(spans) for spans in found]
        return _entities(found)

    def _decision_scores(self, X: TokenLists) -> Found:
        """Return the spans of each sentence that a threshold may keep, with their logits."""
        return self._find(check_token_lists(X), min(_THRESHOLDS))

    def _tune_decision(self, rows: Rows, goal: Goal, scores: Any = None) -> None:
        """Set ``threshold_`` to what is best on held-out sentences."""
        gold, found = rows.y, self._decision_scores(rows.X) if scores is None else scores()

        def above(threshold: Any) -> Found:
            lowest = by_label(threshold, self.labels_)
            return [[span for span in spans if span[0] > lowest[span[1].label]] for spans in found]

        if goal.metric is None:
            self.threshold_ = choose_decision(
                gold.spans,
                lambda threshold: self._decide(above(threshold)),
                _THRESHOLDS,
                self.labels_,
                goal,
            )
            return

        def score(threshold: float) -> float:
            kept = above(threshold)
            has_tags = gold.scheme is not None
            return goal.metric(self._tags_of(kept, rows.X) if has_tags else self._decide(kept))

        self.threshold_ = max(_THRESHOLDS, key=score)

    def _encode(
        self,
        sentences: Sequence[Sequence[str]],
        spans: list[list[tuple[int, int, str]]] | None = None,
        weight: np.ndarray | None = None,
    ) -> EncodedQueries:
        numbered = None
        if spans is not None:
            number = {label: i for i, label in enumerate(self.labels_)}
            numbered = [[(start, end, number[label]) for start, end, label in row] for row in spans]
        queries = [self.queries_[label] for label in self.labels_]
        encoded = self._encode_once(
            (self.stride, queries, sentences, numbered),
            lambda: encode_queries(
                sentences,
                queries,
                self.tokenizer_,
                self.max_length_,
                self.stride,
                spans=numbered,
            ),
        )
        return replace(encoded, dataset=replace(encoded.dataset, weight=weight))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.class_weight, Mapping) and not self.class_weight.keys() <= {0, 1}:
            raise ValueError(
                f"The 'class_weight' parameter of {type(self).__name__} must have the keys 0 "
                f"(words that start no entity) and 1 (those that do), not labels. Got "
                f"{self.class_weight!r} instead."
            )

    def _windows_per_text(self) -> int:
        return len(self.labels_)


def _entities(found: Iterable[list[tuple[float, Entity]]]) -> list[list[Entity]]:
    return [[entity for _, entity in spans] for spans in found]


def _count(encoded: EncodedQueries, spans: list[list[tuple[int, int, str]]]) -> np.ndarray:
    """Return how many (word, type) pairs that are asked for start no entity, and how many do.

    A word in several windows is one, and a weight counts as repetition.
    """
    data = encoded.dataset
    window = np.repeat(np.arange(len(data)), data.items.lengths)
    sentence, query = data.text[window], encoded.query[window]
    words = np.unique(np.stack([sentence, query, encoded.word], axis=1), axis=0)
    starts = {(i, start, label) for i, row in enumerate(spans) for start, _, label in row}
    weight = data.text_weight
    n_starts = sum(weight[i] for i, _, _ in starts)
    return np.array([weight[words[:, 0]].sum() - n_starts, n_starts])
