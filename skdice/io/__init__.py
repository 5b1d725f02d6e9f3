"""Directories of fitted estimators, which skdice and transformers can load."""

from ._checkpoint import DirectoryCheckpoint
from ._manifest import Manifest, damaged, installed_versions, listed_files, read_manifest
from ._model_card import Run, loss_of
from ._network import SavedNetwork, check_loads_nothing_else, check_weights, read_weights
from ._onnx import BATCH_TOKENS, OnnxNetwork, export, load_exported, onnx_network
from ._saved import check_place, find_saved, save, upload
