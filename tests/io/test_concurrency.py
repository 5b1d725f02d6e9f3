"""Processes and threads that save and load the same directory at the same time."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from skdice._files import replacing
from skdice.estimators import _saving, load_pretrained

from ..spies import internals

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
