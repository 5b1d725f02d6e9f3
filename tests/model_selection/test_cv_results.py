"""The table of a search: ranks, missing folds, columns of parameters."""

import numpy as np
import pytest
from scipy.stats import rankdata

from skdice.losses import DiceLoss
from skdice.model_selection._trials import make_cv_results


def folds(*scores):
    n = len(scores)
    return {"score": list(scores), "fit_time": [1.0] * n, "score_time": list(range(n))}


def test_folds_that_were_not_run():
    results = make_cv_results([{}] * 3, [folds(0.5, 0.7), folds(0.9), folds(0.6, 0.8)], 2)
    np.testing.assert_array_equal(results["split0_test_score"], [0.5, 0.9, 0.6])
    np.testing.assert_array_equal(results["split1_test_score"], [0.7, np.nan, 0.8])
    np.testing.assert_allclose(results["mean_test_score"], [0.6, np.nan, 0.7])
    np.testing.assert_allclose(results["std_test_score"], [0.1, np.nan, 0.1])
    assert results["rank_test_score"].tolist() == [2, 3, 1]
    assert results["mean_fit_time"].tolist() == [1, 1, 1]
    assert results["mean_score_time"].tolist() == [0.5, 0, 0.5]
    assert results["std_score_time"].tolist() == [0.5, 0, 0.5]


def test_ranks_are_those_of_scipy():
    scores = np.random.default_rng(0).integers(0, 5, 40) / 5
    results = make_cv_results([{}] * 40, [folds(score) for score in scores], 1)
    np.testing.assert_array_equal(results["rank_test_score"], rankdata(-scores, "min"))
    assert results["rank_test_score"].dtype == np.int32


@pytest.mark.parametrize(
    "values, dtype",
    [
        ([1, 2], np.int64),
        ([1, 2.5], np.float64),
        ([True, False], np.bool_),
        (["ce", "dsc"], object),
        ([None, 1.0], object),
        ([[1, 2], [3, 4]], object),
        ([[1], [3, 4]], object),
        ([DiceLoss(), DiceLoss(gamma=2)], object),
        ([(1, 2), {"O": 1}], object),
    ],
)
def test_columns_of_parameters(values, dtype):
    rows = [{"p": values[0]}, {"q": 0}, {"p": values[1]}]
    results = make_cv_results(rows, [folds(0.5)] * 3, 1)
    column = results["param_p"]
    assert column.dtype == dtype
    assert column.mask.tolist() == [False, True, False]
    assert [column.data[i] for i in (0, 2)] == values
    assert results["param_q"].mask.tolist() == [True, False, True]
    assert results["params"] == rows
