"""A self-contained HTML page with gold and predicted entities in running text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby, pairwise
from operator import itemgetter
from string import Template

from ._entity_pairs import TAG_KINDS, EntityPair

# Thai, Lao, Myanmar and Khmer; CJK punctuation and kana; Han; full-width forms.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)
_Owners = tuple[int | None, int | None]  # index of the pair of the gold, the predicted entity


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
    fields = {
        "title": escape(title),
        "caption": escape(_caption(all_pairs, len(sentences), has_entities)),
        "note": escape(_note(len(rows), len(sentences), all_pairs, has_entities)),
        "unit": "entities" if has_entities else "words",
        "kinds": _kind_filters(all_pairs, kinds, has_entities),
        "labels": _label_filters(all_pairs),
        "only_errors": "checked" if any(pair.kind != "correct" for pair in all_pairs) else "",
        "sentences": "\n".join(_items(sentences, pairs, rows)),
        "style": _read("_error_page.css"),
        "script": _read("_error_page.js"),
    }
    return Template(_read("_error_page.html")).substitute(fields)


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


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


def _kind_filters(pairs: Sequence[EntityPair], kinds: Sequence[str], has_entities: bool) -> str:
    counts = Counter(pair.kind for pair in pairs)
    # Most words are tagged right, and marking them all would hide the wrong ones.
    unchecked = () if has_entities or not counts["wrong"] else ("correct",)
    return "\n".join(
        _checkbox("kind", kind, _sample(kind), f"{counts[kind]:,}", checked=kind not in unchecked)
        for kind in kinds
    )


def _sample(kind: str) -> str:
    """Return the name of the kind, marked as its entities are."""
    lanes = {"missed": "gold", "spurious": "predicted"}.get(kind, "gold predicted")
    before = '<sup aria-hidden="true"></sup>' if kind == "missed" else ""
    after = "" if kind in ("correct", "missed") else '<sub aria-hidden="true"></sub>'
    return f'<span class="mark {lanes}" data-kind="{kind}">{before}{kind}{after}</span>'


def _label_filters(pairs: Sequence[EntityPair]) -> str:
    totals: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for pair in pairs:
        labels = {span.label for span in pair.spans}
        totals.update(labels)
        if pair.kind != "correct":
            wrong.update(labels)
    return "\n".join(
        _checkbox("label", label, f"<bdi>{escape(label)}</bdi>", f"{wrong[label]:,} / {total:,}")
        for label, total in sorted(totals.items())
    )


def _checkbox(name: str, value: str, text: str, count: str, *, checked: bool = True) -> str:
    return (
        f'<label><input type="checkbox" name="{name}" value="{escape(value)}"'
        f'{" checked" if checked else ""}> {text} <span class="count">{count}</span></label>'
    )


def _items(
    sentences: Sequence[Sequence[str]],
    pairs: Sequence[Sequence[EntityPair]],
    rows: Sequence[int],
) -> Iterator[str]:
    first_entity = 0
    for row in rows:
        text = _render_sentence(sentences[row], pairs[row], first_entity)
        yield f'<li><span class="row">{row}</span><p dir="auto">{text}</p></li>'
        first_entity += len(pairs[row])


def _render_sentence(words: Sequence[str], pairs: Sequence[EntityPair], first_entity: int) -> str:
    """Return the sentence with its marks; `first_entity` is the number of its first pair."""
    segments = list(_segments(words, _find_owners(len(words), pairs)))
    first_segment = {gold: k for k, ((gold, _), _) in reversed(list(enumerate(segments)))}
    last_segment = {predicted: k for k, ((_, predicted), _) in enumerate(segments)}
    parts = []
    for k, ((gold, predicted), text) in enumerate(segments):
        content = escape(text)
        if predicted is not None:
            content += _predicted_label(pairs[predicted]) if last_segment[predicted] == k else ""
            if predicted != gold:
                number, kind = first_entity + predicted, pairs[predicted].kind
                content = _mark("predicted", number, kind, content)
        if gold is not None:
            content = (_gold_label(pairs[gold]) if first_segment[gold] == k else "") + content
            lanes = "gold predicted" if predicted == gold else "gold"
            content = _mark(lanes, first_entity + gold, pairs[gold].kind, content)
        parts.append(content)
    return "".join(parts)


def _gold_label(pair: EntityPair) -> str:
    is_shown = pair.gold is not None and pair.kind != "correct"
    return f"<sup>{escape(pair.label)}</sup>" if is_shown else ""


def _predicted_label(pair: EntityPair) -> str:
    return "" if pair.predicted is None else f"<sub>{escape(pair.predicted.label)}</sub>"


def _mark(lanes: str, entity: int, kind: str, content: str) -> str:
    return f'<mark class="{lanes}" data-entity="{entity}" data-kind="{kind}">{content}</mark>'


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
