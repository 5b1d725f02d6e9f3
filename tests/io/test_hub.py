"""Estimators go to the hub and come back."""

import numpy as np
import pytest
from huggingface_hub import constants

from skdice import DiceQueryTagger, DiceTextClassifier, DiceTokenTagger
from skdice.estimators import load_pretrained

from ..corpora import easy_corpus, easy_texts
from .hub import Hub

FAST = {"max_epochs": 1, "lr": 1e-3, "random_state": 0, "verbose": 0}
X, Y = easy_texts(12)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with Hub().running() as running:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.partition("{repo_id}")
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{running.url}/" + "".join(template[1:])
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
        monkeypatch.chdir(tmp_path)
        yield running


@pytest.fixture(scope="module")
def classifier(tiny_bert):
    return DiceTextClassifier(tiny_bert, **FAST).fit(X, Y)


def test_there_and_back(hub, classifier):
    url = classifier.push_to_hub("team/texts", private=True)
    assert url == f"{hub.url}/team/texts/commit/{hub.commit('team/texts', 'main')}"
    assert hub.is_private["team/texts"]
    for load in (DiceTextClassifier.from_pretrained, load_pretrained):
        loaded = load("team/texts")
        np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    card = hub.repos["team/texts"]["main"]["README.md"].decode()
    assert "texts" in card
    assert "skdice" in card


def test_a_repository_of_mine(hub, classifier):
    classifier.push_to_hub("texts")
    assert list(hub.repos) == ["me/texts"]
    assert not hub.is_private["me/texts"]


def test_another_estimator_takes_its_place(hub, classifier, tiny_bert):
    rows = easy_corpus(12)
    DiceQueryTagger(tiny_bert, queries={"PER": "john", "LOC": "oslo"}, **FAST).fit(
        *rows
    ).push_to_hub("team/one")
    hub.repos["team/one"]["main"][".gitattributes"] = b"*.safetensors filter=lfs"
    assert "head.safetensors" in hub.repos["team/one"]["main"]
    tagger = DiceTokenTagger(tiny_bert, **FAST).fit(*rows)
    tagger.push_to_hub("team/one")
    assert "head.safetensors" not in hub.repos["team/one"]["main"]
    assert load_pretrained("team/one").predict(rows[0]).tolist() == tagger.predict(rows[0]).tolist()


def test_revisions(hub, classifier, tiny_bert):
    classifier.push_to_hub("team/texts")
    other = DiceTextClassifier(tiny_bert, **{**FAST, "lr": 1e-2}).fit(X, Y)
    other.push_to_hub("team/texts", revision="faster")
    for revision, expected in ((None, classifier), ("main", classifier), ("faster", other)):
        loaded = DiceTextClassifier.from_pretrained("team/texts", revision=revision)
        np.testing.assert_array_equal(loaded.predict_proba(X), expected.predict_proba(X))


def test_what_is_not_there(hub, tmp_path):
    with pytest.raises(ValueError, match=r"no directory 'team/none' here, and the hub.*NotFound"):
        load_pretrained("team/none")
    (tmp_path / "team").mkdir()
    with pytest.raises(ValueError, match=r"There is no directory .*none'"):
        load_pretrained("team/none")  # Where it would lie there is a directory.


def test_a_path_has_no_revision(classifier, tmp_path):
    classifier.save_pretrained(tmp_path / "saved")
    with pytest.raises(ValueError, match="revision is for ids of the hub"):
        load_pretrained(tmp_path / "saved", revision="main")
