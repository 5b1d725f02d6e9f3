import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.io._values import from_json, to_json


def there_and_back(value):
    return from_json(json.loads(json.dumps(to_json(value, "value"), allow_nan=False)))


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
keys = st.booleans() | st.integers() | st.text()


def containers(parts):
    dicts = st.dictionaries(keys, parts) | st.dictionaries(st.just("type"), parts)
    return st.lists(parts) | st.lists(parts).map(tuple) | dicts


values = st.recursive(scalars, containers, max_leaves=10)


def same(a, b):
    """Whether two values are equal, types, signs of zero and NaN included."""
    return type(a) is type(b) and repr(a) == repr(b)


@settings(max_examples=300, deadline=None)
@given(values)
def test_plain_values(value):
    assert same(there_and_back(value), value)


@pytest.mark.parametrize("array", [
    np.array([0.1, -math.inf, math.nan]), np.array([0.1, 1e30], dtype=np.float32),
    np.array([1, 255], dtype=np.uint8), np.array([True, False]), np.arange(6).reshape(2, 3),
    np.empty((0, 3)), np.array(["a", "\ud800", ""], dtype=object), np.array(3.5),
    np.array([None, (1, "a")], dtype=object),
], ids=repr)  # fmt: skip
def test_arrays(array):
    loaded = there_and_back(array)
    assert loaded.dtype == array.dtype
    assert loaded.shape == array.shape
    assert same(loaded.tolist(), array.tolist())
