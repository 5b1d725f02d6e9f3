"""Writers replace a file as a whole: one that fails leaves the old file alone."""

import os
import threading

import pytest

from skdice.datasets import read_conll, write_conll, write_doccano, write_label_studio

from ..limits import limited_file_size

# How each writer is called with many short texts.
TEXTS = [f"text {i}" for i in range(100)]
SPANS = [[(0, 4, "X")]] * 100
WRITERS = {
    write_conll: ([text.split() for text in TEXTS], [["X", "O"]] * 100),
    write_doccano: (TEXTS, SPANS),
    write_label_studio: (TEXTS, SPANS),
}


def contents(folder):
    return {path.name: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.xz"])
@pytest.mark.parametrize("old", [b"old", None])
def test_files(tmp_path, writer, name, old):
    if old:
        (tmp_path / name).write_bytes(old)
    before = contents(tmp_path)
    with limited_file_size(100), pytest.raises(OSError, match="File too large") as error:
        writer(tmp_path / name, *WRITERS[writer])
    assert error.value.filename == str(tmp_path / name)
    assert contents(tmp_path) == before
    writer(tmp_path / name, *WRITERS[writer])
    assert list(contents(tmp_path)) == [name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are named pipes")
def test_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=write_conll, args=(path, [["a"]], [["X"]]), daemon=True)
    thread.start()
    assert read_conll(path) == ([["a"]], [["X"]])
    thread.join(timeout=10)
    assert list(tmp_path.iterdir()) == [path]
