"""The corpora of the study, and what is drawn from them: training rows, dev rows, test rows."""

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skdice.datasets import read_conll, read_conllu, read_labeled_text, read_pairs
from skdice.metrics import get_entities

WHOLE, RATIO = "all", "ratio-"
N_RARE = 5000  # training sentences from which entities are removed
N_DEV = 500
N_OTHERS = 2000
N_TEST = {"entities": 1000, "pairs": 2000, "texts": 2000}
# From these draws on, test rows are others: the third and the fourth edition have their own.
FIRST_DRAW_OF_THIRD, FIRST_DRAW = 600, 700


class Part(NamedTuple):
    """Rows and their labels."""

    X: list[Any]
    y: list[Any]

    def take(self, rows: np.ndarray) -> "Part":
        return Part([self.X[i] for i in rows], [self.y[i] for i in rows])


class Parts(NamedTuple):
    """Rows to train on, to tune on and to test on, and training rows that were not drawn."""

    train: Part
    dev: Part
    test: Part
    others: Part = Part([], [])


class Corpus(NamedTuple):
    """A corpus.

    Attributes
    ----------
    task : {"entities", "tags", "pairs", "texts"}
    read : callable
        ``read(data)``: all rows of the three parts.
    metric : {"f1", "accuracy"}
        What is tuned and compared.
    positive : label
        The class that F1 is about; pairs and texts only.
    is_new : bool
        No edition before the sixth has scored its test rows, so they stay what they are.
    """

    task: str
    read: Callable[[Path], Parts]
    metric: str = "f1"
    positive: Any = None
    is_new: bool = False


def draw(corpus: str, regime: str, seed: int, data: Path) -> Parts:
    """Draw the rows of a seed; the test rows are the same for all seeds and regimes of an edition.

    Parameters
    ----------
    corpus : str
        A key of ``CORPORA``.
    regime : str
        How many training rows; "all" for all, with all test rows; "ratio-80" for 5,000 sentences
        and all test rows, from which entities are removed until 80 words stand outside entities for
        each one inside; "ratio-80 of 2000" for as many sentences.
    seed : int
        Other training and dev rows for each.
    data : Path
        Directory of the corpora.
    """
    pools = read_corpus(corpus, data)
    if regime == WHOLE:
        return pools
    if regime.startswith(RATIO):
        ratio, n_rare = parse(regime)
        order = np.random.default_rng(seed).permutation(len(pools.train.y))
        return pools._replace(
            train=with_rare_entities(pools.train.take(order[:n_rare]), ratio, seed),
            test=with_rare_entities(pools.test, ratio, 0),
        )
    n_rows, n_test = int(regime), N_TEST[CORPORA[corpus].task]
    if CORPORA[corpus].is_new:
        pass
    elif seed >= FIRST_DRAW:
        pools = _with_last_rows(pools, n_test)
    elif seed >= FIRST_DRAW_OF_THIRD:
        pools = _with_new_test_rows(pools, n_test)
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    order = rng.permutation(len(pools.train.y))
    dev = rng.permutation(len(pools.dev.y))
    test = fixed.permutation(len(pools.test.y))[:n_test]
    others = pools.train.take(np.sort(order[n_rows:][:N_OTHERS]))
    # A corpus without dev rows is scored on the training rows that are not drawn.
    tuned = pools.dev.take(np.sort(dev[:N_DEV])) if len(dev) else others
    return Parts(
        pools.train.take(np.sort(order[:n_rows])), tuned, pools.test.take(np.sort(test)), others
    )


def parse(regime: str) -> tuple[int, int]:
    """Return the words outside entities for each one inside, and the training sentences."""
    ratio, _, n_rows = regime.removeprefix(RATIO).partition(" of ")
    return int(ratio), int(n_rows or N_RARE)


def with_rare_entities(part: Part, ratio: float, seed: int) -> Part:
    """Remove words of entities, chosen at random, until they are as rare as the ratio says.

    A sentence that has no word left is dropped.
    """
    entities = [(i, *entity[:2]) for i, tags in enumerate(part.y) for entity in get_entities(tags)]
    n_words = np.array([end - start for _, start, end in entities])
    order = np.random.default_rng(seed).permutation(len(entities))
    n_outside = sum(map(len, part.y)) - n_words.sum()
    n_kept = np.searchsorted(np.cumsum(n_words[order]), n_outside / ratio, side="right")
    removed = {
        (i, k) for i, start, end in (entities[j] for j in order[n_kept:]) for k in range(start, end)
    }
    kept = [[k for k in range(len(tags)) if (i, k) not in removed] for i, tags in enumerate(part.y)]
    rows = [(part.X[i], part.y[i], words) for i, words in enumerate(kept) if words]
    return Part(
        [[X[k] for k in words] for X, _, words in rows],
        [[y[k] for k in words] for _, y, words in rows],
    )


def _with_new_test_rows(pools: Parts, n: int) -> Parts:
    """Return the rows with other test rows.

    They are further test rows, or training rows that are put aside (sentences of the documents that
    the others are of); of a small corpus the training and the test rows change places.
    """
    order = np.random.default_rng(0).permutation(len(pools.test.y))
    if len(order) >= 2 * n:
        return pools._replace(test=pools.test.take(order[n : 2 * n]))
    aside = np.random.default_rng(0).permutation(len(pools.train.y))
    if len(aside) >= 3 * n:
        return pools._replace(train=pools.train.take(aside[n:]), test=pools.train.take(aside[:n]))
    return pools._replace(train=pools.test, test=pools.train)


