"""Prediction over a partitioned Parquet corpus, in this process or on a cluster of dask."""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._extras import not_installed
from ..estimators import load_pretrained
from ._columns import ColumnPlan, plan_columns
from ._destination import Destination
from ._part import PartReport, predict_part
from ._shipping import Shipment, estimator_fingerprint, forget_estimators, pack
from ._source import Part, find_parts


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
    and with the same rows in the same order. Each part is written to a temporary file, which
    is renamed when it is complete, so a part is either finished or absent. After an interruption
    the same call predicts the missing parts. Rows are streamed: the memory needed does not depend
    on the size of a part.

    Parameters
    ----------
    estimator : estimator, or str or PathLike
        A fitted tagger, classifier or extractor, a search or Pipeline that ends in one, or the
        directory that ``save_pretrained`` wrote, which all machines then have to see.
    source : str or PathLike
        Directory of ``*.parquet`` (in subdirectories too), or one file.
    destination : str or PathLike
        Directory for the predictions: new, empty, or that of an earlier call.
    columns : str or sequence of str
        What the estimator takes: of a tagger a column of lists of str, of a text classifier one of
        str, of a pair classifier two, and of an extractor question and context, in this order.
    keep : str or sequence of str, default=()
        Columns to copy to the output, before the predictions.
    output : str, default="prediction"
        Name of the column of predictions: lists of str of a tagger, labels of a classifier (lists
        of 0 and 1 if multi-label), answers of an extractor.
    client : distributed.Client, optional
        Of a dask cluster, whose workers see source and destination under the same paths. By default
        this process does all the work.
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
        If there is no source, a part cannot be read, lacks a column or has null in a row; if the
        destination has other files, predictions by another estimator or of another source, or
        another run writes into it.
    RuntimeError
        If one part takes down worker after worker, or the cluster is lost.
    NotFittedError
        If the estimator is not fitted.

    Notes
    -----
    The work is deterministic by part, so it does not matter who does it. When a worker is lost,
    dask gives its part to another one, which starts the part from its beginning.

    Each worker process loads the estimator once. It predicts on one part at a time, with as many
    threads as dask gives it: more processes of fewer threads keep a machine busier while files are
    read and written.

    After an error the parts that are finished stay. A part that has changed since it was written,
    or whose source has, is an error, one that is new is predicted; to tell, the next call reads
    finished parts and their source once.

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
    is_saved = isinstance(estimator, str | os.PathLike)
    loaded = load_pretrained(estimator) if is_saved else estimator
    plan = plan_columns(loaded, columns, keep, output)
    check_is_fitted(loaded)
    parts = find_parts(source, plan)
    _check_apart(source, destination)
    fingerprint = estimator_fingerprint(loaded)
    place = Destination(destination, _job(plan, fingerprint))
    with place.opened():
        missing = place.prepare(parts)
        if client is None or not missing:
            reports = _predict_here(loaded, plan, missing, place)
            return _collect(reports, parts, len(missing), verbose)
        directory = os.path.abspath(estimator) if is_saved else None
        with _shipped(loaded, directory, fingerprint, place) as shipment:
            reports = _predict_on_cluster(client, shipment, plan, missing, place)
            table = _collect(reports, parts, len(missing), verbose)
        place.clear()  # What workers left behind that were lost.
        return table


def _check_client(client: Any) -> None:
    if client is None:
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise not_installed("client", "distributed", "distributed") from error
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(
            f"client must be a distributed.Client that is not asynchronous, or None; got "
            f"{client!r}."
        )


def _check_apart(source: Any, destination: Any) -> None:
    """Raise unless source and destination are directories of which none is in the other."""
    if not isinstance(destination, str | os.PathLike) or not os.fspath(destination):
        raise TypeError(f"destination must be a path (str or PathLike); got {destination!r}.")
    one, other = Path(os.path.realpath(source)), Path(os.path.realpath(destination))
    if one == other or one in other.parents or other in one.parents:
        raise ValueError(
            f"destination must lie beside the source, not in it or around it; got source="
            f"{os.fspath(source)!r} and destination={os.fspath(destination)!r}."
        )


