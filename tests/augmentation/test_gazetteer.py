import numpy as np
import pandas as pd
import pytest

from skdice.augmentation import collect_mentions
from skdice.datasets import make_tagging
from skdice.metrics import get_entities


@pytest.mark.parametrize(
    "words, mention",
    [
        ("Oslo", "Oslo"),
        ("Ann Lee", "Ann Lee"),
        ("St . Olav", "St. Olav"),
        ("Kiel , Bay of", "Kiel, Bay of"),
        ("People 's Daily", "People's Daily"),
        ("People ’s Daily", "People’s Daily"),
        ("People ' s Daily", "People's Daily"),
        ("Farmers ' Union", "Farmers' Union"),
        ("L ' Abri", "L'Abri"),
        ("Saxe - Coburg", "Saxe-Coburg"),
        ("Alpha / Beta", "Alpha/Beta"),
        ("Kiel ( North )", "Kiel (North)"),
        ("Lee & Sons", "Lee & Sons"),
        ("Wow !", "Wow!"),
        ("Anglo-Saxon X-1", "Anglo-Saxon X-1"),
    ],
)
def test_words_are_joined_naturally(words, mention):
    words = words.split()
    tags = ["B-X"] + ["I-X"] * (len(words) - 1)
    assert collect_mentions([words], [tags]) == {"X": [mention]}


@pytest.mark.parametrize(
    "tags",
    [
        ["B-PER", "I-PER", "O", "B-LOC", "B-LOC"],
        ["I-PER", "I-PER", "O", "I-LOC", "B-LOC"],
        ["B-PER", "E-PER", "O", "S-LOC", "S-LOC"],
        ["B-PER", "L-PER", "O", "U-LOC", "U-LOC"],
    ],
)
def test_schemes(tags):
    X = [["Ann", "Lee", "left", "Oslo", "Kiel"]]
    assert collect_mentions(X, [tags]) == {"LOC": ["Kiel", "Oslo"], "PER": ["Ann Lee"]}


def test_mentions_are_distinct_and_sorted():
    X = [["Oslo", "Kiel"], ["Kiel"], [], ["OSLO"], ["hi"]]
    y = [["B-Z", "B-A"], ["B-Z"], [], ["B-Z"], ["O"]]
    collected = collect_mentions(X, y)
    assert collected == {"A": ["Kiel"], "Z": ["Kiel", "OSLO", "Oslo"]}
    assert list(collected) == ["A", "Z"]


def test_no_entities():
    assert collect_mentions([["hi"], []], [["O"], []]) == {}
    assert collect_mentions([], []) == {}


def test_all_entities_of_a_corpus_are_collected():
    X, y = make_tagging(200, random_state=0)
    expected = {}
    for words, tags in zip(X, y):
        for start, end, label in get_entities(tags):
            expected.setdefault(label, set()).add(" ".join(words[start:end]))
    assert collect_mentions(X, y) == {label: sorted(found) for label, found in expected.items()}


@pytest.mark.parametrize("make", [tuple, pd.Series, lambda rows: np.array(rows, dtype=object)])
def test_containers(make):
    X, y = [["Ann", "Lee"], ["Oslo", "Kiel"]], [["B-P", "I-P"], ["B-L", "O"]]
    assert collect_mentions(make(X), make(y)) == {"L": ["Oslo"], "P": ["Ann Lee"]}


@pytest.mark.parametrize(
    "X, y, error, message",
    [
        ([["a"]], [["O"], ["O"]], ValueError, "got 1 sentences and 2 rows of tags"),
        ([["a"], ["a"]], [["O"], ["O", "O"]], ValueError, "row 1 has 1 words and 2 tags"),
        ([["a"], ["a"]], [["O"], ["NOUN"]], ValueError, "chunk tags.* row 1 has 'NOUN'"),
        ([["a"], ["a"]], [["O"], [""]], ValueError, "chunk tags.* row 1 has ''"),
        ([["a"], ["a"]], [["O"], [1]], ValueError, "position 0 of row 1 of y is 1 of type int"),
        ([["a"], ["a"]], [["O"], "O"], ValueError, "row 1 is the bare string 'O'"),
        ([["a"], "a"], [["O"], ["O"]], ValueError, "row 1 is the bare string 'a'"),
        ([["a"], None], [["O"], ["O"]], ValueError, "row 1 is None"),
        ([["a"], [2]], [["O"], ["O"]], ValueError, "position 0 of row 1 of X is 2 of type int"),
        ("a", [["O"]], TypeError, "X must be a list.* got 'a'"),
        ([["a"]], {0: ["O"]}, TypeError, "y must be a list"),
    ],
)
def test_errors(X, y, error, message):
    with pytest.raises(error, match=message):
        collect_mentions(X, y)
