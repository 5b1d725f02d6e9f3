"""The errors of a tagger: as a table, and in running text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from .._inputs import check_tags, check_token_lists, count_of
from .._typing import TagSequences, TokenLists
from ..metrics import EntitySpan, are_chunk_tags, check_tag_kinds, check_tag_sequences, get_entities
from ..text import are_characters
from ._entity_pairs import KINDS, EntityPair, pair_entities

_PAGES = Environment(
    loader=PackageLoader(__package__, ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _mark(
    words: Sequence[str], pairs: Sequence[EntityPair], first_entity: int, separator: str
) -> Iterator[tuple[str, list[tuple[Any, ...]], str | None]]:
    """Yield the parts of a sentence: a text, the marks around it, the predicted label at its end.

    A part is a run of words of the same gold and the same predicted entity, if any. A mark is its
    classes, the number and the kind of the pair, and the gold label where an entity begins that is
    not predicted as it is.
    """
    # The pairs of the gold and of the predicted entity that each word is a part of.
    owners: list[list[int | None]] = [[None, None] for _ in words]
    for number, pair in enumerate(pairs):
        for side, span in enumerate((pair.gold, pair.predicted)):
            for owner in owners[span.start : span.end] if span else ():
                owner[side] = number
    start = 0
    for (gold, predicted), run in groupby(owners):
        end = start + len(list(run))
        marks: list[tuple[Any, ...]] = []
        predicted_label = None
        if gold is not None:
            pair = pairs[gold]
            is_shown = pair.kind != "correct" and pair.spans[0].start == start
            label = pair.spans[0].label if is_shown else None
            lanes = "gold predicted" if predicted == gold else "gold"
            marks.append((lanes, first_entity + gold, pair.kind, label))
        if predicted is not None:
            pair = pairs[predicted]
            if predicted != gold:
                marks.append(("predicted", first_entity + predicted, pair.kind, None))
            if pair.spans[-1].end == end:
                predicted_label = pair.spans[-1].label
        yield separator.join(words[start:end]), marks, predicted_label
        start = end


class TaggingErrors:
    """What a tagger found, what it missed and what it made up, sentence by sentence.

    Made by :meth:`from_predictions` or :meth:`from_estimator`. If all tags are ``"O"`` or chunk
    tags (``"B-PER"``, ``"I-PER"``, ``"S-LOC"``, ...), whole entities are compared, otherwise the
    tag of each word, as an entity of one word.

    Attributes
    ----------
    frame : DataFrame
        A row for each pair of a gold and a predicted entity, and for each entity of either side
        without a counterpart, in the order of the text. Columns:

        - ``row``: number of the sentence, from 0;
        - ``kind``: ``"correct"``, ``"wrong label"`` (same words), ``"wrong border"`` (same label),
          ``"wrong border and label"``, ``"missed"`` (gold only) or ``"spurious"`` (predicted only);
        - ``gold_label``, ``predicted_label``: missing where there is no such entity;
        - ``gold_start``, ``gold_end``, ``predicted_start``, ``predicted_end``: first word and one
          past the last word;
        - ``text``: the words from the first to the last of both entities.

    Notes
    -----
    Each entity is in exactly one row of `frame`; the correct ones are the true positives of
    :func:`skdice.metrics.entity_f1_score`. Where an entity overlaps several of the other side, it
    is paired with the one that it has the most words in common with; of equally good ones with that
    of the same label, then with the first.

    Examples
    --------
    >>> from skdice.inspection import TaggingErrors
    >>> X = [["Anna", "Lee", "left", "Oslo"], ["Acme", "said", "so"]]
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O", "O"]]
    >>> y_pred = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O", "O"]]
    >>> errors = TaggingErrors.from_predictions(X, y_true, y_pred)
    >>> errors
    2 sentences, entities: 1 correct, 1 wrong label, 1 wrong border, 0 wrong border and label,
    0 missed, 0 spurious. The first rows:
       row          kind gold_label predicted_label      text
    0    0  wrong border        PER             PER  Anna Lee
    1    0       correct        LOC             LOC      Oslo
    2    1   wrong label        ORG             PER      Acme
    >>> page = errors.to_html("errors.html")  # doctest: +SKIP
    """

    def __init__(
        self, sentences: list[list[str]], pairs: list[list[EntityPair]], unit: str
    ) -> None:
        self.sentences = sentences
        self.pairs = pairs
        self.unit = unit
        self._separator = "" if are_characters(sentences) else " "
        nothing = (None, None, None)
        records = []
        for row, (words, row_pairs) in enumerate(zip(sentences, pairs)):
            for pair in row_pairs:
                gold, found = pair.gold or nothing, pair.predicted or nothing
                end = max(span.end for span in pair.spans)
                text = self._separator.join(words[pair.start : end])
                records.append((row, pair.kind, gold[2], found[2], *gold[:2], *found[:2], text))
        positions = ["gold_start", "gold_end", "predicted_start", "predicted_end"]
        columns = ["row", "kind", "gold_label", "predicted_label", *positions, "text"]
        kind = pd.CategoricalDtype(list(KINDS))
        types: dict[str, Any] = {"row": "int64", "kind": kind, **dict.fromkeys(positions, "Int64")}
        # The str of pandas cannot hold lone surrogates, an object can.
        self.frame = pd.DataFrame(records, columns=columns, dtype=object).astype(types)

    @classmethod
    def from_predictions(
        cls, X: TokenLists, y_true: TagSequences, y_pred: TagSequences
    ) -> TaggingErrors:
        """Compare predicted tags with gold ones.

        Parameters
        ----------
        X : list, Series or object array of n_sentences lists of str
            Sentences as words.
        y_true, y_pred : the same of list of str
            One tag per word.

        Raises
        ------
        TypeError, ValueError
            If an argument is no sequence, a row or tag is of another kind, or the numbers of
            sentences, or of words and tags of a sentence, differ; the message names the row.
        """
        true_rows, pred_rows = check_tag_sequences(y_true, y_pred)
        sentences = check_token_lists(X)
        check_tags(true_rows, sentences)
        check_tag_kinds(true_rows, "y_true")
        # Gold tags decide, or predicted ones if there is no other gold tag than "O". Sentences
        # without any entity are as likely those of an entity tagger.
        gold, found = ({tag for row in y for tag in row} - {"O"} for y in (true_rows, pred_rows))
        has_entities = not (gold or found) or are_chunk_tags(sorted(gold or found))
        read = get_entities if has_entities else _words
        pairs = [pair_entities(read(true), read(pred)) for true, pred in zip(true_rows, pred_rows)]
        return cls(sentences, pairs, "entities" if has_entities else "words")

    @classmethod
    def from_estimator(cls, tagger: Any, X: TokenLists, y: TagSequences) -> TaggingErrors:
        """Compare the predictions of a fitted tagger with gold tags.

        Parameters
        ----------
        tagger : fitted estimator
            A `DiceTokenTagger`, or anything whose ``predict(X)`` gives one tag per word.
        X, y
            As `X` and `y_true` of :meth:`from_predictions`, with its errors.
        """
        return cls.from_predictions(X, y, tagger.predict(X))

    def __repr__(self) -> str:
        return "\n".join([self._count_kinds(), *self._first_rows().to_string().splitlines()])

    def _repr_html_(self) -> str:
        return f"<p>{self._count_kinds()}</p>{self._first_rows().to_html()}"

    def _count_kinds(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in self.summary().loc["all"].items())
        return f"{count_of(len(self.sentences), 'sentence')}, {self.unit}: {kinds}. The first rows:"

    def _first_rows(self) -> pd.DataFrame:
        return self.frame[["row", "kind", "gold_label", "predicted_label", "text"]].head(10)

    def summary(self) -> pd.DataFrame:
        """Count the kinds of results for each gold label, spurious ones by their predicted label.

        Returns
        -------
        DataFrame of shape (1 + n_labels, n_kinds)
            The first row, ``"all"``, is the sum; labels are in alphabetical order.
        """
        counts = Counter((pair.spans[0].label, pair.kind) for row in self.pairs for pair in row)
        labels = sorted({label for label, _ in counts})
        table = [[counts[label, kind] for kind in KINDS] for label in labels]
        totals = [sum(column) for column in zip(*table)] or [0] * len(KINDS)
        index = pd.Index(["all", *labels], dtype=object, name="label")
        return pd.DataFrame([totals, *table], index=index, columns=list(KINDS))

    def to_html(
        self, path: str | PathLike[str] | None = None, *, title: str = "Tagging errors"
    ) -> str:
        """Return a page, which needs no other files, that shows the entities in running text.

        Gold entities have a line above, predicted ones a line below, coloured by kind.

        Parameters
        ----------
        path : str or path-like, optional
            File that the page is also written to.
        title : str, default="Tagging errors"
            Heading of the page.
        """
        totals, wrong = Counter[str](), Counter[str]()
        for pair in (pair for row_pairs in self.pairs for pair in row_pairs):
            labels = {span.label for span in pair.spans}
            totals.update(labels)
            wrong.update(labels if pair.kind != "correct" else ())
        shown, first_entity = [], 0
        for words, row_pairs in zip(self.sentences, self.pairs):
            shown.append(list(_mark(words, row_pairs, first_entity, self._separator)))
            first_entity += len(row_pairs)
        # A <mark> is a run of words with the same gold and predicted entity, <sup> the gold label,
        # <sub> the predicted one; a correct entity has the latter only.
        page = _PAGES.get_template("_error_page.html").render(
            title=title,
            kinds=self.summary().loc["all"].to_dict(),
            unit=self.unit,
            labels=[(label, wrong[label], total) for label, total in sorted(totals.items())],
            sentences=shown,
            separator=self._separator,
        )
        # Lone surrogates cannot be encoded; a browser shows the reference as a replacement mark.
        encoded = f"{page}\n".encode("utf-8", errors="xmlcharrefreplace")
        if path is not None:
            Path(path).write_bytes(encoded)
        return encoded.decode("utf-8")


def _words(tags: list[str]) -> list[EntitySpan]:
    return [EntitySpan(i, i + 1, tag) for i, tag in enumerate(tags)]
