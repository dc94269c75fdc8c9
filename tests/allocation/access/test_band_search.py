"""The search over ranges and sets: how few nodes it needs where it once needed many."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave import load_cell
from fedwave.allocation import AllocationProblem, Status, allocate
from fedwave.server.round_problem import problem_of_cell
from tests.allocation.access.access_oracles import FEATURES, alike_problem


def with_features(access: str, seed: int) -> AllocationProblem:
    """Return a problem with a quarter of all features, drawn as whole corpora are."""
    rng = np.random.default_rng([seed, 77])
    features = [name for name in FEATURES if rng.random() < 0.25]
    n, m = int(rng.choice([4, 8, 15, 30, 60])), int(rng.choice([2, 4, 8, 12]))
    return alike_problem(rng, access, n=n, m=m, features=features)


def require_closed(problem: AllocationProblem, most_nodes: int) -> None:
    found = allocate(problem)
    assert found.status in (Status.OPTIMAL, Status.GAP_REACHED)
    assert found.upper_bound <= found.objective + 1e-6 * abs(found.objective) + 1e-9
    assert found.iterations <= most_nodes


@pytest.mark.parametrize("seed", [2, 17, 29, 56])
def test_slots_with_a_deadline_of_the_round_need_no_ranges_of_delays(seed: int) -> None:
    """What a slot is worth knows no delay. Cut into ranges these took 33 to 166 nodes."""
    problem = with_features("tdma", seed)
    assert problem.max_round_delay_s is not None
    require_closed(problem, 15)


@pytest.mark.parametrize("seed", range(4))
def test_who_alone_raises_the_bound_is_decided(seed: int) -> None:
    """Ranges split again and again around one indifferent upload took 45 nodes."""
    cell = load_cell("umi-3.5ghz", num_devices=50, seed=seed)
    worth = np.random.default_rng(seed).exponential(1.0, 50)
    require_closed(problem_of_cell(cell, worth, model_bits=113_162 * 32, access="shared-band"), 12)


@pytest.mark.parametrize(("seed", "most"), [(80, 80), (127, 8), (136, 8), (123, 6)])
def test_corners_that_took_hundreds_of_nodes_or_never_ended(seed: int, most: int) -> None:
    require_closed(with_features("shared-band", seed), most)
