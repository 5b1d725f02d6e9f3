"""Studies on disk and in databases: resumed, shared by processes, killed, refused."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import optuna
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold

from skdice.model_selection._search import _storage
from skdice.model_selection._search._storage import (
    is_shared,
    open_storage,
    open_study,
    show_storage,
)
from skdice.model_selection._search._trials import run_worker

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


def wait_for_fit(lines):
    """Wait until a search says that it fits, or fail with its error."""
    line = lines.readline()
    assert line == "fitting\n", line + lines.read()


@pytest.mark.parametrize("storage", STORAGES, indirect=True)
def test_a_process_that_is_killed_in_mid_trial(storage, monkeypatch):
    """The study gets its trials all the same; in a database the lost one is run again."""
    monkeypatch.setattr(_storage, "_STALE_SECONDS", 1)
    hanging, lines = start_search("hang", storage, n_trials=5)
    try:
        wait_for_fit(lines)
        assert trials_of(storage)[0].state.name == "RUNNING"
    finally:
        hanging.kill()
        hanging.join()
    if not storage.endswith("journal"):
        time.sleep(2.5)  # Databases count whole seconds.
    other = make_search(storage, n_trials=5).fit(X, Y)
    trials = trials_of(storage)
    assert hanging.exitcode == -signal.SIGKILL
    lost = "RUNNING" if storage.endswith("journal") else "FAIL"
    assert [trial.state.name for trial in trials] == [lost] + ["COMPLETE"] * 5
    assert other.cv_results_["trial_number"].tolist() == [1, 2, 3, 4, 5]
    again = [trial.number for trial in trials[1:] if trial.params == trials[0].params]
    assert len(again) == (lost == "FAIL")

    restarted = make_search(storage, n_trials=8).fit(X, Y)
    assert len(trials_of(storage)) == 9
    assert restarted.cv_results_["trial_number"].tolist() == list(range(1, 9))


@pytest.mark.parametrize("storage", ["journal", "sqlite"], indirect=True)
def test_a_killed_process_loses_no_finished_trial(storage):
    killed, lines = start_search("dawdle", storage, n_trials=50)
    try:
        for _ in range(8):  # In the third trial of three folds.
            wait_for_fit(lines)
    finally:
        killed.kill()
        killed.join()
    before = [trial for trial in trials_of(storage) if trial.state.name == "COMPLETE"]
    assert len(before) >= 2
    n_trials = len(before) + 2
    resumed = make_search(storage, n_trials=n_trials).fit(X, Y)
    assert len(resumed.cv_results_["params"]) == n_trials
    kept = dict(zip(resumed.cv_results_["trial_number"], resumed.cv_results_["mean_test_score"]))
    assert all(kept[trial.number] == pytest.approx(trial.value) for trial in before)


@pytest.mark.parametrize("storage", ["journal", "sqlite"], indirect=True)
def test_processes_at_the_same_time(storage, monkeypatch):
    """Together they run the trials that were asked for, perhaps one more, none twice."""
    monkeypatch.setenv(CONDUCT, "dawdle")
    other, lines = start_search("dawdle", storage, n_trials=10, study_name="two")
    try:
        wait_for_fit(lines)
        here = make_search(storage, n_trials=10, study_name="two").fit(X, Y)
        other.join(60)
    finally:
        other.kill()
    said = lines.read()
    assert said.endswith(("\n10\n", "\n11\n")), said
    trials = trials_of(storage, "two")
    assert {trial.state.name for trial in trials} == {"COMPLETE"}
    assert len({trial.params["x"] for trial in trials}) == len(trials) in (10, 11)
    assert len({trial.user_attrs["worker"]["pid"] for trial in trials}) == 2
    assert here.best_score_ in [trial.value for trial in trials]


def test_a_trial_that_another_process_took_for_dead(tmp_path):
    storage = tmp_path / "study.journal"

    def give_up(estimator, X):
        study = open_study(storage, "skdice")
        if len(study.trials) == 1:
            study.tell(0, state=optuna.trial.TrialState.FAIL)

    search = make_search(storage, n_trials=2, estimator=Peak(act=give_up))
    with pytest.raises(ConnectionError, match=r"given up by another process.* goes on with those"):
        search.fit(X, Y)
    assert search.fit(X, Y).cv_results_["trial_number"].tolist() == [1, 2]


@pytest.mark.parametrize("parent, n_trials", [(os.getppid(), 3), (-1, 1)])
def test_a_worker_ends_after_its_parent(parent, n_trials, tmp_path):
    search = make_search(tmp_path / "study.journal", n_trials=3)
    run_worker(search._make_plan(), search._make_task(X, Y, None, None), None, parent)
    assert len(trials_of(search.storage)) == n_trials


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

    def test_no_server(self, tmp_path):
        pytest.importorskip("psycopg")
        url = f"postgresql+psycopg://me:secret@/x?host={tmp_path}"
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


DAMAGED = {
    "a part": (lambda content: content + b'{"op_code":6,"worker_id":"ab', 1),
    "no line end": (lambda content: content + b'{"op_code":1}', 1),
    "NULs": (lambda content: content + bytes(100), 1),
    "an empty line": (lambda content: content + b"\n", 1),
    "two parts": (lambda content: content + b'{"op_code":6,"wor{"op_code":6}\n', 1),
    "the last record": (lambda content: content[:-10], 0),
    "the middle": (lambda content: content.replace(b"\n", b"", 1), None),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_journal(damage, tmp_path):
    """Whatever a machine that went down left: an error says what to delete, and then it goes on."""
    path = tmp_path / "study.journal"
    make_search(path, n_trials=1).fit(X, Y)
    change, after_end = DAMAGED[damage]
    whole = path.read_bytes()
    damaged = change(whole)
    path.write_bytes(damaged)
    line = 1 if after_end is None else whole.count(b"\n") + after_end
    with pytest.raises(ValueError, match=f"cannot be opened: line {line} is no record.*delete"):
        make_search(path, n_trials=2).fit(X, Y)
    assert path.read_bytes() == damaged
    path.write_bytes(b"".join(damaged.splitlines(keepends=True)[: line - 1]))
    assert len(make_search(path, n_trials=2).fit(X, Y).cv_results_["params"]) == 2


@pytest.mark.parametrize("content", [b"a note without a line end", b"\n\nnote", b'{"a": 1}\n'])
def test_a_file_of_another_kind_is_left_alone(content, tmp_path):
    path = tmp_path / "note"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="line 1 is no record of a study: b'"):
        make_search(path).fit(X, Y)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["note"]
