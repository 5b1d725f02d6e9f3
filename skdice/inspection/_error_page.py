"""A self-contained HTML page with gold and predicted entities in running text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from ._entity_pairs import TAG_KINDS, EntityPair

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


class _Mark(NamedTuple):
    """What a ``<mark>`` says."""

    lanes: str  # the classes: gold, predicted or both
    entity: int  # number of the pair on the page
    kind: str
    gold_label: str | None  # where a gold entity begins that is not predicted as it is


class _Segment(NamedTuple):
    """Words with the same owners, and the marks around them from the outer one to the inner one."""

    text: str
    marks: list[_Mark]
    predicted_label: str | None  # where a predicted entity ends


def join_words(words: Sequence[str]) -> str:
    """Join words by spaces, but in scripts that are written without them by nothing.

    Examples
    --------
    >>> join_words(["New", "York"]), join_words(["北", "京"])
    ('New York', '北京')
    """
    gaps = ["", *(_gap(left, right) for left, right in pairwise(words))]
    return "".join(gap + word for gap, word in zip(gaps, words))


def _gap(left: str, right: str) -> str:
    is_unspaced = _UNSPACED.match(left[-1:]) and _UNSPACED.match(right[:1])
    return "" if is_unspaced else " "


def render_page(
    sentences: Sequence[Sequence[str]],
    pairs: Sequence[Sequence[EntityPair]],
    kinds: Sequence[str],
    rows: Sequence[int],
    title: str,
) -> str:
    """Return the page.

    Parameters
    ----------
    sentences : sequence of n_sentences sequences of str
        The words.
    pairs : sequence of n_sentences sequences of EntityPair
    kinds : sequence of str
        All kinds that pairs may have.
    rows : sequence of int
        Sentences that the page shows; its counts and scores are those of all.
    title : str

    Returns
    -------
    str
        HTML that loads nothing. An item ``<li>`` is a sentence. In it, a ``<mark>`` is a run of
        words with the same gold and predicted entity, of class ``gold``, ``predicted`` or both;
        ``data-entity`` numbers the pairs of the page, ``data-kind`` is the kind. ``<sup>`` is the
        gold label, ``<sub>`` the predicted one; a correct entity has the latter only.
    """
    all_pairs = [pair for row_pairs in pairs for pair in row_pairs]
    has_entities = tuple(kinds) != TAG_KINDS
    page = _PAGES.get_template("_error_page.html").render(
        title=title,
        caption=_caption(all_pairs, len(sentences), has_entities),
        note=_note(len(rows), len(sentences), all_pairs, has_entities),
        unit="entities" if has_entities else "words",
        kinds=_count_kinds(all_pairs, kinds, has_entities),
        labels=_count_labels(all_pairs),
        has_errors=any(pair.kind != "correct" for pair in all_pairs),
        sentences=_sentences(sentences, pairs, rows),
    )
    return f"{page}\n"


def _caption(pairs: Sequence[EntityPair], n_sentences: int, has_entities: bool) -> str:
    n_correct = sum(pair.kind == "correct" for pair in pairs)
    n_gold = sum(pair.gold is not None for pair in pairs)
    n_predicted = sum(pair.predicted is not None for pair in pairs)
    precision = n_correct / n_predicted if n_predicted else 0.0
    recall = n_correct / n_gold if n_gold else 0.0
    f1 = 2 * n_correct / (n_gold + n_predicted) if pairs else 0.0
    scores = f"Precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}"
    sizes = f"{n_gold:,} gold and {n_predicted:,} predicted entities"
    if not has_entities:
        scores = f"Precision = recall = F1 = accuracy = {f1:.3f}"
        sizes = f"{n_gold:,} words"
    return f"{scores}; {sizes} in {n_sentences:,} sentences."


def _note(n_shown: int, n_sentences: int, pairs: Sequence[EntityPair], has_entities: bool) -> str:
    if not pairs:
        unit = "entities, neither gold nor predicted ones" if has_entities else "words"
        return f"There are no {unit}."
    if n_shown == n_sentences:
        return ""
    return f"This page has {n_shown:,} of {n_sentences:,} sentences, those with errors first."


def _count_kinds(
    pairs: Sequence[EntityPair], kinds: Sequence[str], has_entities: bool
) -> list[tuple[str, int, bool]]:
    """Return each kind, how often it occurs and whether it is shown at first."""
    counts = Counter(pair.kind for pair in pairs)
    # Most words are tagged right, and marking them all would hide the wrong ones.
    hidden = () if has_entities or not counts["wrong"] else ("correct",)
    return [(kind, counts[kind], kind not in hidden) for kind in kinds]


def _count_labels(pairs: Sequence[EntityPair]) -> list[tuple[str, int, int]]:
    """Return each label and its numbers of errors and of all entities."""
    totals: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for pair in pairs:
        labels = {span.label for span in pair.spans}
        totals.update(labels)
        if pair.kind != "correct":
            wrong.update(labels)
    return [(label, wrong[label], total) for label, total in sorted(totals.items())]


def _sentences(
    sentences: Sequence[Sequence[str]],
    pairs: Sequence[Sequence[EntityPair]],
    rows: Sequence[int],
) -> Iterator[tuple[int, list[_Segment]]]:
    first_entity = 0
    for row in rows:
        yield row, _mark(sentences[row], pairs[row], first_entity)
        first_entity += len(pairs[row])


def _mark(words: Sequence[str], pairs: Sequence[EntityPair], first_entity: int) -> list[_Segment]:
    """Return the parts of a sentence; `first_entity` is the number of its first pair."""
    segments = list(_segments(words, _find_owners(len(words), pairs)))
    first_segment = {gold: k for k, ((gold, _), _) in reversed(list(enumerate(segments)))}
    last_segment = {predicted: k for k, ((_, predicted), _) in enumerate(segments)}
    marked = []
    for k, ((gold, predicted), text) in enumerate(segments):
        marks, predicted_label = [], None
        if gold is not None:
            pair, is_start = pairs[gold], first_segment[gold] == k
            label = pair.label if is_start and pair.kind != "correct" else None
            lanes = "gold predicted" if predicted == gold else "gold"
            marks.append(_Mark(lanes, first_entity + gold, pair.kind, label))
        if predicted is not None:
            pair = pairs[predicted]
            if predicted != gold:
                marks.append(_Mark("predicted", first_entity + predicted, pair.kind, None))
            if last_segment[predicted] == k and pair.predicted is not None:
                predicted_label = pair.predicted.label
        marked.append(_Segment(text, marks, predicted_label))
    return marked


def _find_owners(n_words: int, pairs: Sequence[EntityPair]) -> list[_Owners]:
    """Return for each word the pairs of its gold and of its predicted entity."""
    gold: list[int | None] = [None] * n_words
    predicted: list[int | None] = [None] * n_words
    for i, pair in enumerate(pairs):
        for owners, span in ((gold, pair.gold), (predicted, pair.predicted)):
            if span is not None:
                owners[span.start : span.end] = [i] * (span.end - span.start)
    return list(zip(gold, predicted))


def _segments(words: Sequence[str], owners: Sequence[_Owners]) -> Iterator[tuple[_Owners, str]]:
    """Yield the runs of text with the same owners; the gaps inside an entity belong to it."""
    atoms: list[tuple[_Owners, str]] = []
    for i, word in enumerate(words):
        if i and (gap := _gap(words[i - 1], word)):
            gold, predicted = (
                after if after == before else None
                for before, after in zip(owners[i - 1], owners[i])
            )
            atoms.append(((gold, predicted), gap))
        atoms.append((owners[i], word))
    for owner, run in groupby(atoms, key=itemgetter(0)):
        yield owner, "".join(text for _, text in run)
