"""Prediction over corpora that are too large for one machine or for its memory."""

from .._extras import not_installed

try:
    import pyarrow
except ImportError as error:
    raise not_installed("skdice.distributed", "pyarrow", "distributed") from error

from ._predict import predict_parquet

__all__ = ["predict_parquet"]
