import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.augmentation import swap_mentions

from .toy import GAZETTEER, find, find_all

N_SEEDS = 30


def swap(row, gazetteer=GAZETTEER, **options):
    (mentions,) = find_all([row])
    return swap_mentions(row, mentions, gazetteer, **options)


def list_swaps(row, gazetteer=GAZETTEER, **options):
    """Return what comes out over many seeds."""
    return {swap(row, gazetteer, random_state=seed, **options) for seed in range(N_SEEDS)}


@pytest.mark.parametrize(
    "row, gazetteer, expected",
    [
        ("Oslo is wet", {"LOC": ["Rome"]}, {"Rome is wet"}),
        ("Oslo is wet", {"LOC": ["Rome", "Kiel"]}, {"Rome is wet", "Kiel is wet"}),
        ("Oslo is wet", {"LOC": ["Oslo", "oslo", "OSLO", "Rome"]}, {"Rome is wet"}),
        ("Oslo and OSLO and oslo", {"LOC": ["Rome"]}, {"Rome and Rome and Rome"}),
        ("Bo saw Oslo", {"LOC": ["Rome"]}, {"Bo saw Rome"}),
        ("Bo saw Oslo", {"LOC": ["Rome"], "PER": ["Bo"]}, {"Bo saw Rome"}),
        ("Bo saw Oslo", {"LOC": ["Rome"], "PER": ["Carla"]}, {"Carla saw Rome"}),
        ("Oslo or Kiel", {"LOC": ["Oslo", "Kiel"]}, {"Kiel or Oslo"}),
        ("Oslo or Kiel", {"LOC": ["Oslo", "Rome"]}, {"Rome or Oslo"}),
        ("Oslo or Kiel", {"LOC": ["Rome"]}, {"Rome or Rome"}),
        ("Bo, Oslo, Kiel", {"LOC": ["Rome"], "PER": ["Carla"]}, {"Carla, Rome, Rome"}),
        (
            "Oslo, Kiel, Lund",
            {"LOC": ["Oslo", "Kiel", "Lund"]},
            {"Kiel, Lund, Oslo", "Lund, Oslo, Kiel"},
        ),
        (("Oslo", "In OSLO?"), {"LOC": ["Rome"]}, {("Rome", "In Rome?")}),
        (("Oslo", "Kiel?"), {"LOC": ["Rome"]}, {("Rome", "Rome?")}),
        (("Oslo", "Kiel"), {"LOC": ["Rome"]}, {None}),
        (("Oslo", "nowhere"), {"LOC": ["Rome"]}, {("Rome", "nowhere")}),
        (("Oslo", "Rome"), {"LOC": ["Rome", "Kiel"]}, {("Rome", "Kiel")}),
    ],
)
def test_swaps(row, gazetteer, expected):
    assert list_swaps(row, gazetteer) == expected


@pytest.mark.parametrize(
    "row, gazetteer, expected",
    [
        (("Oslo", "In OSLO?"), {"LOC": ["Rome"]}, {("Rome", "In Rome?")}),
        (("Bo saw Oslo", "Oslo!"), GAZETTEER | {"LOC": ["Rome"]}, {("Bo saw Rome", "Rome!")}),
        # The replacement is not what else the row mentions, unless there is nothing else.
        (("Oslo or Kiel", "Oslo"), {"LOC": ["Kiel", "Rome"]}, {("Rome or Kiel", "Rome")}),
        (("Oslo or Kiel", "Oslo"), {"LOC": ["Kiel"]}, {("Kiel or Kiel", "Kiel")}),
        (("Oslo", "Kiel"), GAZETTEER, {None}),
        (("Oslo", "nowhere"), GAZETTEER, {None}),
        (("Oslo", "Oslo"), {"LOC": ["Rome"]}, {("Rome", "Rome")}),
    ],
)
def test_shared_only(row, gazetteer, expected):
    assert list_swaps(row, gazetteer, shared_only=True) == expected


@pytest.mark.parametrize(
    "row, mentions, gazetteer",
    [
        ("nothing here", [], GAZETTEER),
        ("Oslo", [(0, 4, "LOC")], {}),
        ("Oslo", [(0, 4, "LOC")], {"LOC": []}),
        ("Oslo", [(0, 4, "LOC")], {"LOC": ["OSLO"]}),
        ("Oslo", [(0, 4, "ORG")], GAZETTEER),
        ("", [], GAZETTEER),
        (("a", "b"), ([], []), GAZETTEER),
    ],
)
def test_nothing_to_swap(row, mentions, gazetteer):
    assert swap_mentions(row, mentions, gazetteer, random_state=0) is None


def test_offsets_are_used_as_they_are():
    row = "Oslo  Oslo, oslo"
    assert swap_mentions(row, [(6, 10, "LOC")], {"LOC": ["Rome"]}) == "Oslo  Rome, oslo"
    unsorted = [[12, 16, "LOC", 0.3], (0, 4, "LOC")]
    assert swap_mentions(row, unsorted, {"LOC": ["Rome"]}) == "Rome  Oslo, Rome"
    touching = [(0, 2, "A"), (2, 4, "B")]
    assert swap_mentions("abcd", touching, {"A": ["x"], "B": ["y"]}) == "xy"


