"""Tags as users pass them, and the entities that they write down."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

from .._inputs import check_rows, describe, list_items
from .._parameters import check_option
from .._typing import Strings, TagSequences

# How each scheme writes the roles of a word: B begins an entity, I is inside, E ends it, S is an
# entity of one word.
SPELLINGS = {
    "IOB1": "BI",
    "IOB2": "BI",
    "IOBES": "BIES",
    "BIOES": "BIES",
    "BMES": "BMES",
    "BILOU": "BILU",
}
# The role of each letter in each scheme, and in any scheme.
ROLES = {scheme: dict(zip(letters, "BIES")) for scheme, letters in SPELLINGS.items()}
ANY_ROLES = {letter: role for roles in ROLES.values() for letter, role in roles.items()}
_CHUNK_TAG = re.compile(f"O|[{''.join(ANY_ROLES)}]-.+", re.DOTALL)
# Every scheme has tags with these prefixes, while types such as "E-mail" look like the others.
_BORDER_TAG = re.compile("[BI]-.+", re.DOTALL)


class EntitySpan(NamedTuple):
    """An entity in a sentence: words `start` to `end`, counted from 0, `end` exclusive."""

    start: int
    end: int
    label: str  # its type, such as "PER"


# A maximal run of words whose tags continue each other, and the roles of its first and last word.
_Run = tuple[EntitySpan, str, str]


def get_entities(
    tags: Strings, *, mode: str | None = None, scheme: str | None = None
) -> list[EntitySpan]:
    """Read the entities off the tags of one sentence.

    Parameters
    ----------
    tags : list, tuple, Series or 1-D array of str
        One tag per word: ``"O"``, or a prefix, a hyphen and a type. The type may itself hold
        hyphens and dots; a bare prefix such as ``"B"`` has the type ``"_"``.
    mode : {None, "strict"}, default=None
        None reads as conlleval and the default mode of seqeval do: a word continues the entity
        before it if its tag is I or E, the tag before it is B or I, and both have the same type;
        any other word that is not outside starts an entity. M counts as I, L as E and U as S.
        ``"strict"`` keeps the entities that `scheme` allows, as seqeval's strict mode does.
    scheme : {"IOB1", "IOB2", "IOBES", "BIOES", "BMES", "BILOU"}, default=None
        The tagging scheme, with ``mode="strict"`` only. BIOES is another name for IOBES.

    Returns
    -------
    list of EntitySpan
        ``(start, end, label)`` in the order of `start`, `end` exclusive. Entities do not overlap.

    Raises
    ------
    TypeError, ValueError
        If `tags` is no sequence, a tag is no string, empty or not of the strict scheme, `mode` or
        `scheme` is unknown, or `scheme` comes without ``mode="strict"``.

    Notes
    -----
    In the default mode a tag without a known prefix is a type of its own, in which a run of equal
    tags is an entity (``"PER", "PER", "O"``); seqeval would cut its first letter off. Outside are
    ``"O"``, ``"O-"`` with any type, and ``"."``.

    In strict IOB1 a B is allowed only right after a word of the same type. As in seqeval, a
    misplaced B is left out and the I words that follow it are read as an entity.

    Examples
    --------
    >>> from skdice.metrics import get_entities
    >>> get_entities(["B-PER", "I-PER", "O", "I-LOC"])
    [EntitySpan(start=0, end=2, label='PER'), EntitySpan(start=3, end=4, label='LOC')]
    >>> get_entities(["B-PER", "I-PER", "O", "I-LOC"], mode="strict", scheme="IOB2")
    [EntitySpan(start=0, end=2, label='PER')]
    """
    return find_entities(check_tag_row(tags, "tags"), check_scheme(mode, scheme))


def check_tag_row(tags: object, name: str) -> list[str]:
    """Return the tags of one sentence as a list of non-empty strings; errors call it `name`."""
    values = list_items(tags)
    if values is None:
        raise TypeError(f"{name} must be a list of tags (one per word); got {describe(tags)}.")
    for position, tag in enumerate(values):
        if not isinstance(tag, str):
            raise TypeError(f"{name}: tag {position} must be a string; got {describe(tag)}.")
        if not tag:
            raise ValueError(f"{name}: tag {position} must not be empty; outside is 'O'.")
    return values


def check_tag_sequences(
    y_true: TagSequences, y_pred: TagSequences, *, are_entities: bool = False
) -> tuple[list[list[str]], list[list[str]]]:
    """Return both corpora as lists of lists of str with equal shapes; errors name the row.

    If they are read as entities, :func:`check_tag_kinds` looks at them.
    """
    true_rows, pred_rows = _check_tag_rows(y_true, "y_true"), _check_tag_rows(y_pred, "y_pred")
    check_same_number(true_rows, pred_rows, "sentences")
    for row, (true_tags, pred_tags) in enumerate(zip(true_rows, pred_rows)):
        if len(true_tags) != len(pred_tags):
            raise ValueError(
                "y_true and y_pred must have the same number of tags in every sentence; "
                f"row {row} has {len(true_tags)} and {len(pred_tags)}."
            )
    if are_entities:
        check_tag_kinds(true_rows, "y_true", is_lenient=True)
        check_tag_kinds(pred_rows, "y_pred", is_lenient=True)
    return true_rows, pred_rows


def check_same_number(y_true: list[Any], y_pred: list[Any], what: str) -> None:
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true and y_pred must have the same number of {what}; got {len(y_true)} and "
            f"{len(y_pred)}."
        )


def _check_tag_rows(sentences: object, name: str) -> list[list[str]]:
    rows = check_rows(sentences, name, "lists of tags, one per sentence")
    return [check_tag_row(tags, f"row {row} of {name}") for row, tags in enumerate(rows)]


def check_scheme(mode: str | None, scheme: str | None) -> str | None:
    """Return the scheme to be strict about, None for the default mode."""
    check_option("entity metrics", "mode", mode, (None, "strict"))
    if mode == "strict":
        check_option("entity metrics with mode='strict'", "scheme", scheme, ROLES)
    elif scheme is not None:
        raise ValueError(
            f"scheme is used with mode='strict' only; got scheme={scheme!r} with mode=None."
        )
    return scheme


def find_entities(
    tags: list[str], scheme: str | None = None, name: str = "tags"
) -> list[EntitySpan]:
    """Read the entities off checked tags; `name` is what errors call the sentence."""
    runs: list[_Run] = []
    start, label, first_role, last_role = 0, "", "O", "O"
    # The last run is closed by an outside word past the end.
    for position, tag in enumerate(chain(tags, ("O",))):
        role, tag_label = parse_tag(tag, scheme)
        if not role:
            prefixes = ", ".join(f"'{prefix}-'" for prefix in ROLES[str(scheme)])
            raise ValueError(
                f"{name}: tag {position} is {tag!r}, but the tags of {scheme} are 'O' and those "
                f"that start with {prefixes}."
            )
        if role in "IE" and last_role in "BI" and tag_label == label:
            last_role = role
            continue
        if last_role != "O":
            runs.append((EntitySpan(start, position, label), first_role, last_role))
        start, label, first_role, last_role = position, tag_label, role, role
    if scheme == "IOB1":
        return list(_iob1_entities(runs))
    if scheme == "IOB2":
        return [span for span, first, _ in runs if first == "B"]
    if scheme is not None:
        return [span for span, first, last in runs if first in "BS" and last in "ES"]
    return [span for span, _, _ in runs]


def _iob1_entities(runs: list[_Run]) -> Iterator[EntitySpan]:
    outside = (EntitySpan(-1, -1, ""), "O", "O")
    before, followers = outside[0], [*runs[1:], outside]
    for (span, first, last), (after, first_after, _) in zip(runs, followers):
        follows_its_type = (before.end, before.label) == (span.start, span.label)
        # seqeval takes no B that is followed by the B of another type.
        is_followed = last == first_after == "B" and after.start == span.end
        is_misplaced = not follows_its_type or (is_followed and after.label != span.label)
        start = span.start + (first == "B" and is_misplaced)
        if start < span.end:
            yield span._replace(start=start)
        before = span


@lru_cache(maxsize=4096)
def parse_tag(tag: str, scheme: str | None = None) -> tuple[str, str]:
    """Return the role (B, I, E, S or O) and type of a tag; no role if a strict scheme lacks it."""
    prefix, hyphen, label = tag[:1], tag[1:2], tag[2:]
    if hyphen in ("", "-"):
        if prefix == "O":
            return "O", ""
        role = (ANY_ROLES if scheme is None else ROLES[scheme]).get(prefix)
        if role is not None:
            return role, label or "_"
    if scheme is not None:
        return "", ""
    return ("O", "") if tag in ("", ".") else ("I", str(tag))


def are_chunk_tags(tags: Sequence[str]) -> bool:
    """Return whether all tags are ``O`` or ``[BIESLMU]-type``, with at least one of the latter."""
    return all(_CHUNK_TAG.fullmatch(tag) for tag in tags) and any(tag != "O" for tag in tags)


def check_tag_kinds(
    rows: Sequence[Sequence[str]],
    name: str,
    known: Collection[str] = (),
    *,
    is_lenient: bool = False,
) -> None:
    """Raise a ValueError if some tags are those of entities, as "B-x", and others those of words.

    The error names the first tag of the rarer kind or, if there are ``known`` tags of a fit, of the
    other kind than these. If lenient, tags that only :func:`get_entities` reads are of neither
    kind: "B", "O-x" and ".".
    """
    counts = Counter(chain.from_iterable(rows))
    distinct = {*counts, *known}
    borders = {tag for tag in distinct if _BORDER_TAG.fullmatch(tag)}
    others = {tag for tag in distinct if not _CHUNK_TAG.fullmatch(tag)}
    if is_lenient:
        others = {tag for tag in others if parse_tag(tag) == ("I", tag)}
    if not borders or not others:
        return

    def trust(kind: set[str]) -> tuple[bool, int]:
        return not kind.isdisjoint(known), sum(counts[tag] for tag in kind)

    stray, usual = sorted((others, borders), key=trust)
    row, position = next(
        (i, j) for i, tags in enumerate(rows) for j, tag in enumerate(tags) if tag in stray
    )
    tag, example = rows[row][position], max(sorted(usual), key=lambda tag: counts[tag])
    hint = ""
    if tag != tag.strip():
        hint = " It has white space around it."
    elif stray is others:
        hint = " Outside entities the tag is 'O'."
    raise ValueError(
        f"The tags of {name} must be chunk tags ('O', 'B-x', 'I-x', ...), all or none of them; "
        f"position {position} of row {row} has the tag {tag!r}, others are as {example!r}.{hint}"
    )


def infer_scheme(sentences: Sequence[Sequence[str]]) -> str:
    """Return the scheme of chunk tags: IOB1, IOB2 or IOBES (also for BMES and BILOU).

    Tags B, I and O alone are IOB1 if more chunks start with I than with B where no chunk of their
    type comes right before, otherwise IOB2: a stray I does not change the scheme.
    """
    roles = {tag: parse_tag(tag) for sentence in sentences for tag in sentence}
    if any(role in ("E", "S") for role, _ in roles.values()):
        return "IOBES"
    starts = Counter(
        roles[tag][0]
        for sentence in sentences
        for before, tag in pairwise(["O", *sentence])
        if tag != "O" and (before == "O" or roles[before][1] != roles[tag][1])
    )
    return "IOB1" if starts["I"] > starts["B"] else "IOB2"
