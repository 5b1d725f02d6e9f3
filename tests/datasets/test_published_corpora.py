from collections import Counter

import numpy as np
import pytest

from skdice import datasets

from ..corpora import published


@pytest.mark.parametrize("name, n_sentences, n_words, n_outside", [
    ("conll2003_en/train.conll", 14_041, 203_621, 169_578),
    ("ncbi_disease/train.tsv", 5_432, 136_086, 124_819),
    ("weibo_zh/train.conll", 1_350, 73_778, 68_827),
    ("msra_zh/test.bio", 4_365, 172_601, 152_505),
    ("../pos/ritter_tweets/all.txt", 787, 15_185, 1),
])  # fmt: skip
def test_conll(name, n_sentences, n_words, n_outside):
    X, y = datasets.read_conll(published(f"ner/{name}"))
    assert len(X) == len(y) == n_sentences
    assert sum(map(len, X)) == sum(map(len, y)) == n_words
    assert sum(tags.count("O") for tags in y) == n_outside


@pytest.mark.parametrize("name, n_sentences, n_words, n_upos, n_xpos", [
    ("ud_english_ewt/test", 2_077, 25_094, 17, 48),
    ("ud_chinese_1.4/train", 3_997, 98_608, 15, 42),
])  # fmt: skip
def test_conllu(name, n_sentences, n_words, n_upos, n_xpos):
    path = published(f"pos/{name}.conllu")
    X, y = datasets.read_conllu(path)
    X_too, xpos = datasets.read_conllu(path, tag="xpos")
    assert X_too == X
    assert len(X) == len(y) == n_sentences
    assert sum(map(len, X)) == sum(map(len, y)) == n_words
    assert len({tag for tags in y for tag in tags}) == n_upos
    assert len({tag for tags in xpos for tag in tags}) == n_xpos


@pytest.mark.parametrize("reader, name, counts", [
    ("read_labeled_text", "cls/sst5/train.txt", {3: 2_322, 1: 2_218, 2: 1_624, 4: 1_288, 0: 1_092}),
    ("read_labeled_text", "cls/sst2_glue/dev.tsv", {1: 444, 0: 428}),
    ("read_labeled_text", "cls/sms_spam/all.tsv", {"ham": 4_827, "spam": 747}),
    ("read_labeled_text", "cls/hate_davidson/labeled_data.csv", {1: 19_190, 2: 4_163, 0: 1_430}),
    ("read_pairs", "pair/mrpc/train.txt", {0: 1_323, 1: 2_753}),
    ("read_pairs", "pair/qqp/test.tsv", {0: 5_000, 1: 5_000}),
    ("read_pairs", "pair/amazon_google/train.txt", {0: 6_175, 1: 699}),
])  # fmt: skip
def test_labels(reader, name, counts):
    X, y = getattr(datasets, reader)(published(name))
    assert Counter(y.tolist()) == counts
    assert len(X) == len(y)
    assert all(text.strip() for row in X for text in ([row] if isinstance(row, str) else row))
    assert y.dtype == (object if "ham" in counts else np.int64)


@pytest.mark.parametrize("name, n_questions, n_unanswerable, n_repeated_ids", [
    ("squad_v1.1/dev", 10_570, 0, 0), ("squad_v2.0/dev", 11_873, 5_945, 0),
    ("quoref/contrast_perturbed", 700, 0, 2), ("cmrc2018_zh/dev", 3_219, 0, 0),
])  # fmt: skip
def test_squad(name, n_questions, n_unanswerable, n_repeated_ids):
    """Their wrong offsets are counted in test_gold_answers."""
    X, y = datasets.read_squad(published(f"mrc/{name}.json"))
    assert X.shape == (n_questions, 4)
    assert sum(not answers["text"] for answers in y) == n_unanswerable
    assert n_questions - X["id"].nunique() == n_repeated_ids
