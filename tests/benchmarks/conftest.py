"""Corpora where the benchmarks look for them."""

import lzma

import pytest

from benchmarks.study.corpora import read_corpus

from ..corpora import easy_corpus


@pytest.fixture
def data(tmp_path):
    """A directory with a corpus in the place and the format of CoNLL03."""
    directory = tmp_path / "data" / "ner" / "conll2003_en"
    directory.mkdir(parents=True)
    for seed, (part, n) in enumerate([("train", 90), ("dev", 60), ("test", 50)]):
        sentences = []
        for words, tags in zip(*easy_corpus(n, seed=seed)):
            sentences.append("\n".join(f"{word} {tag}" for word, tag in zip(words, tags)))
        text = "\n\n".join(sentences) + "\n"
        (directory / f"{part}.conll.xz").write_bytes(lzma.compress(text.encode()))
    yield tmp_path / "data"
    read_corpus.cache_clear()
