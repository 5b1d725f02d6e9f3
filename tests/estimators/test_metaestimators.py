"""What scikit-learn's tools do with what is ours: labels, weights, questions.

That they work at all is in test_sklearn_table.
"""

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdice import DiceSpanExtractor, DiceTextClassifier

from ..corpora import easy_labels
from .test_span import easy_questions

FAST = {"max_epochs": 1, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


def test_several_labels(tiny_bert):
    X, Y = easy_labels(24)
    estimator = DiceTextClassifier(tiny_bert, **FAST)
    assert cross_val_score(estimator, X, Y, cv=2).shape == (2,)
    assert cross_val_predict(estimator, X, Y, cv=2).shape == Y.shape
    search = GridSearchCV(estimator, {"loss": ["ce", "dice"]}, cv=2, scoring="f1_micro").fit(X, Y)
    assert search.predict(X).shape == Y.shape


def test_weights_are_routed_to_an_extractor(tiny_bert):
    X, y = easy_questions(24, unanswerable=0.3)
    extractor = DiceSpanExtractor(tiny_bert, **FAST)
    with sklearn.config_context(enable_metadata_routing=True):
        extractor.set_fit_request(sample_weight=True)
        pipeline = Pipeline([("same", FunctionTransformer()), ("answer", extractor)])
        pipeline.fit(X, y, sample_weight=np.arange(24) % 2)
        without = clone(extractor).fit(X[1::2], y[1::2])
    got = pipeline["answer"].no_answer_score(X)
    np.testing.assert_allclose(got, without.no_answer_score(X), atol=1e-4)
    assert pipeline.set_params(answer__gamma=2.0)["answer"].gamma == 2.0
