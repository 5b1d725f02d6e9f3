"""From tagged words to tagged characters."""

import sys
from collections.abc import Sequence

from .._inputs import check_tags, check_token_lists


def split_into_characters(
    X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """Turn words with part-of-speech tags into characters that also tell where the words are.

    The first character of a word of tag ``x`` is tagged ``B-x``, the others ``I-x``. A tagger of
    characters then has to find the words, too: entity-level F1 counts a word only if both its
    borders and its tag are right. So the paper judges Chinese part-of-speech tagging (Table 3).

    Characters are Unicode code points: a base letter and each of its combining marks, or the parts
    of an emoji, are characters of their own, and so is a space inside a word. Nothing is
    normalised: ``"".join`` gives the words back.

    Parameters
    ----------
    X : list, Series or object array of list of str
        The words of each sentence.
    y : the same of list of str
        The tags of each sentence, one for each word. Tags of words, not chunk tags (``B-PER``).

    Returns
    -------
    X : list of list of str
        The characters of each sentence, each a string of length 1.
    y : list of list of str
        The tags of each sentence, one for each character, in the scheme IOB2.

    Raises
    ------
    TypeError
        If X or y is no list, Series or array.
    ValueError
        If a sentence is no list of str, the numbers of sentences differ, a sentence has not one tag
        for each word, or a word or a tag is empty.

    See Also
    --------
    read_conllu : Words and part-of-speech tags of Universal Dependencies.

    Examples
    --------
    >>> from skdice.datasets import split_into_characters
    >>> X, y = split_into_characters([["他們", "來"]], [["PRON", "VERB"]])
    >>> X
    [['他', '們', '來']]
    >>> y
    [['B-PRON', 'I-PRON', 'B-VERB']]

    The words and tags of a prediction are its entities:

    >>> from skdice.metrics import get_entities
    >>> [("".join(X[0][start:end]), tag) for start, end, tag in get_entities(y[0])]
    [('他們', 'PRON'), ('來', 'VERB')]
    """
    sentences = check_token_lists(X)
    rows = zip(sentences, check_tags(y, sentences))
    pairs = [_split_sentence(words, tags, row) for row, (words, tags) in enumerate(rows)]
    return [chars for chars, _ in pairs], [tags for _, tags in pairs]


def _split_sentence(
    words: Sequence[str], tags: Sequence[str], row: int
) -> tuple[list[str], list[str]]:
    for what, values in (("words", words), ("tags", tags)):
        if "" in values:
            raise ValueError(
                f"The {what} must not be empty strings; {what[:-1]} {values.index('')} of row "
                f"{row} is ''."
            )
    chars: list[str] = []
    char_tags: list[str] = []
    for word, tag in zip(words, tags):
        chars += word
        # One object for each tag saves most of the memory of a large corpus.
        char_tags.append(sys.intern(f"B-{tag}"))
        char_tags += [sys.intern(f"I-{tag}")] * (len(word) - 1)
    return chars, char_tags
