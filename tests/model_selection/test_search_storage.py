"""Studies on disk and in databases: resumed, shared by processes, killed, refused."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import optuna
import pytest
from skdice.model_selection._journal_lock import FlockLock, journal_lock
from skdice.model_selection._retrying_storage import StorageLostError
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold
from sqlalchemy import event

from skdice.model_selection import _budget, _liveness
from skdice.model_selection._search._storage import (
    is_shared,
    open_storage,
    open_study,
    show_storage,
)

from ..distributed.postgresql import server
from .searched import CONDUCT, Peak, X, Y, make_search, start_search

STORAGES = ["journal", "sqlite", "postgresql"]


class Summit(Peak):
    """Another estimator with the same parameters."""


@pytest.fixture(scope="module")
def postgresql():
    """URL of a private PostgreSQL server on a socket."""
    with server() as running:
        yield running.url


@pytest.fixture
def storage(request, tmp_path):
    """One of the storages, without studies."""
    if request.param == "journal":
        return str(tmp_path / "study.journal")
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/study.db"
    return request.getfixturevalue("postgresql")


def trials_of(storage, name="skdice"):
    return optuna.load_study(study_name=name, storage=open_storage(storage)).trials


def wait_for_line(process):
    """Return what a process prints, or fail with its error."""
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line.strip()


@pytest.mark.parametrize("storage", STORAGES, indirect=True)
def test_a_killed_process_is_replaced(storage, monkeypatch):
    """One process is killed in mid-trial while another goes on; a restart finishes the rest."""
    hanging = start_search("hang", storage, n_trials=5)
    fit = Peak.fit

    def fit_and_kill(self, X, y):
        states = [trial.state.name for trial in study.trials]
        if states.count("COMPLETE") == 2 and hanging.poll() is None:
            assert states[0] == "RUNNING"
            hanging.kill()
            hanging.wait()
        return fit(self, X, y)

    monkeypatch.setattr(Peak, "fit", fit_and_kill)
    try:
        assert wait_for_line(hanging) == "fitting"
        study = open_study(storage, "skdice")
        other = make_search(storage, n_trials=5).fit(X, Y)
    finally:
        hanging.kill()
        hanging.communicate()
    trials = trials_of(storage)
    assert hanging.returncode == -signal.SIGKILL
    assert trials[0].user_attrs["withdrawn"] == "stale"
    assert [trial.state.name for trial in trials] == ["FAIL"] + ["COMPLETE"] * 5
    assert other.cv_results_["trial_number"].tolist() == [1, 2, 3, 4, 5]

    restarted = make_search(storage, n_trials=8).fit(X, Y)
    assert len(trials_of(storage)) == 9
    assert restarted.cv_results_["trial_number"].tolist() == list(range(1, 9))
    assert len(set(restarted.cv_results_["param_x"])) == 8


@pytest.mark.parametrize("storage", ["journal"], indirect=True)
def test_processes_at_the_same_time(storage, monkeypatch):
    """Together they run the trials that were asked for, never more, and agree on the best."""
    monkeypatch.setenv(CONDUCT, "dawdle")
    other = start_search("dawdle", storage, n_trials=10, study_name="two")
    try:
        assert wait_for_line(other) == "fitting"
        here = make_search(storage, n_trials=10, study_name="two").fit(X, Y)
        out, err = other.communicate(timeout=60)
    finally:
        other.kill()
    assert out.split()[-1] == "10", err
    trials = trials_of(storage, "two")
    counted = [trial for trial in trials if _budget.counts(trial)]
    assert len({trial.params["x"] for trial in counted}) == len(counted) == 10
    assert len({trial.user_attrs["worker"]["pid"] for trial in counted}) == 2
    for trial in trials:
        assert trial in counted or trial.user_attrs["withdrawn"] == "surplus"
    assert here.best_score_ == max(trial.value for trial in counted)


def test_many_that_ask_at_once(tmp_path):
    """However the claims of threads with storages of their own interleave, there are n trials."""
    storage = tmp_path / "study.journal"
    study = open_study(storage, "many")
    run = []

    def work():
        study = open_study(storage, "many")
        budget = _budget.TrialBudget(study, 7)
        while (trial := budget.claim()) is not None:
            run.append(trial.number)
            study.tell(trial, 0.0)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(run) == len(_budget.counted_trials(study)) == 7
    assert {trial.state.name for trial in study.trials} <= {"COMPLETE", "FAIL"}


class TestStaleTrials:
    @pytest.fixture
    def study(self, tmp_path):
        return open_study(tmp_path / "study.journal", "stale")

    @pytest.fixture
    def elsewhere(self, study, monkeypatch):
        """Leave a running trial of another host."""
        with monkeypatch.context() as patch:
            patch.setattr(_liveness, "_host", lambda: "elsewhere")
            trial = _budget.TrialBudget(study, 5).claim()
        assert trial.user_attrs["worker"]["host"] == "elsewhere"
        return trial

    def test_other_hosts_have_time(self, study, elsewhere, monkeypatch):
        budget = _budget.TrialBudget(study, 5)
        assert budget.progress() == (0, [0])
        monkeypatch.setattr(_liveness, "STALE_SECONDS", 0.05)
        time.sleep(0.1)
        # A watch begins with its first look, whatever the other's clock says.
        assert _budget.TrialBudget(study, 5).progress() == (0, [0])
        assert budget.progress() == (0, [])
        assert study.trials[0].user_attrs["withdrawn"] == "stale"

    def test_signs_of_life(self, study, elsewhere, monkeypatch):
        monkeypatch.setattr(_liveness, "STALE_SECONDS", 0.3)
        monkeypatch.setattr(_liveness, "HEARTBEAT_SECONDS", 0.05)
        budget = _budget.TrialBudget(study, 5)
        with _liveness.signs_of_life(elsewhere):
            for _ in range(6):
                assert budget.progress() == (0, [0])
                time.sleep(0.1)
        assert budget.progress() == (0, [0])
        time.sleep(0.4)
        assert budget.progress() == (0, [])

    def test_a_new_process_of_the_same_number(self, study, monkeypatch):
        trial = _budget.TrialBudget(study, 5).claim()
        worker = trial.user_attrs["worker"]
        if worker["started"] is None:
            pytest.skip("this system does not say when a process started")
        assert _budget.TrialBudget(study, 5).progress() == (0, [0])
        trial.set_user_attr("worker", {**worker, "started": "1"})
        assert _budget.TrialBudget(study, 5).progress() == (0, [])

    def test_zombies_are_dead(self, study):
        trial = _budget.TrialBudget(study, 5).claim()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        started = _liveness._start_of(child.pid)
        worker = {**trial.user_attrs["worker"], "pid": child.pid, "started": started}
        trial.set_user_attr("worker", worker)
        assert _budget.TrialBudget(study, 5).progress() == (0, [0])
        child.kill()
        # It has died, but nobody has asked for its return code.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert _budget.TrialBudget(study, 5).progress() == (0, [])
        child.communicate()

    def test_workers_end_with_their_parent(self, monkeypatch):
        ended = threading.Event()
        monkeypatch.setattr(_liveness, "_PARENT_SECONDS", 0.01)
        monkeypatch.setattr(os, "_exit", lambda code: ended.set())
        with _liveness.ending_with(os.getppid()):
            assert not ended.wait(0.1)
        with _liveness.ending_with(os.getppid() + 1):
            assert ended.wait(5)

    def test_a_result_that_comes_too_late_is_dropped(self, tmp_path):
        storage = tmp_path / "study.journal"

        def give_up(estimator, X):
            study = open_study(storage, "skdice")
            if len(study.trials) == 1:
                _budget.withdraw(study, 0, "stale")

        search = make_search(storage, n_trials=2, estimator=Peak(act=give_up))
        with pytest.warns(UserWarning, match="Trial 0 was given up by another process"):
            search.fit(X, Y)
        assert search.cv_results_["trial_number"].tolist() == [1, 2]

    def test_a_trial_given_up_at_its_end(self, monkeypatch):
        tell = optuna.study.Study.tell

        def give_up_and_tell(self, trial, *arguments, **options):
            if trial.number == 0:
                _budget.withdraw(self, 0, "stale")
            return tell(self, trial, *arguments, **options)

        monkeypatch.setattr(optuna.study.Study, "tell", give_up_and_tell)
        with pytest.warns(UserWarning, match="Trial 0 was given up"):
            search = make_search(n_trials=2).fit(X, Y)
        assert search.cv_results_["trial_number"].tolist() == [1, 2]

    def test_waiting_ends_with_the_timeout(self, tmp_path):
        storage = tmp_path / "study.journal"
        make_search(storage, n_trials=1).fit(X, Y)
        study = open_study(storage, "skdice")
        _budget.TrialBudget(study, 2).claim()
        search = make_search(storage, n_trials=2, timeout=0.3).fit(X, Y)
        assert len(search.cv_results_["params"]) == 1


class TestResuming:
    def test_nothing_is_run_twice(self, tmp_path):
        fits = []
        storage = str(tmp_path / "study.journal")
        search = make_search(storage, estimator=Peak(act=lambda *_: fits.append(1)))
        first = search.fit(X, Y).cv_results_
        assert len(fits) == 6 * 3 + 1
        again = search.fit(X, Y).cv_results_
        assert len(fits) == 6 * 3 + 2
        assert first.keys() == again.keys()
        np.testing.assert_array_equal(first["mean_test_score"], again["mean_test_score"])
        np.testing.assert_array_equal(first["mean_fit_time"], again["mean_fit_time"])
        assert first["params"] == again["params"]
        # Fewer trials than there are: all are shown, none is run.
        fewer = search.set_params(n_trials=2).fit(X, Y)
        assert len(fewer.cv_results_["params"]) == 6

    def test_failed_trials_count(self, tmp_path):
        storage = tmp_path / "study.journal"

        def fail(estimator, X):
            if estimator.x > 0.5:
                raise RuntimeError("no luck")

        search = make_search(storage, estimator=Peak(act=fail), error_score=np.nan)
        with pytest.warns(FitFailedWarning, match="no luck"):
            search.fit(X, Y)
        assert len(trials_of(storage)) == 6
        with pytest.warns(FitFailedWarning, match="no luck"):
            search.set_params(n_trials=7).fit(X, Y)
        assert len(trials_of(storage)) == 7

    @pytest.mark.parametrize(
        "change, different",
        [
            ({"X": X + 1}, r"in X\."),
            ({"y": 1 - Y}, r"in y\."),
            ({"sample_weight": np.ones(12)}, r"in sample_weight\."),
            ({"cv": KFold(3, shuffle=True, random_state=0)}, r"in cv\."),
            ({"cv": 4}, r"in cv\."),
            ({"scoring": "accuracy"}, r"in scoring\."),
            ({"estimator": Peak(kind="other", x=0.5)}, "in the estimator's 'kind', .*'x'"),
            ({"estimator": Summit()}, "in the estimator's class"),
        ],
    )
    def test_another_search(self, tmp_path, change, different):
        storage = tmp_path / "study.journal"
        make_search(storage, n_trials=1).fit(X, Y)
        given = {"X": X, "y": Y, "sample_weight": None} | change
        rows = {name: given.pop(name) for name in ("X", "y", "sample_weight")}
        with pytest.raises(ValueError, match=f"study 'skdice' in .*study.journal.*{different}"):
            make_search(storage, **given).fit(**rows)
        assert len(trials_of(storage)) == 1
        make_search(storage, study_name="other", n_trials=1, **given).fit(**rows)

    def test_what_does_not_matter(self, tmp_path):
        storage = tmp_path / "study.journal"
        make_search(storage, n_trials=1).fit(X, Y)
        make_search(storage, n_trials=1, estimator=Peak(verbose=5), verbose=1).fit(X, Y.tolist())
        assert len(trials_of(storage)) == 1

    def test_a_study_of_others(self, tmp_path):
        url = f"sqlite:///{tmp_path}/study.db"
        study = optuna.create_study(storage=url, study_name="mine", direction="maximize")
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        with pytest.raises(ValueError, match=r"'mine' .* trials that are not of DiceSearchCV"):
            make_search(url, study_name="mine").fit(X, Y)
        optuna.create_study(storage=url, study_name="least")
        with pytest.raises(ValueError, match=r"'least' .* does not maximise"):
            make_search(url, study_name="least").fit(X, Y)


class TestStorages:
    def test_objects(self, tmp_path):
        path = tmp_path / "study.journal"
        for storage in (optuna.storages.InMemoryStorage(), open_storage(path)):
            make_search(storage, n_trials=2).fit(X, Y)
            assert len(make_search(storage, n_trials=3).fit(X, Y).study_.trials) == 3

    @pytest.mark.parametrize(
        "storage, message",
        [
            ("sqlite:////nowhere/study.db", "'sqlite:////nowhere/study.db' cannot be opened"),
            ("/nowhere/study.journal", "'/nowhere/study.journal' cannot be opened.*No such file"),
            ("nodb://localhost/x", "'nodb://localhost/x' cannot be opened.*nodb"),
            ("sqlite:/x://", "cannot be opened"),
            (
                "postgresql+nodriver://me:secret@localhost/x",
                r"'postgresql\+nodriver://me:\*\*\*@localhost/x' cannot be opened",
            ),
        ],
    )
    def test_out_of_reach(self, storage, message):
        with pytest.raises(ValueError, match=message) as caught:
            make_search(storage).fit(X, Y)
        assert "secret" not in str(caught.value)

    def test_a_directory_and_a_file_of_another_kind(self, tmp_path):
        with pytest.raises(ValueError, match="cannot be opened"):
            make_search(tmp_path).fit(X, Y)
        for content in ("hello\nworld\n", '{"a": 1}\n', "[1]\n", "3\n3\n"):
            path = tmp_path / "file"
            path.write_text(content)
            with pytest.raises(ValueError, match="file' cannot be opened"):
                make_search(path).fit(X, Y)
            with pytest.raises(ValueError, match="cannot be opened"):
                make_search(f"sqlite:///{path}").fit(X, Y)

    def test_a_database_that_may_not_be_written_to(self, tmp_path):
        """As on a file system that is mounted read-only."""
        path = tmp_path / "study.db"
        make_search(f"sqlite:///{path}", n_trials=1).fit(X, Y)
        url = f"sqlite:///file:{path}?mode=ro&uri=true"
        for name in ("skdice", "new"):
            with pytest.raises(ValueError, match="can be read, but not written to"):
                make_search(url, n_trials=2, study_name=name).fit(X, Y)

    def test_a_database_that_becomes_read_only(self, tmp_path):
        study = open_study(f"sqlite:///{tmp_path}/study.db", "one")
        engine = study._storage.storage._backend.engine
        event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA query_only = ON"))
        engine.dispose()
        with pytest.raises(StorageLostError, match="written to it: attempt to write a readonly"):
            study.set_user_attr("a", 1)

    def test_no_server(self, tmp_path):
        pytest.importorskip("psycopg2")
        url = f"postgresql+psycopg2://me:secret@/x?host={tmp_path}"
        with pytest.raises(ValueError, match=r"cannot be opened.*connection.*failed") as caught:
            make_search(url).fit(X, Y)
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        "url, module, line",
        [
            ("postgresql+psycopg2://localhost/x", "psycopg2", "pip install psycopg2-binary"),
            ("postgresql+psycopg://localhost/x", "psycopg", r"pip install 'psycopg\[binary\]'"),
            ("mysql+pymysql://localhost/x", "pymysql", "pip install pymysql"),
        ],
    )
    def test_missing_driver(self, url, module, line, monkeypatch):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ValueError, match=f"needs a database driver.*{line}"):
            make_search(url).fit(X, Y)

    def test_passwords_are_not_shown(self):
        assert show_storage("postgresql://me:secret@host/x") == "'postgresql://me:***@host/x'"
        assert show_storage("postgresql://host/x") == "'postgresql://host/x'"

    def test_which_can_be_shared(self):
        for storage in (None, optuna.storages.InMemoryStorage(), "sqlite://", "sqlite:///:memory:"):
            assert not is_shared(storage)
        for storage in ("study.journal", Path("study.journal"), "sqlite:///study.db"):
            assert is_shared(storage)


class TestJournalLock:
    def test_only_one_holds_it(self, tmp_path):
        path = tmp_path / "file"
        path.touch()
        one, other = journal_lock(str(path)), journal_lock(str(path))
        assert isinstance(one, FlockLock)
        one.acquire()
        got = threading.Event()
        thread = threading.Thread(target=lambda: (other.acquire(), got.set()))
        thread.start()
        assert not got.wait(0.1)
        one.release()
        assert got.wait(5)
        other.release()
        thread.join()

    def test_a_dead_process_does_not_hold_it(self, tmp_path):
        path = tmp_path / "file"
        path.touch()
        code = (
            "import fcntl, os, signal, sys\n"
            f"fcntl.flock(os.open({str(path)!r}, os.O_RDWR), fcntl.LOCK_EX)\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
        lock = journal_lock(str(path))
        assert lock.acquire()
        lock.release()


TORN = {
    "a part": lambda content: content + b'{"op_code":6,"worker_id":"ab',
    "a few letters": lambda content: content + b'{"op',
    "no line end": lambda content: content + b'{"op_code":1}',
    "NULs": lambda content: content + bytes(100),
    "a part and NULs": lambda content: content + b'{"op_code":6,"wor' + bytes(100),
    "an empty line": lambda content: content + b"\n",
    "blank lines": lambda content: content + b"\n\r\n \n",
    "two parts": lambda content: content + b'{"op_code":6,"wor{"op_code":6,"worker_id":"ab"}\n',
    "the last record": lambda content: content[:-10],
}


class TestTornJournals:
    @pytest.mark.parametrize("tear", TORN)
    def test_the_study_goes_on(self, tear, tmp_path):
        """Whatever a machine that went down left at the end; in a process of its own."""
        path = tmp_path / "study.journal"
        whole = make_search(tmp_path / "whole.journal", n_trials=5).fit(X, Y)
        first = start_search("plain", str(path), n_trials=2)
        _, errors = first.communicate(timeout=60)
        assert first.returncode == 0, errors
        path.write_bytes(TORN[tear](path.read_bytes()))
        for n_trials in (3, 5, 5):
            search = make_search(path, n_trials=n_trials).fit(X, Y)
        n_lost = tear == "the last record"
        assert len(trials_of(path)) == 5 + n_lost
        if not n_lost:
            assert search.cv_results_["params"] == whole.cv_results_["params"]
        for line in path.read_bytes().splitlines():
            assert line.startswith(b'{"op_code":')

    def test_a_torn_file_without_a_record(self, tmp_path):
        path = tmp_path / "study.journal"
        path.write_bytes(b'{"op_code":0,"wor')
        assert len(make_search(path, n_trials=2).fit(X, Y).study_.trials) == 2

    @pytest.mark.parametrize("content", [b"a note without a line end", b"\n\nnote"])
    def test_a_file_of_another_kind_is_left_alone(self, content, tmp_path):
        path = tmp_path / "note"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="ends in a line that is no record of a study: b'"):
            make_search(path).fit(X, Y)
        assert path.read_bytes() == content

    def test_damage_in_the_middle_is_explained(self, tmp_path):
        path = tmp_path / "study.journal"
        make_search(path, n_trials=1).fit(X, Y)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:4], lines[4][:-9], *lines[5:]]))
        with pytest.raises(ValueError, match=r"line 5 of the journal '.*' is damaged .* delete"):
            make_search(path, n_trials=2).fit(X, Y)
