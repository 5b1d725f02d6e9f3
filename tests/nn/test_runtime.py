"""What a fit changes in torch is as before afterwards."""

import contextlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from skdice.nn import _runtime
from skdice.nn._runtime import (
    _mode_sharer,
    autocast,
    denormals_flushed,
    resolve_device,
    resolve_precision,
    seeded,
)


def flushes_denormals():
    return bool(torch.tensor(1e-310, dtype=torch.float64) * 1 == 0)


@pytest.fixture
def not_flushing():
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush denormals")
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(False)


def test_seeded_draws_from_the_seed():
    draws = []
    for seed in (3, 3, 4):
        with seeded(seed, "cpu"):
            draws.append(torch.rand(5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        assert torch.equal(torch.rand(5), draws[0])


def test_seeded_restores_the_generator():
    state = torch.get_rng_state()
    with seeded(0, "cpu"):
        torch.rand(5)
        assert not torch.equal(torch.get_rng_state(), state)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_seeded_restores_the_generator_after_errors(error):
    def block():
        with seeded(0, "cpu"):
            torch.rand(5)
            raise error

    state = torch.get_rng_state()
    with pytest.raises(error):
        block()
    assert torch.equal(torch.get_rng_state(), state)


def test_seeded_blocks_nest():
    with seeded(1, "cpu"):
        expected = torch.rand(4)
    with seeded(1, "cpu"):
        first = torch.rand(2)
        with seeded(2, "cpu"):
            torch.rand(9)
        assert torch.equal(torch.cat([first, torch.rand(2)]), expected)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_denormals_are_flushed_inside_only(not_flushing, before, error):
    torch.set_flush_denormal(before)

    def block():
        with denormals_flushed():
            assert flushes_denormals()
            if error:
                raise error

    if error:
        with pytest.raises(error):
            block()
    else:
        block()
    assert flushes_denormals() is before


THREADS = """
import os
import torch
from skdice.nn import _runtime

torch.set_num_threads(2)

def share_flushed():
    x = torch.full((4_000_000,), 1e-310, dtype=torch.float64)
    return float((x * 1 == 0).double().mean())

def shares(used_before=False):
    before = [share_flushed()] if used_before else []
    with _runtime.denormals_flushed():
        inside = share_flushed()
        with _runtime.denormals_flushed():
            pass
        assert share_flushed() == inside
    return [*before, inside, share_flushed()]
"""


def run_threads(script):
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", THREADS + script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def of_one_process():
    """What a process prints of threads that start in the block, of older ones, and of a fork."""
    return run_threads("""
print(*shares())
print(*shares(used_before=True))
if hasattr(os, "fork"):
    child = os.fork()
    with _runtime.denormals_flushed():
        flushes = bool(torch.tensor([1e-310], dtype=torch.float64) * 1 == 0)
    if not child:
        os._exit(0 if flushes else 1)
    print(os.waitpid(child, 0)[1])
""")


def test_denormals_in_all_threads_of_torch(not_flushing, of_one_process):
    """Those that exist take over the mode, and those that start in the block give it up again."""
    if _mode_sharer() is None:
        pytest.skip("torch has no OpenMP library with GNU's interface")
    assert of_one_process[:2] == ["1.0 0.0", "0.0 1.0 0.0"]


def test_without_a_way_to_the_threads_they_stay_as_they_are(not_flushing):
    """Inside the block one of the two flushes."""
    script = "_runtime._mode_sharer = lambda: None; print(*shares())"
    assert run_threads(script) == ["0.5 0.0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_does_not_wait_for_the_threads_of_its_parent(not_flushing, of_one_process):
    assert of_one_process[2] == "0"


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:1", "mps"])
def test_a_named_device_is_taken_as_it_is(device):
    assert resolve_device(device) == device


@pytest.mark.parametrize(
    "cuda, mps, expected",
    [(False, False, "cpu"), (True, False, "cuda"), (True, True, "cuda"), (False, True, "mps")],
)
def test_auto_device(monkeypatch, cuda, mps, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert resolve_device("auto") == expected


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_a_named_precision_is_taken_as_it_is(precision, device):
    assert resolve_precision(precision, device) == precision


@pytest.mark.parametrize("gain, expected", [(0.3, "fp32"), (1.15, "fp32"), (1.7, "bf16")])
@pytest.mark.parametrize(
    "capabilities, is_measured",
    [
        ({}, True),  # A CPU of another kind, or a torch that does not know it.
        ({"avx512_bf16": True, "amx_bf16": False}, True),
        ({"avx512_bf16": False, "amx_bf16": True}, True),
        ({"avx512_bf16": False, "amx_bf16": False}, False),
    ],
)
def test_auto_precision_on_a_cpu(monkeypatch, gain, expected, capabilities, is_measured):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    monkeypatch.setattr(_runtime, "_LEAST_GAIN", 1.2)
    monkeypatch.setattr(_runtime, "_gain_of_bf16", lambda: gain)
    assert resolve_precision("auto", "cpu") == (expected if is_measured else "fp32")


def test_auto_precision_with_a_torch_that_does_not_know_cpus(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(_runtime, "_LEAST_GAIN", 1.2)
    monkeypatch.setattr(_runtime, "_gain_of_bf16", lambda: 2.0)
    assert resolve_precision("auto", "cpu") == "bf16"


def test_the_gain_is_measured_once_and_draws_nothing(monkeypatch):
    _runtime._gain_of_bf16.cache_clear()
    state = torch.get_rng_state()
    gain = _runtime._gain_of_bf16()
    assert 0.01 < gain < 100
    assert torch.equal(torch.get_rng_state(), state)
    assert _runtime._gain_of_bf16() == gain


@pytest.mark.parametrize("slow, expected", [("fp32", 4.0), ("bf16", 0.25)])
def test_the_gain_is_that_of_the_faster_one(monkeypatch, slow, expected):
    clock = [0.0]

    def pass_time(precision, device):
        clock[0] += 4.0 if precision == slow else 1.0
        return contextlib.nullcontext()

    monkeypatch.setattr(_runtime, "autocast", pass_time)
    monkeypatch.setattr(_runtime.time, "perf_counter", lambda: clock[0])
    _runtime._gain_of_bf16.cache_clear()
    try:
        assert _runtime._gain_of_bf16() == expected
    finally:
        _runtime._gain_of_bf16.cache_clear()


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
@pytest.mark.parametrize("supported, expected", [(True, "bf16"), (False, "fp16")])
def test_auto_precision_on_a_gpu(monkeypatch, device, supported, expected):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: supported)
    assert resolve_precision("auto", device) == expected


def test_auto_precision_on_mps():
    assert resolve_precision("auto", "mps") == "fp32"


@pytest.mark.parametrize(
    "precision, dtype",
    [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
def test_autocast_computes_in_the_precision(precision, dtype):
    matrix = torch.ones(2, 2)
    with autocast(precision, "cpu"):
        assert (matrix @ matrix).dtype == dtype
    assert (matrix @ matrix).dtype == torch.float32


def test_threads_do_not_draw_from_each_other():
    def draw(seed):
        with seeded(seed, "cpu"):
            numbers = []
            for _ in range(20):
                numbers.append(torch.rand(()).item())
                time.sleep(0.001)
        return numbers

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(4))) == [draw(seed) for seed in range(4)]
