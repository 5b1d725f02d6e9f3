"""Directories of fitted estimators, which skdice and transformers can load."""

from ._checkpoint import DirectoryCheckpoint as DirectoryCheckpoint
from ._manifest import Manifest as Manifest
from ._manifest import damaged as damaged
from ._manifest import installed_versions as installed_versions
from ._manifest import listed_files as listed_files
from ._manifest import read_manifest as read_manifest
from ._model_card import Run as Run
from ._model_card import loss_of as loss_of
from ._network import SavedNetwork as SavedNetwork
from ._network import check_loads_nothing_else as check_loads_nothing_else
from ._network import check_weights as check_weights
from ._network import read_weights as read_weights
from ._onnx import BATCH_TOKENS as BATCH_TOKENS
from ._onnx import OnnxNetwork as OnnxNetwork
from ._onnx import export as export
from ._onnx import load_exported as load_exported
from ._onnx import onnx_network as onnx_network
from ._saved import check_place as check_place
from ._saved import find_saved as find_saved
from ._saved import save as save
from ._saved import upload as upload
