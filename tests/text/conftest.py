import pytest

from skdice.text import WordTokenizer

from ..tiny_models import BUILDERS

FAMILIES = ("bert", "roberta", "xlnet", "modernbert")


@pytest.fixture(scope="session")
def bert(tiny_models):
    return WordTokenizer(tiny_models("bert"))


@pytest.fixture(scope="session")
def roberta(tiny_models):
    return WordTokenizer(tiny_models("roberta"))


@pytest.fixture(scope="session")
def xlnet(tiny_models):
    """A tokenizer with all its special tokens after the text."""
    return WordTokenizer(tiny_models("xlnet"))


@pytest.fixture(scope="session")
def tokenizers(tiny_models):
    """One of each kind: WordPiece, byte-level BPE, Unigram that pads left, BPE with NFC."""
    return {name: WordTokenizer(tiny_models(name)) for name in FAMILIES}


@pytest.fixture(scope="module", params=BUILDERS)
def model(request, tiny_models):
    """The directory of a model, of each family."""
    return tiny_models(request.param)


@pytest.fixture(scope="module")
def tokenizer(model):
    return WordTokenizer(model)
