import numpy as np
import pandas as pd
import pytest

from skdice.metrics import (
    EntitySpan,
    entity_classification_report,
    entity_f1_score,
    get_entities,
    tag_f1_score,
)


@pytest.mark.parametrize("tags, expected", [
    # B, I, E and S in any order are in test_seqeval.
    # M, L and U are I, E and S.
    (["B-PER", "M-PER", "E-PER"], [(0, 3, "PER")]),
    (["B-PER", "M-PER", "B-PER"], [(0, 2, "PER"), (2, 3, "PER")]),
    (["B-PER", "I-PER", "L-PER", "L-PER"], [(0, 3, "PER"), (3, 4, "PER")]),
    (["U-PER", "I-PER", "U-PER"], [(0, 1, "PER"), (1, 2, "PER"), (2, 3, "PER")]),
    # The type is all that follows the first hyphen.
    (["B-multi-part", "I-multi-part"], [(0, 2, "multi-part")]),
    (["B-PER.NAM", "I-PER.NOM"], [(0, 1, "PER.NAM"), (1, 2, "PER.NOM")]),
    (["B", "I", "O", "S"], [(0, 2, "_"), (3, 4, "_")]),
    (["B-", "I"], [(0, 2, "_")]),
    # Outside is also O with a type, and a full stop.
    (["B-PER", "O-PER", "I-PER"], [(0, 1, "PER"), (2, 3, "PER")]),
    (["B-PER", ".", "I-PER"], [(0, 1, "PER"), (2, 3, "PER")]),
    # Without a known prefix the tag is the type.
    (["PER", "PER", "O", "ORG", "LOC"], [(0, 2, "PER"), (3, 4, "ORG"), (4, 5, "LOC")]),
    (["art-music", "art-film", "art-film"], [(0, 1, "art-music"), (1, 3, "art-film")]),
    (["BPER", "X-PER"], [(0, 1, "BPER"), (1, 2, "X-PER")]),
])  # fmt: skip
def test_default_mode(tags, expected):
    assert get_entities(tags) == expected


@pytest.mark.parametrize("scheme, tags, expected", [
    ("BIOES", "B-X I-X E-X S-Y O", [(0, 3, "X"), (3, 4, "Y")]),
    ("BMES", "B-X M-X E-X S-Y O M-X E-X B-X", [(0, 3, "X"), (3, 4, "Y")]),
    ("BILOU", "B-multi-part L-multi-part U", [(0, 2, "multi-part"), (2, 3, "_")]),
])  # fmt: skip
def test_strict_mode(scheme, tags, expected):
    """What seqeval has no scheme or no type for; the others are in test_seqeval."""
    assert get_entities(tags.split(), mode="strict", scheme=scheme) == expected


@pytest.mark.parametrize(
    "container", [list, tuple, np.array, pd.Series, lambda tags: np.array(tags, dtype=object)]
)
def test_containers(container):
    entities = get_entities(container(["B-PER", "I-PER", "O", "numpy"]))
    assert entities == [(0, 2, "PER"), (3, 4, "numpy")]
    assert all(type(entity.label) is str for entity in entities)
    assert entities[0] == EntitySpan(start=0, end=2, label="PER")


MIXED = [
    (["o"], r"position 1 of row 1 has the tag 'o', others are as 'B-LOC'. Outside .* 'O'"),
    (["0", "-"], "position 1 of row 1 has the tag '0'"), (["O "], "tag 'O '.* It has white space"),
    ([" B-PER"], "tag ' B-PER'.* white space"), (["PER"], "tag 'PER'"), (["b-PER"], "tag 'b-PER'"),
]  # fmt: skip


@pytest.mark.parametrize("tags, message", MIXED)
def test_a_stray_tag_among_those_of_entities(tags, message):
    good = [["O", "B-PER", "I-PER", "O", "B-LOC"]] * 2
    bad = [good[0], ["O", *tags, *good[0]]]
    good = [good[0], ["O"] * len(bad[1])]
    for score in (entity_f1_score, entity_classification_report):
        for name, pair in (("y_true", (bad, good)), ("y_pred", (good, bad))):
            with pytest.raises(ValueError, match=f"The tags of {name} must .*{message}"):
                score(*pair)
    assert tag_f1_score(good, bad) < 1  # Each tag is a class.


def test_a_stray_tag_of_an_entity():
    rows = [["PER", "ORG", "O"], ["O", "B-PER", "LOC", "LOC"]]
    with pytest.raises(ValueError, match=r"position 1 of row 1 has the tag 'B-PER', .* as 'LOC'"):
        entity_f1_score(rows, rows)


@pytest.mark.parametrize("tags", [
    "PRP$ NN-x . `` , O", "S-Bahn E-mail U-turn PER O", "B-PER I-PER . O O-PER B I", "-LRB- I B",
])  # fmt: skip
def test_tags_that_are_not_mixed(tags):
    rows = [tags.split()]
    assert entity_f1_score(rows, rows) == 1


@pytest.mark.parametrize("tags, error, message", [
    ("B-PER", TypeError, "tags must be .* got 'B-PER'"),
    (["O", np.nan], TypeError, "tag 1 .* got nan"),
    ([1, 2], TypeError, "tag 0 .* got 1"),
    (["O", ""], ValueError, "tag 1 .* empty"),
])  # fmt: skip
def test_bad_tags(tags, error, message):
    with pytest.raises(error, match=message):
        get_entities(tags)


@pytest.mark.parametrize("options, message", [
    ({"mode": "lenient"}, "'mode'.*'lenient'"),
    ({"scheme": "IOB2"}, "mode='strict' only"),
    ({"mode": "strict"}, "'scheme' .*None"),
    ({"mode": "strict", "scheme": "IOE2"}, "'BILOU'.*'IOE2'"),
])  # fmt: skip
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        get_entities(["O"], **options)


@pytest.mark.parametrize("scheme, tag", [
    *[("IOB1", "E-PER"), ("IOBES", "M-PER"), ("BIOES", "U-PER"), ("BMES", "I-PER")],
    *[("BILOU", "E-PER"), *(("IOB2", tag) for tag in ("S-PER", "PER", "BPER", ".", "b-PER"))],
])  # fmt: skip
def test_tag_of_another_scheme(scheme, tag):
    with pytest.raises(ValueError, match=f"tag 1 is '{tag}', but the tags of {scheme}"):
        get_entities(["O", tag], mode="strict", scheme=scheme)
