"""A save replaces a directory as a whole or leaves all as it was, whoever else reads or writes."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import warnings
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

from ..spies import internals, limited_file_size
from ..tiny_models import build_bert
from .conftest import make


def snapshot(directory):
    """Return all that lies below a directory, hidden files included."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in Path(directory).rglob("*")
    }


def in_a_process(work):
    """Run a function in a fork of this process; return how that ended, as ``os.wait`` does."""
    # Newer Pythons warn of forks beside threads.
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


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
    classes = np.array([pd.Timestamp("2024-01-01")], dtype=object)
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


def rename_and_die(suffix):
    rename = Path.rename

    def renamed(self, target):
        rename(self, target)
        if str(target).endswith(suffix):
            die()

    return renamed


def die_over_an_old_one(path, **kwargs):
    if (path / "old").exists():
        die()


KILLS = {
    "before the manifest": (_saved, "write_manifest", die),
    "after the old one went aside": (Path, "rename", rename_and_die("old")),
    "after the new one came in": (Path, "rename", rename_and_die("copy")),
    "before the old one is deleted": (_files.shutil, "rmtree", die_over_an_old_one),
}


@pytest.mark.parametrize("moment", KILLS)
def test_killed(copied_tagger, fitted, other, tmp_path, moment):
    """The old model or the new one can be loaded afterwards, and the next save clears up."""
    estimator, X, _ = fitted("tagger")

    def save():
        setattr(*KILLS[moment])
        other[0].save_pretrained(copied_tagger)

    assert in_a_process(save) == signal.SIGKILL
    loaded = load_pretrained(copied_tagger)
    is_new = moment in ("after the new one came in", "before the old one is deleted")
    expected = other[0] if is_new else estimator
    assert loaded.predict(X).tolist() == expected.predict(X).tolist()
    assert loaded.model == expected.model
    loaded.save_pretrained(copied_tagger)
    assert os.listdir(tmp_path) == [copied_tagger.name]
    assert load_pretrained(copied_tagger).model == expected.model


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
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), tmp_path / "saved"],
        cwd=Path(__file__).parents[2],
        env={key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
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