def test_white_space_inside_a_mention_does_not_count():
    row, spans = "Ann  Lee", [(0, 8, "PER")]
    assert swap_mentions(row, spans, {"PER": ["ann lee"]}) is None


def test_a_mention_with_two_types_has_one_replacement():
    pair, mentions = ("Kiel", "in Kiel"), ([(0, 4, "PER")], [(3, 7, "LOC")])
    gazetteer = {"PER": ["Bo"], "LOC": ["Rome"]}
    assert swap_mentions(pair, mentions, gazetteer) == ("Bo", "in Bo")
    assert swap_mentions(pair, mentions, {"LOC": ["Rome"]}) == ("Rome", "in Rome")
    assert swap_mentions(pair, mentions, gazetteer | {"PER": ["kiel"]}) == ("Rome", "in Rome")


def test_different_texts_stay_different():
    pair, mentions = ("Is Oslo wet?", "Is Kiel wet?"), ([(3, 7, "LOC")], [])
    gazetteer = {"LOC": ["Kiel", "Rome"]}
    results = {swap_mentions(pair, mentions, gazetteer, random_state=i) for i in range(N_SEEDS)}
    assert results == {("Is Rome wet?", "Is Kiel wet?")}
    assert swap_mentions(pair, mentions, {"LOC": ["Kiel"]}) is None


@pytest.mark.parametrize("cities", [["Rome"], ["Kiel"]])
def test_a_pair_that_only_becomes_equal_is_given_up(cities):
    """The people can be chosen in a million million ways, and none of them helps."""
    people = "Ann, Bob, Cid, Dan"
    pair = (f"Oslo: {people}", f"Kiel: {people}")
    named = [(6 + 5 * i, 9 + 5 * i, "PER") for i in range(4)]
    gazetteer = {"LOC": cities, "PER": [f"Name{i}" for i in range(1000)]}
    second = named if cities == ["Kiel"] else [(0, 4, "LOC"), *named]
    mentions = ([(0, 4, "LOC"), *named], second)
    assert swap_mentions(pair, mentions, gazetteer, random_state=0) is None


def test_many_mentions_in_a_gazetteer_just_large_enough():
    names = [f"Town{i:03}" for i in range(200)]
    text = " ".join(names)
    mentions = [(8 * i, 8 * i + 7, "LOC") for i in range(len(names))]
    assert text[8:15] == "Town001"
    swapped = swap_mentions(text, mentions, {"LOC": names}, random_state=0).split()
    assert sorted(swapped) == names
    assert all(old != new for old, new in zip(names, swapped))


def test_replacements_are_all_used():
    assert list_swaps("Oslo") == {name for name in GAZETTEER["LOC"] if name != "Oslo"}


CITIES = st.sampled_from(["Oslo", "OSLO", "Kiel", "kiel", "Rome", "Lund", "Bo", "bo", "Carla"])
SENTENCES = st.lists(CITIES | st.sampled_from(["and", "is", "?"]), max_size=8).map(" ".join)


@settings(deadline=None, max_examples=150)
@given(
    st.tuples(SENTENCES, SENTENCES),
    st.lists(st.sampled_from(["Oslo", "oslo", "Kiel", "Rome", "Turku"]), unique=True),
    st.booleans(),
    st.integers(0, 9),
)
def test_swaps_are_consistent(pair, cities, shared_only, seed):
    gazetteer = {"LOC": cities, "PER": ["Bo", "Carla", "Dag Holm", "Eva", "Finn"]}
    before = [[(word, label(word)) for word in text.split(" ")] for text in pair]
    names = [{word.lower() for word, kind in words if kind} for words in before]
    swapped = swap(pair, gazetteer, shared_only=shared_only, random_state=seed)
    options = {
        word.lower(): {e.lower() for e in gazetteer[kind]} - {word.lower()}
        for words in before
        for word, kind in words
        if kind and (not shared_only or word.lower() in names[0] & names[1])
    }
    options = {name: found for name, found in options.items() if found}
    if swapped is None:
        # One city left for both sides is the only case that is turned down.
        assert not options or pair[0].lower() != pair[1].lower()
        return
    assert options
    replaced = {}
    for words, new_text in zip(before, swapped):
        new_words = new_text.replace("Dag Holm", "Dag_Holm").split(" ")
        assert len(new_words) == len(words)
        for (word, kind), new_word in zip(words, new_words):
            if word.lower() not in options:
                assert new_word == word
                continue
            new_word = new_word.replace("_", " ")
            assert new_word in gazetteer[kind]
            assert new_word.lower() != word.lower()
            assert replaced.setdefault(word.lower(), new_word) == new_word
    kept = (names[0] | names[1]) - set(options)
    if all(len(found - kept) >= len(options) for found in options.values()):
        assert len({new.lower() for new in replaced.values()} | kept) == len(replaced) + len(kept)
    if pair[0].lower() != pair[1].lower():
        assert swapped[0].lower() != swapped[1].lower()


