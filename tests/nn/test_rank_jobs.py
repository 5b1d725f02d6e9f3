import importlib.util
import pickle
import signal
import socket

import numpy as np
import pytest

from ..processes import run_python
from ..tiny_models import build_bert
from .rank_cases import EXACT, run_exact

pytestmark = pytest.mark.slow
HAS_ACCELERATE = importlib.util.find_spec("accelerate") is not None


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A directory with the models of the jobs; what they find comes there as well."""
    where = tmp_path_factory.mktemp("job")
    for name, dropout in {"plain": 0.0, "dropout": 0.1}.items():
        (where / name).mkdir()
        build_bert(where / name, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    return where


@pytest.fixture(scope="module")
def ranks(directory):
    """What the two processes of a job found that was launched."""
    launcher = ["torch.distributed.run", "--nproc_per_node=2", "--master_port", free_port()]
    if HAS_ACCELERATE:
        launcher = ["accelerate.commands.launch", "--multi_gpu", "--num_processes=2"]
        launcher += ["--main_process_port", free_port()]
    job = ("--module", "tests.nn.rank_job", directory, free_port())
    # On a CPU, since every process of a job takes a GPU of its own.
    run_python("-m", *launcher, *job, CUDA_VISIBLE_DEVICES="")
    return [pickle.loads((directory / f"{rank}.pickle").read_bytes()) for rank in (0, 1)]


@pytest.mark.parametrize("name", EXACT)
def test_two_processes_compute_what_one_does(name, ranks, directory):
    expected, expected_loss = run_exact(name, str(directory / "plain"), times=2)
    for rank in ranks:
        gradients, loss = rank["exact"][name]
        assert loss == pytest.approx(expected_loss, rel=1e-5)
        assert len(gradients) == len(expected) > 1
        for gradient, other in zip(gradients, expected):
            assert np.abs(other).max() > 1e-4, "nothing is compared"
            np.testing.assert_allclose(gradient, other, rtol=0, atol=3e-5 * np.abs(other).max())


def test_all_processes_end_with_the_same(ranks):
    first, second = (rank["alike"] for rank in ranks)
    for name, (weights, history, best) in first.items():
        assert all(map(np.array_equal, weights, second[name][0])), name
        assert (history, best) == second[name][1:]
        # One step in three has one text, so an epoch may be worse; without a seed, any may be.
        if name != "no seed":
            assert min(history["train_loss"][1:]) < history["train_loss"][0]
    assert not all(map(np.array_equal, first["no seed"][0], first["dropout"][0]))
    _, history, best = first["patience"]
    assert len(history["valid_score"]) < 10
    assert history["valid_score"][best - 1] == max(history["valid_score"])
    # A callback of one process stops all.
    assert len(first["stopped"][1]["train_loss"]) == 2
    # Dropout is another one in each process, and validation is shared out and whole.
    states = [rank["generators"] for rank in ranks]
    assert not np.array_equal(states[0]["inside"], states[1]["inside"])
    assert states[0]["restored"]
    assert states[1]["restored"]
    for rank in ranks:
        assert rank["validated"]["inside"] == pytest.approx(rank["validated"]["after"])
        assert 0 < rank["validated"]["inside"] < 1


def test_only_the_first_process_writes(ranks, directory):
    assert [rank["writes"]["n_saves"] for rank in ranks] == [2, 0]
    assert [rank["writes"]["progress"] for rank in ranks] == [["progress"], []]
    assert (directory / "saved-0" / "model.safetensors").exists()
    assert not (directory / "saved-1").exists()


@pytest.mark.parametrize("fault, message", [
    ("rows", "process 1 has other training data"),
    ("labels", "process 1 has other training data"),
    ("parameters", "process 1 has other parameters"),
    ("seed", "process 1 has other parameters"),
    ("checkpoint", "process 1 has other saved state (checkpoint_dir must be one directory"),
    ("gradient", "The gradient is not finite in epoch 1, batch 2 of 3"),
])  # fmt: skip
def test_faults_are_raised_in_all_processes(fault, message, ranks):
    for rank in ranks:
        kind, text = rank["faults"][fault]
        assert kind in ("ValueError", "NotFiniteError")
        assert message in text
        assert rank["faults"]["none"] is None, "the job goes on"


@pytest.mark.parametrize("fault, message, failing", [
    ("input", "ValueError: Every word needs one tag; row 4 has 4 words and 1 tags", 1),
    ("kind of input", "TypeError: y must be", 1),
    ("one class", "ValueError: DiceTokenTagger needs", 1),
    ("device", "ValueError: The 'device' parameter must be", 0),
])  # fmt: skip
def test_bad_input_of_one_process_stops_all(fault, message, failing, ranks):
    """The others do not wait for it, nor meet its next fit."""
    (own, own_text), (other, other_text) = (
        ranks[rank]["faults"][fault] for rank in (failing, 1 - failing)
    )
    assert f"{own}: {own_text}".startswith(message)
    assert own_text.endswith(f"Process {failing} of 2 raised this; the others stop as well.")
    assert other == "OtherProcessError"
    assert other_text.startswith(f"Process {failing} of 2 raised {message}")


def test_a_killed_process_ends_the_job_and_another_one_goes_on(ranks, directory):
    assert [rank["killed"] for rank in ranks] == [0, -signal.SIGKILL]
    kind, _ = pickle.loads((directory / "killed.pickle").read_bytes())
    assert kind in ("RuntimeError", "DistBackendError")
    for rank in ranks:
        assert rank["resumed"]["epochs"] == [3, 4]
        assert all(map(np.array_equal, rank["resumed"]["again"], rank["resumed"]["plain"]))
