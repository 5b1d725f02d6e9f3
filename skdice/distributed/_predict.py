"""Prediction over a partitioned Parquet corpus, in this process or on a cluster of dask."""

import os
import pickle
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._extras import not_installed
from .._files import UNFINISHED, as_path
from .._pipeline import final_step
from ..estimators import TextEstimator, load_pretrained
from ._part import Job, Part, Report, estimator_fingerprint

# How long a network file system may take to show what another machine has written.
_SECONDS_TO_APPEAR = 60


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
        directory written by ``save_pretrained``.
    source : str or PathLike
        Directory of ``*.parquet`` files (subdirectories included), or one file.
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
    TypeError
        If an argument has the wrong type.
    ValueError
        If there is no source; if a part cannot be read, lacks a column, has a row that the
        estimator does not take, or changes while it is predicted; if the destination has Parquet
        files that this estimator did not make from this source; or if a worker writes where this
        process does not see it.
    NotFittedError
        If the estimator is not fitted.
    Exception
        From dask, if a part takes down one worker after another (KilledWorker) or the cluster is
        lost.

    Notes
    -----
    When a worker is lost, dask gives its part to another one, unless the part was finished. Each
    worker process gets the estimator once and predicts one part at a time, with as many threads as
    dask gives it: more processes with fewer threads keep a machine busier while files are read and
    written.

    Each output file has a digest in its metadata, of the estimator, the names of the columns and
    the source file. If one of them has changed, the next call raises an error.

    Examples
    --------
    >>> from skdice.distributed import predict_parquet
    >>> predict_parquet(tagger, "corpus", "tags", columns="words", keep="id")  # doctest: +SKIP
    >>> from distributed import Client
    >>> with Client("scheduler:8786") as client:  # doctest: +SKIP
    ...     predict_parquet("saved-tagger", "corpus", "tags", columns="words", client=client)
    >>> pd.read_parquet("tags")  # doctest: +SKIP
    """
    _check_client(client)
    if isinstance(estimator, str | os.PathLike):
        estimator = load_pretrained(estimator)
    job = _make_job(estimator, columns, keep, output)
    parts = _find_parts(source, destination)
    n_rows = [part.count_rows(job) for part in parts]
    _delete_unfinished(Path(destination))
    missing = [part for part in parts if not part.is_finished(part.made_of(job))]
    if client is None:
        reports = (part.predict(estimator, job) for part in missing)
    else:
        reports = _predict_on_cluster(estimator, job, missing, client)
    seconds = _collect(reports, missing, len(parts), verbose)
    _delete_unfinished(Path(destination))  # Workers that were lost may have left some.
    table = pd.DataFrame({"part": [part.name for part in parts], "n_rows": n_rows})
    table["seconds"] = table["part"].map(seconds).astype(float)
    table["is_new"] = table["part"].isin(seconds)
    return table


def _check_client(client: Any) -> None:
    if client is None:
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise not_installed("client", "distributed", "distributed") from error
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(f"client must be a distributed.Client, not asynchronous; got {client!r}.")


def _make_job(estimator: BaseEstimator, columns: Any, keep: Any, output: Any) -> Job:
    final = _final(estimator)
    check_is_fitted(estimator)
    columns, keep = _names("columns", columns), _names("keep", keep)
    _names("keep with output", [*keep, output])
    wanted = final.task.info.columns
    if len(columns) != len(wanted):
        raise ValueError(
            f"{type(final).__name__} takes {len(wanted)} column{'s' * (len(wanted) > 1)} "
            f"({', '.join(wanted)}); got columns={list(columns)!r}."
        )
    kind = _output_type(estimator, final)
    return Job(columns, keep, output, kind, estimator_fingerprint(estimator))


def _final(estimator: BaseEstimator) -> Any:
    """Return the estimator of this library inside pipelines and meta-estimators."""
    inner = estimator
    while not isinstance(inner, TextEstimator):
        outer, inner = inner, final_step(inner)[1]
        if isinstance(inner, FrozenEstimator):
            inner = inner.estimator
        for name in ("best_estimator_", "estimator_"):
            inner = getattr(inner, name, inner)
        if inner is outer:
            raise TypeError(
                f"estimator must be a fitted estimator of skdice, a search or Pipeline with one, "
                f"or a directory of save_pretrained; got {estimator!r}."
            )
    return inner


def _names(parameter: str, names: Any) -> tuple[str, ...]:
    """Return the names of columns as a tuple."""
    given = [names] if isinstance(names, str) else names
    is_list = isinstance(given, list | tuple)
    if not is_list or not all(isinstance(name, str) and name for name in given):
        raise TypeError(f"{parameter} must be a name of a column or a list of them; got {names!r}.")
    if len(set(given)) < len(given):
        raise ValueError(f"{parameter} must have each column once; got {names!r}.")
    return tuple(given)


def _output_type(estimator: BaseEstimator, final: Any) -> pa.DataType:
    predicts = final.task.info.predicts
    if predicts == "tags":
        return pa.list_(pa.string())
    if predicts == "answer":
        return pa.string()
    if final.task.is_multilabel:
        return pa.list_(pa.int8())
    return pa.array(estimator.classes_.tolist()).type


def _find_parts(source: Any, destination: Any) -> list[Part]:
    """Return the parts, sorted by name."""
    place, out = as_path(source, "source"), as_path(destination, "destination")
    if place == out or place in out.parents or out in place.parents:
        raise ValueError(
            f"destination must lie beside the source, not in it or around it; got source="
            f"{os.fspath(source)!r} and destination={os.fspath(destination)!r}."
        )
    if out.exists() and not out.is_dir():
        raise ValueError(f"The destination {str(out)!r} is no directory.")
    names = [place.name] if place.is_file() else _parquet_files(place)
    if not names:
        raise ValueError(f"There is no directory with files *.parquet and no file {str(source)!r}.")
    foreign = sorted(set(_parquet_files(out)) - set(names))
    if foreign:
        raise ValueError(
            f"The destination {str(out)!r} has {len(foreign)} parts that the source does not have, "
            f"such as {foreign[0]!r}. Give a directory that is new or empty."
        )
    folder = place.parent if place.is_file() else place
    return [Part(name, folder / name, out / name) for name in names]


def _parquet_files(directory: Path) -> list[str]:
    """Return the files inside except those that start with "_" or ".", which readers skip too."""
    files = (path for path in directory.rglob("*.parquet") if not path.is_dir())
    paths = (path.relative_to(directory) for path in files)
    return sorted(
        path.as_posix()
        for path in paths
        if not any(step.startswith(("_", ".")) for step in path.parts)
    )


def _delete_unfinished(destination: Path) -> None:
    """Delete the incomplete files of processes that were killed."""
    for path in destination.rglob(f".*{UNFINISHED}"):
        path.unlink(missing_ok=True)


def _collect(
    reports: Generator[Report, None, None], missing: Sequence[Part], n_parts: int, verbose: Any
) -> dict[str, float]:
    """Return the seconds of each missing part by name, when all of them are finished."""
    from tqdm.auto import tqdm

    by_name, seconds = {part.name: part for part in missing}, dict[str, float]()
    n_before = n_parts - len(missing)
    bar = tqdm(total=n_parts, initial=n_before, unit="part", disable=not verbose)
    with bar, closing(reports):  # Closing cancels the parts that are not begun.
        try:
            for name, duration, made_of in reports:
                _wait_for_file(by_name[name], made_of)
                seconds[name] = duration
                bar.update()
        except BaseException as error:
            error.add_note(
                f"{n_before + len(seconds)} of {n_parts} parts are finished and stay; the same "
                f"call goes on with the others."
            )
            raise
    return seconds


def _wait_for_file(part: Part, made_of: bytes) -> None:
    """Raise a ValueError unless this process sees the file that a worker says it has written."""
    deadline = time.monotonic() + _SECONDS_TO_APPEAR
    while not part.is_finished(made_of):
        if time.monotonic() > deadline:
            raise ValueError(
                f"A worker has written part {part.name!r}, but {str(part.destination)!r} is not "
                f"there. The workers must see the destination under the same path as this process."
            )
        time.sleep(0.5)


def _predict_on_cluster(
    estimator: BaseEstimator, job: Job, parts: Sequence[Part], client: Any
) -> Generator[Report, None, None]:
    """Yield the reports of parts in the order in which they are finished."""
    import cloudpickle
    import dask
    from distributed import as_completed

    if not parts:
        return
    # dask makes the result of a task again when all workers that had it are lost, which it cannot
    # do with scattered data. The scheduler does not load what is in the bytes.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        sent = client.submit(pickle.loads, cloudpickle.dumps(estimator), pure=False)
    futures = client.map(_predict_on_worker, parts, estimator=sent, job=job, pure=False)
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        client.cancel(futures)


def _predict_on_worker(part: Part, *, estimator: BaseEstimator, job: Job) -> Report:
    import torch
    from distributed import get_worker

    # dask leaves one thread for numerics, as it expects several tasks at a time in a process.
    before = torch.get_num_threads()
    torch.set_num_threads(get_worker().state.nthreads)
    try:
        return part.predict(estimator, job)
    finally:
        torch.set_num_threads(before)
