"""What an evaluation is summarised to."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.devices.base import HeldOutResult
from fedwave.learning.tasks import Classification


def test_the_pooled_metric_weighs_devices_by_their_samples() -> None:
    result = HeldOutResult(
        device_ids=np.array([1, 2]),
        num_query=np.array([1, 3]),
        loss=np.array([1.0, 3.0]),
        metric=np.array([1.0, 1 / 3]),
        measured=Classification.metric,
    )
    assert result.mean_metric == pytest.approx(2 / 3)
    assert result.pooled_metric == pytest.approx(2 / 4)
    assert result.mean_loss == 2.0
