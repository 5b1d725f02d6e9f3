"""Parameters are fields: what that means for signatures, and when they are checked."""

import inspect
import pickle
from typing import Annotated

import numpy as np
import pytest
from sklearn.base import clone

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice._parameters import check_parameters, number, parameters_of, parametrised
from skdice.losses import DiceLoss, SelfAdjustingDiceLoss, WeightedCrossEntropyLoss

TAGS = ([["a", "b"], ["c"]] * 4, [["B-X", "O"], ["O"]] * 4)
ROWS = {
    DiceTokenTagger: TAGS,
    DiceQueryTagger: TAGS,
    DiceTextClassifier: (["a", "b"] * 4, [0, 1] * 4),
    DicePairClassifier: ([("a", "b"), ("c", "d")] * 4, [0, 1] * 4),
    DiceSpanExtractor: ([("who?", "it is me")] * 4, ["me"] * 4),
}
# Loading it would raise another error, as there is no such directory and no hub.
NO_MODEL = "no/such-model"


@pytest.fixture(params=ROWS, ids=lambda cls: cls.__name__)
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

    def test_every_parameter_is_stated(self, cls):
        assert list(parameters_of(cls)) == list(inspect.signature(cls).parameters)

    def test_a_constructor_only_assigns(self, cls):
        values = {name: object() for name in inspect.signature(cls).parameters}
        made = cls(**values)
        assert all(getattr(made, name) is value for name, value in values.items())
        assert vars(made) == values

    def test_estimators_are_compared_by_identity(self, cls):
        assert cls() != cls()
        assert hash(cls()) != hash(cls())

    def test_copies(self, cls):
        made = cls("model", K=2.0, callbacks=[])
        for copy in (clone(made), pickle.loads(pickle.dumps(made))):
            assert copy.get_params() == made.get_params()


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


class TestErrorsBeforeWork:
    @pytest.mark.parametrize(
        "parameters, message",
        [
            ({"alpha": -1}, "'alpha' parameter of {cls} must be a float in the range"),
            ({"loss": "tversky", "beta": "a"}, "'beta' parameter of {cls} must be a float"),
            ({"loss": "dice", "gamma": -0.1}, "'gamma' parameter of {cls} must be a float"),
            ({"loss": "focal", "gamma": None, "lr": 0}, "'lr' parameter of {cls} must be 'auto'"),
            ({"loss": "dice", "memory": "long"}, "'memory' parameter of {cls} must be 'auto'"),
            ({"loss": "dice", "ce_weight": 2}, "'ce_weight' parameter of {cls} must be a float"),
            ({"loss": "wce", "alpha": 1.0}, "alpha=1.0 cannot be used with loss='wce'"),
            ({"loss": SelfAdjustingDiceLoss(alpha=-1)}, "of SelfAdjustingDiceLoss must be a float"),
            ({"loss": DiceLoss(level="word")}, "'level' parameter of DiceLoss must be one of"),
            (
                {"loss": WeightedCrossEntropyLoss(class_weight=None)},
                "'class_weight' parameter of Weighted",
            ),
            ({"loss": DiceLoss(class_weight=[1.0] * 7)}, "must have shape"),
            ({"class_weight": {0: -1.0}}, "must be a float in the range"),
            ({"device": "gpu"}, "'device' parameter of {cls} must be 'auto' or a torch device"),
            ({"random_state": "x"}, "'random_state' parameter of {cls} must be"),
        ],
    )
    def test_loss_parameters(self, cls, parameters, message):
        made = cls(NO_MODEL, **parameters)
        with pytest.raises(ValueError) as caught:
            made.fit(*ROWS[cls])
        assert message.format(cls=cls.__name__) in str(caught.value)
        assert not hasattr(made, "net_")

    def test_a_fit_that_fails_leaves_nothing_to_predict_with(self, tiny_bert):
        tagger = DiceTokenTagger(tiny_bert, max_epochs=1, verbose=0, random_state=0).fit(*TAGS)
        tagger.set_params(model=NO_MODEL)
        with pytest.raises(ValueError, match="no directory here"):
            tagger.fit(*TAGS)
        assert not hasattr(tagger, "net_")

    def test_bad_data_leaves_the_last_fit(self, tiny_bert):
        tagger = DiceTokenTagger(tiny_bert, max_epochs=1, verbose=0, random_state=0).fit(*TAGS)
        expected = tagger.predict_proba(TAGS[0])
        with pytest.raises(ValueError, match="Every word needs one tag"):
            tagger.fit([["a"]], [["O", "O"]])
        np.testing.assert_array_equal(tagger.predict_proba(TAGS[0])[0], expected[0])
