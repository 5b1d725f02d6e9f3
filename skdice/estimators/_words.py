"""The base of the estimators that tag the words of sentences."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from .._inputs import check_texts, check_token_lists, describe, object_array
from .._typing import ObjectArray, Spans, Strings, TagSequences, TokenLists
from ..tasks import WordTask, warn_of_background
from ..text import (
    Entity,
    Splitter,
    Threshold,
    check_spaced,
    check_threshold,
    checked_split,
    find_splitter,
    keep_above,
)
from ._base import FittedAttribute, Internals, TextEstimator

T = TypeVar("T", bound=WordTask)

_NO_SPACES = "This tagger learned words; pass a splitter that finds them, or train on characters."
# Sentences that predict_iter holds at a time.
_STREAM_SENTENCES = 512


class WordTagger(TextEstimator[T]):
    """Base of the taggers: every word gets a tag, and chunk tags make entities."""

    scheme_ = FittedAttribute[str | None]("task.scheme")
    splitter_ = FittedAttribute[str]("task.splitter")
    threshold_ = FittedAttribute[float | dict[str, float]]("task.threshold")

    def predict(self, X: TokenLists) -> ObjectArray[list[str]]:
        """Tag sentences.

        Parameters
        ----------
        X : list, Series or object array of list of str

        Returns
        -------
        ndarray of shape (n_sentences,), object
            A list of str for each sentence, one tag per word.
        """
        inner = self._ready()
        tags = inner.task.predict_tags(check_token_lists(X), inner.network)
        return object_array(tags)

    def predict_spans(
        self, X: TokenLists, threshold: Threshold | None = None
    ) -> ObjectArray[list[Entity]]:
        """Find the entities of sentences.

        Parameters
        ----------
        X : list, Series or object array of list of str
        threshold : float or dict of label to float, optional
            Leave out entities with a lower ``score``, so that the others are right more often. A
            higher threshold never adds one. Labels that a dict does not name keep all.

        Returns
        -------
        ndarray of shape (n_sentences,), object
            A list of ``Entity(start, end, label, score)`` for each sentence, in order; positions
            are words, ``end`` is exclusive.

        Raises
        ------
        ValueError
            If the tags are no chunk tags, so that there are no entities, or ``threshold`` is out of
            [0, 1] or names another label.
        """
        inner = self._ready()
        task, sentences = inner.task, check_token_lists(X)
        lowest = check_threshold(threshold, task.entity_labels)
        found = task.predict_entities(sentences, inner.network)
        return object_array([keep_above(row, lowest) for row in found])

    def predict_entities(
        self,
        texts: Strings,
        splitter: str | Splitter | None = None,
        threshold: Threshold | None = None,
    ) -> ObjectArray[list[Entity]]:
        """Find the entities of raw texts.

        Parameters
        ----------
        texts : list, Series or object array of str
        splitter : {"words", "whitespace", "characters"} or callable, optional
            Split as your training data is; ``splitter_`` by default. "words" splits at white space
            and makes every punctuation mark or symbol a separate word; "whitespace" only splits
            at white space. A callable returns the (start, end) character offsets of the words.
        threshold : float or dict of label to float, optional
            As in :meth:`predict_spans`.

        Returns
        -------
        ndarray of shape (n_texts,), object
            A list of ``Entity(start, end, label, score)`` for each text, in order; positions are
            characters: ``text[start:end]`` is the entity.

        Raises
        ------
        ValueError
            If a text is written without spaces, as Chinese and Thai are, the training sentences
            were words, and there is no ``splitter`` to find them.
        """
        self._ready()
        texts = check_texts(texts)
        split = find_splitter("predict_entities", self.splitter_ if splitter is None else splitter)
        if splitter is None and self.splitter_ == "words":
            for i, text in enumerate(texts):
                check_spaced(text, i, _NO_SPACES)
        offsets = [checked_split(split, text, i) for i, text in enumerate(texts)]
        sentences = [[text[a:b] for a, b in spans] for text, spans in zip(texts, offsets)]
        found = self.predict_spans(sentences, threshold)
        for row, spans in zip(found, offsets):
            row[:] = [e._replace(start=spans[e.start][0], end=spans[e.end - 1][1]) for e in row]
        return found

    def predict_iter(self, X: Iterable[Sequence[str]]) -> Iterator[list[str]]:
        """Tag a stream of sentences in flat memory.

        Parameters
        ----------
        X : iterable of list of str
            Read as needed, some hundred sentences ahead.

        Yields
        ------
        list of str
            The tags of each sentence, in order. A sentence that is not allowed raises its error
            after the tags of all sentences before it.
        """
        inner = self._ready()
        if isinstance(X, str | bytes) or not isinstance(X, Iterable):
            raise TypeError(f"X must be an iterable of lists of words; got {describe(X)}.")
        return self._iterate(inner, X)

    def score(self, X: TokenLists, y: TagSequences | Spans) -> float:
        """Return the micro F1 of entities or, of tags that are no chunk tags, the accuracy.

        Parameters
        ----------
        X : list, Series or object array of list of str
        y : the same of list of str; of a query tagger, or of list of (start, end, label)
            Tags and labels that never occurred in training count as missed.

        Returns
        -------
        float
            In [0, 1].
        """
        inner = self._ready()
        rows, task = inner.read_labelled(X, y), inner.task
        if task.scheme is None:
            warn_of_background(rows.y)
        return task.validator(rows, inner.network)()

    def _iterate(self, inner: Internals[T], X: Iterable[Sequence[str]]) -> Iterator[list[str]]:
        rows = enumerate(X)
        while True:
            chunk: list[list[str]] = []
            try:
                for i, row in islice(rows, _STREAM_SENTENCES):
                    chunk += check_token_lists([row], i)
            except Exception:  # The rows before it are tagged first.
                yield from inner.task.predict_tags(chunk, inner.network)
                raise
            yield from inner.task.predict_tags(chunk, inner.network)
            if len(chunk) < _STREAM_SENTENCES:
                return
