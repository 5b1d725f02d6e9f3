"""Parameters are fields: what that means for signatures, docstrings and subclasses."""

import ast
import inspect
import re
from typing import Annotated

import pytest
from sklearn.base import clone

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice._parameters import check_parameters, number, parametrised

ESTIMATORS = [
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
]


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


class TestSignature:
    def test_types_and_defaults(self, cls):
        parameters = inspect.signature(cls).parameters
        assert next(iter(parameters)) == "model"
        assert parameters["model"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        for name in list(parameters)[1:]:
            assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters["batch_size"].annotation is int
        assert parameters["max_epochs"].default == parameters["lr"].default == "auto"
        assert "Annotated" not in str(inspect.signature(cls))

    def test_documented(self, cls):
        doc, parameters = inspect.getdoc(cls), inspect.signature(cls).parameters
        sections = [part.split("\n\n")[0] for part in re.split(r"Parameters\n-+\n", doc)[1:]]
        usual, rare = (re.findall(r"^(\w+) :", section, re.MULTILINE) for section in sections)
        assert sorted(usual + rare) == sorted(parameters)
        assert usual[0] == "model"
        assert {"device", "warmup"} < set(rare)
        assert "%(" not in doc
        defaults = dict(re.findall(r"^(\w+) : .*default=([^\s,]+)$", doc, re.MULTILINE))
        plain = {name for name, p in parameters.items() if isinstance(p.default, str | int | float)}
        assert set(defaults) == plain
        for name, default in defaults.items():
            assert ast.literal_eval(default) == parameters[name].default

class TestOfASubclass:
    def test_its_parameters_join_those_of_the_base(self):
        @parametrised
        class Louder(DiceTokenTagger):
            """Louder.

            Parameters
            ----------
            %(parameters)s
            """

            volume: Annotated[int, number("How loud it is.", low=0, integer=True)] = 11

        made = Louder("model", volume=5, lr=1e-4)
        assert clone(made).volume == 5
        assert list(inspect.signature(Louder).parameters)[-1] == "volume"
        assert "volume : int, default=11\n" in Louder.__doc__
        assert "How loud it is." in Louder.__doc__

        @parametrised
        class Dedented(DiceTokenTagger):
            __doc__ = "As Python 3.13 has docstrings.\n\n%(parameters)s\n%(attributes)s\n"

        assert "\nmodel : str" in Dedented.__doc__
        assert "%(" not in Dedented.__doc__
        with pytest.raises(ValueError, match="'volume' parameter of Louder must be an int"):
            check_parameters(made.set_params(volume=-1))

    def test_its_own_constructor(self):
        class Mine(DiceTokenTagger):
            def __init__(self, model="m", *, size=1):
                super().__init__(model, lr=1e-4)
                self.size = size

        assert clone(Mine(size=3)).get_params() == {"model": "m", "size": 3}
        assert Mine().lr == 1e-4
