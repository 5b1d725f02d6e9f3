import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.nn import StepSampler
from skdice.text import Draw

from .toy import PAD, make_batcher, make_dataset

texts = st.lists(st.tuples(st.integers(2, 9), st.integers(0, 3)), max_size=20)


def windows_of(dataset, batch):
    """Return the index of each window of a batch, found by the items in it."""
    starts = dataset.items.offsets[:-1]
    first_items = [int(batch["item"][batch["row"] == i][0]) for i in range(len(batch["input_ids"]))]
    windows = np.searchsorted(starts, first_items)
    assert (starts[windows] == first_items).all()
    return windows


def texts_of(dataset, step):
    return [text for batch in step for text in dataset.text[windows_of(dataset, batch)].tolist()]


def dataset_of(rows, **options):
    """Return texts of which hypothesis has drawn lengths and numbers of windows."""
    return make_dataset([length for length, _ in rows], [n for _, n in rows], **options)


def make_sampler(dataset, step_size=4, batch_size=4, seed=0, **more):
    batcher = make_batcher(dataset, batch_size)
    return StepSampler(batcher, step_size, np.random.default_rng(seed), **more)


def rows_of(step, name):
    """Return the windows of a step in order, without their padding."""
    padded = [pair for batch in step for pair in zip(batch[name], batch["attention_mask"])]
    return [row[mask.bool()].tolist() for row, mask in padded]


@given(texts.filter(lambda rows: any(n for _, n in rows)), st.booleans(), st.data())
@settings(deadline=None, max_examples=30)
def test_collate_loses_nothing(rows, pads_left, data):
    dataset = dataset_of(rows, weighted=True)
    n_windows = len(dataset)
    windows = data.draw(st.lists(st.integers(0, n_windows - 1), min_size=1, unique=True))
    batch = make_batcher(dataset, pads_left=pads_left).collate(np.array(windows))
    mask = batch["attention_mask"].bool()
    assert batch["input_ids"].shape == (len(windows), dataset.input_ids.lengths[windows].max())
    assert (batch["input_ids"][~mask] == PAD).all()
    for i, window in enumerate(windows):
        assert batch["input_ids"][i][mask[i]].tolist() == dataset.input_ids[window].tolist()
        types = batch["token_type_ids"][i][mask[i]]
        assert types.tolist() == dataset.token_type_ids[window].tolist()
        padding = mask[i].tolist()
        assert padding == sorted(padding, reverse=not pads_left)
    pieces = dataset.input_ids.take(np.array(windows))
    scored = batch["input_ids"][batch["row"], batch["column"]].tolist()
    assert scored == [
        piece for i, window in enumerate(windows) for piece in pieces[i][dataset.items[window]]
    ]
    items = [range(*dataset.items.offsets[window : window + 2]) for window in windows]
    items = list(itertools.chain(*items))
    assert batch["item"].tolist() == items
    assert batch["target"].tolist() == dataset.target[items].tolist()
    of_windows = dataset.weight[dataset.text[windows]]
    assert batch["weight"].tolist() == of_windows[batch["row"].numpy()].tolist()


