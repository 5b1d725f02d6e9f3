"""What importing the package and the first fit of a process leave alone."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from transformers.utils import logging

from skdice._pretrained import quiet_transformers

OPTIONAL = ["accelerate", "dask", "datasets", "matplotlib", "seqeval"]


def run_python(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


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
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


@pytest.mark.slow
def test_first_fit_of_a_process(tiny_bert):
    code = f"""
import random, sys
import numpy as np, torch
from skdice import DiceTokenTagger

def read_state():
    torch_state = torch.get_rng_state().tolist(), torch.get_num_threads(), torch.get_default_dtype()
    return repr((random.getstate(), np.random.get_state()[1].tolist(), torch_state))

before = read_state()
X = [["Anna", "smiles"], ["Bo", "met", "Anna"]] * 8
y = [["B-PER", "O"], ["B-PER", "O", "B-PER"]] * 8
tagger = DiceTokenTagger({tiny_bert!r}, lr=1e-2, max_epochs=3, random_state=0, verbose=0)
tagger.fit(X, y).predict(X)
assert read_state() == before
assert "optuna" not in sys.modules
"""
    done = run_python("-c", code)
    assert done.stdout == ""
    assert done.stderr == ""


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
