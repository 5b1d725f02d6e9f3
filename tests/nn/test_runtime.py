"""What a fit changes in torch is as before afterwards, and what a process of a job does alone."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice import DiceTokenTagger, nn

from ..corpora import easy_corpus


def flushes_denormals():
    return bool(torch.tensor(1e-310, dtype=torch.float64) * 1 == 0)


@pytest.fixture
def not_flushing():
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush denormals")
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_generator_and_denormals_are_as_before_a_block(not_flushing, before, error):
    torch.set_flush_denormal(before)
    state = torch.get_rng_state()
    expected = pytest.raises(error) if error else contextlib.nullcontext()
    with expected, nn.seeded(0, "cpu"), nn.denormals_flushed():
        torch.rand(5)
        assert not torch.equal(torch.get_rng_state(), state)
        assert flushes_denormals()
        if error:
            raise error
    assert torch.equal(torch.get_rng_state(), state)
    assert flushes_denormals() is before


HAS_CUDA, HAS_MPS, HAS_BOTH, HAS_NONE = (True, False), (False, True), (True, True), (False, False)


@pytest.mark.parametrize("device, has, expected", [
    ("auto", HAS_NONE, "cpu"), ("auto", HAS_BOTH, "cuda"), ("auto", HAS_MPS, "mps"),
    ("cpu", HAS_BOTH, "cpu"), ("cuda:1", HAS_CUDA, "cuda:1"), ("mps", HAS_MPS, "mps"),
    ("cuda", HAS_NONE, "{'auto', 'cpu'}"),
    ("cuda:2", HAS_CUDA, "{'auto', 'cpu', 'cuda:0', 'cuda:1'}"),
    ("cuda:0", HAS_MPS, "{'auto', 'cpu', 'mps:0'}"),
])  # fmt: skip
def test_device(monkeypatch, device, has, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has[0])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has[1])
    if expected[0] != "{":
        assert nn.resolve_device(device) == expected
    else:
        with pytest.raises(ValueError, match=f"{expected}.*{device!r}"):
            nn.resolve_device(device)


@pytest.mark.parametrize("precision, device, has, expected", [
    ("auto", "cuda", {"major": 8}, "bf16"),
    ("auto", "cuda:1", {"major": 7}, "fp16"),  # A T4 only emulates bf16.
    ("auto", "mps", {"major": 8}, "fp32"),
    ("fp16", "cpu", {}, "fp16"),
    ("bf16", "cuda", {"major": 7}, "bf16"),
    ("auto", "cpu", {}, "fp32"),  # A CPU of another kind.
    ("auto", "cpu", {"avx512_bf16": True, "amx_bf16": False}, "bf16"),
    ("auto", "cpu", {"avx512_bf16": False, "amx_bf16": True}, "bf16"),
    ("auto", "cpu", {"avx512_bf16": False, "avx512_f": True}, "fp32"),
])  # fmt: skip
def test_precision_goes_by_what_the_device_has(monkeypatch, precision, device, has, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(**has))
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda device: True)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has, raising=False)
    assert nn.resolve_precision(precision, device) == expected


@pytest.mark.parametrize("frozen", [None, 1])
def test_fits_in_threads_are_those_one_after_the_other(tiny_bert, frozen, tmp_path):
    """Probes, dropout, replayed steps and loading draw from one generator in turns."""
    X, y = easy_corpus(16)
    parameters = {"n_frozen_layers": frozen, "accumulate": 2, "batch_size": 4, "verbose": 0}
    tagger = DiceTokenTagger(tiny_bert, loss="dice", max_epochs=2, lr=3e-3, **parameters)

    def fit(seed):
        fitted = clone(tagger).set_params(random_state=seed).fit(X, y)
        fitted.save_pretrained(tmp_path / f"{seed}-{threading.get_ident()}")
        loaded = DiceTokenTagger.from_pretrained(tmp_path / f"{seed}-{threading.get_ident()}")
        return np.concatenate(loaded.predict_proba(X))

    state = torch.get_rng_state()
    alone = [fit(seed) for seed in (0, 1)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, [0, 1] * 3))
    for k, found in enumerate(together):
        np.testing.assert_array_equal(found, alone[k % 2])
    assert np.abs(alone[0] - alone[1]).max() > 1e-3
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("is_launched", [True, False])
def test_a_job_refuses_a_number_of_a_gpu(is_launched, monkeypatch):
    """All processes would take the same GPU; each of them has the one of its own number."""
    if is_launched:
        for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
            monkeypatch.setenv(name, value)
    for name, value in {"is_initialized": True, "get_rank": 1, "get_world_size": 2}.items():
        monkeypatch.setattr(torch.distributed, name, lambda value=value: value)
    taken = []
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(
        ValueError, match=r"Write device='cuda' in a job of 2 processes.*Got 'cuda:0' instead"
    ):
        nn.current_ranks("cuda:0")
    assert taken == []
    assert nn.current_ranks("cuda") == nn.Ranks(1, 2, "cuda")
    assert taken == [1] * is_launched


@pytest.mark.parametrize("environment, is_first", [
    ({}, True), ({"RANK": "0", "WORLD_SIZE": "1"}, True), ({"WORLD_SIZE": "4"}, True),
    ({"RANK": "0", "WORLD_SIZE": "4"}, True), ({"RANK": "3", "WORLD_SIZE": "4"}, False),
])  # fmt: skip
def test_what_the_launcher_says(environment, is_first, monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert nn.is_first_process() is is_first
    if environment.get("WORLD_SIZE") != "4" or "RANK" not in environment:
        assert nn.current_ranks("cpu") == nn.Ranks()
    assert not torch.distributed.is_initialized()
