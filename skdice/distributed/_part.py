"""One part of a corpus: its predictions, in a file that records what they were made from."""

import hashlib
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator

from .._digest import digest, relevant_parameters, weights_digest
from .._files import replacing_file
from ..estimators import TextEstimator

# Rows that are predicted at a time and become one row group.
_CHUNK_ROWS = 4096
# Bytes read from a file at a time; without a limit pyarrow reads whole columns of a row group.
_BUFFER_BYTES = 1 << 20
_MADE_OF = b"skdice.made_of"
_OF_FITS = ("random_state", "callbacks")
# A prediction uses the memory and all threads of its process, so there is one at a time.
_PREDICTING = threading.Lock()


@dataclass(frozen=True)
class Job:
    """What is done with every part."""

    columns: tuple[str, ...]  # input of the estimator
    keep: tuple[str, ...]  # copied to the output
    output: str  # name of the column of predictions
    output_type: pa.DataType
    fingerprint: str  # of the estimator


class Report(NamedTuple):
    """What the process that predicted a part says about it."""

    name: str
    seconds: float
    made_of: bytes


@dataclass(frozen=True)
class Part:
    """A Parquet file of a corpus, and the place of its predictions."""

    name: str  # path inside the corpus, with slashes
    source: Path
    destination: Path

    def count_rows(self, job: Job) -> int:
        """Return the number of rows; raise a ValueError if a column is missing."""
        with self._open() as file:
            names = file.schema_arrow.names
            for name in (*job.columns, *job.keep):
                if names.count(name) != 1:
                    raise ValueError(
                        f"Part {self.name!r} must have one column {name!r}; it has {names}."
                    )
            return int(file.metadata.num_rows)

    def made_of(self, job: Job) -> bytes:
        """Return a digest of the job and of the source file as it is now."""
        with open(self.source, "rb") as file:
            source = hashlib.file_digest(file, "sha256").hexdigest()
        return digest([job, source]).encode()

    def is_finished(self, made_of: bytes) -> bool:
        """Return whether the predictions are there; raise a ValueError if another file is."""
        if not self.destination.exists():
            return False
        try:
            found = (pq.read_schema(self.destination).metadata or {}).get(_MADE_OF)
        except (OSError, pa.ArrowException):
            found = None
        if found == made_of:
            return True
        raise ValueError(
            f"{str(self.destination)!r} has no predictions by this estimator and these columns of "
            f"part {self.name!r} as it is now. Delete it, or give another destination."
        )

    def predict(self, estimator: BaseEstimator, job: Job) -> Report:
        """Write the predictions, in flat memory, unless they are there."""
        start, made_of = time.perf_counter(), self.made_of(job)
        # Another worker may have written the part and been lost before it could say so.
        if not self.is_finished(made_of):
            self._write(estimator, job, made_of)
        return Report(self.name, time.perf_counter() - start, made_of)

    def _write(self, estimator: BaseEstimator, job: Job, made_of: bytes) -> None:
        self.destination.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as file, replacing_file(self.destination) as new:
            kept = [file.schema_arrow.field(name) for name in job.keep]
            schema = pa.schema([*kept, pa.field(job.output, job.output_type)], {_MADE_OF: made_of})
            with pq.ParquetWriter(new, schema) as writer:
                for batch in self._predicted(estimator, job, file, schema):
                    writer.write_batch(batch)
            if self.made_of(job) != made_of:
                raise ValueError(
                    f"Part {self.name!r} of the source has changed while it was predicted. Call "
                    f"again when nothing writes there."
                )
            self.is_finished(made_of)  # It raises if another call has written there.

    def _predicted(
        self, estimator: BaseEstimator, job: Job, file: pq.ParquetFile, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the output, some at a time."""
        first_row, names = 0, list(dict.fromkeys((*job.columns, *job.keep)))
        batches = file.iter_batches(_CHUNK_ROWS, columns=names)
        while True:
            with self._reading():
                batch = next(batches, None)
            if batch is None:
                return
            try:
                columns = [batch.column(name).to_pylist() for name in job.columns]
                rows = columns[0] if len(columns) == 1 else list(zip(*columns))
                with _PREDICTING:
                    predicted = estimator.predict(rows)
            except (TypeError, ValueError) as error:  # Parquet does not check that text is UTF-8.
                raise ValueError(
                    f"Part {self.name!r}, rows {first_row} to {first_row + batch.num_rows - 1}, of "
                    f"which row 0 of X is the first: {error}"
                ) from error
            made = pa.array(predicted.tolist(), type=job.output_type)
            yield pa.record_batch([*(batch[name] for name in job.keep), made], schema=schema)
            first_row += batch.num_rows

    def _open(self) -> pq.ParquetFile:
        with self._reading():
            return pq.ParquetFile(self.source, buffer_size=_BUFFER_BYTES)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise ValueError(
                f"Part {self.name!r} of the source cannot be read as Parquet: {error}. Write it "
                f"again or take it away."
            ) from error


def estimator_fingerprint(estimator: BaseEstimator) -> str:
    """Return a digest of everything that predictions depend on, the same in every process."""
    return digest(_content(estimator))


def _content(value: Any) -> Any:
    """Return a value with each estimator replaced by what its predictions depend on."""
    name = f"{type(value).__module__}.{type(value).__name__}"
    if isinstance(value, TextEstimator):
        used = relevant_parameters(value, without=_OF_FITS)
        if not hasattr(value, "net_"):  # The unfitted estimator of a search.
            return [name, used]
        module, max_length = value.net_.module_, value.max_length_
        weights = weights_digest(module.state_dict().items())
        return [name, used, value.task, max_length, weights, module.base_digest]
    if isinstance(value, BaseEstimator):
        best = getattr(value, "best_estimator_", None)
        return [name, _content(dict(vars(value)) if best is None else best)]
    if isinstance(value, Mapping):
        return {key: _content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content(part) for part in value]
    return value
