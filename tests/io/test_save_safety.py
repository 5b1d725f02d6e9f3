"""A save replaces the old directory as a whole, or leaves everything as it was."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skdice import DiceTextClassifier, DiceTokenTagger
from skdice.estimators import load_pretrained
from skdice.io import _network, _replace, _save

from ..corpora import easy_labels
from ..tiny_models import build_bert
from .conftest import CASES, FAST, make


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


def in_a_process(work):
    """Run a function in a fork of this process; return how that ended, as ``os.wait`` does."""
    with warnings.catch_warnings():  # Newer Pythons warn of forks beside threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


class TestReplacing:
    def test_saved_before(self, copied_tagger, other):
        estimator, X, _ = other
        estimator.save_pretrained(copied_tagger)
        assert load_pretrained(copied_tagger).predict(X).tolist() == estimator.predict(X).tolist()
        assert os.listdir(copied_tagger.parent) == [copied_tagger.name]

    def test_files_that_are_not_saved_again_go(self, fitted, tmp_path):
        fitted("queries")[0].save_pretrained(tmp_path / "saved")
        assert (tmp_path / "saved" / "head.safetensors").exists()
        fitted("tagger")[0].save_pretrained(tmp_path / "saved")
        assert not (tmp_path / "saved" / "head.safetensors").exists()

    @pytest.mark.parametrize("kind", [str, Path])
    def test_new_and_empty(self, fitted, tmp_path, kind, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "empty").mkdir()
        for name in ("empty", "new", "a/b/c", f"{tmp_path}/absolute"):
            fitted("tagger")[0].save_pretrained(kind(name))
            assert load_pretrained(kind(name)).scheme_ == fitted("tagger")[0].scheme_

    def test_behind_a_link(self, copied_tagger, other, tmp_path):
        (tmp_path / "link").symlink_to(copied_tagger)
        other[0].save_pretrained(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert "roberta" in load_pretrained(copied_tagger).model


class TestRefused:
    def check(self, estimator, directory, message):
        before = snapshot(directory.parent)
        with pytest.raises(ValueError, match=message):
            estimator.save_pretrained(directory)
        assert snapshot(directory.parent) == before

    def test_foreign_directory(self, fitted, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.tex").write_text("x")
        (tmp_path / "mine" / "data").mkdir()
        message = "files that skdice did not save: data, thesis.tex. Nothing was written"
        self.check(fitted("tagger")[0], tmp_path / "mine", message)

    def test_foreign_file_among_ours(self, fitted, copied_tagger):
        for i in range(12):
            (copied_tagger / f"{i:02}.txt").touch()
        message = r"did not save: 00.txt, .*, 09.txt and 2 more"
        self.check(fitted("tagger")[0], copied_tagger, message)

    def test_model_of_transformers(self, fitted, tmp_path):
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "config.json").write_text("{}")
        self.check(fitted("tagger")[0], tmp_path / "model", "did not save: config.json")

    def test_file(self, fitted, tmp_path):
        (tmp_path / "file").write_text("x")
        self.check(fitted("tagger")[0], tmp_path / "file", "is a file; pass the path of a dir")

    def test_damaged_directory(self, fitted, copied_tagger):
        (copied_tagger / "skdice.json").write_text("{")
        self.check(fitted("tagger")[0], copied_tagger, "damaged")

    @pytest.mark.parametrize("path", [None, 3, ""])
    def test_no_path(self, fitted, path):
        with pytest.raises(TypeError, match="directory must be a path"):
            fitted("tagger")[0].save_pretrained(path)

    @pytest.mark.parametrize("case", CASES)
    def test_not_fitted(self, case, tiny_bert, tmp_path):
        estimator, _, _ = make(case, tiny_bert)
        with pytest.raises(NotFittedError):
            estimator.save_pretrained(tmp_path / "saved")
        assert not (tmp_path / "saved").exists()


class TestWhatJsonCannotHold:
    def test_labels(self, tiny_bert, tmp_path):
        X, Y = easy_labels(12)
        days = pd.to_datetime(["2024-01-01", "2024-01-02"])
        estimator = DiceTextClassifier(tiny_bert, **FAST).fit(X, pd.DataFrame(Y, columns=days))
        estimator.classes_ = np.array(list(days), dtype=object)
        with pytest.raises(ValueError, match=r"classes_ has a value of type pandas.*Timestamp"):
            estimator.save_pretrained(tmp_path / "saved")
        assert list(tmp_path.iterdir()) == []


def fail_in(monkeypatch, step):
    """Have one step of saving fail as on a full disk."""

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if step in ("write_network", "write_manifest", "model_card"):
        monkeypatch.setattr(_save, step, full)
    elif step == "tokenizer":
        monkeypatch.setattr(_network, "_update", full)
    elif step == "flush":
        monkeypatch.setattr(_replace, "flush", full)
    elif step == "mkdir":
        monkeypatch.setattr(Path, "mkdir", full)
    else:
        rename = Path.rename

        def failing(self, target):
            if target.name == "old":
                full()
            # Back again is allowed.
            return rename(self, target)

        def failing_in(self, target):
            return full() if self.name == "new" else rename(self, target)

        monkeypatch.setattr(Path, "rename", failing if step == "rename aside" else failing_in)


STEPS = [
    "mkdir",
    "write_network",
    "tokenizer",
    "model_card",
    "write_manifest",
    "flush",
    "rename in",
]


@pytest.mark.parametrize(
    "step, exists",
    [*((step, exists) for step in STEPS for exists in (True, False)), ("rename aside", True)],
)
def test_full_disk(copied_tagger, other, tmp_path, monkeypatch, step, exists):
    directory = copied_tagger if exists else tmp_path / "new"
    before = snapshot(tmp_path)
    with monkeypatch.context() as patch:
        fail_in(patch, step)
        with pytest.raises(
            OSError, match=r"could not be saved \(No space left on device\)"
        ) as caught:
            other[0].save_pretrained(directory)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(directory)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("limit", [200, 1000, 5000, 50_000])
def test_a_limit_of_the_system(copied_tagger, other, tmp_path, limit):
    """Libraries in Rust raise errors of their own; each limit is met in another file."""
    before = snapshot(tmp_path)

    def save():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        with pytest.raises(OSError, match=r"could not be saved \(File too large\)") as caught:
            other[0].save_pretrained(copied_tagger)
        assert caught.value.errno == errno.EFBIG

    assert in_a_process(save) == 0
    assert snapshot(tmp_path) == before


def test_no_permission(fitted, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="Permission denied"):
        fitted("tagger")[0].save_pretrained(tmp_path / "saved")
    tmp_path.chmod(0o700)


def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def rename_and_die(suffix):
    rename = Path.rename

    def renamed(self, target):
        rename(self, target)
        if str(target).endswith(suffix):
            die()

    return renamed


KILLS = {
    "before the manifest": (_save, "write_manifest", die),
    "before the flush": (_replace, "flush", die),
    "after the old one went aside": (Path, "rename", rename_and_die("old")),
    "after the new one came in": (Path, "rename", rename_and_die("copy")),
    "before the old one is deleted": (_replace.shutil, "rmtree", die),
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


def test_interrupted_by_the_keyboard(copied_tagger, other, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    before = snapshot(tmp_path)
    monkeypatch.setattr(_save, "write_manifest", interrupt)
    with pytest.raises(KeyboardInterrupt):
        other[0].save_pretrained(copied_tagger)
    assert snapshot(tmp_path) == before


def test_errors_that_are_no_system_errors_stay_as_they_are(fitted, tmp_path, monkeypatch):
    def fail(*args):
        raise RuntimeError("something else")

    monkeypatch.setattr(_save, "model_card", fail)
    with pytest.raises(RuntimeError, match=re.escape("something else")):
        fitted("tagger")[0].save_pretrained(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_run_unpickled_or_fetched(saved_tagger, fitted):
    """Without a network, without pickle, and without the base model."""
    code = """
        import builtins, pickle, socket, sys
        import torch, skdice.estimators, transformers.models.bert.modeling_bert

        def forbidden(*args, **kwargs):
            raise AssertionError("not allowed while loading")

        for module, name in [
            (socket, "socket"), (socket, "create_connection"), (socket, "getaddrinfo"),
            (pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load"),
            (builtins, "input"),
        ]:
            setattr(module, name, forbidden)
        tagger = skdice.estimators.load_pretrained(sys.argv[1])
        assert tagger.model != sys.argv[1]
        print(tagger.predict([["john", "saw", "oslo"], ["the"]]).tolist())
    """
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), saved_tagger],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    expected = fitted("tagger")[0].predict([["john", "saw", "oslo"], ["the"]]).tolist()
    assert done.stdout == f"{expected}\n"


def test_the_base_model_is_not_needed(tmp_path):
    (tmp_path / "base").mkdir()
    estimator, X, y = make("tagger", build_bert(tmp_path / "base"))
    estimator.fit(X, y).save_pretrained(tmp_path / "saved")
    (tmp_path / "base").rename(tmp_path / "gone")
    loaded = DiceTokenTagger.from_pretrained(tmp_path / "saved")
    assert loaded.predict(X).tolist() == estimator.predict(X).tolist()
    with pytest.raises(ValueError, match="base"):
        loaded.fit(X, y)
