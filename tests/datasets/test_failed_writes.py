import os
import threading

import pytest

from skdice.datasets import read_conll, write_conll, write_doccano, write_label_studio

from ..spies import limited_file_size

TEXTS = [f"text {i}" for i in range(100)]
SPANS = [[(0, 4, "X")]] * 100
ROWS = {
    write_conll: ([text.split() for text in TEXTS], [["X", "O"]] * 100),
    write_doccano: (TEXTS, SPANS),
    write_label_studio: (TEXTS, SPANS),
}


@pytest.mark.parametrize("writer", ROWS)
def test_files(tmp_path, writer):
    path = tmp_path / "a.gz"
    path.write_bytes(b"old")
    with limited_file_size(100), pytest.raises(OSError, match="File too large") as error:
        writer(path, *ROWS[writer])
    assert error.value.filename == str(path)
    assert path.read_bytes() == b"old"
    writer(path, *ROWS[writer])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are named pipes")
def test_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=write_conll, args=(path, [["a"]], [["X"]]), daemon=True)
    thread.start()
    assert read_conll(path) == ([["a"]], [["X"]])
    thread.join(timeout=10)
    assert list(tmp_path.iterdir()) == [path]


def test_names_links_and_permissions(tmp_path):
    path = tmp_path / ("é" * 127)  # As long as most file systems allow.
    path.write_bytes(b"old")
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    write_conll(tmp_path / "link", [["a"]], [["X"]])
    assert (tmp_path / "link").is_symlink()
    assert read_conll(path) == ([["a"]], [["X"]])
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileNotFoundError, match=r"nowhere/a\.txt'"):
        write_conll(tmp_path / "nowhere" / "a.txt", [["a"]], [["X"]])
