import itertools
from dataclasses import replace

import numpy as np
import pytest

from skdice.metrics import are_chunk_tags, get_entities, infer_scheme
from skdice.text import TagDecoder, allowed_transitions, spelled_roles, write_tags

TYPES = ("X", "Y")
# How a chunk of n words is written: first word, inner words, last word, single word.
ROLES = {
    "IOB2": ("B", "I", "I", "B"),
    "IOBES": ("B", "I", "E", "S"),
    "BMES": ("B", "M", "E", "S"),
    "BILOU": ("B", "I", "L", "U"),
}
SCHEMES = ["IOB1", *ROLES]
# BMES and BILOU are IOBES by other names.
TRANSITIONS = {name: name if name in ("IOB1", "IOB2") else "IOBES" for name in SCHEMES}


def tags_of(scheme):
    roles = "BI" if scheme == "IOB1" else sorted(set(ROLES[scheme]))
    return ["O"] + [f"{role}-{kind}" for kind in TYPES for role in roles]


def write_chunk(scheme, n_words, kind, kind_before):
    """Return the tags of a chunk, given the type of a chunk right before it (or None)."""
    if scheme == "IOB1":
        first = "B" if kind == kind_before else "I"
        return tuple(f"{role}-{kind}" for role in first + "I" * (n_words - 1))
    first, inner, last, single = ROLES[scheme]
    roles = single if n_words == 1 else first + inner * (n_words - 2) + last
    return tuple(f"{role}-{kind}" for role in roles)


def all_taggings(scheme, n_words, kind_before=None):
    """Yield the tags of all ways to mark chunks in a sentence."""
    if n_words == 0:
        yield ()
        return
    for rest in all_taggings(scheme, n_words - 1):
        yield ("O", *rest)
    for n_chunk, kind in itertools.product(range(1, n_words + 1), TYPES):
        chunk = write_chunk(scheme, n_chunk, kind, kind_before)
        for rest in all_taggings(scheme, n_words - n_chunk, kind):
            yield chunk + rest


def is_well_formed(sequence, transitions):
    start, follow, end = transitions
    if not len(sequence):
        return True
    pairs = itertools.pairwise(sequence)
    return start[sequence[0]] and end[sequence[-1]] and all(follow[a, b] for a, b in pairs)


def best_of_all(scheme, classes, scores):
    """Return the tagging with the highest score, by trying all of them."""
    index = {tag: i for i, tag in enumerate(classes)}
    taggings = list(all_taggings(scheme, len(scores)))
    numbers = np.array([[index[tag] for tag in tags] for tags in taggings], dtype=np.int64)
    totals = scores[np.arange(len(scores)), numbers.reshape(len(taggings), len(scores))].sum(1)
    return list(taggings[totals.argmax()])


def decode(classes, scheme, scores, offsets):
    decoder = TagDecoder(np.array(classes), allowed_transitions(classes, scheme), None)
    return decoder.tags(scores, offsets)


@pytest.mark.parametrize("tags, expected", [
    (["O", "B-PER", "I-PER"], True),
    (["B-PER-x", "U-1", "L-é", "M-a b", "S- ", "E-\n"], True), ([], False),
    (["NOUN", "VERB"], False), (["O", "B-PER", "NOUN"], False), (["O", "B-"], False),
    (["O", "X-PER"], False), (["", "B-PER"], False), (["O\n", "B-PER"], False),
])  # fmt: skip
def test_are_chunk_tags(tags, expected):
    assert are_chunk_tags(tags) is expected


@pytest.mark.parametrize("sentences, scheme", [
    (["O B-X I-X O"], "IOB2"), ([""], "IOB2"), (["B-X M-X"], "IOB2"), (["O I-X I-X"], "IOB1"),
    (["I-X B-X I-X"], "IOB1"), (["O", "O O I-X"], "IOB1"),
    (["B-X I-X", "B-X O B-Y", "I-X O"], "IOB2"),  # a stray I among chunks that start with B
    (["I-X O I-Y I-Y", "B-X O"], "IOB1"),  # a stray B among chunks that start with I
    (["B-X M-X E-X", "S-X"], "IOBES"), (["B-X L-X"], "IOBES"), (["I-X", "U-X"], "IOBES"),
])  # fmt: skip
def test_infer_scheme(sentences, scheme):
    assert infer_scheme([sentence.split() for sentence in sentences]) == scheme


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n_words", [0, 1, 2, 3, 4])
def test_allowed_transitions_allow_what_the_scheme_can_write(scheme, n_words):
    classes = tags_of(scheme)
    transitions = allowed_transitions(classes, TRANSITIONS[scheme])
    sequences = itertools.product(range(len(classes)), repeat=n_words)
    allowed = {
        tuple(classes[i] for i in sequence)
        for sequence in sequences
        if is_well_formed(sequence, transitions)
    }
    assert allowed == set(all_taggings(scheme, n_words))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_best_sequences_against_all_taggings(scheme):
    """Also of more sentences than are decoded together."""
    classes, lengths = sorted(tags_of(scheme)), [3, 0, 5, 1, 4, 0, 2, 5]
    n_times = 5_000 if scheme == "BILOU" else 2
    offsets = np.cumsum([0, *lengths * n_times])
    scores = np.random.default_rng(0).normal(size=(offsets[-1], len(classes)))
    best = decode(classes, TRANSITIONS[scheme], scores, offsets)
    for i in [*range(8), *range(len(best) - 8, len(best))]:
        expected = best_of_all(scheme, classes, scores[slice(*offsets[i : i + 2])])
        assert best[i] == expected


def test_sentences_that_no_sequence_can_tag_get_the_best_class_of_each_word():
    classes = ["B-X", "E-X", "I-X"]  # no O and no S: chunks of two words or more
    scores = np.array([[0, 1, 2], [0, 1, 2], [0, 1, 2], [3, 1, 2.0]])
    best = decode(classes, "IOBES", scores, np.array([0, 1, 3, 3, 4]))
    assert best == [["I-X"], ["B-X", "E-X"], [], ["B-X"]]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tags_of_entities_are_those_that_were_read(scheme):
    for tags in all_taggings(scheme, 4):
        spans = get_entities(tags, mode="strict", scheme=scheme)
        assert write_tags(spans, 4, scheme) == list(tags)
        assert get_entities(tags) == spans
        if TRANSITIONS[scheme] == "IOBES":
            assert write_tags(spans, 4, "IOBES", spelled_roles(tags)) == list(tags)
    assert write_tags([(1, 2, "X", 0.5)], 3, "IOBES") == ["O", "S-X", "O"]


def test_entities_that_are_left_out_leave_tags_of_the_scheme():
    """In IOB1 a B is an I where the entity before it is left out."""
    classes = ["B-X", "I-X", "O"]
    logits = np.array([[0, 1, 0], [9, 0, 0], [1, 0, 0], [0, 0, 9]], dtype=np.float32)
    offsets, follow = np.array([0, 4]), allowed_transitions(classes, "IOB1")
    decoder = TagDecoder(np.array(classes, dtype=object), follow, 2)
    assert decoder.tags(logits, offsets) == [["I-X", "B-X", "B-X", "O"]]
    (tags,) = replace(decoder, lowest={"X": 0.9}).tags(logits, offsets)
    assert tags == ["O", "I-X", "O", "O"]
    assert get_entities(tags, mode="strict", scheme="IOB1") == [(1, 2, "X")]
