"""Tag schemes: which tag may follow which, the best well-formed sequence, and tags of entities."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..metrics import SPELLINGS, parse_tag

# Sentences are decoded together as long as their tables have fewer numbers than this.
_VITERBI_CELLS = 1_000_000


def spelled_roles(tags: Iterable[str]) -> dict[str, str]:
    """Return the letters that chunk tags have in place of I, E and S: in BMES ``{"I": "M"}``.

    With them :func:`write_tags` writes BMES and BILOU, which :func:`infer_scheme` calls IOBES.
    """
    letters = {tag[0] for tag in tags}
    roles: dict[str, str] = {}
    for scheme in ("BMES", "BILOU"):
        other = {role: a for role, a in zip("BIES", SPELLINGS[scheme]) if role != a}
        if letters & set(other.values()):
            roles |= other
    return roles


def write_tags(
    spans: Iterable[Any], n_words: int, scheme: str, roles: Mapping[str, str] | None = None
) -> list[str]:
    """Return the tags of a sentence of ``n_words``, given its disjoint entities in order.

    ``spans`` are (start, end, label), and may have a score. ``roles`` has the letters to write in
    place of those of the scheme, as :func:`spelled_roles` finds them.
    """
    letters = dict(zip("BIES", SPELLINGS[scheme]))
    has_ends = "E" in letters
    letters.update(roles or {})
    tags = ["O"] * n_words
    end_of_label: dict[str, int] = {}
    for start, end, label, *_ in spans:
        names = ["I"] * (end - start)
        if has_ends:
            names[0], names[-1] = ("B", "E") if end - start > 1 else ("S", "S")
        elif scheme == "IOB2" or end_of_label.get(label) == start:
            names[0] = "B"  # IOB1 writes B only to part two entities of one label.
        tags[start:end] = [f"{letters[name]}-{label}" for name in names]
        end_of_label[label] = end
    return tags


def allowed_transitions(classes: Sequence[str], scheme: str) -> tuple[np.ndarray, ...]:
    """Return which chunk tags may start a sentence, follow one another, and end it, as bools.

    The first and the last array have the shape (n_classes,), the other one (n_classes, n_classes):
    ``follow[a, b]`` says that class b may come right after class a.
    """
    # The end of a sentence allows what a following O allows, the start what a preceding one does.
    role, label = np.array([parse_tag(tag) for tag in (*classes, "O")], dtype=object).T
    before, same_label = role[:, None], label[:, None] == label
    if scheme in ("IOB1", "IOB2"):
        # In IOB1 a B only parts two chunks of one label; in IOB2 an I only goes on with one.
        bound = "B" if scheme == "IOB1" else "I"
        follow = (role != bound) | (same_label & (before != "O"))
    else:
        goes_on = same_label & np.isin(role, ["I", "E"])
        follow = np.where(np.isin(before, ["B", "I"]), goes_on, np.isin(role, ["O", "B", "S"]))
    return follow[-1, :-1], follow[:-1, :-1], follow[:-1, -1]


def best_sequences(
    scores: np.ndarray, offsets: np.ndarray, transitions: tuple[np.ndarray, ...] | None
) -> np.ndarray:
    """Return the classes with the highest total score among the well-formed sequences.

    ``scores`` are logits or log-probabilities of shape (n_words, n_classes), ``transitions`` come
    from :func:`allowed_transitions`. Sentence i has the words ``offsets[i]:offsets[i + 1]``; one
    that no sequence of these classes can tag gets the best class of each word, as all do without
    transitions.
    """
    best: np.ndarray = scores.argmax(1)
    if transitions is None:
        return best
    start, follow, end = transitions
    # Where the best class of every word makes a well-formed sequence, that is the best sequence.
    lengths = np.diff(offsets)
    first, last = offsets[:-1][lengths > 0], offsets[1:][lengths > 0] - 1
    is_bad = ~follow[np.roll(best, 1), best]
    is_bad[first] = ~start[best[first]]
    is_bad[last] |= ~end[best[last]]
    rows = np.unique(np.repeat(np.arange(len(lengths)), lengths)[is_bad])
    rows = rows[np.argsort(-lengths[rows], kind="stable")]
    while len(rows):
        # The first one is the longest.
        cells = (lengths[rows[0]] + len(start)) * len(start)
        block, rows = np.split(rows, [max(1, _VITERBI_CELLS // cells)])
        _viterbi(scores, offsets, block, transitions, best)
    return best


def _viterbi(
    scores: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    transitions: tuple[np.ndarray, ...],
    best: np.ndarray,
) -> None:
    """Write the best sequences of some sentences, the longest first, into ``best``."""
    start, follow, end = (np.where(part, 0.0, -np.inf) for part in transitions)
    first, lengths = offsets[rows], np.diff(offsets)[rows]
    total = scores[first] + start
    came_from = np.zeros((lengths[0], *total.shape), dtype=np.int32)
    for t in range(1, lengths[0]):
        n = int((lengths > t).sum())
        paths = total[:n, :, None] + follow
        came_from[t, :n] = paths.argmax(1)
        total[:n] = paths.max(1) + scores[first[:n] + t]
    total += end
    for i, length in enumerate(lengths):
        tag = int(total[i].argmax())
        if total[i, tag] == -np.inf:
            continue
        for t in range(length - 1, -1, -1):
            best[first[i] + t] = tag
            tag = came_from[t, i, tag]
