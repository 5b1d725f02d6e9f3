"""``model`` may be a saved estimator: a fit goes on from it, head included."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone

from ..corpora import easy_texts
from ..io.conftest import CASES, make


@pytest.mark.parametrize("case", CASES)
def test_all_weights_go_on(case, tiny_bert, tmp_path):
    first, *rows = make(case, tiny_bert, precision="fp32")
    first.fit(*rows).save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*was trained for")
        still = clone(first).set_params(model=tmp_path, lr=1e-30).fit(*rows)
    weights = still.net_.module_.state_dict()
    for name, weight in first.net_.module_.state_dict().items():
        assert torch.equal(weights[name], weight), name


def test_no_warning_for_a_base_model(tiny_bert, tmp_path):
    classifier, *rows = make("texts", tiny_bert)
    classifier.fit(*rows).save_pretrained(tmp_path)
    tagger, *rows = make("tagger", tiny_bert)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*was trained for")
        tagger.fit(*rows)
        # Another task takes the encoder alone.
        tagger.set_params(model=tmp_path).fit(*rows)


@pytest.mark.parametrize(
    "names, start", [(["a", "b"], "that head, class by class"), (["a", "b", "c"], "a new head")]
)
def test_other_classes(names, start, tiny_bert, tmp_path):
    X, y = easy_texts(18)
    first = make("texts", tiny_bert)[0].fit(X, y)
    first.save_pretrained(tmp_path)
    other = clone(first).set_params(model=tmp_path, lr=1e-30)
    message = rf"for the classes 'person', 'place'; those of this fit are 'a', 'b'.*from {start}"
    with pytest.warns(UserWarning, match=message):
        other.fit(X, np.resize(names, 18))
    head = "transformer.classifier.bias"
    kept = other.net_.module_.state_dict()[head], first.net_.module_.state_dict()[head]
    assert torch.equal(*kept) == (start != "a new head")
