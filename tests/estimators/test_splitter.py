"""How ``predict_entities`` splits raw texts: as the training sentences were."""

import pytest

from skdice import DiceQueryTagger, DiceTokenTagger

from ..corpora import easy_corpus

FAST = {"max_epochs": 6, "lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}


def by_characters(n, seed=0):
    """Sentences of single characters, of which digits are entities."""
    X, y = [], []
    for words, _ in zip(*easy_corpus(n, seed)):
        row = list("".join(words)[:12]) + list("12" if len(words) % 2 else "3")
        X.append(row)
        y.append(["B-NUM" if char.isdigit() else "O" for char in row])
    return X, y


@pytest.fixture(scope="module", params=[DiceTokenTagger, DiceQueryTagger])
def of_characters(request, tiny_bert):
    return request.param(tiny_bert, loss="ce", **FAST).fit(*by_characters(40))


@pytest.fixture(scope="module", params=[DiceTokenTagger, DiceQueryTagger])
def of_words(request, tiny_bert):
    return request.param(tiny_bert, loss="ce", **FAST).fit(*easy_corpus(20))


@pytest.mark.filterwarnings("ignore:No query")
def test_characters(of_characters):
    assert of_characters.splitter_ == "characters"
    texts = ["ab1", "北 京 2", ""]
    rows = [[char for char in text if not char.isspace()] for text in texts]
    expected = of_characters.predict_spans(rows)
    found = of_characters.predict_entities(texts)
    assert [[e.label for e in row] for row in found] == [[e.label for e in row] for row in expected]
    assert all(text[e.start : e.end].strip() for text, row in zip(texts, found) for e in row)


def test_words_need_spaces(of_words):
    assert of_words.splitter_ == "words"
    with pytest.raises(ValueError, match="Row 1 is written without spaces: '我住在北京。'"):
        of_words.predict_entities(["john lives in oslo", "我住在北京。"])
    of_words.predict_entities(["我住在北京。"], splitter="characters")
    of_words.predict_entities(["john in 北京"])


def test_names_of_splitters(of_words):
    text = "john,oslo"
    whole = of_words.predict_entities([text], splitter="whitespace")[0]
    assert all((e.start, e.end) == (0, len(text)) for e in whole)
    assert of_words.predict_entities([text], splitter="words").tolist() == (
        of_words.predict_entities([text]).tolist()
    )
    with pytest.raises(ValueError, match="'words', 'whitespace', 'characters' or a callable"):
        of_words.predict_entities([text], splitter="spaces")
