"""Uploads of different sizes and several offers per device: scipy, and every combination of offers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, Status, account, allocate, evaluate, total_cost, violations
from fedwave.allocation.access.offers import OfferRows
from fedwave.errors import ProblemError
from tests.allocation.access.access_oracles import alike_problem, best_areas, best_blocks

OTHERS = ("shared-band", "blocks", "tdma")
FEATURES = [(), ("circuit",), ("energy", "cap"), ("deadline",), ("round",), ("few", "amplifier"), ("floor",)]
PROVEN = (Status.OPTIMAL, Status.GAP_REACHED)


def offered(access: str, seed: int, *, n: int, num_offers: int) -> AllocationProblem:
    """Return a random problem in which smaller offers contribute less, by no common rule."""
    rng = np.random.default_rng([seed, 41])
    problem = alike_problem(rng, access, n=n, m=3, features=FEATURES[seed % len(FEATURES)])
    share = rng.uniform(0.2, 0.9, (n, num_offers))
    return replace(
        problem,
        contribution=problem.contribution + 1.0,
        device_bits=problem.model_bits * rng.uniform(0.5, 2.0, n),
        offer_contribution=problem.contribution[:, None] * share + 1.0,
        offer_bits=problem.model_bits * rng.uniform(0.1, 0.9, (n, num_offers)),
    )


def single(problem: AllocationProblem, offer: tuple[int, ...]) -> AllocationProblem:
    """Return the problem with one offer each, written down by hand."""
    assert problem.device_bits is not None
    assert problem.offer_contribution is not None
    assert problem.offer_bits is not None
    u = [
        problem.contribution[i] if o == 0 else problem.offer_contribution[i, o - 1]
        for i, o in enumerate(offer)
    ]
    bits = [problem.device_bits[i] if o == 0 else problem.offer_bits[i, o - 1] for i, o in enumerate(offer)]
    return replace(
        problem,
        contribution=np.array(u),
        device_bits=np.array(bits),
        offer_contribution=None,
        offer_bits=None,
    )


@pytest.mark.parametrize("access", OTHERS)
@pytest.mark.parametrize("seed", range(7))
def test_with_sizes_of_their_own_nothing_is_better(access: str, seed: int) -> None:
    problem = single(offered(access, seed, n=3, num_offers=1), (0, 0, 0))
    found = allocate(problem)
    oracle = best_blocks(problem, points=25) if access == "blocks" else best_areas(problem)
    assert found.status in PROVEN
    assert violations(problem, found) == ()
    assert total_cost(problem, found) == pytest.approx(found.objective, rel=1e-9, abs=1e-9)
    assert oracle <= found.upper_bound + 1e-6 * (1 + abs(oracle))
    if access != "blocks":  # whose grid need not hold the best delay
        assert found.objective >= oracle - 1e-6 * (1 + abs(oracle))
        assert found.objective <= oracle + 1e-3 * (1 + abs(oracle))


@pytest.mark.parametrize("access", OTHERS)
@pytest.mark.parametrize("seed", range(7))
def test_of_several_offers_the_best_combination_is_taken(access: str, seed: int) -> None:
    """All 27 combinations, each with its own certified optimum."""
    problem = offered(access, seed, n=3, num_offers=2)
    found = allocate(problem)
    others = [allocate(single(problem, offer)) for offer in itertools.product(range(3), repeat=3)]
    best = max(one.objective for one in others)
    assert found.status in PROVEN
    assert found.objective == pytest.approx(best, rel=3e-6, abs=1e-8)
    assert found.upper_bound >= best - 1e-9 * (1 + abs(best))
    assert violations(problem, found) == ()
    assert total_cost(problem, found) == pytest.approx(found.objective, rel=1e-9, abs=1e-9)
    offer = found.offer_of_device
    assert offer is not None
    assert ((offer >= 0) == (found.block_of_device >= 0)).all()
    same = single(problem, tuple(int(max(o, 0)) for o in offer))
    assert total_cost(same, replace(found, offer_of_device=None)) == total_cost(problem, found)
    assert evaluate(found, problem).objective == pytest.approx(found.objective, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("access", ["shared-band", "tdma"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_combination_of_offers_and_areas_is_better(access: str, seed: int) -> None:
    problem = offered(access, seed, n=2, num_offers=2)
    found = allocate(problem)
    best = max(best_areas(single(problem, offer)) for offer in itertools.product(range(3), repeat=2))
    assert best <= found.upper_bound + 1e-6 * (1 + abs(best))
    assert found.objective >= best - 1e-6 * (1 + abs(best))


@pytest.mark.parametrize("access", OTHERS)
@pytest.mark.parametrize("seed", range(6))
def test_larger_problems_are_proven_and_bounded_by_what_has_more(access: str, seed: int) -> None:
    problem = offered(access, seed, n=20, num_offers=3)
    found = allocate(problem)
    assert found.status in PROVEN
    assert violations(problem, found) == ()
    assert problem.offer_contribution is not None
    assert problem.offer_bits is not None
    fewer = replace(
        problem, offer_contribution=problem.offer_contribution[:, :1], offer_bits=problem.offer_bits[:, :1]
    )
    assert allocate(fewer).objective <= found.upper_bound + 1e-9
    rng = np.random.default_rng(seed)
    for _ in range(5):
        some = single(problem, tuple(int(o) for o in rng.integers(0, 4, 20)))
        assert allocate(some).objective <= found.upper_bound + 1e-9


@pytest.mark.parametrize("access", OTHERS)
def test_equal_offers_and_useless_ones_change_nothing(access: str) -> None:
    problem = alike_problem(np.random.default_rng(8), access, n=6, m=3)
    plain = allocate(problem)
    same = replace(
        problem,
        offer_contribution=np.stack([problem.contribution, np.zeros(6)], axis=1),
        offer_bits=np.array([problem.model_bits, 1e-6]),
    )
    found = allocate(same)
    assert found.objective == pytest.approx(plain.objective, rel=2e-6)
    assert found.offer_of_device is not None
    assert set(found.offer_of_device) <= {-1, 0, 1}
    sized = allocate(replace(problem, device_bits=np.full(6, problem.model_bits)))
    assert sized.objective == pytest.approx(plain.objective, rel=2e-6)
    assert sized.offer_of_device is None


@pytest.mark.parametrize("access", OTHERS)
def test_a_size_twice_as_large_takes_twice_as_long_at_the_same_power(access: str) -> None:
    problem = alike_problem(np.random.default_rng(1), access, n=1, m=2)
    problem = replace(problem, contribution=np.array([9.0]), delay_weight=0.3)
    double = replace(problem, device_bits=np.array([2.0 * problem.model_bits]))
    assert allocate(double).objective == pytest.approx(
        allocate(replace(problem, model_bits=2.0 * problem.model_bits)).objective, rel=1e-9
    )
    plan = allocate(problem)
    assert account(double, plan).upload_delay_s[0] == pytest.approx(
        2 * account(problem, plan).upload_delay_s[0]
    )


def test_only_those_named_may_upload_whatever_they_offer() -> None:
    problem = replace(offered("shared-band", 0, n=5, num_offers=2), contribution=np.zeros(5))
    found = allocate(problem, selected=[1, 3])
    assert set(found.selected) <= {1, 3}
    assert found.num_selected > 0
    assert found.offer_of_device is not None
    assert (found.offer_of_device[found.selected] >= 1).all()


def test_every_offer_is_a_row_with_the_values_of_its_device() -> None:
    problem = offered("blocks", 2, n=3, num_offers=2)  # n = M: the interference is no device's
    rows = OfferRows.of(problem)
    assert rows.device.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert rows.offer.tolist() == [0, 1, 2] * 3
    assert rows.problem.num_blocks == 3
    assert rows.problem.channel_gain.tolist() == np.repeat(problem.channel_gain, 3).tolist()
    assert np.asarray(rows.problem.max_energy_j).tolist() == np.repeat(problem.max_energy_j, 3).tolist()
    for row in range(9):
        one = single(problem, tuple(int(rows.offer[row]) for _ in range(3)))
        assert rows.problem.contribution[row] == one.contribution[rows.device[row]]
        assert np.asarray(rows.problem.device_bits)[row] == np.asarray(one.device_bits)[rows.device[row]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"access": "one-block"}, "needs an access in which SNRs need not be common"),
        ({"access": "one-block", "device_bits": None}, "offer_bits needs an access"),
        ({"offer_bits": None}, "go together, got offer_contribution alone"),
        ({"offer_contribution": None}, "go together, got offer_bits alone"),
        ({"offer_contribution": np.ones(3)}, r"must have shape \(3, L\), got \(3,\)"),
        ({"offer_contribution": np.ones((3, 0))}, r"must have shape \(3, L\)"),
        ({"offer_bits": np.ones((3, 4))}, r"offer_bits must have shape \(3, 2\), got \(3, 4\)"),
        ({"offer_bits": np.array([1.0, 0.0])}, "offer_bits must be > 0, got 0 at device 0"),
        ({"offer_bits": np.array([1.0, -2.0])}, "offer_bits must be >= 0, got -2"),
        ({"device_bits": np.array([1.0, 2.0, 0.0])}, "device_bits must be > 0, got 0 at device 2"),
        ({"device_bits": np.ones(4)}, r"device_bits must have shape \(3,\), got \(4,\)"),
    ],
)
def test_what_is_no_offer_is_refused_in_one_line(changes: dict[str, object], words: str) -> None:
    problem = replace(offered("shared-band", 0, n=3, num_offers=2), max_uploads=None)
    with pytest.raises(ProblemError, match=words) as refused:
        replace(problem, **changes)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


def test_a_method_that_knows_one_size_says_so() -> None:
    problem = offered("shared-band", 0, n=3, num_offers=2)
    with pytest.raises(ProblemError, match='method "threshold" must know uploads of different sizes'):
        allocate(problem, "threshold")


def test_offers_that_cannot_be_are_seen() -> None:
    problem = offered("shared-band", 0, n=3, num_offers=2)
    found = allocate(problem)
    assert "offers, but none is given" in violations(problem, replace(found, offer_of_device=None))[0]
    assert "outside 0..2" in violations(problem, replace(found, offer_of_device=np.array([3, 0, 0])))[0]
    assert "one whole number for each" in violations(problem, replace(found, offer_of_device=np.zeros(2)))[0]
    assert found.num_selected > 0
    none = np.full(3, -1)
    assert "takes offer -1" in violations(problem, replace(found, offer_of_device=none))[0]
    with pytest.raises(ProblemError, match="another problem"):
        account(replace(problem, offer_contribution=None, offer_bits=None), found)
