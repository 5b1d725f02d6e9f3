import numpy as np
import pytest

from skdice import DiceQueryTagger, DiceTokenTagger

from ..corpora import easy_corpus

FAST = {"max_epochs": 6, "lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}


def by_characters(n, seed=0):
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
    found = {
        how: of_words.predict_entities([text], how)[0] for how in ("whitespace", "words", None)
    }
    assert all((e.start, e.end) == (0, len(text)) for e in found["whitespace"])
    assert found["words"] == found[None]
    with pytest.raises(ValueError, match="'words', 'whitespace', 'characters' or a callable"):
        of_words.predict_entities([text], splitter="spaces")


@pytest.fixture(scope="module", params=["words", "queries", "nested queries"])
def fitted(request, tiny_bert):
    if request.param == "words":
        return DiceTokenTagger(tiny_bert, **FAST).fit(*easy_corpus(48))
    queries = {"PER": "john mary", "LOC": "oslo paris"}
    decode = "nested" if "nested" in request.param else "flat"
    return DiceQueryTagger(tiny_bert, **FAST, queries=queries, decode=decode).fit(*easy_corpus(48))


@pytest.fixture(scope="module")
def X():
    return easy_corpus(30, seed=1)[0]


class TestTaggers:
    def test_what_is_left_are_the_entities_above(self, fitted, X):
        found = fitted.predict_spans(X)
        scores = sorted(entity.score for row in found for entity in row)
        assert len(scores) > 10
        for threshold in (0.0, scores[0], scores[len(scores) // 2], scores[-1], 1.0):
            left = fitted.predict_spans(X, threshold=threshold).tolist()
            assert left == [
                [entity for entity in row if entity.score >= threshold] for row in found
            ]
        left = fitted.predict_spans(X, threshold={"PER": 1.0}).tolist()
        assert left == [[e for e in row if e.label == "LOC" or e.score == 1.0] for row in found]
        assert any(left)
        assert left != found.tolist()

    def test_raw_text(self, fitted):
        texts = ["john went to oslo", "mary"]
        found = fitted.predict_entities(texts)
        best = max(entity.score for row in found for entity in row)
        left = fitted.predict_entities(texts, threshold=best)
        assert left.tolist() == [[e for e in row if e.score >= best] for row in found]
        assert all(texts[i][e.start : e.end] for i, row in enumerate(left) for e in row)

    @pytest.mark.parametrize("threshold, message", [
        (1.5, r"'threshold of LOC' parameter of predict_spans must be a float .*\[0, 1\]"),
        ("high", "Got 'high' instead"),
        (True, "Got True instead"),
        (np.nan, "Got nan instead"),
        ({"PER": -0.1}, r"'threshold of PER'.*Got -0\.1 instead"),
        ({"ORG": 0.5}, r"threshold has 'ORG', which is no label .* it has 'LOC', 'PER'\."),
    ])  # fmt: skip
    def test_errors(self, fitted, X, threshold, message):
        with pytest.raises(ValueError, match=message):
            fitted.predict_spans(X, threshold=threshold)
        with pytest.raises(ValueError, match=message):
            fitted.predict_entities(["oslo"], threshold=threshold)
