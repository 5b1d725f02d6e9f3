"""From raw texts with spans of characters to words with tags."""

import warnings
from bisect import bisect_left, bisect_right
from typing import Any

from .._inputs import Span, check_texts, check_y, list_rows, list_spans, read_span
from .._parameters import check_option
from ..metrics import SPELLINGS
from ..text import Splitter, check_spaced, checked_split, find_splitter, write_tags

# How a span does not fit words, as messages say it.
_KINDS = {
    "white space": "have white space at their ends",
    "cut": "cut a word",
    "outside": "reach out of their text",
    "no word": "hold no word",
    "overlap": "overlap with one that starts before or is longer",
}


def words_from_spans(
    texts: Any,
    spans: Any,
    *,
    splitter: str | Splitter | None = None,
    scheme: str | None = "IOB2",
    on_misaligned: str = "expand",
) -> tuple[list[list[str]], list[Any]]:
    """Turn raw texts and entities by characters into words with tags, as the taggers learn them.

    Parameters
    ----------
    texts : list, Series or array of n_texts str
    spans : list, Series or array of n_texts lists of (start, end, label)
        Entities of each text: ``text[start:end]``, in code points. A score after the label is not
        looked at, so what ``predict_entities`` gives can be passed. A span given twice is one.
    splitter : {"words", "whitespace", "characters"} or callable, optional
        "words", the default, parts at white space and makes every punctuation mark or symbol a word
        of its own; "whitespace" only parts there; "characters" are for languages without spaces,
        which the default refuses. A callable gives the (start, end) offsets of the words of a text.
    scheme : {"IOB1", "IOB2", "IOBES", "BIOES", "BMES", "BILOU"} or None, default="IOB2"
        Scheme of the tags. With None y is rows of (start, end, label) by words, which may overlap,
        for ``DiceQueryTagger(decode="nested")``.
    on_misaligned : {"expand", "raise", "skip"}, default="expand"
        Spans that cut a word or reach out of their text are expanded to whole words inside it, are
        an error, or are left out. White space at the ends of a span is cut off, and spans without a
        word, or that overlap with another one (unless ``scheme=None``), are left out; with "raise"
        these are errors, too. A warning counts what does not fit, by kind and with the rows.

    Returns
    -------
    X : list of n_texts lists of str
        The words of each text.
    y : list of n_texts lists of str
        Their tags, or without a scheme lists of (start, end, label).

    Raises
    ------
    TypeError, ValueError
        If texts or spans are of another kind, or with ``on_misaligned="raise"`` a span does not
        fit; the message names the row.

    Examples
    --------
    >>> from skdice.datasets import words_from_spans
    >>> words_from_spans(["Ann met Bo."], [[(0, 3, "PER"), (8, 10, "PER")]])
    ([['Ann', 'met', 'Bo', '.']], [['B-PER', 'O', 'B-PER', 'O']])
    """
    owner = "words_from_spans"
    check_option(owner, "scheme", scheme, (None, *SPELLINGS))
    check_option(owner, "on_misaligned", on_misaligned, ("expand", "raise", "skip"))
    split = find_splitter(owner, "words" if splitter is None else splitter)
    texts = check_texts(texts)
    if splitter is None:
        for i, text in enumerate(texts):
            check_spaced(text, i, "Pass splitter='characters', or one that finds the words.")
    rows = check_y(spans, len(texts), "lists of (start, end, label)", "texts", "spans")
    kept = ("white space", "cut", "outside") if on_misaligned == "expand" else ("white space",)
    misfits: dict[str, list[int]] = {}
    X: list[list[str]] = []
    y: list[Any] = []
    n_spans = 0
    for i, (text, row) in enumerate(zip(texts, rows)):
        words = checked_split(split, text, i)
        given = {read_span(span, "spans", f"row {i}") for span in list_spans(row, "spans", i)}
        n_spans += len(given)
        found: list[Span] = []
        for span in sorted(given, key=lambda span: (span[0], -span[1], span[2])):
            placed, misfit = _place(span, text, words)
            if scheme is not None and placed and found and placed[0] < found[-1][1]:
                misfit = "overlap"
            if misfit and on_misaligned == "raise":
                got = f"Span {span} of row {i}, {text[max(0, span[0]) : max(0, span[1])]!r}, is one"
                choice = "on_misaligned='expand' or 'skip' goes on"
                raise ValueError(f"{got} of those that {_KINDS[misfit]}; {choice}.")
            if misfit:
                misfits.setdefault(misfit, []).append(i)
            if placed and (misfit is None or misfit in kept):
                found.append(placed)
        X.append([text[a:b] for a, b in words])
        nested = list(dict.fromkeys(found))
        y.append(nested if scheme is None else write_tags(found, len(words), scheme))
    if misfits:
        kinds = []
        for kind, places in misfits.items():
            done = "kept" if kind in kept else "left out"
            kinds.append(f"{len(places)} {_KINDS[kind]}, {done} ({list_rows(sorted({*places}))})")
        warnings.warn(f"Of {n_spans} spans {'; '.join(kinds)}.", stacklevel=2)
    return X, y


def _place(span: Span, text: str, words: list[tuple[int, int]]) -> tuple[Span | None, str | None]:
    """Return the words that a span touches, if any, and how it does not fit them."""
    start, end, label = span
    inside = text[max(0, start) : max(0, end)]
    first_letter = max(0, start) + len(inside) - len(inside.lstrip())
    stop = first_letter + len(inside.strip())
    first = bisect_right(words, first_letter, key=lambda word: word[1])
    last = bisect_left(words, stop, key=lambda word: word[0])
    if first_letter >= stop or first >= last:
        return None, "no word"
    placed = (first, last, label)
    if start < 0 or end > len(text):
        return placed, "outside"
    if (words[first][0], words[last - 1][1]) != (first_letter, stop):
        return placed, "cut"
    return placed, None if (first_letter, stop) == (start, end) else "white space"
