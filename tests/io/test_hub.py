"""Estimators go to the hub and come back."""

import shutil
from types import SimpleNamespace
from unittest.mock import create_autospec

import huggingface_hub
import numpy as np
import pytest

from skdice import DiceTextClassifier
from skdice.estimators import load_pretrained

from ..corpora import easy_texts

FAST = {"max_epochs": 1, "lr": 1e-3, "random_state": 0, "verbose": 0}
X, Y = easy_texts(12)


class Hub:
    """Repositories as directories, one for each branch."""

    def __init__(self, root):
        self.root = root
        self.is_private = {}

    def create_repo(self, repo_id, *, private, exist_ok):
        repo_id = repo_id if "/" in repo_id else f"me/{repo_id}"
        self.is_private.setdefault(repo_id, private)
        (self.root / repo_id / "main").mkdir(parents=True, exist_ok=exist_ok)
        return SimpleNamespace(repo_id=repo_id)

    def create_branch(self, repo_id, *, branch, exist_ok):
        place = self.root / repo_id
        shutil.copytree(place / "main", place / branch, dirs_exist_ok=exist_ok)

    def upload_folder(self, *, repo_id, folder_path, revision, commit_message, delete_patterns):
        place = self.root / repo_id / (revision or "main")
        assert delete_patterns == "*"
        shutil.rmtree(place)
        shutil.copytree(folder_path, place)
        return SimpleNamespace(commit_url=f"{repo_id}/commit/{revision or 'main'}")

    def snapshot_download(self, repo_id, *, revision, allow_patterns, library_name):
        place = self.root / repo_id / (revision or "main")
        if not place.exists():
            raise OSError("404: RepositoryNotFound")
        cache = self.root / "cache" / repo_id / (revision or "main")
        cache.mkdir(parents=True, exist_ok=True)
        for path in place.iterdir():
            if path.name in allow_patterns:
                shutil.copy(path, cache)
        return str(cache)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A stand-in that takes what the client of the hub takes."""
    hub = Hub(tmp_path / "hub")
    api = create_autospec(huggingface_hub.HfApi, instance=True)
    for name in ("create_repo", "create_branch", "upload_folder"):
        getattr(api, name).side_effect = getattr(hub, name)
    download = create_autospec(huggingface_hub.snapshot_download)
    download.side_effect = hub.snapshot_download
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda library_name: api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return hub


@pytest.fixture(scope="module")
def classifier(tiny_bert):
    return DiceTextClassifier(tiny_bert, **FAST).fit(X, Y)


def test_there_and_back(hub, classifier):
    classifier.push_to_hub("texts")
    assert hub.is_private == {"me/texts": None}
    url = classifier.push_to_hub("team/texts", private=True)
    assert url == "team/texts/commit/main"
    assert hub.is_private["team/texts"]
    (hub.root / "team/texts/main/LICENSE").write_text("MIT")  # Only what was saved is downloaded.
    for load in (DiceTextClassifier.from_pretrained, load_pretrained):
        loaded = load("team/texts")
        np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))


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
    (tmp_path / "here" / "team").mkdir()
    with pytest.raises(ValueError, match=r"There is no directory .*none'"):
        load_pretrained("team/none")  # Where it would lie there is a directory.


def test_a_path_has_no_revision(classifier, tmp_path):
    classifier.save_pretrained(tmp_path / "saved")
    with pytest.raises(ValueError, match="revision is for ids of the hub"):
        load_pretrained(tmp_path / "saved", revision="main")
