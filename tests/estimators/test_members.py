import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice.losses import match_scores

from ..io.conftest import CASES, fit_once, make, scores
from ..spies import Spy, encoded_rows, internals, stop

N_MEMBERS = 3


def logits(estimator, X):
    return internals(estimator).logits(encoded_rows(estimator, X))


@pytest.fixture(scope="module")
def joined(shallow_models):
    return fit_once(shallow_models, n_members=N_MEMBERS)


def singles(estimator):
    """Return the members as estimators of their own."""
    module = estimator.net_.module_
    found = []
    for i in range(N_MEMBERS):
        net = copy.copy(estimator.net_)
        part = copy.deepcopy(module.members[i - 1] if i else module)
        part.members = torch.nn.ModuleList()
        net.module_ = part
        one = copy.copy(estimator)
        one._fitted = replace(internals(estimator).fitted, net=net)
        found.append(one)
    return found


@pytest.mark.parametrize("case", ["tagger", "texts", "labels", "pairs", "questions"])
def test_logits_are_the_mean(joined, case):
    estimator, X, _ = joined(case)
    parts = [logits(one, X) for one in singles(estimator)]
    assert np.ptp(parts, axis=0).max() > 1e-3
    np.testing.assert_allclose(logits(estimator, X), np.mean(parts, axis=0), atol=1e-5)


def test_scores_of_query_matches_are_the_mean(joined):
    """The vectors of the members are no mean: only their products have a meaning."""
    estimator, X, _ = joined("queries")

    def of_matches(one):
        found = torch.from_numpy(logits(one, X))
        start, end = found[None, :, 2:].chunk(2, dim=2)
        return torch.cat([match_scores(start, end).flatten(), found[:, :2].flatten()])

    each = torch.stack([of_matches(one) for one in singles(estimator)])
    assert each.std(0).max() > 1e-3
    torch.testing.assert_close(of_matches(estimator), each.mean(0), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_saved_and_pickled_ones_predict_alike(joined, tmp_path, case):
    estimator, X, y = joined(case)
    estimator.save_pretrained(tmp_path / "saved")
    loaded = type(estimator).from_pretrained(tmp_path / "saved")
    assert len(loaded.net_.module_.members) == N_MEMBERS - 1
    for other in (loaded, pickle.loads(pickle.dumps(estimator))):
        assert other.score(X, y) == estimator.score(X, y)
        np.testing.assert_array_equal(scores(other, X), scores(estimator, X))
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "`n_members`" in card


@pytest.mark.slow
def test_onnx_runtime_has_all_members(shallow_models):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    tagger, X, y = make("queries", shallow_models("bert"), n_members=2)
    tagger.fit(X, y).threshold_ = 0.01  # All spans, of a network that has hardly learned.
    expected, found = (
        [entity.score for row in one.predict_spans(X) for entity in row]
        for one in (tagger, copy.copy(tagger).set_params(runtime="onnx"))
    )
    assert len(found) > 0
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_checkpoints_of_members(joined, tmp_path):
    """A fit that dies in its second member goes on there, and the first is not run again."""
    estimator, X, y = joined("texts")
    die = Spy("on_train_begin", stop(OSError("no more power"), lambda net, count: count == 2))
    steps = Spy("on_batch_end")
    kept = clone(estimator).set_params(checkpoint_dir=tmp_path, callbacks=[die])
    with pytest.raises(OSError, match="no more power"):
        kept.fit(X, y)
    again = clone(kept).set_params(callbacks=[steps]).fit(X, y)
    assert steps.count_ == 2 * 2  # two members, two steps each
    np.testing.assert_array_equal(logits(again, X), logits(estimator, X))


def test_an_interrupted_fit_keeps_the_members_that_were_finished(joined):
    estimator, X, y = joined("texts")
    third = Spy("on_train_begin", stop(RuntimeError("stop"), lambda net, count: count == 3))
    stopped = clone(estimator).set_params(callbacks=[third])
    with pytest.raises(RuntimeError, match="stop"):
        stopped.fit(X, y)
    assert stopped.interrupted_
    assert len(stopped.net_.module_.members) == 1
    with pytest.warns(UserWarning, match="did not come to its end"):
        stopped.predict(X)
    expected = np.mean([logits(one, X) for one in singles(estimator)[:2]], axis=0)
    np.testing.assert_allclose(logits(stopped, X), expected, atol=1e-5)
