"""Tiny random models, built once per session; nothing is downloaded."""

import functools
import gc
import os
import shutil
import signal

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
import torch

from skdice._digest import digest
from skdice.fitting import CONSTANTS
from skdice.nn import _onnx
from skdice.tasks import Answering, Classifying, Tagging

from .tiny_models import BUILDERS, build_bert

# They make torch believe that there is a GPU; the search for doctests would import them here.
collect_ignore = ["nn/pretended_gpu.py", "nn/wait_job.py"]
torch.set_num_threads(1)
# What tiny networks learn in half precision is another thing on every machine, and slower.
torch.cpu.get_capabilities = dict
# A shell has it ignored in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Leave the modules, which stay, out of the searches for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """Return the directory of the tiny model of a family, built when first asked for."""
    return functools.cache(lambda family: BUILDERS[family](tmp_path_factory.mktemp(family)))


@pytest.fixture(scope="session")
def shallow_models(tmp_path_factory):
    """The same with one layer, for exports to ONNX: they take seconds for each."""

    def build(family):
        # The two layers of ModernBERT are of two kinds.
        config = {} if family == "modernbert" else {"num_hidden_layers": 1}
        return BUILDERS[family](tmp_path_factory.mktemp(family), **config)

    return functools.cache(build)


@pytest.fixture(scope="module")
def traced_once():
    """Trace a network for ONNX Runtime once, whatever is made of it."""
    programs = {}
    trace = _onnx.trace

    def trace_once(module, *args):
        key = digest(module.state_dict())
        if key not in programs:
            programs[key] = trace(module, *args)
        return programs[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_onnx, "trace", trace_once)
        yield


@pytest.fixture(scope="session")
def tiny_bert(tiny_models):
    """Directory of a tiny random BERT with a WordPiece tokenizer."""
    return tiny_models("bert")


@pytest.fixture(scope="session")
def quick_bert(tmp_path_factory):
    """Directory of a BERT of one wider layer without dropout, which learns in half the time."""
    return build_bert(
        tmp_path_factory.mktemp("quick"), num_hidden_layers=1, hidden_size=64,
        intermediate_size=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip


@pytest.fixture
def own_bert(tiny_bert, tmp_path):
    """Directory of a tiny BERT that a test may change."""
    return shutil.copytree(tiny_bert, tmp_path / "own-bert")


@pytest.fixture(scope="session", params=["bert", "roberta"])
def tiny_model(request, tiny_models):
    """Each of the two tiny models in turn."""
    return tiny_models(request.param)


@pytest.fixture
def constants(monkeypatch):
    """Return a function that sets constants of the rules of "auto"."""

    def set_constants(**values):
        for name, value in values.items():
            monkeypatch.setitem(CONSTANTS, name, CONSTANTS[name]._replace(value=value))

    return set_constants


@pytest.fixture
def seen(monkeypatch):
    """The training rows of every fit, in order, those of folds too."""
    rows = []
    for task in (Tagging, Classifying, Answering):

        def record(self, training, *args, training_set=task.training_set):
            rows.append(training)
            return training_set(self, training, *args)

        monkeypatch.setattr(task, "training_set", record)
    return rows
