"""Directories of fitted estimators, which skdice and transformers can load."""

from ._checkpoint import DirectoryCheckpoint
from ._fitted import Fitted
from ._model_card import installed_versions
from ._network import load_head
from ._onnx import BATCH_TOKENS, onnx_network
from ._saved import check_place, read_entries, read_manifest, save
from ._values import subclasses
