"""Fleets in which hardly anybody can be ruled out beforehand, for bench_allocation.py and for tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fedwave.allocation import AllocationProblem


def hard_families(base: AllocationProblem, seed: int = 0) -> Iterator[tuple[str, AllocationProblem]]:
    """Yield named variants of a problem of Table III: a larger contribution goes with a weaker channel."""
    rng = np.random.default_rng(1000 + seed)
    n, num_blocks = base.num_devices, base.num_blocks
    order = rng.permutation(n)
    rising, falling = np.sort(rng.uniform(0, 10, n))[order], np.sort(rng.uniform(0.1, 1, n))[::-1][order]
    power = rng.uniform(0, 1, n)
    equal = replace(base, contribution=rising, channel_gain=falling, max_power_w=1.0)
    opposed = replace(equal, max_power_w=power)
    yield "opposed, equal powers", equal
    yield "opposed, random powers", opposed
    fading = rng.exponential(1.0, (n, num_blocks))
    yield "opposed, gains per pair", replace(opposed, channel_gain=falling[:, None] * fading)
    yield "opposed, energy limits", replace(opposed, max_energy_j=rng.uniform(0.5, 5.0, n))
    tail = np.sort(3.0 * (1.0 + rng.pareto(1.2, n)))[order]
    yield (
        "heavy tails",
        replace(
            opposed, contribution=tail, channel_gain=np.sort(0.5 * rng.lognormal(0.0, 1.0, n))[::-1][order]
        ),
    )
    yield "equal contributions", replace(base, contribution=np.full(n, 5.0), max_power_w=power)
