"""One part: its rows are streamed through an estimator into a file that appears as a whole."""

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ._columns import ColumnPlan
from ._destination import is_finished, seal, stamped, unfinished
from ._source import Part, content_digest, open_part, unreadable

# Rows that are predicted at a time, as in predict_iter.
_CHUNK_ROWS = 512
# A row group of the output is written from so many rows, or so many bytes, on.
_GROUP_ROWS = 65_536
_GROUP_BYTES = 32 << 20
# A network, its memory and its threads are for one prediction at a time.
_PREDICTING = threading.Lock()


@dataclass(frozen=True)
class PartReport:
    """What a finished part took.

    Attributes
    ----------
    name : str
    n_rows : int
    seconds : float
    """

    name: str
    n_rows: int
    seconds: float


def predict_part(
    estimator: Any, plan: ColumnPlan, part: Part, place: Path, job_digest: str
) -> PartReport:
    """Predict on the rows of a part and write them, in order, in flat memory.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    plan : ColumnPlan
    part : Part
    place : Path
        Where the predictions go; they are there when all of them are.
    job_digest : str

    Raises
    ------
    ValueError
        If the part cannot be read, or has rows that are not allowed.
    """
    start = time.perf_counter()
    try:
        source = content_digest(part.path)
    except OSError as error:
        raise unreadable(part.name, error) from error
    if not is_finished(place, job_digest, source):
        place.parent.mkdir(parents=True, exist_ok=True)
        new = unfinished(place)
        try:
            _write(estimator, plan, part, new, (job_digest, source))
            os.replace(new, place)
        finally:
            new.unlink(missing_ok=True)
    return PartReport(part.name, part.n_rows, time.perf_counter() - start)


def _write(
    estimator: Any, plan: ColumnPlan, part: Part, path: Path, stamp: tuple[str, str]
) -> None:
    with open_part(part) as file:
        schema = stamped(plan.output_schema(file.schema_arrow), *stamp)
        with open(path, "w+b") as output:
            with pq.ParquetWriter(output, schema) as writer:
                for table in _row_groups(_predicted(estimator, plan, part, file), schema):
                    writer.write_table(table)
            seal(output)
            output.flush()
            os.fsync(output.fileno())


def _row_groups(columns: Iterator[list[pa.Array]], schema: pa.Schema) -> Iterator[pa.Table]:
    """Join chunks to tables of the size of a row group."""
    waiting: list[pa.RecordBatch] = []
    for arrays in columns:
        waiting.append(pa.record_batch(arrays, schema=schema))
        n_rows = sum(batch.num_rows for batch in waiting)
        if n_rows >= _GROUP_ROWS or sum(batch.nbytes for batch in waiting) >= _GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _predicted(
    estimator: Any, plan: ColumnPlan, part: Part, file: pq.ParquetFile
) -> Iterator[list[pa.Array]]:
    """Yield the columns of the output, chunk by chunk."""
    first_row = 0
    for batch in _chunks(plan, part, file):
        rows = plan.rows(batch, part.name, first_row)
        kept = [batch.column(name) for name in plan.keep]
        last_row = first_row + len(rows) - 1
        try:
            with _PREDICTING:
                predicted = estimator.predict(rows)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Part {part.name!r}, rows {first_row} to {last_row}, of which row 0 of X is the "
                f"first: {error}"
            ) from error
        yield [*kept, plan.predictions(predicted)]
        first_row = last_row + 1


def _chunks(plan: ColumnPlan, part: Part, file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    try:
        for batch in file.iter_batches(_CHUNK_ROWS, columns=plan.read):
            if batch.num_rows:
                yield batch
    except (OSError, pa.ArrowException) as error:
        raise unreadable(part.name, error) from error
