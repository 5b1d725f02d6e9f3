"""Prediction over corpora that are too large for one machine or for its memory."""

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError(
        "skdice.distributed reads and writes Parquet with pyarrow, which is not installed. Install "
        "it with: pip install 'skdice[distributed]'"
    ) from error

from ._predict import predict_parquet

__all__ = ["predict_parquet"]
