"""The errors of a tagger: as a table, and in running text."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol

import pandas as pd

from .._inputs import check_tags, check_token_lists, describe
from .._parameters import check_number
from .._typing import TagSequences, TokenLists
from ..metrics import get_entities
from ..metrics._validation import check_tag_sequences
from ..text._tags import are_chunk_tags
from ._entity_pairs import ENTITY_KINDS, TAG_KINDS, EntityPair, pair_entities, pair_tags
from ._error_page import join_words, render_page

# A notebook keeps its pages in its file.
_NOTEBOOK_SENTENCES = 100
_OUTSIDE = "O"


class Tagger(Protocol):
    """What predicts one tag per word."""

    def predict(self, X: TokenLists) -> TagSequences:
        """Return the tags of each sentence."""


class TaggingErrors:
    """What a tagger found, what it missed and what it made up, sentence by sentence.

    Made by :meth:`from_predictions` or :meth:`from_estimator`. If all tags are ``"O"`` or chunk
    tags (``"B-PER"``, ``"I-PER"``, ``"S-LOC"``, ...), whole entities are compared, otherwise the
    tag of each word.

    Parameters
    ----------
    sentences : list of n_sentences lists of str
        The words.
    pairs : list of n_sentences lists of EntityPair
        The gold and the predicted entities of each sentence, paired.
    kinds : tuple of str
        The kinds that a pair may have, in the order of tables and legends.

    Attributes
    ----------
    frame : DataFrame
        A row for each pair of a gold and a predicted entity, and for each entity of either side
        without a counterpart, in the order of the text. Columns:

        - ``row``: number of the sentence, from 0;
        - ``kind``: ``"correct"``, ``"wrong label"`` (same words), ``"wrong border"`` (some words in
          common, same label), ``"wrong border and label"``, ``"missed"`` (gold only) or
          ``"spurious"`` (predicted only); of single tags ``"correct"`` or ``"wrong"``;
        - ``gold_label``, ``predicted_label``: missing where there is no such entity;
        - ``gold_start``, ``gold_end``, ``predicted_start``, ``predicted_end``: first word and one
          past the last word;
        - ``text``: the words from the first to the last of both entities.

    See Also
    --------
    skdice.metrics.entity_classification_report : Precision, recall and F1 of each label.

    Notes
    -----
    Entities are read as :func:`skdice.metrics.get_entities` does by default, and each is in exactly
    one row of `frame`. So the correct ones are the true positives of
    :func:`skdice.metrics.entity_f1_score`, all rows but the spurious ones are the gold entities,
    and all rows but the missed ones are the predicted entities. Where an entity overlaps several of
    the other side, the pairing of the sentence is the one with the most words in common; of equally
    good ones that with more equal labels, then with more pairs, then of the earlier entities.

    Examples
    --------
    >>> from skdice.inspection import TaggingErrors
    >>> X = [["Anna", "Lee", "left", "Oslo"], ["Acme", "said", "so"]]
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O", "O"]]
    >>> y_pred = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O", "O"]]
    >>> errors = TaggingErrors.from_predictions(X, y_true, y_pred)
    >>> errors.frame[["row", "kind", "gold_label", "predicted_label", "text"]]
       row          kind gold_label predicted_label      text
    0    0  wrong border        PER             PER  Anna Lee
    1    0       correct        LOC             LOC      Oslo
    2    1   wrong label        ORG             PER      Acme
    >>> page = errors.to_html("errors.html")  # doctest: +SKIP
    """

    def __init__(
        self,
        sentences: list[list[str]],
        pairs: list[list[EntityPair]],
        kinds: tuple[str, ...],
    ) -> None:
        self.sentences = sentences
        self.pairs = pairs
        self.kinds = kinds
        self.frame = _make_frame(sentences, pairs, kinds)

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

        Returns
        -------
        TaggingErrors

        Raises
        ------
        TypeError
            If an argument is no sequence, or a row or tag of `y_true` or `y_pred` of another kind.
        ValueError
            If a sentence of X is no list of str, the numbers of sentences, or of words and tags of
            a sentence, differ, or a tag is empty; the message names the row.
        """
        true_rows, pred_rows = check_tag_sequences(y_true, y_pred)
        sentences = check_token_lists(X)
        check_tags(true_rows, sentences)
        tags = {tag for rows in (true_rows, pred_rows) for row in rows for tag in row}
        # Sentences without any entity are as likely those of an entity tagger.
        has_entities = tags <= {_OUTSIDE} or are_chunk_tags(sorted(tags))
        tag_pairs = list(zip(true_rows, pred_rows))
        if has_entities:
            pairs = [pair_entities(*map(get_entities, both)) for both in tag_pairs]
        else:
            pairs = [pair_tags(*both) for both in tag_pairs]
        return cls(sentences, pairs, ENTITY_KINDS if has_entities else TAG_KINDS)

    @classmethod
    def from_estimator(cls, tagger: Tagger, X: TokenLists, y: TagSequences) -> TaggingErrors:
        """Compare the predictions of a fitted tagger with gold tags.

        Parameters
        ----------
        tagger : fitted estimator
            A `DiceTokenTagger`, or anything whose ``predict(X)`` gives one tag per word.
        X : list, Series or object array of n_sentences lists of str
            Sentences as words.
        y : the same of list of str
            One gold tag per word.

        Returns
        -------
        TaggingErrors

        Raises
        ------
        TypeError, ValueError
            As :meth:`from_predictions`, and TypeError if `tagger` cannot predict.

        Examples
        --------
        >>> from skdice.inspection import TaggingErrors
        >>> TaggingErrors.from_estimator(tagger, X_test, y_test).summary()  # doctest: +SKIP
        """
        if isinstance(tagger, type) or not hasattr(tagger, "predict"):
            raise TypeError(
                f"tagger must be a fitted estimator with the method predict; got {tagger!r}."
            )
        return cls.from_predictions(X, y, tagger.predict(X))

    def summary(self) -> pd.DataFrame:
        """Count the kinds of results for each label.

        Returns
        -------
        DataFrame of shape (1 + n_labels, n_kinds)
            The first row, ``"all"``, is the sum; the labels follow in alphabetical order. Rows are
            those of the gold label; a spurious entity counts under its predicted label.

        Examples
        --------
        >>> from skdice.inspection import TaggingErrors
        >>> y_true, y_pred = [["DET", "NOUN", "VERB"]], [["DET", "VERB", "VERB"]]
        >>> TaggingErrors.from_predictions([["the", "dog", "barks"]], y_true, y_pred).summary()
               correct  wrong
        label
        all          2      1
        DET          1      0
        NOUN         0      1
        VERB         1      0
        """
        counts = Counter((pair.label, pair.kind) for row in self.pairs for pair in row)
        labels = sorted({label for label, _ in counts})
        table = [[counts[label, kind] for kind in self.kinds] for label in labels]
        totals = [sum(column) for column in zip(*table)] or [0] * len(self.kinds)
        index = pd.Index(["all", *labels], dtype=object, name="label")
        return pd.DataFrame([totals, *table], index=index, columns=list(self.kinds))

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str = "Tagging errors",
        max_sentences: int | None = None,
    ) -> str:
        """Return a page that shows the entities in running text.

        The page needs no other files. Gold entities have a line above, predicted ones a line
        below, coloured by kind; kinds and labels can be chosen, and sentences without errors left
        out.

        Parameters
        ----------
        path : str or path-like, optional
            File that the page is also written to.
        title : str, default="Tagging errors"
            Heading of the page.
        max_sentences : int, optional
            Most sentences of the page: the first with errors, and the first others if there are
            not as many. All by default.

        Returns
        -------
        str
            HTML.

        Raises
        ------
        ValueError
            If `max_sentences` is no int of at least 1.
        TypeError
            If `title` is no str.
        """
        if not isinstance(title, str):
            raise TypeError(f"title must be a str; got {describe(title)}.")
        rows: Sequence[int] = range(len(self.sentences))
        if max_sentences is not None:
            check_number("to_html", "max_sentences", max_sentences, low=1, integer=True)
            rows = self._choose_rows(max_sentences)
        page = render_page(self.sentences, self.pairs, self.kinds, rows, title)
        # Lone surrogates cannot be encoded; a browser shows the reference as a replacement mark.
        encoded = page.encode("utf-8", errors="xmlcharrefreplace")
        if path is not None:
            Path(path).write_bytes(encoded)
        return encoded.decode("utf-8")

    def _repr_html_(self) -> str:
        page = self.to_html(max_sentences=_NOTEBOOK_SENTENCES)
        return (
            '<iframe title="Tagging errors" sandbox="allow-scripts" '
            'style="width: 100%; height: 36rem; border: 1px solid #767676" '
            f'srcdoc="{html.escape(page)}"></iframe>'
        )

    def __repr__(self) -> str:
        totals = self.summary().iloc[0]
        counts = ", ".join(f"{count} {kind}" for kind, count in totals.items())
        return f"<TaggingErrors in {len(self.sentences)} sentences: {counts}>"

    def _choose_rows(self, n: int) -> Sequence[int]:
        """Return the first `n` rows with errors, filled up with the first ones without."""
        is_right = [all(pair.kind == "correct" for pair in row) for row in self.pairs]
        by_need = sorted(range(len(is_right)), key=is_right.__getitem__)
        return sorted(by_need[:n])


