"""Predictions by ONNX Runtime, from a network that torch exports and that is compared with it."""

import copy
import importlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from .._extras import not_installed
from ..nn import Batch, SequenceModule, TextModule

_TOLERANCE = 1e-4
# The number of rows and the length of the batch that is traced, and of those that are compared.
_TRACED, _WIDE = (2, 8), (5, 33)
_COMPARED = ((1, 3), _TRACED, _WIDE)
# A layer stays in fp32 if one of its inputs is so many times as large as their root mean square: in
# int8 the others would be rounded to a few steps. MPNet has five such layers, MiniLM none.
_OUTLIER = 150
# These fused kernels take longer than what they replace: a quarter of a prediction in int8.
_SLOW_FUSIONS = ["SkipLayerNormFusion", "BiasGeluFusion"]
# A batch of so many pieces fits the caches of a CPU.
BATCH_TOKENS = 512


class _Graph(nn.Module):
    """A network from padded rows to the logits of all their pieces, or of the rows."""

    def __init__(self, module: TextModule) -> None:
        super().__init__()
        self.module = module

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return logits of shape (n_rows, n_outputs), or (n_rows, length, n_outputs)."""
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        n_rows, length = input_ids.shape
        if isinstance(self.module, SequenceModule):
            row = torch.arange(n_rows)
            return self.module(input_ids, attention_mask, types, row, torch.zeros_like(row))
        row = torch.arange(n_rows)[:, None].expand(n_rows, length)
        column = torch.arange(length).expand(n_rows, length)
        items = row.flatten(), column.flatten()
        return self.module(input_ids, attention_mask, types, *items).unflatten(0, row.shape)


@contextmanager
def _silent() -> Iterator[None]:
    """Hide what the exporter logs and warns of: its internals, nothing that users can act on."""
    level = logging.root.manager.disable
    logging.disable(max(level, logging.ERROR))
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@_silent()
def _export(module: TextModule, path: Path, max_length: int) -> Any:
    """Write a network as an ONNX file; return its session, which gives what torch gives."""
    module = copy.deepcopy(module).cpu()
    for member in (module, *module.members):
        # The fused attention of torch becomes more operators than its formula has.
        member.transformer.set_attn_implementation("eager")
    graph = _Graph(module).eval()
    trace(graph, _make_batch(module, _TRACED, max_length)).save(path)
    session = open_session(path)
    compare(session, graph, max_length)
    return session


def trace(graph: _Graph, inputs: Mapping[str, Tensor]) -> Any:
    """Return a ``torch.onnx.ONNXProgram`` for any number of rows and pieces."""
    try:
        program = torch.onnx.export(
            graph,
            kwargs=dict(inputs),
            dynamo=True,
            input_names=list(inputs),
            output_names=["logits"],
            dynamic_shapes={name: {0: "batch", 1: "length"} for name in inputs},
            verbose=False,
        )
    except torch.onnx.errors.OnnxExporterError as error:
        architecture = type(graph.module.transformer).__name__
        raise ValueError(
            f"torch {torch.__version__} cannot export the architecture {architecture} to ONNX."
        ) from error
    # The exporter leaves weights to be transposed that several layers share, as those of pairs are,
    # and what is not stated as a weight is not quantised. A second pass states them.
    program.optimize()
    return program


def _make_batch(module: TextModule, shape: tuple[int, int], max_length: int) -> dict[str, Tensor]:
    """Return a padded batch of random pieces; the first row is the longest."""
    n_rows, length = shape[0], min(shape[1], max_length)
    embeddings = module.transformer.get_input_embeddings()
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(embeddings.num_embeddings, (n_rows, length), generator=generator)
    lengths = length - torch.arange(n_rows) * length // (n_rows + 1)
    place = torch.arange(length)
    mask = (place < lengths[:, None]).long()
    pad_id = getattr(module.transformer.config, "pad_token_id", None) or 0
    inputs = {"input_ids": torch.where(mask > 0, ids, pad_id), "attention_mask": mask}
    if module.takes_types:
        inputs["token_type_ids"] = (place >= length // 2).long() * mask
    return inputs


def open_session(path: Path) -> Any:
    """Return an ``onnxruntime.InferenceSession`` on the CPU, with as many threads as torch has."""
    onnxruntime: Any = importlib.import_module("onnxruntime")  # It has no types.
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(
        path,
        sess_options=options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=_SLOW_FUSIONS,
    )


def compare(session: Any, graph: _Graph, max_length: int) -> None:
    """Raise a RuntimeError if a session gives other logits than the graph on a few batches."""
    for shape in _COMPARED:
        inputs = _make_batch(graph.module, shape, max_length)
        given = {name: value.numpy() for name, value in inputs.items()}
        # What is computed of padding does not count.
        where: Any = given["attention_mask"] > 0
        if isinstance(graph.module, SequenceModule):
            where = slice(None)
        expected, found = graph(**inputs).numpy()[where], session.run(None, given)[0][where]
        if not np.allclose(expected, found, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise RuntimeError(
                f"The exported network is not the fitted one: logits of onnxruntime differ by "
                f"{np.abs(expected - found).max():.2g} from those of torch on a batch of shape "
                f"{shape}, and {_TOLERANCE:g} is allowed."
            )


def _logits(session: Any, batch: Batch) -> np.ndarray:
    """Return the float32 logits of a batch, of shape (n_items, n_outputs)."""
    given = {entry.name: batch[entry.name].numpy() for entry in session.get_inputs()}
    logits: np.ndarray = session.run(None, given)[0]
    row, column = batch["row"].numpy(), batch["column"].numpy()
    return logits[row, column] if logits.ndim == 3 else logits[row]


# No session is part of a module, so that none is copied or pickled with it.
_SESSIONS: WeakKeyDictionary[TextModule, dict[str, Any]] = WeakKeyDictionary()


def onnx_network(
    module: TextModule, runtime: str, max_length: int, *, verbose: bool = False
) -> Callable[[Batch], np.ndarray]:
    """Return a function that computes logits of a batch by ONNX Runtime.

    The weights of the module must not change any more: it is exported once, and stderr says
    so if ``verbose``. ``runtime`` is "onnx" or "onnx-int8". An architecture that torch cannot
    export is a ValueError, other results than torch's are a RuntimeError.
    """
    sessions = _SESSIONS.setdefault(module, {})
    if runtime not in sessions:
        if verbose:
            sys.stderr.write(f"predict: exporting the network for runtime={runtime!r}, once\n")
        try:
            for package in ("onnx", "onnxruntime", "onnxscript"):
                importlib.import_module(package)
        except ImportError as error:
            raise not_installed(f"runtime={runtime!r}", str(error.name), "onnx") from error
        with TemporaryDirectory(prefix="skdice-") as place:
            path = Path(place, "network.onnx")
            session = _export(module, path, max_length)
            if runtime == "onnx-int8":
                session = open_session(_quantise(path, _make_batch(module, _WIDE, max_length)))
        sessions[runtime] = session
    return partial(_logits, sessions[runtime])


def _find_outliers(path: Path, batch: Mapping[str, Tensor]) -> list[str]:
    """Return the names of the layers for which int8 is too inexact, as a batch shows."""
    import onnx

    inputs = {name: value.numpy() for name, value in batch.items()}
    model = onnx.load(path, load_external_data=False)
    weights = {weight.name for weight in model.graph.initializer}
    layers = [node for node in model.graph.node if node.op_type == "MatMul"]
    reads = {layer.name: layer.input[0] for layer in layers if layer.input[1] in weights}
    names = list(dict.fromkeys(reads.values()))
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    probe = path.with_name("probe.onnx")
    onnx.save(model, probe)
    values = dict(zip(names, open_session(probe).run(names, inputs)))
    mean = {name: np.sqrt(np.square(x).mean()) for name, x in values.items()}
    inexact = {name for name, x in values.items() if np.abs(x).max() > _OUTLIER * mean[name]}
    return [layer for layer, name in reads.items() if name in inexact]


@_silent()
def _quantise(path: Path, batch: Mapping[str, Tensor]) -> Path:
    """Write a network in int8, each column of a weight with a scale of its own.

    A batch shows which layers would lose too much.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    new = path.with_name("network-int8.onnx")
    model = onnx.load(path)
    # Weights are stated there too, which the quantiser transposes.
    del model.graph.value_info[:]
    quantize_dynamic(
        model,
        new,
        # Embeddings cost no time, and in int8 they make all scores less exact.
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        # Without the instructions for int8, the sums of an x86 CPU would overflow.
        reduce_range=True,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=_find_outliers(path, batch),
        extra_options={"MatMulConstBOnly": True},
    )
    return new
