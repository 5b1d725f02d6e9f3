"""What each process of a job does alone, without a job; test_rank_jobs has whole ones."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.nn import Ranks, StepSampler, current_ranks, is_first_process

from .toy import make_batcher, make_dataset


def steps_of(dataset, ranks, step_size, batch_size):
    batcher = make_batcher(dataset, batch_size)
    return list(StepSampler(batcher, step_size, np.random.default_rng(0), ranks))


def items_of(batches):
    return [item for batch in batches for item in batch["item"].tolist()]


rows = st.lists(st.tuples(st.integers(2, 9), st.integers(0, 3)), min_size=1, max_size=20)


@given(rows, st.integers(1, 4), st.integers(1, 4), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_processes_deal_out_the_steps_of_one(rows, step_size, batch_size, count):
    dataset = make_dataset([length for length, _ in rows], [n for _, n in rows])
    whole = steps_of(dataset, Ranks(), step_size * count, batch_size)
    dealt = [steps_of(dataset, Ranks(i, count), step_size, batch_size) for i in range(count)]
    assert {len(steps) for steps in dealt} == {len(whole)}
    for step, parts in zip(whole, zip(*dealt)):
        assert all(parts), "each process has a batch"
        assert sorted(items_of([batch for part in parts for batch in part])) == sorted(
            items_of(step)
        )
        sizes = [sum(len(batch["input_ids"]) for batch in part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


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
        current_ranks("cuda:0")
    assert taken == []
    assert current_ranks("cuda") == Ranks(1, 2, "cuda")
    assert taken == [1] * is_launched


def test_sums_come_back_to_tensors_of_all_shapes(monkeypatch):
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda flat: flat.mul_(2))
    tensors = [torch.ones(2, 3).T, torch.ones((), dtype=torch.long), torch.ones(4)[::2]]
    Ranks(0, 2).add_up(tensors)
    assert [tensor.tolist() for tensor in tensors] == [[[2.0, 2.0]] * 3, 2, [2.0, 2.0]]


@pytest.mark.parametrize(
    "environment, is_first",
    [
        ({}, True),
        ({"RANK": "0", "WORLD_SIZE": "1"}, True),
        ({"WORLD_SIZE": "4"}, True),
        ({"RANK": "0", "WORLD_SIZE": "4"}, True),
        ({"RANK": "3", "WORLD_SIZE": "4"}, False),
    ],
)
def test_what_the_launcher_says(environment, is_first, monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_first_process() is is_first
    if environment.get("WORLD_SIZE") != "4" or "RANK" not in environment:
        assert current_ranks("cpu") == Ranks()
    assert not torch.distributed.is_initialized()
