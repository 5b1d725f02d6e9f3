import json

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a file of text, bytes or JSON and return its path."""

    def write(content, name="file.txt"):
        path = tmp_path / name
        if not isinstance(content, str | bytes):
            content = json.dumps(content, ensure_ascii=False)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write
