"""Predictions by ONNX Runtime, from a network that torch exports and that is compared with it."""

import copy
import importlib
import logging
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from .._extras import not_installed
from .._files import sha256
from ..exceptions import hidden
from ._batching import Batch, LogitsOf
from ._modules import TextModule

_TOLERANCE = 1e-4
# Rows and length of the batch that is traced, and of the batches that are compared.
_TRACED, _WIDE = (2, 8), (5, 33)
_COMPARED = ((1, 3), _TRACED, _WIDE)
# A layer stays in fp32 if one of its inputs is larger than the root mean square of all by this
# factor: in int8 the others would be rounded to a few steps. MPNet has five such layers, MiniLM
# has none.
_OUTLIER = 150
# These fused kernels are slower than the operators they replace, by a quarter of a prediction in
# int8.
_SLOW_FUSIONS = ["SkipLayerNormFusion", "BiasGeluFusion"]
# A batch of this many pieces fits into the caches of a CPU.
BATCH_TOKENS = 512


@contextmanager
def _silent() -> Iterator[None]:
    """Hide logs and warnings of the exporter, which say nothing that users can act on."""
    with hidden(), torch.no_grad():  # In one thread at a time.
        level = logging.root.manager.disable
        logging.disable(max(level, logging.ERROR))
        try:
            yield
        finally:
            logging.disable(level)


def trace(module: TextModule, batch: Batch) -> Any:
    """Return a ``torch.onnx.ONNXProgram`` for any number of rows, pieces and items."""
    axes = {name: {0: "batch", 1: "length"} for name in batch}
    axes |= {"row": {0: "items"}, "column": {0: "items"}}
    how: dict[str, Any] = {"output_names": ["logits"], "dynamo": True, "verbose": False}
    try:
        program = torch.onnx.export(module, kwargs=batch, dynamic_shapes=axes, **how)
    except torch.onnx.errors.OnnxExporterError as error:
        architecture = type(module.transformer).__name__
        raise ValueError(
            f"torch {torch.__version__} cannot export the architecture {architecture} to ONNX."
        ) from error
    # The exporter leaves weights that several layers share, as in pairs, to be transposed at run
    # time, and only plain weights are quantised. A second pass transposes them.
    program.optimize()
    return program