@given(texts, st.integers(1, 7))
@settings(deadline=None, max_examples=30)
def test_by_length_gives_every_window_once_the_longest_first(rows, batch_size):
    dataset = dataset_of(rows)
    batcher = make_batcher(dataset, batch_size)
    batches = [batch for _, batch in batcher.by_length(np.arange(len(dataset)))]
    assert len(batches) == -(-len(dataset) // batch_size)
    assert all(len(batch["input_ids"]) <= batch_size for batch in batches)
    lengths = [int(n) for batch in batches for n in batch["attention_mask"].sum(1)]
    assert lengths == sorted(dataset.input_ids.lengths, reverse=True)
    items = [int(item) for batch in batches for item in batch["item"]]
    assert sorted(items) == list(range(dataset.item_offsets[-1]))


@given(texts, st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_an_epoch_has_every_text_once(rows, step_size, batch_size):
    dataset = dataset_of(rows)
    sampler = make_sampler(dataset, step_size, batch_size)
    steps = list(sampler)
    assert len(steps) == sampler.n_steps
    per_step = [set(texts_of(dataset, step)) for step in steps]
    assert sorted(text for step in per_step for text in step) == np.unique(dataset.text).tolist()
    n_windows = np.bincount(dataset.text, minlength=1)
    sizes = sorted(sum(min(n_windows[i], step_size) for i in step) for step in per_step)
    if n_windows.max() <= 1:
        assert all(size == step_size for size in sizes[1:])
    else:
        assert all(size < 3 * step_size for size in sizes), "a text of n windows counts as n"
    items = [int(item) for step in steps for batch in step for item in batch["item"]]
    every = list(range(dataset.item_offsets[-1]))
    assert sorted(items) == every, "all windows of a text are in its step"
    most = 1.5 * batch_size
    assert all(0 < len(batch["input_ids"]) <= most for step in steps for batch in step)


@given(texts, st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_batch_size_only_cuts_steps(rows, step_size, one, other):
    dataset = dataset_of(rows, weighted=True)
    samplers = [make_sampler(dataset, step_size, size) for size in (one, other)]
    for step, same in zip(*samplers, strict=True):
        for name in ("input_ids", "token_type_ids"):
            assert rows_of(step, name) == rows_of(same, name)
        for name in ("item", "target", "weight"):
            pair = [torch.cat([batch[name] for batch in cut]).tolist() for cut in (step, same)]
            assert pair[0] == pair[1]


def test_a_long_text_is_a_step_of_its_own():
    sampler = make_sampler(make_dataset([9, 2, 2, 2, 2], [20, 1, 1, 1, 1]), step_size=4)
    steps = [sorted(texts_of(sampler.batcher.dataset, step)) for step in sampler]
    assert sorted(steps) == [[0] * 20, [1, 2, 3, 4]]
    assert make_sampler(make_dataset([9] * 6, [3] * 6), 4, windows_per_text=3).n_steps == 2


@given(st.integers(1, 30), st.integers(1, 60), st.integers(1, 60), st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_an_epoch_has_what_a_draw_says_spread_evenly(n_some, n_others, n_drawn, step_size):
    group = np.random.default_rng(0).permutation([0] * n_some + [1] * n_others)
    n_drawn = min(n_drawn, n_others)
    dataset = make_dataset(2 + group)
    draw = Draw(group, np.array([n_some, n_others]), np.array([n_some, n_drawn]))
    sampler = make_sampler(dataset, step_size, draw=draw)
    for _ in range(2):
        steps = [texts_of(dataset, step) for step in sampler]
        texts = [text for step in steps for text in step]
        assert len(steps) == sampler.n_steps == -(-sampler.n_texts // step_size)
        assert len(set(texts)) == len(texts) == n_some + n_drawn
        assert set(np.flatnonzero(group == 0)) <= set(texts)
        wanted = step_size * n_some / len(texts)
        of_steps = [sum(group[text] == 0 for text in step) for step in steps]
        assert all(n < wanted + 2 for n in of_steps)
        assert sum(n > wanted - 2 for n in of_steps) >= len(steps) - 1, "but the short step"


def test_little_is_padded_although_texts_meet_others():
    lengths = np.clip(np.random.default_rng(0).lognormal(3.2, 0.6, 600), 3, 128).astype(int)
    dataset = make_dataset(lengths)
    sampler = make_sampler(dataset, step_size=16)
    epochs = [[texts_of(dataset, step) for step in sampler] for _ in range(2)]
    padded = sum(len(step) * lengths[step].max() for step in epochs[0])
    assert padded / lengths.sum() < 1.25  # 2.6 without an order.
    of_text = [{text: set(step) for step in steps for text in step} for steps in epochs]
    again = [len(of_text[0][i] & of_text[1][i]) - 1 for i in range(len(lengths))]
    assert np.mean(again) / 15 < 0.2  # 0.6 if all texts were sorted.
    (step,) = make_sampler(make_dataset([2, 9, 3, 8, 4, 7, 5]), step_size=7, batch_size=3)
    assert [batch["attention_mask"].sum(1).tolist() for batch in step] == [[9, 8, 7, 5], [4, 3, 2]]
