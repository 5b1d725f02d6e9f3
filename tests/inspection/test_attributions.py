import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skdice import DicePairClassifier, DiceTextClassifier
from skdice.inspection import word_attributions

from ..corpora import easy_labels, easy_pairs, easy_texts

FAST = {"lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def texts(quick_bert):
    return DiceTextClassifier(quick_bert, loss="ce", max_epochs=12, **FAST).fit(*easy_texts(64))


def test_the_telling_word_speaks_for_the_label(texts):
    X, _ = easy_texts(12, seed=5)
    table = word_attributions(make_pipeline("passthrough", texts), X)
    assert (
        table["label"].tolist() == np.repeat(texts.predict(X), [len(x.split()) for x in X]).tolist()
    )
    assert [X[row.row][row.start : row.end] for row in table.itertuples()] == " ".join(X).split()
    assert table["word"].tolist() == " ".join(X).split()
    found = table.loc[table.groupby("row")["attribution"].idxmax(), "word"]
    others, _ = easy_texts(200, seed=7, n_classes=3)
    fillers = {word for text in others[2::3] for word in text.split()}
    assert np.mean([word not in fillers for word in found]) > 0.9


def test_it_is_the_fall_of_the_probability(texts):
    text, label = "mary  saw the river", texts.classes_[1]
    table = word_attributions(texts, pd.Series([text]), label=label)
    left = [text[: row.start] + text[row.end :] for row in table.itertuples()]
    expected = texts.predict_proba([text])[0, 1] - texts.predict_proba(left)[:, 1]
    np.testing.assert_allclose(table["attribution"], expected, atol=1e-6)
    assert len(word_attributions(texts, [""])) == 0
    assert word_attributions(texts, ["a \ud800"])["word"].tolist() == ["a", "\ud800"]


def test_pairs_say_which_text(quick_bert):
    X, y = easy_pairs(24)
    classifier = DicePairClassifier(quick_bert, loss="ce", max_epochs=2, **FAST).fit(X, y)
    table = word_attributions(classifier, pd.DataFrame(X[:2], columns=["a", "b"]), label=1)
    words = [
        (i, k, word)
        for i, pair in enumerate(X[:2])
        for k, x in enumerate(pair)
        for word in x.split()
    ]
    assert list(table[["row", "text", "word"]].itertuples(index=False, name=None)) == words


def test_what_it_cannot_tell_is_an_error(texts, quick_bert):
    with pytest.raises(ValueError, match="label must be one of 'person', 'place'; got 'animal'"):
        word_attributions(texts, ["mary"], label="animal")
    several = DiceTextClassifier(quick_bert, max_epochs=1, **FAST).fit(*easy_labels(16))
    with pytest.raises(ValueError, match="Texts have several labels"):
        word_attributions(several, ["mary"])
