"""Storages that are lost in mid-search: an error says so, and the same call goes on."""

import errno
import os
import pickle
import threading

import pytest
from optuna.storages import RDBStorage
from optuna.storages.journal import JournalFileBackend
from skdice.model_selection._search._storage import open_storage, open_study
from sqlalchemy.exc import OperationalError

from ..model_selection.searched import Peak, X, Y, make_search
from .postgresql import server

N_TRIALS = 4


@pytest.fixture(params=["journal", "sqlite"])
def storage(request, tmp_path):
    if request.param == "journal":
        return str(tmp_path / "study.journal")
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def outage(monkeypatch):
    """Return a switch that lets the operations of both kinds of storage fail."""
    state = {"is_on": False}

    def break_method(kind, method, error):
        works = getattr(kind, method)

        def breaking(*args, **options):
            if state["is_on"]:
                raise error
            return works(*args, **options)

        monkeypatch.setattr(kind, method, breaking)

    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for method in ("append_logs", "read_logs"):
        break_method(JournalFileBackend, method, full)
    for method in ("get_trial", "set_trial_user_attr", "set_trial_state_values"):
        break_method(RDBStorage, method, OperationalError("SELECT", {}, full))
    return state


def test_the_same_call_goes_on(storage, outage):
    fits = []

    def break_down(estimator, X):
        fits.append(estimator.x)
        outage["is_on"] = len(fits) == 4  # In the second trial.

    search = make_search(storage, n_trials=N_TRIALS, estimator=Peak(act=break_down))
    with pytest.raises(ConnectionError, match=r"was lost in mid-search: .*No space left") as caught:
        search.fit(X, Y)
    assert "trials that were finished are in it" in str(caught.value)
    assert "same storage and study_name goes on" in str(caught.value)
    outage["is_on"] = False
    study = open_study(storage, "skdice")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "RUNNING"]
    again = search.fit(X, Y)
    assert again.cv_results_["trial_number"].tolist() == [0, 2, 3, 4]
    assert len(fits) == 4 + 3 * 3 + 1


def test_a_table_that_is_gone(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"

    def drop(estimator, X):
        with open_storage(storage).engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE trial_user_attributes")

    with pytest.raises(ConnectionError, match=r"study.db' was lost in mid-search: no such table"):
        make_search(storage, n_trials=2, estimator=Peak(act=drop)).fit(X, Y)


def test_an_error_of_the_estimator_is_none_of_the_storage(storage):
    def fail(estimator, X):
        raise FileNotFoundError("no weights")

    with pytest.raises(FileNotFoundError, match="no weights"):
        make_search(storage, estimator=Peak(act=fail)).fit(X, Y)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_postgresql_that_is_restarted():
    """Between two operations it does no harm; else it is an error, and the same call goes on."""
    fits = []
    with server() as postgresql:

        def restart(estimator, X):
            fits.append(estimator.x)
            if len(fits) == 4:
                postgresql.stop()
                postgresql.start()

        search = make_search(
            postgresql.url, n_trials=N_TRIALS, estimator=Peak(act=restart), refit=False
        ).fit(X, Y)
        assert len(fits) == 3 * N_TRIALS
        assert [trial.state.name for trial in search.study_.trials] == ["COMPLETE"] * N_TRIALS

        def stop(estimator, X):
            fits.append(estimator.x)
            if len(fits) == 3 * N_TRIALS + 4:  # In the second trial.
                postgresql.stop()

        search = make_search(
            postgresql.url, n_trials=3, estimator=Peak(act=stop), study_name="lost"
        )
        with pytest.raises(ConnectionError, match=r"was lost in mid-search: .*server"):
            search.fit(X, Y)
        postgresql.start()
        study = open_study(postgresql.url, "lost")
        assert [trial.state.name for trial in study.trials] == ["COMPLETE", "RUNNING"]
        assert search.fit(X, Y).cv_results_["trial_number"].tolist() == [0, 2, 3]


def test_workers_that_make_the_tables_at_the_same_moment(tmp_path):
    storage, studies = f"sqlite:///{tmp_path}/study.db", []
    threads = [
        threading.Thread(target=lambda: studies.append(open_study(storage, "one")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [study.study_name for study in studies] == ["one"] * 4


def test_a_study_pickles(storage):
    study = make_search(storage, n_trials=2).fit(X, Y).study_
    assert len(pickle.loads(pickle.dumps(study)).trials) == 2
