"""Directories of fitted estimators, which skdice and transformers can load."""

from ._hub import download, upload
from ._network import load_head
from ._saved import OF_NET, check_place, export, opened, read_manifest, save
from ._values import subclasses
