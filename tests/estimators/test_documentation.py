"""What the class docstrings say of the parameters."""

import ast
import inspect
import re

import pytest

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)

ESTIMATORS = [
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_documented(cls):
    doc = inspect.getdoc(cls)
    sections = [part.split("\n\n")[0] for part in re.split(r"Parameters\n-+\n", doc)[1:]]
    usual, rare = (re.findall(r"^(\w+) :", section, re.MULTILINE) for section in sections)
    assert sorted(usual + rare) == sorted(inspect.signature(cls).parameters)
    assert usual[0] == "model"
    assert {"device", "warmup"} < set(rare)
    assert "%(" not in doc


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_defaults_are_those_documented(cls):
    parameters = inspect.signature(cls).parameters
    documented = re.findall(r"^(\w+) : .*default=([^\s,]+)$", inspect.getdoc(cls), re.MULTILINE)
    plain = {name for name, p in parameters.items() if isinstance(p.default, str | int | float)}
    assert {name for name, _ in documented} == plain
    for name, default in documented:
        assert ast.literal_eval(default) == parameters[name].default
