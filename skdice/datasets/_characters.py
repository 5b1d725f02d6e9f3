"""Characters of tagged words."""

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
    X, y : list, Series or object array of list of str
        The words of each sentence, and one tag for each word. Tags of words, not chunk tags.

    Returns
    -------
    X, y : list of list of str
        The characters of each sentence, and one tag for each in the scheme IOB2.

    Raises
    ------
    TypeError, ValueError
        If X or y is of another kind, a sentence has not one tag for each word, or a word or a tag
        is empty.

    Examples
    --------
    >>> from skdice.datasets import split_into_characters
    >>> split_into_characters([["他們", "來"]], [["PRON", "VERB"]])
    ([['他', '們', '來']], [['B-PRON', 'I-PRON', 'B-VERB']])
    """
    sentences = check_token_lists(X)
    all_chars: list[list[str]] = []
    all_tags: list[list[str]] = []
    for row, (words, tags) in enumerate(zip(sentences, check_tags(y, sentences))):
        if "" in words or "" in tags:
            what = "words" if "" in words else "tags"
            raise ValueError(f"The {what} must not be empty strings; row {row} has an empty one.")
        all_chars.append([char for word in words for char in word])
        # One object for each tag saves most of the memory of a large corpus.
        borders = {tag: (sys.intern(f"B-{tag}"), sys.intern(f"I-{tag}")) for tag in tags}
        all_tags.append(
            [borders[tag][i > 0] for word, tag in zip(words, tags) for i in range(len(word))]
        )
    return all_chars, all_tags
