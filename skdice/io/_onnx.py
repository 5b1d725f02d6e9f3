"""Networks as ONNX files: exported by torch, compared with it, and written as a whole."""

import importlib
import importlib.util
import json
import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._extras import not_installed
from ..losses._query import match_scores
from ..nn._modules import QueryModule, SequenceModule, SpanModule, TextModule, TokenModule
from ._replace import as_path, flush

_TOLERANCE = 1e-4
# The axes of an input, by their number.
_AXES = {1: {0: "item"}, 2: {0: "batch", 1: "length"}}
# Rows and length of the batch that is traced, and of those that are compared.
TRACED = (2, 8)
COMPARED = ((1, 3), (2, 8), (5, 33))
# Their kernels take longer than those that they stand for: a quarter of a prediction in int8.
_SLOW_FUSIONS = ["SkipLayerNormFusion", "BiasGeluFusion"]
# The outputs, each with its number of axes over pieces, which come after the rows.
_OUTPUTS: dict[type[TextModule], dict[str, int]] = {
    TokenModule: {"logits": 1},
    SequenceModule: {"logits": 0},
    SpanModule: {"start_logits": 1, "end_logits": 1},
    QueryModule: {"start_logits": 1, "end_logits": 1, "match_logits": 2},
}

Inputs = dict[str, Tensor]


def export(
    path: str | os.PathLike[str],
    module: TextModule,
    *,
    max_length: int,
    metadata: Mapping[str, Any],
) -> None:
    """Write a network as an ONNX file that replaces an older one, as ``export_onnx`` says.

    The exporter is torch's current one (``dynamo=True``): it proves that the graph holds for any
    number of rows and pieces, where the older one records a single run. A copy on the CPU is
    exported, with adapters merged into the weights. Of ``metadata`` str is written as it is, all
    else as JSON.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise TypeError(f"path must be a path (str or PathLike); got {path!r}.")
    target = as_path(path)
    if target.suffix != ".onnx" or target.is_dir():
        raise ValueError(f"path must end in '.onnx' and be no directory; got {os.fspath(path)!r}.")
    check_installed("export_onnx", "onnx", "onnxscript")
    module = module.merged().cpu()
    graph = _Graph(module).eval()
    # Beside its place, so that the files come in by renaming.
    with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as place, silent():
        new = Path(place, target.name)
        program = trace(graph, make_batch(module, *TRACED, max_length), list(graph.outputs))
        program.model.metadata_props.update(
            {
                name: value if isinstance(value, str) else json.dumps(value, default=str)
                for name, value in metadata.items()
            }
        )
        program.save(new)
        if importlib.util.find_spec("onnxruntime"):
            batches = (make_batch(module, *shape, max_length) for shape in COMPARED)
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
        kinds = [kind for kind in _OUTPUTS if isinstance(module, kind)]
        self.outputs = _OUTPUTS[kinds[0]]

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
            return tuple(output[name] for name in self.outputs)
        logits = module.head(output.last_hidden_state)
        start_vector, end_vector = logits[..., 2:].chunk(2, dim=-1)
        return logits[..., 0], logits[..., 1], match_scores(start_vector, end_vector)


def check_installed(what: str, *packages: str) -> None:
    """Raise an ImportError that names the extra unless the packages are there."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise not_installed(what, " ".join(missing), "onnx")


@contextmanager
def silent() -> Iterator[None]:
    """Hide what the exporter logs and warns of: its internals, nothing that users can act on."""
    level = logging.root.manager.disable
    logging.disable(max(level, logging.ERROR))
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def trace(graph: nn.Module, inputs: Inputs, outputs: list[str], **options: Any) -> Any:
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
            **options,
        )
    except torch.onnx.errors.OnnxExporterError as error:
        modules = (part for part in graph.modules() if isinstance(part, TextModule))
        architecture = type(next(modules).transformer).__name__
        raise ValueError(
            f"torch {torch.__version__} cannot export the architecture {architecture} to ONNX."
        ) from error


def make_batch(module: TextModule, n_rows: int, length: int, max_length: int) -> Inputs:
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
    """Raise a RuntimeError if a session gives other outputs than the graph that was exported.

    ``outputs`` has their names, each with its number of axes over pieces, which come after the
    rows.
    """
    for inputs in batches:
        given = {name: value.numpy() for name, value in inputs.items()}
        mask = given["attention_mask"] > 0
        expected = graph(**inputs)
        expected = [expected] if isinstance(expected, Tensor) else expected
        for (name, n_axes), a, b in zip(outputs.items(), expected, session.run(None, given)):
            where = _known(mask, n_axes)
            left, right = a.numpy()[where], b[where]
            if not np.allclose(left, right, rtol=_TOLERANCE, atol=_TOLERANCE):
                difference = np.abs(left - right).max()
                raise RuntimeError(
                    f"The exported network is not the fitted one: {name!r} of onnxruntime differs "
                    f"by {difference:.2g} from torch on a batch of shape {mask.shape}, and "
                    f"{_TOLERANCE:g} is allowed."
                )


def _known(mask: np.ndarray, n_axes: int) -> Any:
    """Return where an output is no padding: an index of its rows and of its axes over pieces."""
    if n_axes == 2:
        return mask[:, :, None] & mask[:, None, :]
    return mask if n_axes else slice(None)
