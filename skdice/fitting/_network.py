"""Networks of a fit: how they are made, and how they are asked for predictions."""

import os
from typing import Any

import numpy as np

from ..losses import Loss
from ..nn import (
    BATCH_TOKENS,
    MODULES,
    Batcher,
    Frames,
    MeanModule,
    PairModule,
    TagChain,
    TextModule,
    TextNet,
    denormals_flushed,
    onnx_network,
)
from ..tasks import Network, Task
from ..text import EncodedDataset, TextReader
from ._settings import Settings

# The settings of a fit that its networks are made with.
NET_SETTINGS = (
    *("model", "n_frozen_layers", "peft_config", "lr", "head_lr", "max_epochs", "batch_size"),
    *("weight_decay", "warmup", "clip_norm", "precision", "device"),
)


def module_of(
    task: Task, reader: TextReader, model: str | os.PathLike[str], **more: Any
) -> tuple[type[TextModule], dict[str, Any]]:
    """Return the class of the module of a task, and the arguments that make it."""
    head, tokenizer = task.head, reader.tokenizer
    arguments = {"model": os.fspath(model), "n_classes": head.n_outputs, **head.module, **more}
    # Each text of a pair is read by itself as well, if it can be seen where the second one begins.
    if task.info.name == "pairs" and tokenizer.pair_frame.special[1]:
        frames = Frames(tokenizer.frame, tokenizer.pair_frame, tokenizer.pad_id)
        return PairModule, {**arguments, "frames": frames}
    return MeanModule if head.reads_mean else MODULES[task.info.name], arguments


def make_net(
    task: Task,
    reader: TextReader,
    criterion: Loss,
    *,
    model: str | os.PathLike[str],
    n_frozen_layers: int | None = None,
    peft_config: Any = None,
    **options: Any,
) -> TextNet:
    """Return a network for a task, which is not initialised yet; the options are TextNet's."""
    trained = {"n_frozen_layers": n_frozen_layers, "peft_config": peft_config}
    kind, arguments = module_of(task, reader, model, **trained)
    of_module = {f"module__{name}": value for name, value in arguments.items()}
    return TextNet(kind, criterion, **of_module, **options)


def make_batcher(
    dataset: EncodedDataset, reader: TextReader, n_windows: int, module: TextModule
) -> Batcher:
    """Return what makes batches of about ``n_windows`` windows for a network."""
    tokenizer = reader.tokenizer
    # Without the ids of pieces, MPNet counts the padding before a text among its positions.
    pads_left = tokenizer.pads_left and module.type_table is None
    return Batcher(dataset, n_windows, tokenizer.pad_id, pads_left)


def network_of(
    task: Task, net: TextNet, reader: TextReader, settings: Settings, runtime: str = "torch"
) -> Network:
    """Return a network as a task sees it."""

    def logits(dataset: EncodedDataset) -> np.ndarray:
        module, head = net.module_, task.head
        if not dataset.item_offsets[-1]:
            return np.empty((0, module.n_outputs), dtype=np.float32)
        network, is_shown = None, bool(settings.verbose)
        n_windows = settings.batch_size * head.windows_per_text
        batcher = make_batcher(dataset, reader, n_windows, module)
        if runtime != "torch":
            network = onnx_network(module, runtime, reader.max_length, verbose=is_shown)
            batcher.batch_pieces = BATCH_TOKENS
        with denormals_flushed():
            found = net.predict_logits(batcher, network, verbose=is_shown)
        if dataset.offset is not None:
            found += dataset.offset
        if head.transitions is None:
            return found
        return TagChain(head.transitions, dataset.item_offsets).predict(found)

    return Network(reader, logits)
