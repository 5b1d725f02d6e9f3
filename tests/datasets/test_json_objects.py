import gzip
import json
import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.datasets import _files
from skdice.datasets._json import get_field, read_objects, write_objects


@pytest.fixture
def write(tmp_path):
    def write(content, name="tasks.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def read(path):
    return [value for _, _, value in read_objects(path)]


@pytest.mark.parametrize(
    "content, expected",
    [
        ("", []),
        (" \n", []),
        ("[]", []),
        (" [ ] \n", []),
        ("[{}]", [{}]),
        ('[{"a": 1},\n {"b": [2]}]', [{"a": 1}, {"b": [2]}]),
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('{"a": 1}\r\n\r\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('{\n"a": 1\n}\n{\n"a": 2}', [{"a": 1}, {"a": 2}]),
        ('\ufeff[{"a": 1}]', [{"a": 1}]),
        ('{"a": "\u2028\x85 \U0001f600"}', [{"a": "\u2028\x85 \U0001f600"}]),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1 << 20])
def test_lists_and_lines(write, monkeypatch, content, expected, size):
    monkeypatch.setattr(_files, "_PIECE", size)
    assert read(write(content)) == expected


@pytest.mark.parametrize("name, compress", [("c.gz", gzip.compress), ("c.XZ", lzma.compress)])
def test_compressed(write, name, compress):
    assert read(write(compress(b'[{"a": 1}]'), name)) == [{"a": 1}]


def test_rows_and_places(write):
    path = write('[\n{"a": 1}, {"a": 2},\n{"a":\n3}]')
    assert [(row, place) for row, place, _ in read_objects(path)] == [
        (0, f"{path}, line 2, row 0"),
        (1, f"{path}, line 2, row 1"),
        (2, f"{path}, line 3, row 2"),
    ]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(
    objects=st.lists(st.dictionaries(st.text(), values, max_size=3), max_size=5),
    as_list=st.booleans(),
    indent=st.sampled_from([None, 1]),
    size=st.integers(1, 40),
)
def test_any_objects_in_pieces_of_any_size(tmp_path_factory, objects, as_list, indent, size):
    path = tmp_path_factory.mktemp("json") / "any.json"
    write_objects(path, objects, as_list=as_list)
    pretty = path.with_name("pretty.json")
    dumps = [json.dumps(value, indent=indent) for value in objects]
    pretty.write_text(f"[{','.join(dumps)}]" if as_list else "\n".join(dumps), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files, "_PIECE", size)
        assert read(path) == objects
        assert read(pretty) == objects


@pytest.mark.parametrize(
    "content, message",
    [
        (
            '[{"a": 1}\n{"a": 2}]',
            r"line 2, column 1: ',' or '\]' is expected after an object of the list. Got '{\"a\"",
        ),
        ('[{"a": 1}', r"line 1, column 10: ',' or '\]' is expected after .* Got ''"),
        ("[", r"line 1, column 2: row 0, which begins in line 1, is not JSON"),
        ("[{}] x", r"line 1, column 6: nothing is expected after the list. Got 'x'"),
        ("[{}]\n[{}]", r"line 2, column 1: nothing is expected after the list"),
        ("[{},]", r"line 1, column 5: row 1, .* is not JSON"),
        ('{"a": 1}\n{"a" 2}', r"line 2, column 6: row 1, which begins in line 2, .* Got '2}'"),
        ('{"a": 1}\n{"a":\n 2\n', r"line 4, column 1: row 1, which begins in line 2, is not JSON"),
        ('{"a": 1}\n7\n', r"line 2, row 1: an object is expected. Got 7 instead"),
        ("[[]]", r"line 1, row 0: an object is expected. Got \[\] instead"),
        ("text\n", r"line 1, column 1: row 0, .* is not JSON .* Got 'text'"),
        (b'{"a": 1}\n{"a": "\xff"}', r"line 2: cannot decode the bytes b'\\xff' as 'utf-8'"),
        ('{"a": ' + "[" * 10**5, r"line 1, row 0: the JSON cannot be read"),
        ('{"a": ' + "1" * 10**5 + "}", r"line 1, row 0: the JSON cannot be read"),
    ],
)
@pytest.mark.parametrize("size", [2, 1 << 20])
def test_errors(write, monkeypatch, content, message, size):
    if len(content) > 1000 and size == 2:
        pytest.skip("Long texts in short pieces show nothing new.")
    monkeypatch.setattr(_files, "_PIECE", size)
    with pytest.raises(ValueError, match=r"tasks\.json, " + message):
        list(read_objects(write(content)))


@pytest.mark.parametrize("name, compress", [("c.gz", gzip.compress), ("c.xz", lzma.compress)])
def test_file_that_cannot_be_decompressed(write, name, compress):
    for content in (b"[{}]", compress(b"[{}]" * 99)[:-9]):
        with pytest.raises(ValueError, match=rf"{name}: the suffix says .*cannot be decompressed"):
            list(read_objects(write(content, name)))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        list(read_objects(tmp_path / "no.json"))


@pytest.mark.parametrize(
    "value, kinds, message",
    [
        ([], (int,), r"here: an object is expected. Got \[\] instead"),
        ({"b": 1, "c": 2}, (int,), r"here: 'a' is missing. Got the keys 'b', 'c'."),
        ({}, (int,), r"here: 'a' is missing. Got the keys none."),
        ({"a": True}, (int,), r"here, 'a': an integer is expected. Got true instead."),
        ({"a": None}, (str, list), r"here, 'a': a string or a list is expected. Got null instead."),
        ({"a": "x" * 99}, (int,), r"Got \"x{76}\.\.\. instead"),
    ],
)
def test_get_field_errors(value, kinds, message):
    with pytest.raises(ValueError, match=message):
        get_field("here", value, "a", *kinds)
