"""Storages that are lost in mid-search: the error is Optuna's, and the same call goes on."""

import errno
import os

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.storages.journal import JournalFileBackend

from skdice.model_selection._storage import open_storage

from ..model_selection.searched import Peak, X, Y, make_search

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "name, owner, method, error",
    [
        ("{}/study.journal", JournalFileBackend, "append_logs", FULL),
        ("sqlite:///{}/study.db", RDBStorage, "set_trial_user_attr", StorageInternalError("full")),
    ],
)
def test_the_same_call_goes_on(name, owner, method, error, tmp_path, monkeypatch):
    storage, fits = name.format(tmp_path), []
    works = getattr(owner, method)

    def break_down(estimator, X):
        fits.append(estimator.x)

    def breaking(*args, **options):
        if len(fits) == 4:  # In the second trial.
            raise error
        return works(*args, **options)

    search = make_search(storage, n_trials=4, estimator=Peak(act=break_down))
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, breaking)
        with pytest.raises((type(error), AssertionError)):
            search.fit(X, Y)
    before = optuna.load_study(study_name="skdice", storage=open_storage(storage)).trials
    assert before[0].state.name == "COMPLETE"
    again = search.fit(X, Y).cv_results_
    assert len(again["params"]) == 4
    assert again["mean_test_score"][0] == before[0].value
