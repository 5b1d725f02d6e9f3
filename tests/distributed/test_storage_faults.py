"""Storages that are lost in mid-search: asked again, and given up with what to do."""

import errno
import os
import pickle
import threading
import time

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial
from skdice.model_selection._journal_file import JournalFile
from skdice.model_selection._journal_lock import journal_lock
from skdice.model_selection._retrying_storage import (
    RetryingStorage,
    StorageLostError,
    is_transient,
)
from sqlalchemy.exc import OperationalError, ProgrammingError

from skdice.model_selection import _retrying_storage
from skdice.model_selection._search._storage import open_storage, open_study

from ..model_selection.searched import Peak, X, Y, make_search
from .postgresql import server

N_TRIALS = 4


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_retrying_storage, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(_retrying_storage, "_LONGEST_WAIT", 0.05)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(_retrying_storage, "PATIENCE_SECONDS", 0.2)


@pytest.fixture(params=["journal", "sqlite"])
def storage(request, tmp_path):
    if request.param == "journal":
        return str(tmp_path / "study.journal")
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def outage(monkeypatch):
    """Return a switch that lets every operation of both kinds of storage fail, and counts."""
    state = {"is_on": False, "n_failed": 0}

    def break_down(*_):
        state["n_failed"] += 1
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for method in ("append_logs", "read_logs"):
        works = getattr(JournalFile, method)
        monkeypatch.setattr(
            JournalFile,
            method,
            lambda *a, works=works: break_down() if state["is_on"] else works(*a),
        )
    for method in ("get_all_trials", "_set_trial_attr_without_commit"):
        fails = getattr(RDBStorage, method)

        def wrapped(*a, fails=fails, **k):
            if state["is_on"]:
                try:
                    break_down()
                except OSError as error:
                    raise OperationalError("SELECT", {}, error) from error
            return fails(*a, **k)

        monkeypatch.setattr(RDBStorage, method, wrapped)
    return state


def bury(study, number):
    """Let a running trial be that of a process of this host that has died."""
    trial = study.trials[number]
    worker = {**trial.user_attrs["worker"], "started": "before"}
    study._storage.set_trial_user_attr(trial._trial_id, "worker", worker)


