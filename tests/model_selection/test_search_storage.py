"""Studies on disk and in databases: resumed, shared by processes, killed, lost, refused."""

import errno
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold

from skdice.model_selection import _study

from .searched import CONDUCT, Act, Peak, X, Y, make_search, start_search, trials_of

STORAGES = ["journal", "sqlite", "postgresql"]
SPACE = {"x": FloatDistribution(0.0, 1.0)}


class Summit(Peak):
    """Another estimator with the same parameters."""


@pytest.fixture(scope="module")
def postgresql():
    """URL of a private PostgreSQL server on a socket; tests are skipped where none is installed."""
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("no PostgreSQL server is installed")
    if find_spec("psycopg") is None:
        pytest.skip("no driver for PostgreSQL is installed")
    as_user = []
    if os.getuid() == 0:
        if not shutil.which("runuser") or "postgres" not in {user[0] for user in pwd.getpwall()}:
            pytest.skip("the server does not run as root, and there is no user for it")
        as_user = ["runuser", "-u", "postgres", "--"]

    def run(*command):
        subprocess.run([*as_user, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")

    # Not tmp_path: the path of a socket is short, and the server's user has to get there.
    home = Path(tempfile.mkdtemp(prefix="skdice-pg-", dir="/tmp"))
    control = ("pg_ctl", "-D", home / "data", "-w", "-l", home / "log")
    try:
        if as_user:
            shutil.chown(home, "postgres")
        run("initdb", "-D", home / "data", "-U", "search", "-A", "trust", "--no-sync")
        run(*control, "-o", f"-k {home} -c listen_addresses='' -c fsync=off", "start")
        try:
            yield f"postgresql+psycopg://search@/postgres?host={home}"
        finally:
            run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def storage(request, tmp_path):
    """One of the storages, without studies."""
    if request.param == "journal":
        return str(tmp_path / "study.journal")
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/study.db"
    return request.getfixturevalue("postgresql")


def wait_for_fit(lines):
    """Wait until a search says that it fits, or fail with its error."""
    line = lines.readline()
    assert line == "fitting\n", line + lines.read()


@pytest.mark.parametrize("storage", STORAGES, indirect=True)
def test_a_process_that_is_killed_in_mid_trial(storage, monkeypatch):
    """The study gets its trials all the same, and the lost one is run again."""
    monkeypatch.setattr(_study, "_STALE_SECONDS", 1)
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
    # Nobody can tell from a journal that a process is dead.
    assert len(again) == (lost == "FAIL")

    restarted = make_search(storage, n_trials=8).fit(X, Y)
    assert len(trials_of(storage)) == 9
    assert restarted.cv_results_["trial_number"].tolist() == list(range(1, 9))


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


class TestResuming:
    def test_nothing_is_run_twice(self, tmp_path):
        fits = []
        storage = str(tmp_path / "study.journal")
        search = make_search(storage, estimator=Peak(act=Act(lambda *_: fits.append(1))))
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

        search = make_search(storage, estimator=Peak(act=Act(fail)), error_score=np.nan)
        with pytest.warns(FitFailedWarning, match="no luck"):
            search.fit(X, Y)
        assert len(trials_of(storage)) == 6
        with pytest.warns(FitFailedWarning, match="no luck"):
            search.set_params(n_trials=7).fit(X, Y)
        assert len(trials_of(storage)) == 7

    @pytest.mark.parametrize(
        "change",
        [
            {"X": X + 1},
            {"y": 1 - Y},
            {"sample_weight": np.ones(12)},
            {"cv": KFold(3, shuffle=True, random_state=0)},
            {"cv": 4},
            {"scoring": "accuracy"},
            {"estimator": Peak(kind="other", x=0.5)},
            {"estimator": Summit()},
        ],
    )
    def test_another_search(self, tmp_path, change):
        storage = tmp_path / "study.journal"
        make_search(storage, n_trials=1).fit(X, Y)
        given = {"X": X, "y": Y, "sample_weight": None} | change
        rows = {name: given.pop(name) for name in ("X", "y", "sample_weight")}
        with pytest.raises(ValueError, match="study 'skdice' belongs to another search"):
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
        with pytest.raises(ValueError, match="'mine' belongs to another search"):
            make_search(url, study_name="mine").fit(X, Y)
        optuna.create_study(storage=url, study_name="least")
        with pytest.raises(ValueError, match="belongs to another search"):
            make_search(url, study_name="least").fit(X, Y)


class TestStorages:
    def test_objects(self, tmp_path):
        journal = JournalStorage(JournalFileBackend(str(tmp_path / "study.journal")))
        for storage in (optuna.storages.InMemoryStorage(), journal):
            make_search(storage, n_trials=2).fit(X, Y)
            assert len(make_search(storage, n_trials=3).fit(X, Y).study_.trials) == 3

    @pytest.mark.parametrize("name", [None, "{}/study.journal", "sqlite:///{}/study.db"])
    def test_trials_at_the_same_time(self, name, tmp_path):
        storage = None if name is None else name.format(tmp_path)
        search = make_search(storage, n_jobs=2, space=SPACE).fit(X, Y)
        assert len(search.study_.trials) == 6
        assert len(search.cv_results_["params"]) == 6
        again = make_search(storage, n_jobs=2, n_trials=7, space=SPACE).fit(X, Y)
        assert len(again.study_.trials) == 7

    def test_processes_need_a_storage_that_they_can_share(self):
        memory = optuna.storages.InMemoryStorage()
        with pytest.raises(ValueError, match="n_jobs=2"):
            make_search(memory, n_jobs=2).fit(X, Y)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "name, owner, method, error",
    [
        ("{}/study.journal", JournalFileBackend, "append_logs", FULL),
        ("sqlite:///{}/study.db", RDBStorage, "set_trial_user_attr", StorageInternalError("full")),
    ],
)
def test_the_same_call_goes_on_after_a_fault(name, owner, method, error, tmp_path, monkeypatch):
    """The error of a storage that is lost in mid-search is Optuna's."""
    storage, fits = name.format(tmp_path), []
    works = getattr(owner, method)

    def break_down(estimator, X):
        fits.append(estimator.x)

    def breaking(*args, **options):
        if len(fits) == 4:  # In the second trial.
            raise error
        return works(*args, **options)

    search = make_search(storage, n_trials=4, estimator=Peak(act=Act(break_down)))
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, breaking)
        with pytest.raises((type(error), AssertionError)):
            search.fit(X, Y)
    before = trials_of(storage)
    assert before[0].state.name == "COMPLETE"
    again = search.fit(X, Y).cv_results_
    assert len(again["params"]) == 4
    assert again["mean_test_score"][0] == before[0].value
