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

from skdice import DiceTokenTagger
from skdice.estimators import load_pretrained

from ..test_pretrained import NoRouteError
from .conftest import make

TAGGER = "user/tagger"
LOADERS = (DiceTokenTagger.from_pretrained, load_pretrained)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Return the directory of a hub, with a folder for each model, and what it was told."""
    place = SimpleNamespace(path=tmp_path / "hub", told=[])

    def create_repo(repo_id, *, private, token, exist_ok):
        repo_id = repo_id if "/" in repo_id else f"user/{repo_id}"
        (place.path / repo_id).mkdir(parents=True, exist_ok=exist_ok)
        place.told.append((private, token))
        return SimpleNamespace(repo_id=repo_id)

    def upload_folder(*, repo_id, folder_path, token, commit_message, delete_patterns):
        for path in (place.path / repo_id).iterdir():
            if any(fnmatch(path.name, pattern) for pattern in delete_patterns):
                path.unlink()
        shutil.copytree(folder_path, place.path / repo_id, dirs_exist_ok=True)
        place.told.append((commit_message, token))

    def snapshot_download(repo_id, *, revision, token, allow_patterns):
        place.told.append((revision, token))
        if not (place.path / repo_id).exists():
            raise LocalEntryNotFoundError("The hub\nhas no such model.")
        copy = tmp_path / "snapshots" / str(len(place.told))
        others = {path.name for path in (place.path / repo_id).iterdir()} - {*allow_patterns}
        return str(shutil.copytree(place.path / repo_id, copy, ignore=lambda *_: others))

    for fake in (create_repo, upload_folder, snapshot_download):
        monkeypatch.setattr(huggingface_hub, fake.__name__, fake)
    monkeypatch.chdir(tmp_path)
    return place


def test_what_is_pushed_is_loaded(hub, tiny_bert):
    tagger, X, y = make("tagger", tiny_bert)
    tagger.fit(X, y, validation=(X, y)).save_pretrained("saved")
    (hub.path / TAGGER).mkdir(parents=True)
    for name in ("model.onnx", "LICENSE"):  # Of an older save, and of the user.
        (hub.path / TAGGER / name).touch()
    tagger.push_to_hub(TAGGER, private=True, token="t", commit_message="First")
    assert {*os.listdir(hub.path / TAGGER)} == {*os.listdir("saved"), "LICENSE"}
    for load in LOADERS:
        loaded = load(TAGGER, revision="v1", token="t", device="cpu")
        assert loaded.predict(X).tolist() == tagger.predict(X).tolist()
    assert hub.told == [(True, "t"), ("First", "t"), ("v1", "t"), ("v1", "t")]
    # The whole of it, with the file of the user.
    assert load_pretrained(hub.path / TAGGER).predict(X).tolist() == tagger.predict(X).tolist()
    card = (hub.path / TAGGER / "README.md").read_text()
    for part in (
        "# tagger\n",
        "DiceTokenTagger.from_pretrained('user/tagger')  #",
        f"| Validation score | F1 {tagger.history_['valid_score'][1]:.4f} |",
    ):
        assert part in card


def test_what_is_no_model_of_the_hub(fitted, hub):
    estimator, X, _ = fitted("tagger")
    with pytest.raises(NotFittedError):
        DiceTokenTagger().push_to_hub(TAGGER)
    assert not hub.path.exists()
    for name, message in (
        (Path(TAGGER), "no directory here, and no 'user/model'"),
        (TAGGER, r"hub did not give it.*\(LocalEntryNotFoundError\): The hub has no such model."),
    ):
        with pytest.raises(ValueError, match=message):
            load_pretrained(name)
    estimator.push_to_hub(TAGGER)
    weights = hub.path / TAGGER / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    for load in LOADERS:
        with pytest.raises(ValueError, match=r"model.safetensors was changed after it was saved"):
            load(TAGGER)
    # A directory of that name is what is loaded.
    estimator.save_pretrained(TAGGER)
    assert load_pretrained(TAGGER).predict(X).tolist() == estimator.predict(X).tolist()
    with pytest.raises(ValueError, match="revision is for models of the hub"):
        load_pretrained(TAGGER, revision="v1")


@pytest.mark.parametrize("repo_id", [
    None, 3, Path(TAGGER), "", "/", "a/", "/a", "a/b/c", "user/..", "user/.", "a\0b", "user/a b",
    "x" * 97, "x" * 5000, "user/tägger",
], ids=lambda repo_id: repr(repo_id)[:20])  # fmt: skip
def test_ids_that_no_hub_has(fitted, hub, repo_id):
    before = os.listdir()
    with pytest.raises(ValueError, match="repo_id must be 'user/model' or 'model'") as caught:
        fitted("tagger")[0].push_to_hub(repo_id)
    assert len(str(caught.value)) < 400
    assert (os.listdir(), hub.told) == (before, [])


def test_a_name_without_a_user(fitted, hub):
    """The hub puts the name of the user before it."""
    fitted("tagger")[0].push_to_hub("tagger")
    assert "from_pretrained('user/tagger')" in (hub.path / TAGGER / "README.md").read_text()


@pytest.mark.parametrize("is_offline", [True, False])
def test_no_hub(fitted, monkeypatch, is_offline):
    def fail(*args, **kwargs):
        raise NoRouteError("no route\nto host")

    if not is_offline:
        monkeypatch.setattr(huggingface_hub, "create_repo", fail)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", is_offline)
    says = "HF_HUB_OFFLINE" if is_offline else r"\(NoRouteError\): no route to host"
    with pytest.raises(ValueError, match=f"^'{TAGGER}' could not be uploaded .*connection.*{says}"):
        fitted("tagger")[0].push_to_hub(TAGGER)