class TestSearch:
    def test_a_short_outage(self, storage, outage, monkeypatch):
        """The search goes on where it was, and says that it had to wait."""
        fits = []

        def break_for_a_while(estimator, X):
            fits.append(estimator.x)
            if len(fits) == 4:
                outage["is_on"] = True
                threading.Timer(0.3, lambda: outage.update(is_on=False)).start()

        search = make_search(storage, n_trials=N_TRIALS, estimator=Peak(act=break_for_a_while))
        with pytest.warns(UserWarning, match="does not answer .* asked again for 120 seconds"):
            search.fit(X, Y)
        assert outage["n_failed"] > 2
        assert len(fits) == 3 * N_TRIALS + 1
        assert [t.state.name for t in search.study_.trials] == ["COMPLETE"] * N_TRIALS
        undisturbed = make_search(n_trials=N_TRIALS).fit(X, Y)
        assert search.best_params_ == undisturbed.best_params_

    @pytest.mark.filterwarnings("ignore:The storage")
    def test_a_long_outage(self, storage, outage, impatient):
        """It ends with an error, soon, and a restart runs what is missing."""

        def break_down(estimator, X):
            fits.append(estimator.x)
            outage["is_on"] = len(fits) == 4

        fits = []
        search = make_search(storage, n_trials=N_TRIALS, estimator=Peak(act=break_down))
        start = time.monotonic()
        with pytest.raises(StorageLostError, match="was lost in mid-search") as caught:
            search.fit(X, Y)
        assert time.monotonic() - start < 5
        assert "trials that were finished are in it" in str(caught.value)
        assert "same storage and study_name goes on" in str(caught.value)
        outage["is_on"] = False
        study = open_study(storage, "skdice")
        assert [t.state.name for t in study.trials] == ["COMPLETE", "RUNNING"]
        bury(study, 1)
        again = search.fit(X, Y)
        assert [t.state.name for t in again.study_.trials] == ["COMPLETE", "FAIL"] + [
            "COMPLETE"
        ] * 3
        assert again.study_.trials[1].user_attrs["withdrawn"] == "stale"
        assert len(again.cv_results_["params"]) == N_TRIALS
        assert len(fits) == 4 + 3 * 3 + 1

    def test_what_no_time_heals(self, tmp_path):
        storage = f"sqlite:///{tmp_path}/study.db"

        def drop(estimator, X):
            with open_storage(storage).engine.begin() as connection:
                connection.exec_driver_sql("DROP TABLE trial_user_attributes")

        start = time.monotonic()
        with pytest.raises(StorageLostError, match=r"not take what is .* no such table"):
            make_search(storage, n_trials=2, estimator=Peak(act=drop)).fit(X, Y)
        assert time.monotonic() - start < 5

    @pytest.mark.filterwarnings("ignore:The storage")
    def test_postgresql_is_restarted(self, monkeypatch):
        fits = []
        with server() as postgresql:

            def restart(estimator, X):
                fits.append(estimator.x)
                if len(fits) == 4:
                    postgresql.stop()
                    threading.Timer(0.3, postgresql.start).start()

            search = make_search(
                postgresql.url, n_trials=N_TRIALS, estimator=Peak(act=restart), refit=False
            ).fit(X, Y)
            assert len(fits) == 3 * N_TRIALS
            assert [t.state.name for t in search.study_.trials] == ["COMPLETE"] * N_TRIALS

            def stop(estimator, X):
                fits.append(estimator.x)
                if len(fits) == 3 * N_TRIALS + 4:  # In the second trial.
                    postgresql.stop()

            monkeypatch.setattr(_retrying_storage, "PATIENCE_SECONDS", 0.3)
            search = make_search(
                postgresql.url, n_trials=3, estimator=Peak(act=stop), study_name="lost"
            )
            with pytest.raises(StorageLostError, match=r"was lost in mid-search: .*server"):
                search.fit(X, Y)
            postgresql.start()
            study = open_study(postgresql.url, "lost")
            assert [t.state.name for t in study.trials] == ["COMPLETE", "RUNNING"]
            bury(study, 1)
            assert len(search.fit(X, Y).cv_results_["params"]) == 3


class Flaky:
    """Delegates to a storage, and loses the answers of the operations that are named."""

    def __init__(self, storage, *lost):
        self._storage = storage
        self._lost = list(lost)

    def __getattr__(self, name):
        operation = getattr(self._storage, name)

        def call(*args, **kwargs):
            result = operation(*args, **kwargs)
            if name in self._lost:
                self._lost.remove(name)
                raise ConnectionResetError("the answer was lost")
            return result

        return call


@pytest.mark.filterwarnings("ignore:The storage")
class TestLostAnswers:
    """An operation that took effect although its answer was lost takes effect once."""

    @pytest.fixture
    def study(self, storage):
        return open_study(storage, "skdice")

    def flaky(self, study, *lost):
        inner = study._storage.storage
        return RetryingStorage(Flaky(inner, *lost), "the storage")

    def test_a_trial_is_made_once(self, study):
        storage = self.flaky(study, "create_new_trial", "create_new_trial")
        template = create_trial(state=TrialState.RUNNING, user_attrs={"worker": "me"})
        trial_id = storage.create_new_trial(study._study_id, template)
        assert [trial._trial_id for trial in study.trials] == [trial_id]
        assert study.trials[0].user_attrs["worker"] == "me"
        assert storage.create_new_trial(study._study_id, template) != trial_id
        assert len(study.trials) == 2

    def test_a_state_is_set_once(self, study):
        storage = self.flaky(study, "set_trial_state_values")
        trial_id = study.ask()._trial_id
        assert storage.set_trial_state_values(trial_id, TrialState.COMPLETE, [0.5])
        assert study.trials[0].values == [0.5]
        with pytest.raises(optuna.exceptions.UpdateFinishedTrialError):
            storage.set_trial_state_values(trial_id, TrialState.COMPLETE, [0.5])

    def test_a_state_that_another_process_set(self, study):
        storage = self.flaky(study)
        trial_id = study.ask()._trial_id
        original = storage.storage.set_trial_state_values
        calls = []

        def withdrawn_meanwhile(*arguments):
            calls.append(arguments)
            if len(calls) == 1:
                original(trial_id, TrialState.FAIL)
                raise ConnectionResetError
            return original(*arguments)

        storage.storage.set_trial_state_values = withdrawn_meanwhile
        with pytest.raises(optuna.exceptions.UpdateFinishedTrialError):
            storage.set_trial_state_values(trial_id, TrialState.COMPLETE, [0.5])


