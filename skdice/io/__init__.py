"""Directories of fitted estimators, which skdice and transformers can load."""

from ._checkpoint import DirectoryCheckpoint
from ._fitted import Fitted
from ._manifest import Manifest, installed_versions, load_errors, read_manifest
from ._network import load_head
from ._onnx import BATCH_TOKENS, onnx_network
from ._saved import check_place, find_saved, save, upload
from ._values import subclasses
