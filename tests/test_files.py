"""Files are replaced under their names.

That a write that fails changes nothing is in datasets/test_failed_writes.py.
"""

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