class TestRetryingStorage:
    @pytest.mark.parametrize(
        "error, is_so",
        [
            (OperationalError("q", {}, Exception("server closed the connection")), True),
            (OperationalError("q", {}, Exception("database is locked")), True),
            (OperationalError("q", {}, Exception("no such table: trials")), False),
            (OperationalError("q", {}, Exception("attempt to write a readonly database")), False),
            (ProgrammingError("q", {}, Exception("syntax error")), False),
            (ProgrammingError("q", {}, Exception("gone"), connection_invalidated=True), True),
            (FileNotFoundError(2, "No such file"), True),
            (TimeoutError(), True),
            (ValueError("x"), False),
            (KeyError("x"), False),
        ],
    )
    def test_which_errors_are_transient(self, error, is_so):
        assert is_transient(error) is is_so
        wrapped = optuna.exceptions.StorageInternalError("commit")
        wrapped.__cause__ = error
        assert is_transient(wrapped) is is_so

    @pytest.mark.filterwarnings("ignore:The storage")
    def test_after_giving_up_nothing_waits(self, tmp_path, impatient):
        study = open_study(tmp_path / "study.journal", "skdice")
        (tmp_path / "study.journal").rename(tmp_path / "away")
        with pytest.raises(StorageLostError, match="No such file"):
            study.get_trials()
        start = time.monotonic()
        for _ in range(20):
            with pytest.raises(StorageLostError, match=r"study.journal' was lost"):
                study.get_trials()
        assert time.monotonic() - start < 0.2
        (tmp_path / "away").rename(tmp_path / "study.journal")
        assert study.get_trials() == []

    @pytest.mark.filterwarnings("ignore:The storage")
    def test_interrupted_by_hand(self, tmp_path, monkeypatch):
        study = open_study(tmp_path / "study.journal", "skdice")
        (tmp_path / "study.journal").unlink()

        def interrupt(seconds):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(time, "sleep", interrupt)
            with pytest.raises(KeyboardInterrupt):
                study.get_trials()
        start = time.monotonic()
        with pytest.raises(StorageLostError):
            study.get_trials()
        assert time.monotonic() - start < 0.2

    def test_a_study_pickles(self, storage):
        study = make_search(storage, n_trials=2).fit(X, Y).study_
        assert len(pickle.loads(pickle.dumps(study)).trials) == 2


class TestJournalFile:
    def test_a_full_disk_leaves_whole_lines(self, tmp_path, monkeypatch):
        path = tmp_path / "study.journal"
        path.touch()
        journal = JournalFile(str(path), lock_obj=journal_lock(str(path)))
        journal.append_logs([{"a": 1}, {"b": 2}])

        def no_space(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", no_space)
            with pytest.raises(OSError, match="No space"):
                journal.append_logs([{"c": 3}])
        journal.append_logs([{"d": 4}])
        assert list(journal.read_logs(0)) == [{"a": 1}, {"b": 2}, {"d": 4}]

    def test_a_file_that_vanished_is_not_made_anew(self, tmp_path):
        path = tmp_path / "study.journal"
        path.touch()
        journal = JournalFile(str(path), lock_obj=journal_lock(str(path)))
        path.unlink()
        with pytest.raises(FileNotFoundError):
            journal.append_logs([{"a": 1}])
        assert not path.exists()
