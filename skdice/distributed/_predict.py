"""Prediction over a partitioned Parquet corpus, in this process or on a cluster of dask."""

import os
import pickle
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from .._digest import digest
from .._files import UNFINISHED, as_path, explained, replacing_file, sha256
from .._pipeline import take_apart
from ..estimators import TextEstimator, load_pretrained

# Rows that are predicted at a time and become one row group.
_CHUNK_ROWS = 4096
# Bytes read from a file at a time; without a limit pyarrow reads whole columns of a row group.
_BUFFER_BYTES = 1 << 20
_MADE_OF = b"skdice.made_of"
_PREDICTING = threading.Lock()


@dataclass(frozen=True)
class Job:
    """What is done with every part, a file with the same name in both directories."""

    source: Path
    destination: Path
    columns: tuple[str, ...]  # input of the estimator
    keep: tuple[str, ...]  # copied to the output
    output: pa.Field  # the column of predictions
    fingerprint: str  # of the estimator and the names of the columns


def predict_parquet(
    estimator: BaseEstimator,
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    columns: str | Sequence[str],
    keep: str | Sequence[str] = (),
    output: str = "prediction",
    client: Any = None,
    verbose: int = 1,
) -> pd.DataFrame:
    """Predict on all rows of a partitioned Parquet corpus.

    Each Parquet file of the source is a part. It becomes a file of the same name in the
    destination, with the same rows in the same order. A part is either finished or absent: after
    an interruption the same call predicts the missing ones. Rows are streamed, so that the memory
    needed does not depend on the size of a part.

    Parameters
    ----------
    estimator : estimator, or str or PathLike
        A fitted tagger, classifier or extractor, a search or Pipeline that ends in one, or a
        directory written by ``save_pretrained``, or a model of the hub.
    source : str or PathLike
        Directory of ``*.parquet`` files, or one file. Subdirectories are included, and links to
        directories are followed.
    destination : str or PathLike
        Directory for the predictions: new, empty, or that of an earlier call. Only one call at a
        time may write there.
    columns : str or sequence of str
        The input of the estimator: for a tagger a column of lists of str, for a text classifier a
        column of str, for a pair classifier two of them, and for an extractor the question and the
        context, in this order.
    keep : str or sequence of str, default=()
        Columns to copy to the output, before the predictions.
    output : str, default="prediction"
        Name of the column of predictions: lists of str from a tagger, labels from a classifier
        (lists of 0 and 1 if it is multi-label), answers from an extractor.
    client : distributed.Client, optional
        Client of a dask cluster. The workers must see source and destination under the same paths
        as this process.
    verbose : int, default=1
        Whether to show a progress bar over the parts.

    Returns
    -------
    DataFrame
        A row for each part, sorted by name: ``part``, ``n_rows``, ``seconds`` (NaN for parts that
        were finished before) and ``is_new``.

    Raises
    ------
    TypeError, ValueError, NotFittedError
        If the estimator is not fitted or not of this library; if there is no source; if a part
        cannot be read, lacks a column or has a row that the estimator does not take; or if the
        destination has other files than predictions of this estimator for these columns of the
        source as it is now, which a digest in each file tells. A step before the estimator that has
        no digest, such as one with a lambda, is refused.

    Notes
    -----
    dask gives the part of a lost worker to another one, and raises KilledWorker if a part takes
    down one worker after another. Each process predicts one part at a time, with all its threads.

    Examples
    --------
    >>> from skdice.distributed import predict_parquet
    >>> predict_parquet("tagger", "corpus", "tags", columns="words", keep="id")  # doctest: +SKIP
    >>> from distributed import Client
    >>> with Client("scheduler:8786") as client:  # doctest: +SKIP
    ...     predict_parquet("tagger", "corpus", "tags", columns="words", client=client)
    """
    if not (client is None or hasattr(client, "submit")):
        raise TypeError(f"client must be a distributed.Client; got {client!r}.")
    if isinstance(estimator, str | os.PathLike):
        estimator = load_pretrained(estimator)
    folder, out, names = _find_parts(source, destination)
    job = _make_job(estimator, folder, out, columns, keep, output)
    n_rows = [_count_rows(name, job) for name in names]
    missing = [name for name in names if not _is_finished(name, job)]
    if client is None:
        done = (_predict_part(name, estimator, job) for name in missing)
    else:
        done = _predict_on_cluster(missing, estimator, job, client)
    progress = {"total": len(names), "initial": len(names) - len(missing), "unit": "part"}
    with closing(done):  # Closing cancels the parts that are not begun.
        seconds = dict(tqdm(done, **progress, disable=not verbose))
    if not all((out / name).exists() for name in missing):
        raise ValueError(
            f"The workers have written parts that are not in {str(out)!r}. They must see the "
            f"destination under the same path as this process."
        )
    for folder in {(out / name).parent for name in names}:
        for path in folder.glob(f".*{UNFINISHED}"):  # Processes that were killed left these.
            path.unlink(missing_ok=True)
    table = pd.DataFrame({"part": names, "n_rows": n_rows})
    table["seconds"] = table["part"].map(seconds).astype(float)
    table["is_new"] = table["part"].isin(seconds)
    return table


