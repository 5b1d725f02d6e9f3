"""Processes and threads that save and load the same directory at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from skdice._files import read_one_version, replacing
from skdice.estimators import _persistence, load_pretrained

FILES = ("classes", "weights", "words")


def write(directory, content):
    """Replace a directory by one whose files all have the same content."""
    with replacing(directory) as new:
        for name in FILES:
            (new / name).write_text(content)


def contents(place):
    return {(place / name).read_text() for name in FILES}


class Saving:
    """Threads that save to one directory until the block ends."""

    def __init__(self, directory, n_threads=2):
        self.over = threading.Event()
        self.n_threads = n_threads
        self.directory = directory

    def save(self, i):
        n_saved = 0
        while not self.over.is_set():
            write(self.directory, f"{i} {n_saved}")
            n_saved += 1
        return n_saved

    def __enter__(self):
        self.pool = ThreadPoolExecutor(self.n_threads)
        self.saves = [self.pool.submit(self.save, i) for i in range(self.n_threads)]
        return self

    def __exit__(self, *error):
        self.over.set()
        self.pool.shutdown()


def test_a_read_is_of_one_version(tmp_path):
    directory = tmp_path / "saved"
    write(directory, "first")
    with Saving(directory):
        seen = [read_one_version(directory, contents) for _ in range(100)]
        while seen[-1] == {"first"}:  # On a busy machine the thread may not have begun.
            seen.append(read_one_version(directory, contents))
    assert {len(content) for content in seen} == {1}


def test_two_writers(tmp_path):
    directory = tmp_path / "saved"
    with Saving(directory, n_threads=3) as saving:
        for _ in range(25):
            write(directory, "mine")
    assert all(save.result() > 0 for save in saving.saves)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert len(contents(directory)) == 1


def test_replaced_while_it_is_loaded(fitted, copied_tagger, tmp_path, monkeypatch):
    """What is loaded is never the classes of one model with the weights of the other."""
    estimator, X, _ = fitted("tagger", "roberta")
    estimator.save_pretrained(tmp_path / "other")
    other = load_pretrained(tmp_path / "other")
    classes = np.array(["B-ONE", "B-TWO", "O"], dtype=object)
    other = other.with_task(replace(other.task, classes=classes))
    load_tokenizer = _persistence.WordTokenizer
    n_loads = []

    def replace_then_load(path):
        n_loads.append(path)
        if len(n_loads) == 1:
            other.save_pretrained(copied_tagger)
        return load_tokenizer(path)

    monkeypatch.setattr(_persistence, "WordTokenizer", replace_then_load)
    loaded = load_pretrained(copied_tagger)
    assert len(n_loads) == 2
    assert loaded.classes_.tolist() == other.classes_.tolist()
    assert loaded.predict(X).tolist() == other.predict(X).tolist()


def test_a_directory_that_always_changes(tmp_path):
    def read_and_write(place):
        write(tmp_path / "saved", "x")

    write(tmp_path / "saved", "x")
    with pytest.raises(ValueError, match=r"saved' changed whenever .* another process writes"):
        read_one_version(tmp_path / "saved", read_and_write)
