"""A self-contained HTML page with gold and predicted entities in running text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from ._entity_pairs import EntityPair

# Thai, Lao, Myanmar and Khmer; CJK punctuation and kana; Han; full-width forms.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)
_Owners = tuple[int | None, int | None]  # index of the pair of the gold, the predicted entity
_PAGES = Environment(
    loader=PackageLoader(__package__, ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def join_words(words: Sequence[str]) -> str:
    """Join words by spaces, but in scripts that are written without them by nothing."""
    gaps = ["", *(_gap(left, right) for left, right in pairwise(words))]
    return "".join(gap + word for gap, word in zip(gaps, words))


def _gap(left: str, right: str) -> str:
    return "" if _UNSPACED.match(left[-1:]) and _UNSPACED.match(right[:1]) else " "


def render_page(
    sentences: Sequence[Sequence[str]],
    pairs: Sequence[Sequence[EntityPair]],
    summary: pd.DataFrame,
    rows: Sequence[int],
    title: str,
) -> str:
    """Return the page of a `TaggingErrors`: the sentences `rows`, counts and scores of all.

    A ``<mark>`` is a run of words with the same gold and predicted entity, of class ``gold``,
    ``predicted`` or both. ``<sup>`` is the gold label, ``<sub>`` the predicted one; a correct
    entity has the latter only.
    """
    totals, wrong = Counter[str](), Counter[str]()
    for pair in (pair for row_pairs in pairs for pair in row_pairs):
        labels = {span.label for span in pair.spans}
        totals.update(labels)
        wrong.update(labels if pair.kind != "correct" else ())
    kinds = summary.iloc[0].to_dict()
    n_pairs = sum(kinds.values())
    shown, first_entity = [], 0
    for row in rows:
        shown.append((row, list(_mark(sentences[row], pairs[row], first_entity))))
        first_entity += len(pairs[row])
    page = _PAGES.get_template("_error_page.html").render(
        title=title,
        kinds=kinds,
        n_gold=n_pairs - kinds.get("spurious", 0),
        n_predicted=n_pairs - kinds.get("missed", 0),
        labels=[(label, wrong[label], total) for label, total in sorted(totals.items())],
        n_sentences=len(sentences),
        sentences=shown,
    )
    return f"{page}\n"


def _mark(
    words: Sequence[str], pairs: Sequence[EntityPair], first_entity: int
) -> Iterator[tuple[str, list[tuple[Any, ...]], str | None]]:
    """Yield the parts of a sentence: a text, the marks around it, the predicted label at its end.

    A mark is its classes, the number and the kind of the pair, and the gold label where an entity
    begins that is not predicted as it is.
    """
    segments = _segments(words, pairs)
    first_segment = {gold: k for k, ((gold, _), _) in reversed(list(enumerate(segments)))}
    last_segment = {predicted: k for k, ((_, predicted), _) in enumerate(segments)}
    for k, ((gold, predicted), text) in enumerate(segments):
        marks: list[tuple[Any, ...]] = []
        predicted_label = None
        if gold is not None:
            pair, is_start = pairs[gold], first_segment[gold] == k
            label = pair.spans[0].label if is_start and pair.kind != "correct" else None
            lanes = "gold predicted" if predicted == gold else "gold"
            marks.append((lanes, first_entity + gold, pair.kind, label))
        if predicted is not None:
            pair = pairs[predicted]
            if predicted != gold:
                marks.append(("predicted", first_entity + predicted, pair.kind, None))
            if last_segment[predicted] == k:
                predicted_label = pair.spans[-1].label
        yield text, marks, predicted_label


def _segments(words: Sequence[str], pairs: Sequence[EntityPair]) -> list[tuple[_Owners, str]]:
    """Return the runs of text with the same owners; the gaps inside an entity belong to it."""
    gold: list[int | None] = [None] * len(words)
    predicted: list[int | None] = [None] * len(words)
    for i, pair in enumerate(pairs):
        for owners, span in ((gold, pair.gold), (predicted, pair.predicted)):
            if span is not None:
                owners[span.start : span.end] = [i] * (span.end - span.start)
    atoms: list[tuple[_Owners, str]] = []
    for i, word in enumerate(words):
        if i and (gap := _gap(words[i - 1], word)):
            before_and_after = (owners[i - 1 : i + 1] for owners in (gold, predicted))
            inside = [after if after == before else None for before, after in before_and_after]
            atoms.append(((inside[0], inside[1]), gap))
        atoms.append(((gold[i], predicted[i]), word))
    return [
        (owner, "".join(text for _, text in run)) for owner, run in groupby(atoms, itemgetter(0))
    ]
