import pytest

from .walk import count, walks_of_a_tagger

MOST = {"fit": (30, 205), "predict": (14, 52), "full fit": (34, 240)}


@pytest.fixture(scope="module")
def walks(tiny_bert):
    return walks_of_a_tagger(tiny_bert)


@pytest.mark.parametrize("call", MOST)
def test_a_sentence_passes_few_files_and_functions(walks, call):
    (n_files, n_functions), (most_files, most_functions) = count(walks[call]), MOST[call]
    assert n_files <= most_files
    assert n_functions <= most_functions