def _make_batch(module: TextModule, shape: tuple[int, int], max_length: int) -> Batch:
    """Return a padded batch of random pieces, each an item; the first row is the longest."""
    n_rows, length = shape[0], min(shape[1], max_length)
    embeddings = module.transformer.get_input_embeddings()
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(embeddings.num_embeddings, (n_rows, length), generator=generator)
    lengths = length - torch.arange(n_rows) * length // (n_rows + 1)
    place = torch.arange(length)
    mask = (place < lengths[:, None]).long()
    pad_id = getattr(module.transformer.config, "pad_token_id", None) or 0
    row, column = mask.nonzero(as_tuple=True)
    return {
        "input_ids": torch.where(mask > 0, ids, pad_id),
        "attention_mask": mask,
        "token_type_ids": (place >= length // 2).long() * mask,
        "row": row,
        "column": column,
    }


def open_session(path: Path) -> Any:
    """Return an ``onnxruntime.InferenceSession`` on the CPU, with as many threads as torch has."""
    onnxruntime: Any = importlib.import_module("onnxruntime")  # It has no types.
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = torch.get_num_threads()
    how = {"providers": ["CPUExecutionProvider"], "disabled_optimizers": _SLOW_FUSIONS}
    return onnxruntime.InferenceSession(path, sess_options=options, **how)


def compare(session: Any, module: TextModule, max_length: int) -> None:
    """Raise a RuntimeError if a session gives other logits than a module on a few batches."""
    for shape in _COMPARED:
        batch = _make_batch(module, shape, max_length)
        expected, found = module(**batch).numpy(), _run(session, batch)[0]
        if not np.allclose(expected, found, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise RuntimeError(
                f"The exported network is not the fitted one: logits of onnxruntime differ by "
                f"{np.abs(expected - found).max():.2g} from those of torch on a batch of shape "
                f"{shape}, and {_TOLERANCE:g} is allowed."
            )


def _run(session: Any, batch: Batch, names: Sequence[str] | None = None) -> list[np.ndarray]:
    """Return the outputs with some names, by default all: the float32 logits of the items."""
    inputs = {entry.name: batch[entry.name].numpy() for entry in session.get_inputs()}
    return [*session.run(names, inputs)]


# Sessions lie outside of modules, so that they are not copied or pickled with them.
_SESSIONS: WeakKeyDictionary[TextModule, dict[str, Any]] = WeakKeyDictionary()
_EXPORTING = threading.Lock()


def onnx_network(
    module: TextModule, runtime: str, max_length: int, *, verbose: bool, keep: Path | None = None
) -> LogitsOf:
    """Return a function that computes logits of a batch by ONNX Runtime.

    The module is exported once, unless it has a file already; its weights must not change after
    that. If ``verbose``, stderr tells of the export. ``keep`` is where to write the file in fp32.
    ``runtime`` is "onnx" or "onnx-int8". An architecture that torch cannot export raises a
    ValueError, results that differ from torch's raise a RuntimeError.
    """
    with _EXPORTING:  # A second thread uses what the first one exported.
        sessions = _SESSIONS.setdefault(module, {})
        if runtime not in sessions or keep is not None:
            sessions[runtime] = _make_session(module, runtime, max_length, verbose, keep)
    return lambda batch: _run(sessions[runtime], batch)[0]


@_silent()
def _make_session(
    module: TextModule, runtime: str, max_length: int, verbose: bool, keep: Path | None
) -> Any:
    """Return the session of a network's ONNX file, after a comparison with torch."""
    try:
        for package in ("onnx", "onnxruntime", "onnxscript"):
            importlib.import_module(package)
    except ImportError as error:
        raise not_installed(f"runtime={runtime!r}", str(error.name), "onnx") from error
    with TemporaryDirectory(prefix="skdice-") as place:
        path = Path(place, "network.onnx")
        if not copy_exported(module, path) and verbose:
            sys.stderr.write(f"predict: exporting the network for runtime={runtime!r}, once\n")
        module = copy.deepcopy(module).cpu().eval()
        for member in (module, *module.members):
            # The fused attention of torch becomes more operators than its formula has.
            member.transformer.set_attn_implementation("eager")
        if not path.exists():
            trace(module, _make_batch(module, _TRACED, max_length)).save(path)
        session = open_session(path)
        compare(session, module, max_length)
        if keep is not None:
            if len(list(path.parent.iterdir())) > 1:
                raise ValueError("The network has more than 2 GB, too much for an ONNX file.")
            shutil.copyfile(path, keep)
        if runtime == "onnx-int8":
            session = open_session(_quantise(path, _make_batch(module, _WIDE, max_length)))
    return session


def copy_exported(module: TextModule, path: Path) -> bool:
    """Copy the file that a network was exported to; return False if it is gone or was changed."""
    file, digest = module.exported
    is_there = os.access(file, os.R_OK) and sha256(Path(file)) == digest
    if is_there:
        shutil.copyfile(file, path)
    return is_there


def _find_outliers(path: Path, batch: Batch) -> list[str]:
    """Return the names of the layers for which int8 is too inexact, as a batch shows."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    weights = {weight.name for weight in model.graph.initializer}
    layers = [node for node in model.graph.node if node.op_type == "MatMul"]
    reads = {layer.name: layer.input[0] for layer in layers if layer.input[1] in weights}
    names = list(dict.fromkeys(reads.values()))
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    probe = path.with_name("probe.onnx")
    onnx.save(model, probe)
    values = dict(zip(names, _run(open_session(probe), batch, names)))
    mean = {name: np.sqrt(np.square(x).mean()) for name, x in values.items()}
    inexact = {name for name, x in values.items() if np.abs(x).max() > _OUTLIER * mean[name]}
    return [layer for layer, name in reads.items() if name in inexact]


def _quantise(path: Path, batch: Batch) -> Path:
    """Write a network in int8, each column of a weight with a scale of its own.

    The batch shows which layers would lose too much; these stay in fp32.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    new = path.with_name("network-int8.onnx")
    model = onnx.load(path)
    # Its shapes of weights would be wrong after the quantiser has transposed these.
    del model.graph.value_info[:]
    quantize_dynamic(
        model,
        new,
        # Embeddings take no time, and in int8 they would make all scores less exact.
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        # On an x86 CPU without instructions for int8, sums would overflow.
        reduce_range=True,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=_find_outliers(path, batch),
        extra_options={"MatMulConstBOnly": True},
    )
    return new
