"""A plan's weights: one for each selected device, and those of the devices that arrived."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.server import Plan


def test_the_weights_of_those_that_arrived_are_in_their_order() -> None:
    plan = Plan(selected=np.array([2, 5, 9]), weights=np.array([1.0, 7.0, 3.0]))
    weights = plan.weights_of(np.array([2, 9]))
    assert weights is not None
    assert weights.tolist() == [1.0, 3.0]
    assert Plan(selected=np.array([2, 5])).weights_of(np.array([5])) is None


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ([1.0], r"one weight for each of the 2 selected devices, got shape \(1,\)"),
        ([1.0, 0.0], r"finite and > 0, got \[1.0, 0.0\]"),
        ([1.0, -2.0], "finite and > 0"),
        ([1.0, np.nan], "finite and > 0"),
        ([1.0, np.inf], "finite and > 0"),
    ],
)
def test_weights_that_make_no_mean_are_refused(weights: list[float], why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        Plan(selected=np.array([2, 5]), weights=np.array(weights))
