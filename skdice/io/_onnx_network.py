"""Networks on ONNX Runtime, in the place of torch, for predictions."""

import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import WeakKeyDictionary

import numpy as np
import torch

from ..nn._batching import Batch
from ..nn._modules import TextModule
from ._onnx import (
    COMPARED,
    TRACED,
    Inputs,
    check_installed,
    compare,
    make_batch,
    open_session,
    silent,
    trace,
)

# Pieces of a batch, of which the caches of a CPU hold all that a layer computes.
BATCH_TOKENS = 512

_MAKING = threading.Lock()


class OnnxNetwork:
    """A network on ONNX Runtime: what the module gives, from the same batches."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)
        self._names = [entry.name for entry in self._session.get_inputs()]
        # Of its file; large weights lie beside it.
        self.n_bytes = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))

    def __call__(self, batch: Batch) -> np.ndarray:
        """Return float32 logits of shape (n_items, n_classes)."""
        logits: np.ndarray
        (logits,) = self._session.run(None, {name: batch[name].numpy() for name in self._names})
        return logits


# No session is part of a module, so that none is copied or pickled with it.
_NETWORKS: WeakKeyDictionary[TextModule, dict[str, OnnxNetwork]] = WeakKeyDictionary()


def onnx_network(module: TextModule, runtime: str, max_length: int) -> OnnxNetwork:
    """Return a network whose weights do not change any more on ONNX Runtime; it is made once.

    ``runtime`` is "onnx" or "onnx-int8". Packages of the extra ``onnx`` that are not installed are
    an ImportError, an architecture that torch cannot export is a ValueError, and other results than
    torch's are a RuntimeError.
    """
    with _MAKING:
        networks = _NETWORKS.setdefault(module, {})
        if runtime not in networks:
            networks[runtime] = _make(module, runtime, max_length)
        return networks[runtime]


def _make(module: TextModule, runtime: str, max_length: int) -> OnnxNetwork:
    check_installed(f"runtime={runtime!r}", "onnx", "onnxruntime", "onnxscript")
    graph = module.merged().cpu().eval()
    # Fused kernels of torch become more operators than their formula.
    for member in (graph, *graph.members):
        member.transformer.set_attn_implementation("eager")
    with TemporaryDirectory(prefix="skdice-") as directory, silent():
        path = Path(directory, "fp32.onnx")
        trace(graph, _batch(graph, TRACED, max_length), ["logits"]).save(path)
        network = OnnxNetwork(path)
        batches = (_batch(graph, shape, max_length) for shape in COMPARED)
        compare(network._session, graph, {"logits": 0}, batches)
        return network if runtime == "onnx" else OnnxNetwork(_quantise(path))


def _batch(module: TextModule, shape: tuple[int, int], max_length: int) -> Inputs:
    """Return what a module takes, all pieces of all rows as items."""
    inputs = make_batch(module, *shape, max_length)
    inputs.setdefault("token_type_ids", torch.zeros_like(inputs["input_ids"]))
    inputs["row"], inputs["column"] = inputs["attention_mask"].nonzero(as_tuple=True)
    return inputs


def _quantise(path: Path) -> Path:
    """Write a network in int8, each column of a weight with a scale of its own."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    new = path.with_name("int8.onnx")
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
        extra_options={"MatMulConstBOnly": True},
    )
    return new
