import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from skdice.model_selection import StratifiedTagKFold

tags = st.lists(st.sampled_from(["A", "B", "C", "D"]), max_size=5)
chunk_tags = st.lists(st.sampled_from(["O", "B-X", "I-X", "S-Y", "B-Z"]), max_size=5)
corpora = st.one_of(st.lists(tags, min_size=6), st.lists(chunk_tags, min_size=6))
splitters = st.builds(
    StratifiedTagKFold, st.integers(2, 6), shuffle=st.just(True), random_state=st.integers(0, 99)
) | st.builds(StratifiedTagKFold, st.integers(2, 6))


def split(y, n_splits=5, **params):
    return quiet(StratifiedTagKFold(n_splits, **params), y)


def quiet(splitter, y):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some tags of y occur in fewer")
        return list(splitter.split(np.zeros(len(y)), y))


def parts_of(y, splits):
    """Return for each type the numbers of sentences with it in the test parts."""
    types = [{tag[2:] if "-" in tag else tag for tag in row if tag != "O"} for row in y]
    counts = [Counter(kind for i in test for kind in types[i]) for _, test in splits]
    return {kind: [count[kind] for count in counts] for kind in set().union(*counts)}


def skewed_corpus(n_sentences, n_tags, seed=0):
    """Sentences of 0 to 12 words whose tags are rarer and rarer."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n_tags + 1) ** 1.5
    lengths = rng.integers(0, 13, n_sentences)
    drawn = rng.choice(n_tags, lengths.sum(), p=weights / weights.sum())
    return [[f"T{tag}" for tag in row] for row in np.split(drawn, np.cumsum(lengths)[:-1])]


@settings(deadline=None)
@given(corpora, splitters)
def test_is_a_partition_of_equal_parts(y, splitter):
    splits = quiet(splitter, y)
    assert len(splits) == splitter.get_n_splits()
    everything = np.arange(len(y))
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), everything)
    for train, test in splits:
        np.testing.assert_array_equal(train, np.setdiff1d(everything, test))
        np.testing.assert_array_equal(test, np.sort(test))
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=8), splitters, st.randoms())
def test_sentences_of_one_tag_each_are_spread_evenly(numbers, splitter, random):
    y = [[f"T{tag}"] * random.randint(1, 9) for tag, n in enumerate(numbers) for _ in range(n)]
    y += [[]] * 6
    random.shuffle(y)
    splits = quiet(splitter, y)
    assert n_missing(y, splits) == 0
    for counts in parts_of(y, splits).values():
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("n_splits, allowed", [(3, 0), (5, 0), (10, 1)])
def test_rare_tags_among_others_are_in_every_fold(n_splits, allowed):
    corpora = [skewed_corpus(400, 60, seed) for seed in range(5)]
    assert sum(n_missing(y, split(y, n_splits)) for y in corpora) <= allowed
    assert sum(n_missing(y, list(KFold(n_splits).split(y))) for y in corpora) > 30


def n_missing(y, splits):
    """Return how many times a tag is missing from a test part that could have it."""
    counts = parts_of(y, splits).values()
    return sum(min(sum(parts), len(splits)) - np.count_nonzero(parts) for parts in counts)


def test_chunk_tags_count_by_type():
    y = [["B-X", "O"], ["I-X"], ["S-X"], ["E-X", "O"]] + [["O", "O"]] * 4
    with warnings.catch_warnings(action="error"):
        splits = list(StratifiedTagKFold(4).split(y, y))
    assert parts_of(y, splits) == {"X": [1, 1, 1, 1]}


def test_other_tags_count_as_they_are():
    y = [["B-X", "NN"], ["I-X", "NN"]] * 3
    with pytest.warns(UserWarning, match=r"n_splits=4, .* lack them: 'B-X', 'I-X'\.$"):
        list(StratifiedTagKFold(4).split(y, y))


def test_without_any_label():
    for y in ([["O"]] * 7, [[]] * 7):
        assert [len(test) for _, test in split(y, 3)] == [3, 2, 2]


def test_shuffling():
    y = skewed_corpus(100, 5)
    runs = {seed: split(y, shuffle=True, random_state=seed) for seed in (0, 1)}
    again = split(y, shuffle=True, random_state=0)
    for (_, one), (_, other) in zip(runs[0], again):
        np.testing.assert_array_equal(one, other)
    assert any(list(a[1]) != list(b[1]) for a, b in zip(runs[0], runs[1]))
    for (_, one), (_, other) in zip(split(y), split(y)):
        np.testing.assert_array_equal(one, other)


class TestErrors:
    def test_numbers_of_rows(self):
        y = [["O"], ["B-X"]]
        with pytest.raises(ValueError, match=r"n_splits=3 must not be greater .* Got 2"):
            list(StratifiedTagKFold(3).split(y, y))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            list(StratifiedTagKFold(2).split([1, 2, 3], y))

    def test_y_is_needed(self):
        with pytest.raises(ValueError, match="needs y, a list of tags"):
            StratifiedTagKFold(2).split([["a"], ["b"]])

    @pytest.mark.parametrize("y, error, message", [
        (["A", "B"], TypeError, "row 0 of y must be a list of tags .* got 'A' of type str"),
        ([["A"], ["A", 3]], TypeError, "row 1 of y: tag 1 must be a string; got 3 of type int"),
        ([["A", ""], ["A"]], ValueError, "row 0 of y: tag 1 must not be empty"),
    ])  # fmt: skip
    def test_rows(self, y, error, message):
        with pytest.raises(error, match=message):
            StratifiedTagKFold(2).split(y, y)

    def test_groups_stay_together(self):
        y = [["B-PER"], ["O"], ["B-LOC"], ["O"], ["O"], ["B-PER"], ["B-LOC"], ["O"]]
        groups = [("a", 1), ("a", 1), 2, 2, "c", "c", np.nan, float("nan")]
        for train, test in StratifiedTagKFold(2).split(y, y, groups=groups):
            assert sorted([*train, *test]) == list(range(8))
            assert {str(groups[i]) for i in train}.isdisjoint(str(groups[i]) for i in test)
            found = {tag for i in test for tag in y[i]}
            assert found == {"O", "B-PER", "B-LOC"}
        with pytest.raises(TypeError, match=r"groups must be names.* row 0 is \['a'\]"):
            StratifiedTagKFold(2).split(y, y, groups=[["a"]] * 8)
        with pytest.raises(ValueError, match="n_splits=5 must not be greater"):
            next(StratifiedTagKFold(5).split(y, y, groups=groups))
