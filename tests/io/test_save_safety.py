"""A save replaces a directory as a whole or leaves all as it was, whoever else reads or writes."""

import copy
import errno
import fcntl
import os
import signal
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skdice import _files
from skdice._files import replacing
from skdice.estimators import _saving, load_pretrained
from skdice.io import _saved

from ..processes import in_a_process, run_python
from ..spies import internals, limited_file_size
from ..tiny_models import build_bert
from .conftest import make


def snapshot(directory):
    """Return all that lies below a directory, hidden files included."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in Path(directory).rglob("*")
    }


@pytest.fixture
def other(fitted):
    """Another tagger than the saved one."""
    return fitted("tagger", "roberta")


def test_saved_before_and_behind_a_link(fitted, copied_tagger, other, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(copied_tagger)
    fitted("queries")[0].save_pretrained(tmp_path / "link")
    assert (copied_tagger / "head.safetensors").exists()
    other[0].save_pretrained(tmp_path / "link")
    assert not (copied_tagger / "head.safetensors").exists()
    assert (tmp_path / "link").is_symlink()
    loaded = load_pretrained(tmp_path / "link")
    assert loaded.predict(other[1]).tolist() == other[0].predict(other[1]).tolist()
    assert sorted(os.listdir(tmp_path)) == [copied_tagger.name, "link"]
    # New ones, and one that is there and empty.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for path in ("empty", Path("a/b/c")):
        other[0].save_pretrained(path)
        assert load_pretrained(path).scheme_ == other[0].scheme_


@pytest.mark.parametrize("files, message", [
    ([f"copy/{i:02}.txt" for i in range(12)], r"00.txt, .*, 09.txt. Nothing"),
    (["model/config.json"], "did not save: config.json"),
    (["file"], "is a file; pass the path of a dir"),
])  # fmt: skip
def test_what_skdice_did_not_save_is_left_alone(fitted, copied_tagger, tmp_path, files, message):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("x")
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=message):
        fitted("tagger")[0].save_pretrained(tmp_path / files[0].partition("/")[0])
    for path in (None, 3, ""):
        with pytest.raises(TypeError, match="directory must be a path"):
            fitted("tagger")[0].save_pretrained(path)
    with pytest.raises(NotFittedError):
        make("tagger", "no/model")[0].save_pretrained(tmp_path / "saved")
    assert snapshot(tmp_path) == before


def test_labels_that_json_cannot_hold(fitted, tmp_path):
    estimator = fitted("texts")[0]
    classes = np.array([pd.Timestamp("2024-01-01")] * 3, dtype=object)
    estimator = internals(estimator).with_task(replace(internals(estimator).task, classes=classes))
    with pytest.raises(ValueError, match=r"task has a value of type pandas.*Timestamp"):
        estimator.save_pretrained(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("owner, name, error", [
    (Path, "rename", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),
    (_saved, "write_manifest", KeyboardInterrupt()),
    (_saved, "model_card", RuntimeError("something else")),
])  # fmt: skip
def test_what_fails_leaves_all_as_it_was(
    copied_tagger, other, tmp_path, monkeypatch, owner, name, error
):
    before = snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, Mock(side_effect=error))
        with pytest.raises(type(error)) as caught:
            other[0].save_pretrained(copied_tagger)
    if isinstance(error, OSError):
        assert "could not be saved (No space left on device)" in str(caught.value)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(copied_tagger))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("limit", [200, 50_000])
def test_a_limit_of_the_system(copied_tagger, other, tmp_path, limit):
    """Libraries in Rust raise errors of their own; each limit is met in another file."""
    before = snapshot(tmp_path)

    def save():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        failure = pytest.raises(OSError, match=r"could not be saved \(File too large\)")
        with limited_file_size(limit), failure as caught:
            other[0].save_pretrained(copied_tagger)
        assert caught.value.errno == errno.EFBIG

    assert in_a_process(save) == 0
    assert snapshot(tmp_path) == before


def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_rename(suffix, *, is_renamed):
    """Return a ``Path.rename`` that dies once a path has a name that ends so, or before."""
    rename = Path.rename

    def renamed(self, target):
        ends_so = str(target).endswith(suffix)
        if is_renamed or not ends_so:
            rename(self, target)
        if ends_so:
            die()

    return renamed


def replace_and_die(n):
    replace, done = Path.replace, []

    def replaced(self, target):
        replace(self, target)
        if self.name == "copy":
            done.append(target)
        if len(done) == n:
            die()

    return replaced


def die_over_new_files(path, **kwargs):
    if (path / "done").exists():
        die()


KILLS = {
    "before the manifest": (_saved, "write_manifest", die),
    "when all new files are there": (Path, "rename", die_at_rename("ready", is_renamed=True)),
    "when some are in their places": (Path, "replace", replace_and_die(3)),
    "when all are in their places": (Path, "rename", die_at_rename("done", is_renamed=False)),
    "when that is noted": (Path, "rename", die_at_rename("done", is_renamed=True)),
    "when the old ones are gone": (_files.shutil, "rmtree", die_over_new_files),
}


@pytest.mark.parametrize("moment", KILLS)
@pytest.mark.parametrize("place", [".", "copy", "link", "new"])
def test_killed(copied_tagger, fitted, other, tmp_path, monkeypatch, moment, place):
    """The old model or the new one can be loaded afterwards, and the next save clears up."""
    estimator, X, _ = fitted("tagger")
    (tmp_path / "link").symlink_to(copied_tagger)
    monkeypatch.chdir(copied_tagger if place == "." else tmp_path)

    def save():
        setattr(*KILLS[moment])
        other[0].save_pretrained(place)

    assert in_a_process(save) == signal.SIGKILL
    expected = estimator if moment == "before the manifest" else other[0]
    if place == "new" and expected is estimator:
        with pytest.raises(ValueError, match=r"no skdice.json in .*new"):
            load_pretrained(place)
        estimator.save_pretrained(place)
    for _ in range(2):
        loaded = load_pretrained(place)
        assert loaded.predict(X).tolist() == expected.predict(X).tolist()
        assert loaded.model == expected.model
        loaded.save_pretrained(place)
        assert not list(Path(place).glob(".*"))
    assert {*os.listdir(tmp_path)} == {copied_tagger.name, "link", place} - {"."}


def rename_fails(monkeypatch, directory):
    """Let a directory be one that the system does not move, as a mount point is."""
    rename = Path.rename

    def renamed(self, target):
        if directory in (self, Path(target)):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)


def parent_cannot_be_written_to(monkeypatch, directory):
    make = Path.mkdir

    def made(self, *args, **kwargs):
        if self.parent == directory.parent:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return make(self, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", made)


def is_mount_point(monkeypatch, directory):
    rename_fails(monkeypatch, directory)
    parent_cannot_be_written_to(monkeypatch, directory)  # Nothing is written beside it.
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == directory)


# Directories that stay where they are: nothing else can be put in their place.
STAYING = {
    "mount point": is_mount_point,
    "mount point of the same disk": rename_fails,
    "in a parent that cannot be written to": parent_cannot_be_written_to,
    "working directory": lambda monkeypatch, directory: monkeypatch.chdir(directory),
}


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("kind", STAYING)
def test_directories_that_stay(fitted, other, tmp_path, monkeypatch, kind, has_links):
    """They are empty at first, and get the files of one model after the other."""
    place = tmp_path / "saved"
    place.mkdir()
    STAYING[kind](monkeypatch, place)
    if not has_links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "no links")))
    number = place.stat().st_ino
    for estimator, X, _ in (fitted("queries"), other):
        where = "." if kind == "working directory" else place
        estimator.save_pretrained(where)
        assert os.listdir(tmp_path) == ["saved"]
        assert ("head.safetensors" in os.listdir(place)) == (estimator is not other[0])
        assert not [path for path in place.iterdir() if path.name.startswith(".")]
        assert load_pretrained(where).predict(X).tolist() == estimator.predict(X).tolist()
    assert place.stat().st_ino == number
    before = snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(_saved, "write_manifest", Mock(side_effect=KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            fitted("tagger")[0].save_pretrained(where)
    assert snapshot(tmp_path) == before


def test_files_that_were_added_after_a_kill_stay(copied_tagger, other):
    def save():
        os.chdir(copied_tagger)
        setattr(*KILLS["when some are in their places"])
        other[0].save_pretrained(".")

    assert in_a_process(save) == signal.SIGKILL
    (copied_tagger / "LICENSE").write_text("mine")
    before = snapshot(copied_tagger)
    with pytest.raises(ValueError, match="skdice did not save: LICENSE"):
        other[0].save_pretrained(copied_tagger)
    assert snapshot(copied_tagger) == before
    (copied_tagger / "LICENSE").rename(copied_tagger.parent / "LICENSE")
    other[0].save_pretrained(copied_tagger)
    assert load_pretrained(copied_tagger).model == other[0].model
    assert not list(copied_tagger.glob(".*"))


def test_nowhere_to_write(fitted, tmp_path, monkeypatch):
    """It is found before anything is made."""
    estimator = fitted("tagger")[0]
    with pytest.raises(OSError, match="could not be saved"):
        estimator.save_pretrained("/proc/saved")
    place = tmp_path / "saved"
    parent_cannot_be_written_to(monkeypatch, place)
    monkeypatch.setattr(_saved, "write_network", lambda *_: pytest.fail("it is written"))
    with pytest.raises(PermissionError, match=r"could not be saved \(Permission denied\)"):
        estimator.save_pretrained(place)
    assert os.listdir(tmp_path) == []


def test_inside_a_saved_directory(fitted, copied_tagger, tmp_path, tiny_bert):
    before = snapshot(tmp_path)
    message = r"/new' lies in '.*copy', the directory of a saved estimator"
    with pytest.raises(ValueError, match=message):
        fitted("tagger")[0].save_pretrained(copied_tagger / "deep" / "new")
    for place in (copied_tagger, copied_tagger / "new"):
        estimator, X, y = make("tagger", tiny_bert, checkpoint_dir=place)
        with pytest.raises(ValueError, match=r"lies in '.*copy', the directory of a saved"):
            estimator.fit(X, y)
    assert snapshot(tmp_path) == before


class TestExports:
    """An ONNX file in a saved directory, which another process may save to in the meantime."""

    @pytest.fixture
    def meanwhile(self, monkeypatch):
        """Return the list of functions that are called while a network is exported."""
        calls = []

        def export(*args, keep, **kwargs):
            keep.write_bytes(b"a network")
            for call in calls:
                call()

        monkeypatch.setattr(_saved, "onnx_network", export)
        return calls

    @pytest.fixture
    def tagger(self, copied_tagger):
        return load_pretrained(copied_tagger)

    def test_another_fit_that_was_saved(self, meanwhile, tagger, copied_tagger, other):
        meanwhile.append(lambda: other[0].save_pretrained(copied_tagger))
        with pytest.raises(ValueError, match=r"must be 'model.onnx' and of the fit that is saved"):
            tagger.export_onnx(copied_tagger / "model.onnx")
        assert "model.onnx" not in os.listdir(copied_tagger)
        assert load_pretrained(copied_tagger).model == other[0].model

    def test_the_same_fit_that_was_saved(self, meanwhile, tagger, copied_tagger):
        changed = copy.copy(tagger)
        changed.background_bias_ = 0.25
        meanwhile.append(lambda: changed.save_pretrained(copied_tagger))
        tagger.export_onnx(copied_tagger / "model.onnx")
        loaded = load_pretrained(copied_tagger)
        assert loaded.background_bias_ == 0.25
        assert internals(loaded).fitted.net.module_.exported == tagger.net_.module_.exported
        assert not list(copied_tagger.parent.glob(".*"))


def test_a_saver_that_waits_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_SECONDS", 0.05)
    said = threading.Event()
    monkeypatch.setattr(_files, "warn", lambda message: (told.append(message), said.set()))
    place, told = tmp_path / "saved", []
    with ThreadPoolExecutor(1) as pool:
        with replacing(place):
            waiting = pool.submit(write, place, "second")
            assert said.wait(60)
        waiting.result(60)
    assert told == [
        f"Another process or thread is saving to {str(place)!r}; this one waits for it."
    ]
    assert (place / "words").read_text() == "second"


def test_a_lock_of_the_parent_directory_is_none_of_ours(tmp_path):
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    write(tmp_path / "saved", "first")
    os.close(lock)
    assert os.listdir(tmp_path) == ["saved"]


def test_nothing_is_run_unpickled_or_fetched(tmp_path):
    """Without a network, without pickle, and without the base model."""
    code = """
        import builtins, pickle, socket, sys
        import torch, skdice.estimators, transformers.models.bert.modeling_bert

        def forbidden(*args, **kwargs):
            raise AssertionError("not allowed while loading")

        for module, names in {
            socket: "socket create_connection getaddrinfo", pickle: "load loads Unpickler",
            torch: "load", builtins: "input",
        }.items():
            for name in names.split():
                setattr(module, name, forbidden)
        tagger = skdice.estimators.load_pretrained(sys.argv[1])
        assert tagger.model != sys.argv[1]
        print(tagger.predict([["john", "saw", "oslo"], ["the"]]).tolist())
    """
    (tmp_path / "base").mkdir()
    estimator, X, y = make("tagger", build_bert(tmp_path / "base"))
    estimator.fit(X, y).save_pretrained(tmp_path / "saved")
    expected = estimator.predict([["john", "saw", "oslo"], ["the"]]).tolist()
    (tmp_path / "base").rename(tmp_path / "gone")
    done = run_python("-c", textwrap.dedent(code), tmp_path / "saved", HF_HUB_OFFLINE="")
    assert done.stdout == f"{expected}\n"
    with pytest.raises(ValueError, match="base"):
        load_pretrained(tmp_path / "saved").fit(X, y)


FILES = ("classes", "weights", "words")


def write(directory, content):
    """Replace a directory by one whose files all have the same content."""
    with replacing(directory) as new:
        for name in FILES:
            (new / name).write_text(content)


def test_writers_take_turns(tmp_path):
    directory = tmp_path / "saved"
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda i: write(directory, f"{i}"), range(60)))
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert len({(directory / name).read_text() for name in FILES}) == 1


def test_replaced_while_it_is_loaded(fitted, copied_tagger, tmp_path, monkeypatch):
    """What is loaded is never the classes of one model with the weights of the other."""
    estimator, X, _ = fitted("tagger", "roberta")
    estimator.save_pretrained(tmp_path / "other")
    other = load_pretrained(tmp_path / "other")
    classes = np.array(["B-ONE", "B-TWO", "O"], dtype=object)
    other = internals(other).with_task(replace(internals(other).task, classes=classes))
    load_tokenizer = _saving.WordTokenizer
    n_loads = []

    def replace_then_load(path):
        n_loads.append(path)
        if len(n_loads) == 1:
            other.save_pretrained(copied_tagger)
        return load_tokenizer(path)

    monkeypatch.setattr(_saving, "WordTokenizer", replace_then_load)
    loaded = load_pretrained(copied_tagger)
    assert len(n_loads) == 2
    assert loaded.classes_.tolist() == other.classes_.tolist()
    assert loaded.predict(X).tolist() == other.predict(X).tolist()
