"""What a model does on a few pieces: whether it masks padding, and what lies below its layers."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._pretrained import quiet_transformers
from ..text import EncodedDataset, Frame, Ragged, offsets_from_lengths
from ._batching import Batcher, to_device

_LENGTHS = (3, 3, 8)  # Pieces of text in the windows of a probe.
# Of the largest score: rounding makes 1e-5, a wrong mask 1e-1.
_TOLERANCE = 1e-3
_TRACED_LENGTH = 4  # Pieces of the text on which layers are told apart.


@contextmanager
def unchanged(module: nn.Module) -> Iterator[None]:
    """Leave no trace of running a module inside the block: in its modes or its parts.

    BigBird, for one, takes other attention from its first short text on.
    """
    before = []
    for part in module.modules():
        dicts = {name: v.copy() for name, v in vars(part).items() if isinstance(v, dict)}
        before.append((part, dict(vars(part)), dicts))
    try:
        yield
    finally:
        for part, attributes, dicts in before:
            vars(part).clear()
            vars(part).update(attributes)
            for name, content in dicts.items():
                attributes[name].clear()
                attributes[name].update(content)


def probe_dataset(pieces: np.ndarray, frame: Frame, max_length: int) -> EncodedDataset:
    """Return two short windows of one length and a longer one, all positions of them scored."""
    n_texts = len(frame.text_types)
    lengths = np.minimum(_LENGTHS, max_length - frame.n_special - (n_texts - 1))
    first = [Ragged(pieces[:1].repeat(len(lengths)), np.arange(len(lengths) + 1))] * (n_texts - 1)
    last = Ragged(np.resize(pieces, lengths.sum()), offsets_from_lengths(lengths))
    input_ids, token_type_ids = frame.put_around(*first, last)
    places = [np.arange(n, dtype=np.int32) for n in input_ids.lengths]
    return EncodedDataset(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        items=Ragged(np.concatenate(places), input_ids.offsets),
        text=np.arange(len(lengths)),
        item_offsets=input_ids.offsets,
    )


def padding_is_masked(module: Any, probe: Batcher, device: Any) -> bool:
    """Whether the scores of a text are the same beside a longer one, which it is padded to.
    If not even beside a text as long, or if the model cannot be run, it is a ValueError.
    """
    name = type(module.transformer).__name__
    try:
        with unchanged(module), torch.no_grad(), quiet_transformers():
            module.eval()
            alone, beside, padded = (
                module(**_inputs(module, probe, windows, device))
                for windows in ([0], [0, 1], [0, 2])
            )
    except Exception as error:
        raise ValueError(
            f"{name} cannot score two short texts at once, as its tokenizer cuts them. It says: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not alone.isfinite().all():
        return True  # Training says in which step.
    if not _are_close(alone, beside):
        raise ValueError(
            f"{name} cannot be trained here: what it scores a text depends on the other texts of "
            f"the batch, or on chance, so that predictions would mean nothing. Take another model."
        )
    return _are_close(alone, padded)


def _inputs(
    module: Any, probe: Batcher, windows: list[int], device: Any
) -> dict[str, Tensor | None]:
    batch = to_device(module.prepare(probe.collate(np.array(windows))), device)
    inputs = {name: tensor for name, tensor in batch.items() if name != "item"}
    return {"attention_mask": None, **inputs}


def _are_close(one: Tensor, other: Tensor) -> bool:
    """Whether scores are the same up to rounding, as far as both have them."""
    return bool((one - other[: len(one)]).abs().max() <= _TOLERANCE * one.abs().max())


def freeze(module: Any, n_layers: int) -> list[nn.Module]:
    """Take the embeddings and the first layers of a module out of training, but not its head.

    Returns the frozen parts, which are to stay in eval mode so that they have no dropout; a dropout
    that the model uses further up as well is among them. It is a ValueError if the model has fewer
    layers, or they cannot be told apart.
    """
    transformer = module.transformer
    layers = find_layers(transformer)
    if n_layers > len(layers):
        raise ValueError(
            f"The 'n_frozen_layers' parameter must be None or an int in the range [0, "
            f"{len(layers)}], the layers of this model. Got {n_layers} instead."
        )
    with unchanged(module):
        module.eval()
        frozen, reached = _trace_below(module, layers, n_layers)
    parameters = _parameters_behind(reached)
    for layer in layers[:n_layers]:
        frozen.append(layer)
        parameters.update(layer.parameters())
    for parameter in parameters - module.head_parameters():
        parameter.requires_grad_(False)
    with unchanged(module), torch.random.fork_rng(devices=[]):
        module.train()
        for part in frozen:
            part.eval()
        _, in_training = _trace_below(module, layers, n_layers)
    if not all(map(torch.equal, reached, in_training)):
        warnings.warn(
            f"{type(transformer).__name__} applies dropout below layer {n_layers} in a way that "
            f"cannot be turned off there alone: its n_frozen_layers={n_layers} frozen layers get "
            f"no gradient, but are trained upon with that dropout.",
            stacklevel=2,
        )
    return frozen


def find_layers(transformer: Any) -> nn.ModuleList:
    """Return the encoder layers, in order; a ValueError if there is no one list of them."""
    n_layers = getattr(transformer.config, "num_hidden_layers", None)
    for parent in transformer.modules():
        lists = [part for part in parent.children() if isinstance(part, nn.ModuleList)]
        found = [part for part in lists if len(part) == n_layers]
        if len(found) == 1:
            return found[0]
        if found:
            raise _without_layers(transformer, "lie in parts in several lists")
    raise _without_layers(transformer, "were not found")


def _trace_below(
    module: Any, layers: nn.ModuleList, n_layers: int
) -> tuple[list[nn.Module], list[Tensor]]:
    """Return what makes up the model below a layer, found by running it on a probe.

    That is the modules that have run when layer ``n_layers`` starts (or the last one ends), and its
    inputs (or the outputs of the last one). Embeddings have many forms: with a projection, or
    relative ones that every layer reads.
    """
    modules: list[nn.Module] = []
    order: list[nn.Module] = []
    reached: list[Any] = []

    def run(layer: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        order.append(layer)
        if n_layers < len(layers) and layer is layers[n_layers]:
            reached.extend([*args, *kwargs.values()])
        output = forward(*args, **kwargs)
        if n_layers == len(layers) and layer is layers[-1]:
            reached.append(output)
        return output

    def note(part: nn.Module, args: Any, output: Any) -> None:
        if not reached:
            modules.append(part)

    with unchanged(module), torch.enable_grad(), quiet_transformers():
        for part in module.transformer.modules():
            part.register_forward_hook(note)
        for layer in layers:  # SqueezeBERT calls their forward, which no hook sees.
            layer.forward = partial(run, layer, layer.forward)
        try:
            _run_traced(module)
        except (RuntimeError, IndexError, ValueError) as error:
            reason = f"could not be told apart on {_TRACED_LENGTH} pieces of text ({error})"
            raise _without_layers(module.transformer, reason) from error
    if order != list(layers):
        raise _without_layers(module.transformer, "do not run one after the other")
    return modules, _tensors(reached)


def _run_traced(module: Any) -> None:
    """Run a network on a text of a few pieces that any vocabulary has."""
    config = module.transformer.config
    ids = torch.zeros(1, _TRACED_LENGTH, dtype=torch.int64)
    end = getattr(config, "eos_token_id", None)
    # The heads of BART and T5 look for it.
    if isinstance(end, int) and 0 <= end < config.vocab_size:
        ids[0, -1] = end
    module.read(module.transformer, ids, torch.ones_like(ids), torch.zeros_like(ids))


def _tensors(values: Any) -> list[Tensor]:
    """Return the tensors among values, which may be nested."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict | list | tuple):
        parts = values.values() if isinstance(values, dict) else values
        return [tensor for part in parts for tensor in _tensors(part)]
    return []


def _parameters_behind(tensors: list[Tensor]) -> set[nn.Parameter]:
    """Return the parameters that tensors were computed from, without computing gradients."""
    nodes: list[Any] = [tensor.grad_fn for tensor in tensors]
    seen, parameters = {None}, set()
    while nodes:
        node = nodes.pop()
        if node not in seen:
            seen.add(node)
            nodes += [before for before, _ in node.next_functions]
            if hasattr(node, "variable"):
                parameters.add(node.variable)
    return parameters


def _without_layers(transformer: nn.Module, reason: str) -> ValueError:
    return ValueError(
        f"The 'n_frozen_layers' parameter must be None for {type(transformer).__name__}: its "
        f"layers {reason}."
    )