def label(word):
    found = find(word)
    return found[0].label if found else None


@pytest.mark.parametrize(
    "make_state",
    [lambda: 7, lambda: np.int64(7), lambda: np.random.RandomState(7), lambda: rng(7)],
)
def test_random_state(make_state):
    gazetteer = {"LOC": [f"Town{i}" for i in range(1000)]}
    first = swap("Oslo", gazetteer, random_state=make_state())
    assert swap("Oslo", gazetteer, random_state=make_state()) == first
    state = make_state()
    if not isinstance(state, int | np.integer):
        results = {swap("Oslo", gazetteer, random_state=state) for _ in range(5)}
        assert len(results) > 1


def rng(seed):
    return np.random.default_rng(seed)


def test_global_random_states_are_untouched():
    before, before_numpy = random.getstate(), np.random.get_state()[1].copy()
    swap("Oslo", random_state=0)
    assert len({swap("Oslo") for _ in range(100)}) > 1
    assert random.getstate() == before
    np.testing.assert_array_equal(np.random.get_state()[1], before_numpy)


def test_inputs_are_untouched():
    mentions, gazetteer = [(8, 12, "LOC"), (0, 2, "PER")], {"LOC": ["Kiel", "Oslo"], "PER": ("Bo",)}
    swap_mentions("Bo left Oslo", mentions, gazetteer, random_state=0)
    assert mentions == [(8, 12, "LOC"), (0, 2, "PER")]
    assert gazetteer == {"LOC": ["Kiel", "Oslo"], "PER": ("Bo",)}


PAIR = ("Oslo", "Kiel")


@pytest.mark.parametrize(
    "row, mentions, options, error, message",
    [
        ("Oslo", [(0, 5, "LOC")], {}, ValueError, r"0 <= start < end <= 4.* has \(0, 5, 'LOC'\)"),
        ("Oslo", [(-1, 3, "LOC")], {}, ValueError, r"the row has \(-1, 3, 'LOC'\)"),
        ("Oslo", [(2, 2, "LOC")], {}, ValueError, "A mention must be"),
        ("Oslo", [(3, 2, "LOC")], {}, ValueError, "A mention must be"),
        ("Oslo", [(0.0, 2, "LOC")], {}, ValueError, "A mention must be"),
        ("Oslo", [(0, 2, 7)], {}, ValueError, "A mention must be"),
        ("Oslo", [(0, 2)], {}, ValueError, "A mention must be"),
        ("Oslo", ["LOC"], {}, ValueError, "A mention must be"),
        ("Oslo", [(1, 4, "A"), (0, 2, "B")], {}, ValueError, "must not overlap; got .*'B'.*'A'"),
        ("Oslo", [(0, 4, "A"), (0, 4, "B")], {}, ValueError, "must not overlap"),
        ("Oslo", None, {}, ValueError, "must be a list of entities; got None"),
        (PAIR, [(0, 4, "LOC")], {}, ValueError, "must be two lists of entities"),
        (PAIR, ([], [], []), {}, ValueError, "must be two lists of entities"),
        (PAIR, ([], [(0, 5, "LOC")]), {}, ValueError, "<= 4"),
        (["Oslo", "Kiel"], ([], []), {}, ValueError, "the row is .* of type list"),
        (("Oslo",), ([],), {}, ValueError, "the row is"),
        (3, [], {}, ValueError, "the row is 3 of type int"),
        ("Oslo", [], {"shared_only": True}, ValueError, "shared_only=True needs pairs"),
        (PAIR, ([], []), {"shared_only": "auto"}, ValueError, "'shared_only' param.* Got 'auto'"),
        (PAIR, ([], []), {"shared_only": 1}, ValueError, "Got 1 instead"),
        ("Oslo", [], {"random_state": -1}, ValueError, "'random_state' parameter of swap_ment"),
        ("Oslo", [], {"gazetteer": ["Rome"]}, TypeError, "gazetteer must map.* got .'Rome'."),
        ("Oslo", [], {"gazetteer": {"LOC": "Rome"}}, TypeError, "'LOC': 'Rome' of type str"),
        ("Oslo", [], {"gazetteer": {"LOC": {"Rome"}}}, TypeError, "of type set"),
        ("Oslo", [], {"gazetteer": {1: ["Rome"]}}, TypeError, "got 1: "),
        ("Oslo", [], {"gazetteer": {"LOC": ["Rome", 2]}}, TypeError, "mention 1 of 'LOC' is 2"),
        ("Oslo", [], {"gazetteer": {"LOC": ["Rome", " "]}}, ValueError, "mention 1 of 'LOC' is em"),
    ],
)
def test_errors(row, mentions, options, error, message):
    options = {"gazetteer": GAZETTEER, **options}
    with pytest.raises(error, match=message):
        swap_mentions(row, mentions, options.pop("gazetteer"), **options)
