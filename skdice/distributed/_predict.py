"""Prediction over a partitioned Parquet corpus, in this process or on a cluster of dask."""

import os
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._extras import not_installed
from .._files import UNFINISHED, as_path
from .._pipeline import final_step
from ..estimators import TextEstimator, load_pretrained
from ._part import Job, Part, estimator_fingerprint

_COLUMNS = {
    "sentence": "one column of lists of str (the words of a sentence)",
    "text": "one column of str",
    "pair": "two columns of str (the texts of a pair)",
    "question": "two columns of str (question and context)",
}


def predict_parquet(
    estimator: Any,
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

    Each part of the source (a Parquet file) becomes one part of the destination, of the same name
    and with the same rows in the same order. A part is either finished or absent; after an
    interruption the same call predicts the missing ones. Rows are streamed: the memory needed does
    not depend on the size of a part.

    Parameters
    ----------
    estimator : estimator, or str or PathLike
        A fitted tagger, classifier or extractor, a search or Pipeline that ends in one, or the
        directory that ``save_pretrained`` wrote.
    source : str or PathLike
        Directory of ``*.parquet`` (in subdirectories too), or one file.
    destination : str or PathLike
        Directory for the predictions: new, empty, or that of an earlier call. One call at a time
        may write there.
    columns : str or sequence of str
        What the estimator takes: of a tagger a column of lists of str, of a text classifier one of
        str, of a pair classifier two, and of an extractor question and context, in this order.
    keep : str or sequence of str, default=()
        Columns to copy to the output, before the predictions.
    output : str, default="prediction"
        Name of the column of predictions: lists of str of a tagger, labels of a classifier (lists
        of 0 and 1 if multi-label), answers of an extractor.
    client : distributed.Client, optional
        Of a dask cluster, whose workers see source and destination under the same paths.
    verbose : int, default=1
        A progress bar over parts; 0: none.

    Returns
    -------
    DataFrame
        A row for each part, sorted by name: ``part``, ``n_rows``, ``seconds`` (NaN for parts that
        were finished before) and ``is_new``.

    Raises
    ------
    TypeError
        If an argument is of another kind.
    ValueError
        If there is no source, a part cannot be read, lacks a column or has a row that the estimator
        does not take; if the destination has Parquet files that are not made of this source by this
        estimator.
    NotFittedError
        If the estimator is not fitted.
    Exception
        Of dask, if one part takes down worker after worker (KilledWorker), or the cluster is lost.

    Notes
    -----
    When a worker is lost, dask gives its part to another one. Each worker process gets the
    estimator once and predicts on one part at a time, with as many threads as dask gives it: more
    processes of fewer threads keep a machine busier while files are read and written.

    Each part says in the metadata of its schema of what it was made, by a digest of the estimator,
    the names of the columns and the file. If one of them is another by now, that is an error.

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
    _clear(Path(destination))
    missing = [part for part in parts if not part.is_finished(job)]
    if client is None:
        reports = ((part.name, part.predict(estimator, job)) for part in missing)
    else:
        reports = _predict_on_cluster(estimator, job, missing, client)
    seconds = _collect(reports, len(parts), len(missing), verbose)
    _clear(Path(destination))  # What workers left behind that were lost.
    names = [part.name for part in parts]
    table = pd.DataFrame({"part": names, "n_rows": n_rows})
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


def _make_job(estimator: Any, columns: Any, keep: Any, output: Any) -> Job:
    final = _final(estimator)
    check_is_fitted(estimator)
    columns, keep = _names("columns", columns), _names("keep", keep)
    _names("keep with output", [*keep, output])
    row = final._task.row
    if len(columns) != (2 if row in ("pair", "question") else 1):
        raise ValueError(
            f"{type(final).__name__} takes {_COLUMNS[row]}; got columns={list(columns)!r}."
        )
    return Job(
        columns, keep, output, _output_type(estimator, final), estimator_fingerprint(estimator)
    )


def _final(estimator: Any) -> Any:
    """Return the estimator that predicts, in pipelines and meta-estimators."""
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
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple) or not all(
        isinstance(name, str) and name for name in given
    ):
        raise TypeError(f"{parameter} must be a name of a column or a list of them; got {names!r}.")
    if len(set(given)) < len(given):
        raise ValueError(f"{parameter} must have each column once; got {names!r}.")
    return tuple(given)


def _output_type(estimator: Any, final: Any) -> pa.DataType:
    if final._task.row == "sentence":
        return pa.list_(pa.string())
    if not final._task.is_classifier:
        return pa.string()
    if final._task.is_multilabel:
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
    """Return the files inside but those that start with "_" or ".", as readers of Parquet do."""
    paths = (path.relative_to(directory) for path in directory.rglob("*.parquet"))
    return sorted(
        path.as_posix()
        for path in paths
        if not any(step.startswith(("_", ".")) for step in path.parts)
    )


def _clear(destination: Path) -> None:
    """Delete what is not complete and never will be."""
    for path in destination.rglob(f".*{UNFINISHED}"):
        path.unlink(missing_ok=True)


def _collect(
    reports: Generator[tuple[str, float], None, None], n_parts: int, n_missing: int, verbose: Any
) -> dict[str, float]:
    """Return the seconds of each part that was missing, when all of them are finished."""
    from tqdm.auto import tqdm

    seconds: dict[str, float] = {}
    n_before = n_parts - n_missing
    bar = tqdm(total=n_parts, initial=n_before, unit="part", disable=not verbose)
    with bar, closing(reports):  # However it ends, no part is begun any more.
        try:
            for name, duration in reports:
                seconds[name] = duration
                bar.update()
        except BaseException as error:
            error.add_note(
                f"{n_before + len(seconds)} of {n_parts} parts are finished and stay; the same "
                f"call goes on with the others."
            )
            raise
    return seconds


def _predict_on_cluster(
    estimator: Any, job: Job, parts: Sequence[Part], client: Any
) -> Generator[tuple[str, float], None, None]:
    """Yield reports as parts are finished, in any order."""
    from distributed import as_completed

    if not parts:
        return
    sent = client.scatter(estimator, broadcast=True, hash=False)
    futures = client.map(_predict_on_worker, parts, estimator=sent, job=job, pure=False)
    try:
        for _, report in as_completed(futures, with_results=True):
            yield report
    finally:
        client.cancel(futures)


def _predict_on_worker(part: Part, *, estimator: Any, job: Job) -> tuple[str, float]:
    import torch
    from distributed import get_worker

    # dask gives a process one thread for numerics, as it expects several tasks at a time.
    before = torch.get_num_threads()
    torch.set_num_threads(get_worker().state.nthreads)
    try:
        return part.name, part.predict(estimator, job)
    finally:
        torch.set_num_threads(before)
