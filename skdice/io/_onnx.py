"""Networks as ONNX files, exported by torch and compared with it; predictions by ONNX Runtime."""

import importlib
import importlib.util
import json
import logging
import os
import shutil
import threading
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from .._extras import not_installed
from .._files import as_path, flush
from ..losses import match_scores
from ..nn import Batch, QueryModule, SequenceModule, SpanModule, TextModule, TokenModule

_TOLERANCE = 1e-4
# The axes of an input, by their number.
_AXES = {1: {0: "item"}, 2: {0: "batch", 1: "length"}}
# Rows and length of the batch that is traced, and of those that are compared.
_TRACED = (2, 8)
_COMPARED = ((1, 3), (2, 8), (5, 33))
# Their kernels take longer than those that they stand for: a quarter of a prediction in int8.
_SLOW_FUSIONS = ["SkipLayerNormFusion", "BiasGeluFusion"]
# The outputs, each with its number of axes over pieces, which come after the rows.
_OUTPUTS: dict[type[TextModule], dict[str, int]] = {
    TokenModule: {"logits": 1},
    SequenceModule: {"logits": 0},
    SpanModule: {"start_logits": 1, "end_logits": 1},
    QueryModule: {"start_logits": 1, "end_logits": 1, "match_logits": 2},
}

# Of what a runtime takes; large weights lie beside it, in a file whose name goes on.
_FILES = {"onnx": "network.onnx", "onnx-int8": "network-int8.onnx"}

# Pieces of a batch, of which the caches of a CPU hold all that a layer computes.
BATCH_TOKENS = 512

_MAKING = threading.Lock()

Inputs = dict[str, Tensor]


def export(
    path: str | os.PathLike[str],
    module: TextModule,
    *,
    max_length: int,
    metadata: Mapping[str, Any],
) -> None:
    """Write a network as an ONNX file that replaces an older one, as ``export_onnx`` says.

    A copy on the CPU is exported, with adapters merged into the weights. The exporter proves that
    the graph holds for any number of rows and pieces. Of ``metadata`` str is written as it is, all
    else as JSON.
    """
    target = as_path(path, "path")
    if target.suffix != ".onnx" or target.is_dir():
        raise ValueError(f"path must end in '.onnx' and be no directory; got {os.fspath(path)!r}.")
    _check_installed("export_onnx", "onnx", "onnxscript")
    module = module.merged().cpu()
    graph = _Graph(module).eval()
    # Beside its place, so that the files come in by renaming.
    with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as place, _silent():
        new = Path(place, target.name)
        program = trace(graph, _make_batch(module, *_TRACED, max_length), list(graph.outputs))
        program.model.metadata_props.update(
            {
                name: value if isinstance(value, str) else json.dumps(value, default=str)
                for name, value in metadata.items()
            }
        )
        program.save(new)
        if importlib.util.find_spec("onnxruntime"):
            batches = (_make_batch(module, *shape, max_length) for shape in _COMPARED)
            compare(open_session(new), graph, graph.outputs, batches)
        # The file itself comes last: it names the others.
        for written in sorted(Path(place).iterdir(), key=lambda path: path == new):
            flush(written)
            written.replace(target.with_name(written.name))


class _Graph(nn.Module):
    """A network from padded rows to named outputs for all rows and pieces, not items alone."""

    def __init__(self, module: TextModule) -> None:
        super().__init__()
        self.module = module
        self.outputs = next(_OUTPUTS[kind] for kind in _OUTPUTS if isinstance(module, kind))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Any = None
    ) -> tuple[Tensor, ...]:
        """Return the outputs in the order of their names, from inputs of shape (n_rows, length)."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        parts = [self._of_one(module, inputs) for module in (self.module, *self.module.members)]
        return tuple(torch.stack(part).mean(0) if part[1:] else part[0] for part in zip(*parts))

    def _of_one(self, module: Any, inputs: dict[str, Any]) -> tuple[Tensor, ...]:
        output = module.transformer(**inputs)
        if not isinstance(module, QueryModule):
            of_rows = module.row_logits(inputs["input_ids"], inputs["attention_mask"])
            found = tuple(output[name] for name in self.outputs)
            return found if of_rows is None else (found[0] + of_rows,)
        logits = module.head(output.last_hidden_state)
        start_vector, end_vector = logits[..., 2:].chunk(2, dim=-1)
        return logits[..., 0], logits[..., 1], match_scores(start_vector, end_vector)


def _check_installed(what: str, *packages: str) -> None:
    """Raise an ImportError that names the extra unless the packages are there."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise not_installed(what, " ".join(missing), "onnx")


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


def trace(graph: nn.Module, inputs: Inputs, outputs: list[str]) -> Any:
    """Return a ``torch.onnx.ONNXProgram`` for any number of rows, pieces and items."""
    try:
        return torch.onnx.export(
            graph,
            kwargs=inputs,
            dynamo=True,
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes={name: _AXES[value.ndim] for name, value in inputs.items()},
            verbose=False,
        )
    except torch.onnx.errors.OnnxExporterError as error:
        modules = (part for part in graph.modules() if isinstance(part, TextModule))
        architecture = type(next(modules).transformer).__name__
        raise ValueError(
            f"torch {torch.__version__} cannot export the architecture {architecture} to ONNX."
        ) from error


