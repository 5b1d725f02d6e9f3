"""Models of the hub are saved directories that are copied; a fake hub copies them here."""

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from sklearn.exceptions import NotFittedError

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.estimators import load_pretrained

from .conftest import make

TAGGER = "user/tagger"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Return the directory of a hub, which has a folder a model, and a list of what it was told."""
    place = SimpleNamespace(path=tmp_path / "hub", told=[])

    def create_repo(repo_id, *, private, token, exist_ok):
        (place.path / repo_id).mkdir(parents=True, exist_ok=exist_ok)
        place.told.append((private, token))

    def upload_folder(*, repo_id, folder_path, token, commit_message, delete_patterns):
        for path in (place.path / repo_id).iterdir():
            if any(fnmatch(path.name, pattern) for pattern in delete_patterns):
                path.unlink()
        shutil.copytree(folder_path, place.path / repo_id, dirs_exist_ok=True)
        place.told.append((commit_message, token))
        return SimpleNamespace(commit_url=f"https://huggingface.co/{repo_id}/commit/1")

    def snapshot_download(repo_id, *, revision, token, allow_patterns):
        place.told.append((revision, token))
        if not (place.path / repo_id).exists():
            raise LocalEntryNotFoundError("The hub\nhas no such model.")
        copy = tmp_path / "cache" / "snapshots" / str(len(place.told))
        copy.mkdir(parents=True)
        for path in (place.path / repo_id).iterdir():
            if path.name in allow_patterns:
                shutil.copy(path, copy)
        return str(copy)

    for fake in (create_repo, upload_folder, snapshot_download):
        monkeypatch.setattr(huggingface_hub, fake.__name__, fake)
    monkeypatch.chdir(tmp_path)
    return place


def test_what_is_pushed_is_loaded(fitted, hub):
    estimator, X, _ = fitted("tagger")
    (hub.path / TAGGER).mkdir(parents=True)
    for name in ("model.onnx", "LICENSE"):  # Of an older save, and of the user.
        (hub.path / TAGGER / name).touch()
    url = estimator.push_to_hub(TAGGER, private=True, token="t", commit_message="First")
    assert url == "https://huggingface.co/user/tagger/commit/1"
    estimator.save_pretrained("saved")
    files = {*os.listdir("saved"), "LICENSE"}
    assert {path.name for path in (hub.path / TAGGER).iterdir()} == files
    for load in (DiceTokenTagger.from_pretrained, load_pretrained):
        loaded = load(TAGGER, revision="v1", token="t", device="cpu")
        assert loaded.predict(X).tolist() == estimator.predict(X).tolist()
    assert hub.told == [(True, "t"), ("First", "t"), ("v1", "t"), ("v1", "t")]
    with pytest.raises(ValueError, match=r"holds a DiceTokenTagger, not a DicePairClassifier"):
        DicePairClassifier.from_pretrained(TAGGER)


def test_card(hub, tiny_bert):
    tagger, X, y = make("tagger", tiny_bert)
    tagger.fit(X, y, validation=(X, y)).push_to_hub(TAGGER)
    tagger.save_pretrained("saved")
    pushed, saved = (Path(place, "README.md").read_text() for place in (hub.path / TAGGER, "saved"))
    assert "DiceTokenTagger.from_pretrained('user/tagger')\n" in pushed
    assert "DiceTokenTagger.from_pretrained('saved')  # or \"user/model\" of the hub\n" in saved
    score = f"| Validation score | F1 {tagger.history_['valid_score'][1]:.4f} (epoch 1) |"
    assert score in pushed
    assert score in saved


def test_a_changed_file_is_refused(fitted, hub):
    fitted("tagger")[0].push_to_hub(TAGGER)
    weights = hub.path / TAGGER / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    for load in (DiceTokenTagger.from_pretrained, load_pretrained):
        with pytest.raises(ValueError, match=r"model.safetensors was changed after it was saved"):
            load(TAGGER)


def test_what_is_no_model_of_the_hub(fitted, hub):
    estimator, X, _ = fitted("tagger")
    with pytest.raises(NotFittedError):
        DiceTokenTagger().push_to_hub(TAGGER)
    assert not hub.path.exists()
    for name, message in (
        ("tagger", r"'tagger' is no directory here, and no 'user/model' of a hub"),
        ("./user/tagger", "no directory here, and no 'user/model'"),
        (Path(TAGGER), "no directory here, and no 'user/model'"),
        (TAGGER, r"hub did not give it.*\(LocalEntryNotFoundError\): The hub has no such model."),
    ):
        with pytest.raises(ValueError, match=message):
            load_pretrained(name)
    # A directory of that name is what is loaded.
    estimator.save_pretrained(TAGGER)
    assert load_pretrained(TAGGER).predict(X).tolist() == estimator.predict(X).tolist()
    with pytest.raises(ValueError, match="revision is for models of the hub"):
        load_pretrained(TAGGER, revision="v1")