def _make_frame(
    sentences: Sequence[Sequence[str]],
    pairs: Sequence[Sequence[EntityPair]],
    kinds: Sequence[str],
) -> pd.DataFrame:
    records = [
        _make_record(row, words, pair)
        for row, (words, row_pairs) in enumerate(zip(sentences, pairs))
        for pair in row_pairs
    ]
    positions = [f"{side}_{end}" for side in ("gold", "predicted") for end in ("start", "end")]
    columns = ["row", "kind", "gold_label", "predicted_label", *positions, "text"]
    try:
        frame = pd.DataFrame(records, columns=columns)
    except UnicodeEncodeError:  # The str of pandas cannot hold lone surrogates.
        frame = pd.DataFrame(records, columns=columns, dtype=object)
    frame["kind"] = frame["kind"].astype(pd.CategoricalDtype(list(kinds)))
    return frame.astype({"row": "int64", **dict.fromkeys(positions, "Int64")})


def _make_record(row: int, words: Sequence[str], pair: EntityPair) -> tuple[object, ...]:
    gold_start, gold_end, gold_label = pair.gold or (None, None, None)
    predicted_start, predicted_end, predicted_label = pair.predicted or (None, None, None)
    return (
        row,
        pair.kind,
        gold_label,
        predicted_label,
        gold_start,
        gold_end,
        predicted_start,
        predicted_end,
        join_words(words[pair.start : pair.end]),
    )
