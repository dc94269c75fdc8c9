"""Losses and norms that are not finite are told with round, device and numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedwave.devices.base import HeldOutResult
from fedwave.devices.divergence import require_finite_evaluation, require_finite_model, require_finite_reports
from fedwave.errors import DivergenceError
from fedwave.learning.tasks import Classification

ADVICE = "Lower algorithm.inner_lr or algorithm.meta_lr; the last good checkpoint is kept."
IDS = np.array([30, 10, 20])
NORMS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_device_with_a_loss_or_norm_that_is_not_finite_is_named(bad: float) -> None:
    require_finite_reports(3, IDS, NORMS, np.ones(3))
    with pytest.raises(DivergenceError) as caught:
        require_finite_reports(3, IDS, NORMS, np.array([1.0, bad, bad]))
    assert str(caught.value) == (
        f"the loss is not finite in round 3 on device 10, got {bad} with gradient norms [3.0, 4.0]. {ADVICE}"
    )
    for step in (0, 1):
        norms = NORMS.copy()
        norms[2, step] = bad
        with pytest.raises(DivergenceError, match="in round 0 on device 20, got 1.0 with gradient norms"):
            require_finite_reports(0, IDS, norms, np.ones(3))


def test_a_held_out_loss_that_is_not_finite_is_named() -> None:
    def result(loss: list[float]) -> HeldOutResult:
        return HeldOutResult(IDS, np.ones(3, dtype=int), np.array(loss), np.zeros(3), Classification.metric)

    require_finite_evaluation(5, result([1.0, 2.0, 3.0]))
    with pytest.raises(DivergenceError) as caught:
        require_finite_evaluation(5, result([1.0, 2.0, np.inf]))
    assert str(caught.value) == (
        f"the loss is not finite in round 5 on held-out device 20, got inf. {ADVICE}"
    )


def test_a_model_that_is_not_finite_is_named_by_its_parameter() -> None:
    finite = torch.zeros(2)
    require_finite_model(4, {"a": finite, "b": finite})
    with pytest.raises(DivergenceError, match=r"not finite after round 4: b has 2 values that overflowed"):
        require_finite_model(4, {"a": finite, "b": torch.tensor([torch.inf, 1.0, torch.nan])})
