"""Random, Sec. VII: blocks, powers and CPU frequencies uniformly from their feasible regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedwave.allocation.cpu_frequency import random_cpu_frequencies
from fedwave.allocation.greedy import allocate_on_blocks, draw_blocks
from fedwave.allocation.limits import snr_cap, snr_floor
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.selection_rule import choose_devices, need_rng
from fedwave.allocation.solution import Allocation
from fedwave.units import IntArray


def allocate_random(
    problem: AllocationProblem,
    *,
    rng: np.random.Generator | None = None,
    selected: IntArray | Sequence[int] | None = None,
    num_selected: int | None = None,
    selection: str = "contribution",
) -> Allocation:
    """Return the Random allocation of Sec. VII for the selected devices.

    With selection="contribution" this is NUFM-Random of Fig. 4, with "uniform" RU-Random. All devices
    compute, so all draw a CPU frequency from (0, nu_max]; powers come from (0, p_max], cut to the part
    that meets the hard limits. A device for which that part is empty does not upload, and the status is
    INFEASIBLE.
    """
    device = choose_devices(
        problem, selected=selected, num_selected=num_selected, selection=selection, rng=rng
    )
    generator = need_rng(rng, 'method "random"')
    block = draw_blocks(problem, device.size, rng=generator)
    cap, floor = snr_cap(problem, device, block), snr_floor(problem)
    share = 1.0 - generator.random(device.size)  # in (0, 1]: power 0 would never finish
    # Power is proportional to SNR on a given block, so a uniform SNR is a uniform power.
    lowest = np.minimum(floor, cap)
    return allocate_on_blocks(
        problem,
        method="random",
        device=device,
        block=block,
        snr=np.where(cap > 0, lowest + share * (cap - lowest), 0.0),
        cpu=random_cpu_frequencies(problem, rng=generator),
    )
