"""A cluster of two processes: prediction, joblib's backend and searches, and workers that die."""

import multiprocessing
import os
import signal
from unittest import mock

import dask
import joblib
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from skdice import DiceTokenTagger
from skdice.distributed import predict_parquet

from ..corpora import easy_corpus
from ..model_selection.searched import Peak, X, Y, make_search

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning:distributed")]
FAST = {"max_epochs": 1, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
N_PARTS, N_ROWS = 6, 40
ARGUMENTS = {"columns": "words", "keep": "id", "verbose": 0}


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes of one thread, without a dashboard."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0}
    settings = {
        "distributed.worker.multiprocessing-method": method,
        # A busy machine takes longer than the usual 15 seconds to start a killed worker again.
        "distributed.deploy.lost-worker-timeout": "120s",
    }
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1"), dask.config.set(settings):
        if method == "forkserver":
            # Imported once, not by every worker that starts anew.
            get_mp_context().set_forkserver_preload(["distributed", "skdice.distributed"])
        with (
            LocalCluster(**options, dashboard_address=None, silence_logs=50) as cluster,
            Client(cluster) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def tagger(tiny_bert):
    return DiceTokenTagger(tiny_bert, **FAST).fit(*easy_corpus(16))


@pytest.fixture(scope="module")
def sentences():
    return easy_corpus(N_PARTS * N_ROWS, seed=1)[0]


@pytest.fixture
def corpus(tmp_path, sentences):
    directory = tmp_path / "corpus"
    directory.mkdir()
    for i in range(N_PARTS):
        rows = slice(i * N_ROWS, (i + 1) * N_ROWS)
        table = pa.table({"id": range(rows.start, rows.stop), "words": sentences[rows]})
        pq.write_table(table, directory / f"part-{i}.parquet")
    return directory


def once(path):
    """Return True to the first process that asks."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def as_kind(kind, tagger):
    """Return the fitted tagger as an object of a subclass."""
    made = kind()
    vars(made).update(vars(tagger))
    return made


def pids_of(client):
    return set(client.run(os.getpid).values())


def check(directory, table, tagger, sentences):
    """Check that all rows are there, once, in order, with the predictions of one process."""
    assert table["n_rows"].tolist() == [N_ROWS] * N_PARTS
    names = sorted(path.name for path in directory.iterdir())
    assert names == [f"part-{i}.parquet" for i in range(N_PARTS)]
    frame = pd.read_parquet(directory)
    assert frame["id"].tolist() == list(range(len(sentences)))
    assert frame["prediction"].map(list).tolist() == tagger.predict(sentences).tolist()


class Death:
    """Kills the first process in which a fit asks; other processes find its name."""

    def __init__(self, flag):
        self.flag = flag

    def __call__(self, estimator, X):
        if once(self.flag):
            os.kill(os.getpid(), signal.SIGKILL)


class TestPrediction:
    def test_an_estimator_is_loaded_once(self, client, tagger, corpus, sentences, tmp_path):
        log, out = tmp_path / "log", tmp_path / "out"

        class Told(DiceTokenTagger):
            def __setstate__(self, state):
                with open(log, "a") as file:
                    file.write(f"{os.getpid()}\n")
                super().__setstate__(state)

        told = as_kind(Told, tagger)
        table = predict_parquet(told, corpus, out, client=client, **ARGUMENTS)
        check(out, table, tagger, sentences)
        pids = log.read_text().split()
        assert 0 < len(pids) == len(set(pids)) <= 2
        assert os.getpid() not in map(int, pids)
        again = predict_parquet(told, corpus, out, client=client, **ARGUMENTS)
        assert not again["is_new"].any()

    @pytest.mark.parametrize("n_killed", [1, 2])
    def test_workers_that_are_killed(self, n_killed, client, tagger, corpus, sentences, tmp_path):
        """Others begin their parts again, also if nobody is left who has the estimator."""
        flags = [tmp_path / f"flag-{i}" for i in range(n_killed)]

        class Mortal(DiceTokenTagger):
            def predict(self, X):
                if any(map(once, flags)):
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().predict(X)

        before = pids_of(client)
        out = tmp_path / "out"
        table = predict_parquet(as_kind(Mortal, tagger), corpus, out, client=client, **ARGUMENTS)
        client.wait_for_workers(2)
        assert len(pids_of(client) - before) == n_killed
        check(out, table, tagger, sentences)


def test_search_with_a_worker_that_is_killed(client, tmp_path):
    """The study ends with as many trials as were asked for, or one more."""
    estimator, storage = Peak(act=Death(tmp_path / "flag")), tmp_path / "study.journal"
    search = make_search(storage, n_trials=5, estimator=estimator, refit=False)
    with joblib.parallel_config(backend="dask"):
        search.fit(X, Y)
    client.wait_for_workers(2)
    assert len(search.cv_results_["params"]) in (5, 6)
