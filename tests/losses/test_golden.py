"""Golden values, in float64 to 1e-9 and in float32 to 1e-5.

They are float64 closed forms, cross-checked against autograd; ``grad`` is the gradient of the mean.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from skdice import losses

CASES = json.loads(Path(__file__).with_name("golden_values.json").read_text())
IDS = [case["id"] for case in CASES]


def make(case, **changes):
    return getattr(losses, case["loss"])(**{**case["params"], **changes})


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_value_and_gradient(case, dtype, tolerance):
    logits = torch.tensor(case["logits"], dtype=dtype, requires_grad=True)
    value = make(case)(logits, torch.tensor(case["target"]))
    value.backward()
    assert value.dtype == dtype
    np.testing.assert_allclose(value.item(), case["value"], rtol=0, atol=tolerance)
    if case["grad"] is not None:
        np.testing.assert_allclose(logits.grad, case["grad"], rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["none"]], ids=lambda case: case["id"]
)
def test_item_losses(case):
    logits = torch.tensor(case["logits"], dtype=torch.float64)
    items = make(case, reduction="none")(logits, torch.tensor(case["target"]))
    np.testing.assert_allclose(items, case["none"], rtol=0, atol=1e-9)


def test_probabilities_of_issue_2_go_in_as_log_p():
    # The four given probabilities sum to 0.99: the rest is a fifth class, left out of the sums.
    p = torch.tensor(
        [[0.9, 0.03, 0.03, 0.03, 0.01], [0.03, 0.9, 0.03, 0.03, 0.01]], dtype=torch.float64
    )
    loss = losses.SelfAdjustingDiceLoss(
        alpha=0.01, level="example", average="sum", background=4, reduction="none"
    )
    np.testing.assert_allclose(
        loss(p.log(), torch.tensor([0, 1])), [0.007930027358622915] * 2, rtol=0, atol=1e-9
    )
