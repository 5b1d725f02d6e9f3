import inspect

import pytest
from skorch import NeuralNet

from skdice import DiceTokenTagger

from .walk import ROOT, count, walks_of_a_tagger

MOST = {"fit": (30, 205), "predict": (14, 52), "full fit": (34, 240)}


@pytest.fixture(scope="module")
def walks(tiny_bert):
    return walks_of_a_tagger(tiny_bert)


@pytest.mark.parametrize("call", MOST)
def test_a_sentence_passes_few_files_and_functions(walks, call):
    (n_files, n_functions), (most_files, most_functions) = count(walks[call]), MOST[call]
    assert n_files <= most_files
    assert n_functions <= most_functions


def test_five_frames_lead_from_fit_to_the_loop_of_skorch(tiny_bert, monkeypatch):
    loop, depths = NeuralNet.fit_loop, []

    def count_frames(net, *args, **kwargs):
        depths.append(sum(frame.filename.startswith(ROOT) for frame in inspect.stack(0)))
        return loop(net, *args, **kwargs)

    monkeypatch.setattr(NeuralNet, "fit_loop", count_frames)
    tagger = DiceTokenTagger(tiny_bert, loss="ce", max_epochs=1, verbose=0)
    tagger.fit([["Anna", "sees", "Oslo"]] * 4, [["B-PER", "O", "B-LOC"]] * 4)
    assert depths == [5]