def _find_parts(
    source: str | os.PathLike[str], destination: str | os.PathLike[str]
) -> tuple[Path, Path, list[str]]:
    """Return both directories, and the sorted names of the parts, with slashes."""
    place, out = as_path(source, "source"), as_path(destination, "destination")
    if place.is_file():  # A part has the name of a link, not of the file that it leads to.
        place = Path(os.path.realpath(Path(source).parent)) / Path(source).name
    if place == out or place in out.parents or out in place.parents:
        raise ValueError(
            f"destination must lie beside the source, not in it or around it; got "
            f"{str(destination)!r} for {str(source)!r}."
        )
    names = [place.name] if place.is_file() else _parquet_files(place)
    if not names:
        raise ValueError(f"There is no directory with files *.parquet and no file {str(source)!r}.")
    if foreign := sorted(set(_parquet_files(out)) - set(names)):
        raise ValueError(
            f"The destination {str(out)!r} must have no parts but those of the source; got "
            f"{foreign[0]!r}. Give a new directory."
        )
    return place.parent if place.is_file() else place, out, names


def _parquet_files(directory: Path) -> list[str]:
    """Return the files inside except those that start with "_" or ".", which readers skip too."""
    names: list[str] = []
    for entry in os.scandir(directory) if directory.is_dir() else ():
        path = Path(entry)
        if entry.name[0] in "_.":
            continue
        if entry.is_dir():
            # Following such a link would never end.
            if path.resolve() in [outer.resolve() for outer in path.parents]:
                raise ValueError(f"{str(path)!r} leads back to a directory that it lies in.")
            names += [f"{entry.name}/{name}" for name in _parquet_files(path)]
        elif path.suffix == ".parquet":
            names.append(entry.name)
        elif not path.exists():  # It may stand for a directory on another disk.
            raise ValueError(f"{str(path)!r} is a link to nothing.")
    return sorted(names)


def _make_job(
    estimator: BaseEstimator,
    source: Path,
    destination: Path,
    columns: str | Sequence[str],
    keep: str | Sequence[str],
    output: str,
) -> Job:
    steps, inner = take_apart(estimator)
    if not isinstance(inner, TextEstimator):
        raise TypeError(
            f"estimator must be a fitted estimator of skdice, a search or Pipeline with one, or a "
            f"directory of save_pretrained; got {estimator!r}."
        )
    check_is_fitted(estimator)
    columns, keep = ((x,) if isinstance(x, str) else tuple(x) for x in (columns, keep))
    for names in (columns, (*keep, output)):
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(f"Columns must be names, each of them once; got {list(names)!r}.")
    task = inner.internals.task
    wanted = task.info.columns
    if len(columns) != len(wanted):
        raise ValueError(
            f"columns of {type(inner).__name__} must be {len(wanted)} ({', '.join(wanted)}); got "
            f"{list(columns)!r}."
        )
    for label in map(str, task.class_names):
        if label.encode(errors="ignore").decode() != label:
            raise ValueError(
                f"The label {label!r} has a lone surrogate, which Parquet cannot hold. Fit with "
                f"other labels."
            )
    if task.info.is_tagger:
        kind = pa.list_(pa.string())
    elif task.info.name == "questions":
        kind = pa.string()
    else:
        kind = pa.list_(pa.int8()) if task.is_multilabel else pa.array(task.class_names).type
    weights, before = inner.net_.module_.state_dict(), _learned(steps)
    made_by = [before, task, weights, inner.max_length_, inner.runtime, columns, keep, output]
    return Job(source, destination, columns, keep, pa.field(output, kind), digest(made_by))


