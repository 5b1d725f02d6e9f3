import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdice import DiceTextClassifier
from skdice.estimators import load_pretrained
from skdice.losses import Loss, SetLoss

from ..corpora import easy_texts


class JaccardLoss(SetLoss):
    """The example of the how-to."""

    def cells(self, p, y):
        return p * y, p + y - p * y


@dataclass(kw_only=True, eq=False, repr=False)
class SoftenedLoss(Loss):
    """A mean over items with a parameter of its own."""

    softness: float = 0.1

    def item_losses(self, items):
        uniform = -items.logits.log_softmax(1).mean(1)
        return (1 - self.softness) * items.cross_entropy + self.softness * uniform


LOSSES = {
    "set": (JaccardLoss(gamma=0.5), {"loss__gamma": [0.5, 1.0]}),
    "mean": (SoftenedLoss(softness=0.2), {"loss__softness": [0.0, 0.2]}),
}


def test_formulas():
    p, y = torch.tensor([0.9, 0.2, 0.4]), torch.tensor([1, 0, 1])
    expected = 1 - (1.3 + 0.5) / ((1 + 0.2 + 1) + 0.5)
    torch.testing.assert_close(JaccardLoss(gamma=0.5)(p.logit(), y), torch.tensor(expected))
    logits, target = torch.randn(5, 3), torch.arange(5) % 3
    torch.testing.assert_close(
        SoftenedLoss(softness=0.2)(logits, target),
        torch.nn.functional.cross_entropy(logits, target, label_smoothing=0.2),
    )


@pytest.mark.parametrize("name", LOSSES)
def test_life_of_an_own_loss(name, tiny_bert, tmp_path):
    loss, grid = LOSSES[name]
    assert clone(loss).get_params() == pickle.loads(pickle.dumps(loss)).get_params()
    X, y = easy_texts(12)
    classifier = DiceTextClassifier(
        tiny_bert, loss=loss, max_epochs=1, precision="fp32", random_state=0, verbose=0
    )
    search = GridSearchCV(classifier, grid, cv=2).fit(X, y)
    best = search.best_estimator_
    assert type(best.loss_) is type(loss)
    best.save_pretrained(tmp_path / "saved")
    loaded = load_pretrained(tmp_path / "saved")
    assert repr(loaded.loss_) == repr(best.loss_)
    np.testing.assert_array_equal(loaded.decision_function(X), best.decision_function(X))
