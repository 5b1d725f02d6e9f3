"""One part: its rows are streamed through an estimator into a file that says what it is made of."""

import hashlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator

from .._digest import digest, relevant_parameters, weights_digest
from .._files import replacing_file
from ..estimators import TextEstimator, fitted_state

# That are predicted at a time, and written as a row group.
_CHUNK_ROWS = 4096
# Of a file, read at a time; without it whole columns of a row group are.
_BUFFER_BYTES = 1 << 20
_MADE_OF = b"skdice.made_of"
# What no prediction depends on: what a fit tells of itself, and how it was run.
_NOT_PREDICTING = (
    "history_",
    "best_epoch_",
    "interrupted_",
    "_n_training_rows",
    "_n_unlabeled_rows",
)
_OF_FITS = ("random_state", "callbacks")
# A network, its memory and its threads are for one prediction at a time.
_PREDICTING = threading.Lock()


@dataclass(frozen=True)
class Job:
    """What is done with every part."""

    columns: tuple[str, ...]  # what the estimator takes
    keep: tuple[str, ...]  # copied to the output
    output: str  # name of the column of predictions
    output_type: pa.DataType
    fingerprint: str  # of the estimator


@dataclass(frozen=True)
class Part:
    """A Parquet file of a corpus, and where its predictions go."""

    name: str  # path inside the corpus, with slashes
    source: Path
    destination: Path

    def open(self) -> pq.ParquetFile:
        """Open the file; raise a ValueError if it cannot be read."""
        try:
            return pq.ParquetFile(self.source, buffer_size=_BUFFER_BYTES)
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(error) from error

    def count_rows(self, job: Job) -> int:
        """Return the number of rows; raise a ValueError if a column is missing."""
        with self.open() as file:
            names = file.schema_arrow.names
            for name in (*job.columns, *job.keep):
                if names.count(name) != 1:
                    raise ValueError(
                        f"Part {self.name!r} must have one column {name!r}; it has {names}."
                    )
            return int(file.metadata.num_rows)

    def is_finished(self, job: Job) -> bool:
        """Return whether the predictions are there; raise a ValueError if it is something else."""
        if not self.destination.exists():
            return False
        try:
            found = (pq.read_schema(self.destination).metadata or {}).get(_MADE_OF)
        except (OSError, pa.ArrowException):
            found = None
        if found == self._made_of(job):
            return True
        raise ValueError(
            f"{str(self.destination)!r} has no predictions by this estimator and these columns of "
            f"part {self.name!r} as it is now. Delete it, or give another destination."
        )

    def predict(self, estimator: Any, job: Job) -> float:
        """Write the predictions, in flat memory; return the seconds that it took."""
        start = time.perf_counter()
        place = self.destination
        place.parent.mkdir(parents=True, exist_ok=True)
        with self.open() as file, replacing_file(place) as new:
            kept = [file.schema_arrow.field(name) for name in job.keep]
            schema = pa.schema(
                [*kept, pa.field(job.output, job.output_type)], {_MADE_OF: self._made_of(job)}
            )
            with pq.ParquetWriter(new, schema) as writer:
                for batch in self._predicted(estimator, job, file, schema):
                    writer.write_batch(batch)
        return time.perf_counter() - start

    def _made_of(self, job: Job) -> bytes:
        with open(self.source, "rb") as file:
            source = hashlib.file_digest(file, "sha256").hexdigest()
        return digest([job, source]).encode()

    def _predicted(
        self, estimator: Any, job: Job, file: pq.ParquetFile, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        first_row, names = 0, list(dict.fromkeys((*job.columns, *job.keep)))
        batches = file.iter_batches(_CHUNK_ROWS, columns=names)
        while batch := self._next(batches):
            try:
                columns = [batch.column(name).to_pylist() for name in job.columns]
                rows = columns[0] if len(columns) == 1 else list(zip(*columns))
                with _PREDICTING:
                    predicted = estimator.predict(rows)
            # Also of text that is not UTF-8, which Parquet does not check.
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"Part {self.name!r}, rows {first_row} to {first_row + batch.num_rows - 1}, of "
                    f"which row 0 of X is the first: {error}"
                ) from error
            made = pa.array(predicted.tolist(), type=job.output_type)
            yield pa.record_batch([*(batch[name] for name in job.keep), made], schema=schema)
            first_row += batch.num_rows

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        try:
            return next(batches, None)
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ValueError:
        return ValueError(
            f"Part {self.name!r} of the source cannot be read as Parquet: {error}. Write it again "
            f"or take it away."
        )


def estimator_fingerprint(estimator: Any) -> str:
    """Return a digest, alike in every process, of all that an estimator's predictions depend on."""
    return digest(_content(estimator))


def _content(value: Any) -> Any:
    """Return a value with each estimator replaced by what it is made of."""
    name = f"{type(value).__module__}.{type(value).__name__}"
    if isinstance(value, TextEstimator):
        used = relevant_parameters(value, without=_OF_FITS)
        if not hasattr(value, "net_"):  # What a search was given.
            return [name, used]
        state = fitted_state(value).items()
        return [
            name,
            used,
            {key: part for key, part in state if key not in _NOT_PREDICTING},
            weights_digest(value.net_.module_.state_dict().items()),
            value.net_.module_.base_digest,
        ]
    if isinstance(value, BaseEstimator):
        best = getattr(value, "best_estimator_", None)
        return [name, _content(dict(vars(value)) if best is None else best)]
    if isinstance(value, Mapping):
        return {key: _content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content(part) for part in value]
    return value
