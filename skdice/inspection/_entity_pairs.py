"""Gold and predicted entities: as users pass them, and in pairs."""

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from .._inputs import check_rows, check_span, check_y
from .._typing import Spans, TagSequences
from ..metrics import EntitySpan, check_tag_row, get_entities

EntityRows: TypeAlias = TagSequences | Spans

KINDS = ("correct", "wrong label", "wrong border", "wrong border and label", "missed", "spurious")


class EntityRow(NamedTuple):
    """The entities of a sentence with their scores: the highest of equal ones, 1 without scores."""

    spans: dict[EntitySpan, float]
    n_words: int | None


class EntityPair(NamedTuple):
    """A gold entity and the predicted one that it is compared with; one of them may be missing."""

    gold: EntitySpan | None
    predicted: EntitySpan | None

    @property
    def kind(self) -> str:
        """How the two differ, one of ``KINDS``."""
        gold, predicted = self
        if gold is None or predicted is None:
            return "missed" if gold else "spurious"
        if gold[:2] == predicted[:2]:
            return "correct" if gold == predicted else "wrong label"
        return "wrong border" if gold.label == predicted.label else "wrong border and label"

    @property
    def spans(self) -> list[EntitySpan]:
        """The one or two entities of the pair, the gold one first."""
        return [span for span in (self.gold, self.predicted) if span is not None]

    @property
    def start(self) -> int:
        return min(span.start for span in self.spans)


def read_entities(
    rows: Any, name: str, gold: Sequence[EntityRow] | None = None, *, has_scores: bool = False
) -> list[EntityRow]:
    """Read rows of tags or of (start, end, label), or with scores what ``predict_spans`` gives.

    `gold` has the gold entities of the same sentences, if these are predicted ones.
    """
    what = "Entity(start, end, label, score)" if has_scores else "tags or of (start, end, label)"
    if gold is None:
        listed = check_rows(rows, name, f"lists of {what}")
    else:
        listed = check_y(rows, len(gold), f"lists of {what}", "y_true", name)
    found = []
    for i, row in enumerate(listed):
        where, size = f"row {i} of {name}", gold[i].n_words if gold else None
        items = check_rows(row, where, what)
        spans: dict[EntitySpan, float] = {}
        if not has_scores and any(isinstance(item, str) for item in items):
            tags = check_tag_row(items, where)
            if size not in (None, len(tags)):
                raise ValueError(f"A word needs a tag; {where} has {len(tags)} for {size} words.")
            spans, size = dict.fromkeys(get_entities(tags), 1.0), len(tags)
        else:
            for item in items:
                span = EntitySpan(*check_span(item, name, where, size))
                score: Any = 1.0
                if has_scores:
                    score = item.get("score") if isinstance(item, Mapping) else [*item, None][3]
                if not isinstance(score, numbers.Real) or not math.isfinite(score):
                    raise ValueError(
                        f"Entities must be (start, end, label, score), with a finite score; "
                        f"{where} has {item!r}."
                    )
                spans[span] = max(float(score), spans.get(span, -math.inf))
        found.append(EntityRow(spans, size))
    return found


def pair_entities(gold: Sequence[EntitySpan], predicted: Sequence[EntitySpan]) -> list[EntityPair]:
    """Pair the entities of a sentence, each at most once, in the order of the words.

    The same entities come first, then those of the same words, then those with the most words in
    common; of equally good ones those with the same label, then the earlier ones. Entities without
    a word in common are not paired.
    """
    candidates = [
        (g == p, g[:2] == p[:2], min(g.end, p.end) - max(g.start, p.start), g.label == p.label)
        + (-i - j, i, j)
        for i, g in enumerate(gold)
        for j, p in enumerate(predicted)
        if g.start < p.end and p.start < g.end
    ]
    missed, spurious, pairs = dict(enumerate(gold)), dict(enumerate(predicted)), []
    for *_, i, j in sorted(candidates, reverse=True):
        if i in missed and j in spurious:
            pairs.append(EntityPair(missed.pop(i), spurious.pop(j)))
    pairs += [EntityPair(span, None) for span in missed.values()]
    pairs += [EntityPair(None, span) for span in spurious.values()]
    return sorted(pairs, key=lambda pair: (pair.start, pair.gold is None))
