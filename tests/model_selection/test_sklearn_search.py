"""scikit-learn's own searches over losses and their parameters."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, validation_curve

from skdice.losses import SelfAdjustingDiceLoss, TverskyLoss

from ..io.conftest import make

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Short trainings may collapse.


def test_grid_over_a_loss_object(tiny_bert):
    loss = SelfAdjustingDiceLoss()
    estimator, X, y = make("tagger", tiny_bert, loss=loss)
    grid = {"loss__alpha": [0.01, 0.1], "loss__ohem_ratio": [0.0, 1.0]}
    search = GridSearchCV(estimator, grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for name, value in search.best_params_.items():
        assert search.best_estimator_.get_params()[name] == value
    # The given object was searched over in copies.
    assert loss.get_params() == SelfAdjustingDiceLoss().get_params()


def test_validation_curve_of_tversky(tiny_bert):
    """The sweep of the paper's Table 10: beta follows alpha in loss objects."""
    train, test = validation_curve(
        *make("tagger", tiny_bert),
        param_name="loss",
        param_range=[TverskyLoss(alpha=alpha, beta=1 - alpha) for alpha in (0.2, 0.5, 0.8)],
        cv=2,
    )
    assert train.shape == test.shape == (3, 2)
    assert np.isfinite(test).all()
