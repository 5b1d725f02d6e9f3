"""Fitted estimators as directories that skdice and transformers can load."""

from ._load import load_pretrained

__all__ = ["load_pretrained"]