def _learned(value: Any) -> Any:
    """Return an estimator as its class and all its attributes, also where it lies in a list."""
    if isinstance(value, list | tuple):
        return [*map(_learned, value)]
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return value
    return [type(value), {name: _learned(part) for name, part in vars(value).items()}]


def _read_metadata(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{str(path)!r} cannot be read as Parquet: {error}.") from error


def _count_rows(name: str, job: Job) -> int:
    """Return the number of rows of a part; raise a ValueError if a column is missing."""
    metadata = _read_metadata(job.source / name)
    found = metadata.schema.to_arrow_schema().names
    for column in (*job.columns, *job.keep):
        if found.count(column) != 1:
            raise ValueError(f"Part {name!r} must have one column {column!r}; it has {found}.")
    return int(metadata.num_rows)


def _made_of(name: str, job: Job) -> bytes:
    return digest([job.fingerprint, sha256(job.source / name)]).encode()


def _is_finished(name: str, job: Job) -> bool:
    """Return whether the predictions are there; raise a ValueError if another file is."""
    path = job.destination / name
    if not path.exists():
        return False
    if (_read_metadata(path).metadata or {}).get(_MADE_OF) != _made_of(name, job):
        raise ValueError(
            f"{str(path)!r} has no predictions by this estimator and these columns of part "
            f"{name!r} as it is now. Delete it, or give another destination."
        )
    return True


def _predict_part(name: str, estimator: BaseEstimator, job: Job) -> tuple[str, float]:
    """Write the predictions of a part in flat memory; return its name and the seconds."""
    start, path = time.perf_counter(), job.destination / name
    file = pq.ParquetFile(job.source / name, buffer_size=_BUFFER_BYTES)
    fields = [*map(file.schema_arrow.field, job.keep), job.output]
    schema = pa.schema(fields, {_MADE_OF: _made_of(name, job)})
    first_row, used = 0, list(dict.fromkeys((*job.columns, *job.keep)))
    with file, explained(path, f"Part {name!r} of the predictions"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(path) as new, pq.ParquetWriter(new, schema) as writer:
            for batch in _batches(file, name, used):
                try:
                    columns = [batch[column].to_pylist() for column in job.columns]
                    rows = columns[0] if len(columns) == 1 else [*zip(*columns)]
                    predicted = estimator.predict(rows).tolist()
                except (TypeError, ValueError) as error:  # Text in Parquet may be no UTF-8.
                    raise ValueError(
                        f"Part {name!r}, rows {first_row} to {first_row + len(batch) - 1}, of "
                        f"which row 0 of X is the first: {error}"
                    ) from error
                kept = [batch[column] for column in job.keep]
                output = pa.array(predicted, type=job.output.type)
                writer.write_batch(pa.record_batch([*kept, output], schema=schema))
                first_row += len(batch)
    return name, time.perf_counter() - start


def _batches(file: pq.ParquetFile, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        for i in range(file.num_row_groups):  # Arrow cannot join lists of dictionary values.
            yield from file.iter_batches(_CHUNK_ROWS, row_groups=[i], columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"Part {name!r} cannot be read: {error}.") from error


def _predict_on_cluster(
    names: Sequence[str], estimator: BaseEstimator, job: Job, client: Any
) -> Generator[tuple[str, float], None, None]:
    """Yield the name and the seconds of each part when it is finished."""
    import cloudpickle
    import dask
    from distributed import as_completed

    # dask makes the result of a task again when all workers that had it are lost, which it cannot
    # do with scattered data. The scheduler does not load what is in the bytes.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        sent = client.submit(pickle.loads, cloudpickle.dumps(estimator), pure=False)
    futures = client.map(_predict_on_worker, names, estimator=sent, job=job, pure=False)
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        client.cancel(futures)


def _predict_on_worker(name: str, *, estimator: BaseEstimator, job: Job) -> tuple[str, float]:
    """Predict with all threads of the worker, so one part at a time."""
    import torch
    from distributed import get_worker

    with _PREDICTING:
        torch.set_num_threads(get_worker().state.nthreads)  # dask leaves one for numerics.
        return _predict_part(name, estimator, job)
