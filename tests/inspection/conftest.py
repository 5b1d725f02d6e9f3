import matplotlib
import pytest
from hypothesis import strategies as st

from skdice.inspection import TaggingErrors

matplotlib.use("Agg")
import matplotlib.pyplot as plt

CHUNK_TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "S-PER", "E-LOC"]
POS_TAGS = ["NOUN", "VERB", "DET"]


def both(gold, predicted):
    return gold.split(), predicted.split()


def compare(sentences, words=None):
    """Compare pairs of tag sequences; the words are their numbers unless given."""
    y_true, y_pred = [gold for gold, _ in sentences], [predicted for _, predicted in sentences]
    X = words or [[f"w{i}" for i in range(len(tags))] for tags in y_true]
    return TaggingErrors.from_predictions(X, y_true, y_pred)


def sentence_pairs(tags, max_size=9):
    """Strategy of (gold tags, predicted tags) of one sentence."""
    pair = st.tuples(st.sampled_from(tags), st.sampled_from(tags))
    return st.lists(pair, max_size=max_size).map(
        lambda rows: tuple(map(list, zip(*rows))) or ([], [])
    )


def corpora(tags):
    return st.lists(sentence_pairs(tags), min_size=1, max_size=4)


# Two errors; no entities; all right; two errors.
MIXED = [
    both("B-PER I-PER I-PER O B-LOC O", "B-PER I-PER O O B-PER O"),
    both("O O", "O O"),
    both("B-PER O", "B-PER O"),
    both("O B-LOC", "B-LOC O"),
]


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")
