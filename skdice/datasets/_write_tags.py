"""From entities to tags."""

from collections.abc import Mapping, Sequence

from .._inputs import Span

SCHEMES = ("IOB2", "IOBES", "IOB1")


def write_tags(
    spans: Sequence[Span], n_words: int, scheme: str, roles: Mapping[str, str] | None = None
) -> list[str]:
    """Return the tags of a sentence with disjoint entities, in order.

    Parameters
    ----------
    spans : sequence of (start, end, label)
    n_words : int
    scheme : {"IOB2", "IOBES", "IOB1"}
    roles : mapping, optional
        How the scheme writes I, E and S, for its other spellings (BMES, BILOU).
    """
    tags = ["O"] * n_words
    roles = roles or {}
    end_of_label: dict[str, int] = {}
    for start, end, label in spans:
        names = ["I"] * (end - start)
        if scheme == "IOB2" or (scheme == "IOB1" and end_of_label.get(label) == start):
            names[0] = "B"
        elif scheme == "IOBES":
            names[0], names[-1] = "B", "E"
            if len(names) == 1:
                names = ["S"]
        tags[start:end] = [f"{roles.get(name, name)}-{label}" for name in names]
        end_of_label[label] = end
    return tags
