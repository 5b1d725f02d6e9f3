"""Files are replaced under their names; what is no file is written to directly.

That a write that fails changes nothing is in datasets/test_failed_writes.py.
"""

import os
import subprocess
import sys

import pytest

from skdice._files import write_file


def test_names_links_and_permissions(tmp_path):
    path = tmp_path / ("é" * 127)  # As long as most file systems allow.
    path.write_bytes(b"old")
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileNotFoundError, match=r"nowhere/a\.txt'"):
        write_file(tmp_path / "nowhere" / "a.txt", b"")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is a /dev/stdout")
@pytest.mark.parametrize("is_pipe", [True, False])
def test_standard_output(tmp_path, is_pipe):
    program = (
        "from skdice._files import write_file\n"
        "write_file('/dev/stdout', b'first ')\n"
        "print('second', flush=True)\n"
    )
    with open(tmp_path / "out", "ab+") as file:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE if is_pipe else file,
            check=True,
        )
        file.seek(0)
        assert (done.stdout if is_pipe else file.read()).split() == [b"first", b"second"]