@contextmanager
def _shipped(
    estimator: Any, directory: str | None, fingerprint: str, place: Destination
) -> Iterator[Shipment]:
    """Yield where workers find the estimator: in its own directory, or packed for this run."""
    if directory is not None:
        yield Shipment(directory, fingerprint)
        return
    path = place.new_file("estimator")
    try:
        yield pack(estimator, fingerprint, path)
    finally:
        path.unlink(missing_ok=True)


def _job(plan: ColumnPlan, fingerprint: str) -> dict[str, str]:
    return {
        "the estimator": fingerprint,
        "'columns'": repr(list(plan.columns)),
        "'keep'": repr(list(plan.keep)),
        "'output'": repr(plan.output),
    }


def _collect(
    reports: Generator[PartReport, None, None], parts: Sequence[Part], n_missing: int, verbose: Any
) -> pd.DataFrame:
    """Return the table of all parts, when the missing ones are finished."""
    from tqdm.auto import tqdm

    done: dict[str, PartReport] = {}
    n_before = len(parts) - n_missing
    bar = tqdm(total=len(parts), initial=n_before, unit="part", disable=not verbose)
    with bar, closing(reports):  # However it ends, no part is begun any more.
        try:
            for report in reports:
                done[report.name] = report
                bar.update()
        except BaseException as error:
            error.add_note(
                f"{n_before + len(done)} of {len(parts)} parts are finished and stay; the same "
                f"call goes on with the others."
            )
            raise
    rows = [
        (part.name, part.n_rows, done[part.name].seconds if part.name in done else float("nan"))
        for part in parts
    ]
    table = pd.DataFrame(rows, columns=["part", "n_rows", "seconds"])
    table["is_new"] = table["part"].isin(set(done))
    return table


def _predict_here(
    estimator: Any, plan: ColumnPlan, parts: Sequence[Part], place: Destination
) -> Generator[PartReport, None, None]:
    for part in parts:
        yield predict_part(estimator, plan, part, place.path(part), place.job_digest)


def _predict_on_cluster(
    client: Any, shipment: Shipment, plan: ColumnPlan, parts: Sequence[Part], place: Destination
) -> Generator[PartReport, None, None]:
    """Yield reports as parts are finished, in any order."""
    from distributed import as_completed

    futures = client.map(
        _predict_on_worker,
        parts,
        [place.path(part) for part in parts],
        shipment=shipment,
        plan=plan,
        job_digest=place.job_digest,
        pure=False,
    )
    names = {future.key: part.name for future, part in zip(futures, parts)}
    try:
        for future in as_completed(futures):
            with _explained(names[future.key]):
                report = future.result()
            yield report
            future.release()
        with suppress(Exception):  # A worker that is lost now has nothing to forget.
            client.run(forget_estimators, on_error="ignore")
    finally:
        with suppress(Exception):
            client.cancel(futures)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say what it means that dask gave up a part."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            f"Part {name!r} was tried on several workers, and each of them was lost. Often their "
            f"memory is too small: give them more, or fewer processes to a machine."
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise RuntimeError(
            f"The cluster was lost while part {name!r} was to be predicted: {error!r}."
        ) from error


def _predict_on_worker(
    part: Part, path: Path, *, shipment: Shipment, plan: ColumnPlan, job_digest: str
) -> PartReport:
    with _threads_of_worker():
        return predict_part(shipment.unpack(), plan, part, path, job_digest)


@contextmanager
def _threads_of_worker() -> Iterator[None]:
    """Let torch use as many threads as the worker has.

    dask gives a worker's process one thread for numerics, as it expects several tasks at a time.
    """
    import torch
    from distributed import get_worker

    before = torch.get_num_threads()
    torch.set_num_threads(get_worker().state.nthreads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