def _make_batch(module: TextModule, n_rows: int, length: int, max_length: int) -> Inputs:
    """Return a padded batch of random pieces; the first row is the longest."""
    length = min(length, max_length)
    embeddings = module.transformer.get_input_embeddings()
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(embeddings.num_embeddings, (n_rows, length), generator=generator)
    lengths = length - torch.arange(n_rows) * length // (n_rows + 1)
    place = torch.arange(length)
    mask = (place < lengths[:, None]).long()
    pad_id = getattr(module.transformer.config, "pad_token_id", None) or 0
    inputs = {"input_ids": torch.where(mask > 0, ids, pad_id), "attention_mask": mask}
    if module._takes_types:
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


def compare(
    session: Any, graph: nn.Module, outputs: Mapping[str, int], batches: Iterable[Inputs]
) -> None:
    """Raise a RuntimeError if a session gives other outputs, as in ``_OUTPUTS``, than the graph."""
    for inputs in batches:
        given = {name: value.numpy() for name, value in inputs.items()}
        mask = given["attention_mask"] > 0
        expected = graph(**inputs)
        expected = [expected] if isinstance(expected, Tensor) else expected
        for (name, n_axes), a, b in zip(outputs.items(), expected, session.run(None, given)):
            # Where it is no padding: an index of its rows and of its axes over pieces.
            pairs = mask[:, :, None] & mask[:, None, :]
            where: Any = (slice(None), mask, pairs)[n_axes]
            left, right = a.numpy()[where], b[where]
            if not np.allclose(left, right, rtol=_TOLERANCE, atol=_TOLERANCE):
                difference = np.abs(left - right).max()
                raise RuntimeError(
                    f"The exported network is not the fitted one: {name!r} of onnxruntime differs "
                    f"by {difference:.2g} from torch on a batch of shape {mask.shape}, and "
                    f"{_TOLERANCE:g} is allowed."
                )


class OnnxNetwork:
    """A network on ONNX Runtime: what the module gives, from the same batches."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)
        self._names = [entry.name for entry in self._session.get_inputs()]
        # Of its file; large weights lie beside it.
        self.n_bytes = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))

    def __call__(self, batch: Batch) -> np.ndarray:
        """Return float32 logits of shape (n_items, n_classes)."""
        given = {name: batch[name].numpy() for name in self._names}
        return np.asarray(self._session.run(None, given)[0])


# No session is part of a module, so that none is copied or pickled with it.
_NETWORKS: WeakKeyDictionary[TextModule, dict[str, OnnxNetwork]] = WeakKeyDictionary()


def onnx_network(module: TextModule, runtime: str, max_length: int) -> OnnxNetwork:
    """Return a network whose weights do not change any more on ONNX Runtime; it is made once.

    ``runtime`` is "onnx" or "onnx-int8". An architecture that torch cannot export is a ValueError,
    other results than torch's are a RuntimeError.
    """
    with _MAKING:
        networks = _NETWORKS.setdefault(module, {})
        if runtime not in networks:
            with TemporaryDirectory(prefix="skdice-") as place:
                networks[runtime] = _make(Path(place), module, runtime, max_length)
        return networks[runtime]


def is_exported_file(name: str) -> bool:
    """Whether a file is one that :func:`save_exported` writes: it can be made again."""
    return name.startswith(tuple(_FILES.values()))


def save_exported(directory: Path, module: TextModule, runtime: str, max_length: int) -> None:
    """Write what ``runtime`` takes into a directory; a warning says why if that is not possible."""
    try:
        with TemporaryDirectory(prefix="skdice-") as place:
            _make(Path(place), module, runtime, max_length)
            for file in Path(place).glob(f"{_FILES[runtime]}*"):
                shutil.copyfile(file, directory / file.name)
    except (ImportError, ValueError, RuntimeError) as error:
        warnings.warn(
            f"The estimator is saved without its network for runtime={runtime!r}, so each process "
            f"that loads it exports it: {error}",
            stacklevel=6,
        )


def load_exported(
    directory: Path, files: Collection[str], module: TextModule, runtime: str
) -> None:
    """Predict with the network in a directory, of which these are the files, if it is there."""
    parts = [name for name in files if name.startswith(_FILES.get(runtime, "/"))]
    is_whole = parts and all((directory / name).exists() for name in parts)
    if is_whole and importlib.util.find_spec("onnxruntime"):
        _NETWORKS.setdefault(module, {})[runtime] = OnnxNetwork(directory / _FILES[runtime])


def _make(place: Path, module: TextModule, runtime: str, max_length: int) -> OnnxNetwork:
    """Write a network, compared with torch, into a directory, and return it."""
    _check_installed(f"runtime={runtime!r}", "onnx", "onnxruntime", "onnxscript")
    graph = module.merged().cpu().eval()
    # Fused kernels of torch become more operators than their formula.
    for member in (graph, *graph.members):
        member.transformer.set_attn_implementation("eager")
    with _silent():
        path = place / _FILES["onnx"]
        trace(graph, _batch(graph, _TRACED, max_length), ["logits"]).save(path)
        network = OnnxNetwork(path)
        batches = (_batch(graph, shape, max_length) for shape in _COMPARED)
        compare(network._session, graph, {"logits": 0}, batches)
        return network if runtime == "onnx" else OnnxNetwork(_quantise(path))


def _batch(module: TextModule, shape: tuple[int, int], max_length: int) -> Inputs:
    """Return what a module takes, all pieces of all rows as items."""
    inputs = _make_batch(module, *shape, max_length)
    inputs.setdefault("token_type_ids", torch.zeros_like(inputs["input_ids"]))
    inputs["row"], inputs["column"] = inputs["attention_mask"].nonzero(as_tuple=True)
    return inputs


def _quantise(path: Path) -> Path:
    """Write a network in int8, each column of a weight with a scale of its own."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    new = path.with_name(_FILES["onnx-int8"])
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
