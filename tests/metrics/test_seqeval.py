from itertools import product
from random import Random

import numpy as np
import pytest

from skdice import metrics

pytest.importorskip("seqeval")
from seqeval import scheme as seqeval_scheme
from seqeval.metrics import classification_report, v1
from seqeval.metrics.sequence_labeling import get_entities as seqeval_get_entities
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

pytestmark = pytest.mark.filterwarnings("ignore:O-X seems not to be NE tag")

AVERAGES = ["micro", "macro", "weighted", None]
TYPES = ["PER", "LOC", "multi-part", "PER.NAM"]
PREFIXES = {"IOB1": "BI", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}
SEQEVAL_SCHEMES = {name: getattr(seqeval_scheme, name) for name in PREFIXES}


def tag_set(prefixes, types):
    return ["O", *(f"{prefix}-{label}" for prefix in prefixes for label in types)]


def random_sequences(random, tags, n_sequences):
    """Sequences of up to ten tags in random order, a third of them outside."""
    weights = [(len(tags) - 1) / 2] + [1] * (len(tags) - 1)
    return [random.choices(tags, weights, k=random.randint(0, 10)) for _ in range(n_sequences)]


def random_corpora(random, tags, n_sequences):
    """Corpora of 1 to 60 sequences, and predictions that keep about half of the tags."""
    left = n_sequences
    while left:
        size = min(left, random.choice([1, 3, 30, 60]))
        left -= size
        y_true = random_sequences(random, tags, size)
        y_pred = [
            [random.choice(tags) if random.random() < 0.5 else tag for tag in row] for row in y_true
        ]
        yield y_true, y_pred


def assert_scores_equal(got, expected):
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=0)


@pytest.fixture(scope="module")
def default_corpora():
    random = Random(0)
    few = list(random_corpora(random, [*tag_set("BIES", ["X", "Y"]), "O-X"], 1_500))
    many = list(random_corpora(random, [*tag_set("BIES", TYPES), *"BIES"], 1_500))
    return few + many


@pytest.fixture(scope="module", params=PREFIXES)
def strict_corpora(request):
    random = Random(1)
    tags = tag_set(PREFIXES[request.param], ["X", "multi-part"])
    return request.param, list(random_corpora(random, tags, 3_000))


def test_default_entities(default_corpora):
    for corpus in default_corpora:
        for rows in corpus:
            for tags in rows:
                expected = [(a, b + 1, label) for label, a, b in seqeval_get_entities(tags)]
                assert metrics.get_entities(tags) == expected, tags


@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("average", AVERAGES)
def test_default_scores(default_corpora, average, zero_division):
    options = {"average": average, "zero_division": zero_division}
    n_compared = 0
    for y_true, y_pred in default_corpora:
        if average == "macro" and not any(map(metrics.get_entities, y_true + y_pred)):
            continue  # seqeval takes the mean of no values.
        n_compared += len(y_true)
        got = metrics.entity_precision_recall_fscore_support(y_true, y_pred, **options)
        assert_scores_equal(got, precision_recall_fscore_support(y_true, y_pred, **options))
        assert {isinstance(score, np.ndarray) for score in got} == {average is None}
        np.testing.assert_array_equal(metrics.entity_f1_score(y_true, y_pred, **options), got[2])
    assert n_compared > 2_900


@pytest.mark.parametrize("scheme", PREFIXES)
def test_strict_entities_of_all_short_sequences(scheme):
    tags = tag_set(PREFIXES[scheme], "XY")
    length = 5 if len(tags) == 5 else 4
    for sequence in product(tags, repeat=length):
        expected = seqeval_scheme.Tokens(list(sequence), SEQEVAL_SCHEMES[scheme]).entities
        assert metrics.get_entities(sequence, mode="strict", scheme=scheme) == [
            (entity.start, entity.end, entity.tag) for entity in expected
        ], sequence


def test_strict_scores(strict_corpora):
    scheme, corpora = strict_corpora
    options = {"mode": "strict", "scheme": scheme}
    for y_true, y_pred in corpora:
        entities = [
            seqeval_scheme.Entities(rows, SEQEVAL_SCHEMES[scheme]) for rows in (y_true, y_pred)
        ]
        for average in AVERAGES:
            if average == "macro" and not any(rows.unique_tags for rows in entities):
                continue
            for zero_division in (0, 1):
                expected = v1.precision_recall_fscore_support(
                    y_true, y_pred, average=average, zero_division=zero_division,
                    scheme=SEQEVAL_SCHEMES[scheme], entities_true=entities[0],
                    entities_pred=entities[1],
                )  # fmt: skip
                got = metrics.entity_precision_recall_fscore_support(
                    y_true, y_pred, average=average, zero_division=zero_division, **options
                )
                assert_scores_equal(got, expected)


@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("digits", [2, 4])
@pytest.mark.parametrize("scheme", [None, "IOBES"])
def test_report(scheme, digits, zero_division):
    random = Random(2)
    tags = tag_set("BIES", [*TYPES, "a-type-with-a-long-name"])
    options = {"digits": digits, "zero_division": zero_division}
    ours, theirs = dict(options), dict(options)
    if scheme is not None:
        ours |= {"mode": "strict", "scheme": scheme}
        theirs |= {"mode": "strict", "scheme": SEQEVAL_SCHEMES[scheme]}
    for n_sequences in (20, 60):
        y_true = random_sequences(random, tags, n_sequences)
        y_pred = [random.choices(tags, k=len(row)) for row in y_true]
        text = metrics.entity_classification_report(y_true, y_pred, **ours)
        assert text == classification_report(y_true, y_pred, **theirs)
        got = metrics.entity_classification_report(y_true, y_pred, output_dict=True, **ours)
        expected = classification_report(y_true, y_pred, output_dict=True, **theirs)
        assert list(got) == list(expected)
        for name, row in expected.items():
            assert got[name] == pytest.approx(row, rel=1e-12)