def _with_last_rows(pools: Parts, n: int) -> Parts:
    """Return the rows with the last training rows as test rows, which are documents of their own.

    Training rows that the third edition put aside for its tests are left out of both. A small
    corpus, of which all rows were scored before, is trained on the other test rows as well.
    """
    n_train = len(pools.train.y)
    is_small = n_train < 3 * n
    put_aside = set() if is_small or len(pools.test.y) >= 2 * n else set(_first(n_train, n))
    rows = np.array([i for i in range(n_train) if i not in put_aside])
    n = min(n, len(rows) // 2)
    train, test = pools.train.take(rows[:-n]), pools.train.take(rows[-n:])
    if is_small:
        train = Part(train.X + pools.test.X, train.y + pools.test.y)
    return pools._replace(train=train, test=test)


def _first(n_all: int, n: int) -> list[int]:
    return np.random.default_rng(0).permutation(n_all)[:n].tolist()


@lru_cache(maxsize=4)
def read_corpus(corpus: str, data: Path) -> Parts:
    """Read a corpus; it stays in memory while others of its kind are not asked for."""
    return CORPORA[corpus].read(data)


def _official(read: Callable[[Path], Any], paths: tuple[str, str, str], data: Path) -> Parts:
    return Parts(*(_part(*read(data / path)) for path in paths))


def _dev_from_train(read: Callable[[Path], Any], paths: tuple[str, str], data: Path) -> Parts:
    train, test = (_part(*read(data / path)) for path in paths)
    order = np.random.default_rng(0).permutation(len(train.y))
    return Parts(train.take(order[N_DEV:]), train.take(order[:N_DEV]), test)


def _without_dev(read: Callable[[Path], Any], paths: tuple[str, str], data: Path) -> Parts:
    train, test = (_part(*read(data / path)) for path in paths)
    return Parts(train, Part([], []), test)


def _one_file(
    read: Callable[[Path], Any], path: str, data: Path, n_dev: int = N_DEV, n_test: int = 2000
) -> Parts:
    rows = _part(*read(data / path))
    order = np.random.default_rng(0).permutation(len(rows.y))
    test, dev, train = np.split(order, [n_test, n_test + n_dev])
    return Parts(rows.take(train), rows.take(dev), rows.take(test))


def _part(X: Any, y: Any) -> Part:
    return Part(list(X), y.tolist() if isinstance(y, np.ndarray) else list(y))


def _files(directory: str, suffix: str) -> tuple[str, str, str]:
    train, dev, test = (f"{directory}/{part}.{suffix}.xz" for part in ("train", "dev", "test"))
    return train, dev, test


def _read_weibo(path: Path) -> Any:
    """Read characters without the digit that says where in its word each of them stands."""
    characters, tags = read_conll(path)
    return [[character[:1] for character in row] for row in characters], tags


CORPORA = {
    "NCBI-disease": Corpus(
        "entities", partial(_official, read_conll, _files("ner/ncbi_disease", "tsv"))
    ),
    "CoNLL03": Corpus(
        "entities", partial(_official, read_conll, _files("ner/conll2003_en", "conll"))
    ),
    "BC5CDR": Corpus("entities", partial(_official, read_conll, _files("ner/bc5cdr", "tsv"))),
    "WikiGold": Corpus(
        "entities",
        partial(_one_file, read_conll, "ner/wikigold/all.conll.xz", n_dev=200, n_test=700),
    ),
    "BTC": Corpus(
        "entities", partial(_official, read_conll, _files("ner/btc", "conll")), is_new=True
    ),
    "re3d": Corpus(
        "entities",
        partial(_without_dev, read_conll, ("ner/re3d/train.conll.xz", "ner/re3d/test.conll.xz")),
        is_new=True,
    ),
    "MSRA": Corpus(
        "entities",
        partial(
            _dev_from_train, read_conll, ("ner/msra_zh/train.bio.xz", "ner/msra_zh/test.bio.xz")
        ),
    ),
    "Weibo": Corpus(
        "entities",
        partial(_official, _read_weibo, _files("ner/weibo_zh", "conll")),
    ),
    "UD English": Corpus(
        "tags", partial(_official, read_conllu, _files("pos/ud_english_ewt", "conllu"))
    ),
    "Amazon-Google": Corpus(
        "pairs", partial(_official, read_pairs, _files("pair/amazon_google", "txt")), positive=1
    ),
    "MRPC": Corpus(
        "pairs",
        partial(_dev_from_train, read_pairs, ("pair/mrpc/train.txt.xz", "pair/mrpc/test.txt.xz")),
        positive=1,
    ),
    "SMS": Corpus(
        "texts",
        partial(_one_file, read_labeled_text, "cls/sms_spam/all.tsv.xz"),
        positive="spam",
    ),
    "QQP": Corpus(
        "pairs",
        partial(
            _dev_from_train,
            read_pairs,
            ("pair/qqp/train_subset.tsv.xz", "pair/qqp/test_natural.tsv.xz"),
        ),
        positive=1,
    ),
    "SST-2": Corpus(
        "texts",
        partial(_official, read_labeled_text, _files("cls/sst2", "txt")),
        metric="accuracy",
    ),
}
