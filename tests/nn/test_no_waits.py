"""Training and predictions let a GPU work: they never wait for it.

A step that asks a GPU for a number makes the GPU and the host wait for each other.
"""

import json
import re
import shutil

import pytest
import torch

from ..processes import run_python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def job(tiny_bert, tmp_path_factory):
    """What a job found that ran fits and predictions on a GPU, a pretended one if there is none."""
    is_real = torch.cuda.is_available()
    if not is_real and shutil.which("g++") is None:
        pytest.skip("needs g++ to pretend that there is a GPU")
    if not is_real and (torch.version.cuda or torch.version.hip):
        pytest.skip("needs a GPU, or the CPU build of torch to pretend that there is one")
    file = tmp_path_factory.mktemp("waits") / "waits.json"
    run_python("-m", "tests.nn.wait_job", "real" if is_real else "pretended", tiny_bert, file)
    return json.loads(file.read_text(encoding="utf-8"))


def test_no_line_waits_for_the_gpu_or_mixes_devices(job):
    assert len(job["waits"]) > 20
    assert {case: lines for case, lines in job["waits"].items() if lines} == {}


def test_a_planted_wait_is_found(job):
    """In each of five steps, and in each batch of a prediction but the first."""
    asked = r"(_local_scalar_dense|a wait) at skdice/nn/_(net|step)\.py:\d+"
    assert all(re.fullmatch(asked, line) for line in job["looks"])
    of_steps, of_predictions = job["looks"].values()
    assert of_steps == 5
    assert of_predictions > 1


def test_a_planted_mix_of_devices_is_found(job):
    (error,) = job["mixes"]
    if not torch.cuda.is_available():  # The pretended GPU names the operator and the line.
        assert re.fullmatch(r"Expected all tensors of add to be on cuda:0, at skdice/nn/.*", error)
    else:
        assert "Expected all tensors to be on the same device" in error
