"""What is proven by the bounds of nodes, by hand."""

from __future__ import annotations

import pytest

from fedwave.allocation.access.proof import Gap, Proof


def test_a_node_is_closed_within_a_share_of_the_objective() -> None:
    """(P) is the uploads' value less what computing costs: 10 - 30 = -20, and a tenth of that is 2."""
    gap = Gap(relative=0.1, compute_cost=30.0, scale=100.0)
    assert gap.allowed(10.0) == pytest.approx(12.0)
    assert gap.allowed(30.0) == pytest.approx(30.0 + 1e-11, abs=1e-12)  # rounding alone, of sums of 100


@pytest.mark.parametrize(
    ("bounds", "is_closed", "is_exact"),
    [
        ([], True, True),
        ([9.0], True, True),
        ([10.5], True, False),
        ([11.9, 3.0], True, False),
        ([12.1], False, False),
    ],
)
def test_the_largest_bound_counts(bounds: list[float], is_closed: bool, is_exact: bool) -> None:
    gap = Gap(relative=0.1, compute_cost=30.0, scale=100.0)
    proof = Proof.of(10.0, bounds, gap, num_steps=3)
    assert proof.upper_bound == pytest.approx(max([10.0, *bounds]))
    assert proof.upper_bound > max([10.0, *bounds])  # a little for rounding
    assert (proof.is_closed, proof.is_exact) == (is_closed, is_exact)
    assert (proof.value, proof.num_steps) == (10.0, 3)
    assert type(proof.upper_bound) is float


def test_without_a_step_nothing_is_added() -> None:
    gap = Gap(relative=1e-6, compute_cost=0.0, scale=5.0)
    assert Proof.of(0.0, [], gap, num_steps=0).upper_bound == 0.0
