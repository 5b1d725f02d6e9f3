import pickle
import signal
import warnings

import numpy as np
import optuna
import pytest
from sklearn.model_selection import KFold

from .searched import CONDUCT, Act, Losses, Peak, X, Y, make_search, start_search, trials_of


class Summit(Peak):
    """Another estimator with the same parameters."""


@pytest.fixture(params=["{}/study.journal", "sqlite:///{}/study.db"])
def storage(request, tmp_path):
    return request.param.format(tmp_path)


def wait_for_fit(lines):
    """Wait until a search says that it fits, or fail with its error."""
    line = lines.readline()
    assert line == "fitting\n", line + lines.read()


def test_a_process_that_is_killed_in_mid_trial(storage):
    """The study gets its trials all the same, and cross-entropy as it is takes its place again."""
    how = {"estimator": Losses(), "space": None}
    hanging, lines = start_search("hang", storage, n_trials=5, **how)
    try:
        wait_for_fit(lines)
        assert trials_of(storage)[0].state.name == "RUNNING"
    finally:
        hanging.kill()
        hanging.join()
    assert hanging.exitcode == -signal.SIGKILL
    for n_trials in (5, 8):
        search = make_search(storage, n_trials=n_trials, **how).fit(X, Y)
        assert search.cv_results_["trial_number"].tolist() == list(range(1, n_trials + 1))
        states = [trial.state.name for trial in trials_of(storage)]
        assert states == ["RUNNING", *["COMPLETE"] * n_trials]
        assert len(pickle.loads(pickle.dumps(search)).study_.trials) == n_trials + 1
        assert n_baselines(search) == 1


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
    assert here.best_score_ == max(trial.value for trial in trials)


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

    @pytest.mark.parametrize("change", [
        {"X": X + 1}, {"y": 1 - Y}, {"sample_weight": np.ones(12)},
        {"cv": KFold(3, shuffle=True, random_state=0)}, {"scoring": "accuracy"},
        {"estimator": Peak(kind="other", x=0.5)}, {"estimator": Summit()},
    ])  # fmt: skip
    def test_another_search(self, tmp_path, change):
        storage = tmp_path / "study.journal"
        make_search(storage, n_trials=1).fit(X, Y)
        given = {"X": X, "y": Y, "sample_weight": None} | change
        rows = {name: given.pop(name) for name in ("X", "y", "sample_weight")}
        with pytest.raises(ValueError, match="study 'skdice' belongs to another search"):
            make_search(storage, **given).fit(**rows)
        assert len(trials_of(storage)) == 1
        make_search(storage, study_name="other", n_trials=1, **given).fit(**rows)

    def test_a_study_of_others(self, tmp_path):
        url = f"sqlite:///{tmp_path}/study.db"
        study = optuna.create_study(storage=url, study_name="mine", direction="maximize")
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        with pytest.raises(ValueError, match="'mine' belongs to another search"):
            make_search(url, study_name="mine").fit(X, Y)
        optuna.create_study(storage=url, study_name="least")
        with pytest.raises(ValueError, match="belongs to another search"):
            make_search(url, study_name="least").fit(X, Y)


class TestCutJournals:
    """A kill or a full disk leaves half a line; a study loses that line at most."""

    @pytest.fixture
    def journal(self, tmp_path):
        path = tmp_path / "study.journal"
        make_search(path, n_trials=2).fit(X, Y)
        return path

    def test_at_the_end(self, journal):
        *lines, last = journal.read_bytes().splitlines(keepends=True)
        for kept in (1, 10, 11, 30, -1):
            journal.write_bytes(b"".join([*lines, last[:kept]]))
            message = rf"study.journal, line {len(lines) + 1}: .*dropped"
            with pytest.warns(UserWarning, match=message):
                search = make_search(journal, n_trials=4).fit(X, Y)
            states = [trial.state.name for trial in search.study_.trials]
            assert states == ["COMPLETE", "RUNNING", "COMPLETE", "COMPLETE", "COMPLETE"]
            assert len(make_search(journal, n_trials=4).fit(X, Y).study_.trials) == 5
            assert [path.name for path in journal.parent.iterdir()] == ["study.journal"]

    def test_in_the_middle(self, journal):
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([*lines[:-1], b'{"op_co', lines[-1], lines[-1]]))
        before = journal.read_bytes()
        with pytest.raises(ValueError, match=rf"line {len(lines)}: .*delete it, and the study"):
            make_search(journal).fit(X, Y)
        assert journal.read_bytes() == before
        journal.write_bytes(b"".join(lines[:-1]))
        make_search(journal).fit(X, Y)

    def test_another_file_stays_as_it_is(self, tmp_path):
        path = tmp_path / "mine.jsonl"
        for text in ("a text", '{"text": "a"}\n{"text": "b"}', "[]\n{", "0"):
            path.write_text(text)
            with pytest.raises(ValueError, match="line 1: this is no record of Optuna's journal"):
                make_search(path).fit(X, Y)
            assert path.read_text() == text

    def test_processes_that_open_and_write_at_the_same_time(self, journal, monkeypatch):
        """No line of another process is taken for one that was cut off."""
        monkeypatch.setenv(CONDUCT, "dawdle")
        other, lines = start_search("dawdle", str(journal), n_trials=8)
        with warnings.catch_warnings(action="error"):
            while other.is_alive():
                make_search(journal, n_trials=1).fit(X, Y)
        assert lines.read().splitlines()[-1] == "8"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("storage, end, n_trials", [
    ("{}/study.journal", KeyboardInterrupt, 3), (None, KeyboardInterrupt, 3),
    ("sqlite:///{}/study.db", ValueError, 1), (None, SystemExit, 1),
    ("{}/study.journal", SystemExit, 3),
])  # fmt: skip
def test_a_first_trial_that_was_lost(storage, end, n_trials, tmp_path):
    def stop(estimator, X):
        raise end

    storage = storage.format(tmp_path) if storage else optuna.storages.InMemoryStorage()
    error_score = "raise" if end is ValueError else np.nan
    act = Act(stop)
    search = make_search(storage, estimator=Losses(act=act), space=None, error_score=error_score)
    with pytest.raises(end):
        search.fit(X, Y)
    search.estimator.act.function = lambda *_: None
    # An error counts as a trial, Ctrl-C does not.
    search.set_params(n_trials=n_trials + (end is ValueError)).fit(X, Y)
    assert len(search.cv_results_["params"]) == n_trials
    assert n_baselines(search) == 1
    search.set_params(n_trials=n_trials + 3).fit(X, Y)
    assert n_baselines(search) == 1


def n_baselines(search):
    """Return the number of trials of cross-entropy as it is that have ended well."""
    params = {"loss": "ce", "lr": 1.0}
    trials = search.study_.trials
    return sum(trial.params == params and trial.state.name == "COMPLETE" for trial in trials)
