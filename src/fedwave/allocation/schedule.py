"""An allocation as a picture of the band over time: who sends when, over which hertz, at what power."""

from __future__ import annotations

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, account
from fedwave.errors import ProblemError
from fedwave.units import IntArray
from fedwave.wireless.schedule import UploadSchedule, hand_on_blocks, schedule_of


def upload_schedule(
    problem: AllocationProblem, allocation: Allocation, devices: IntArray | None = None
) -> UploadSchedule:
    """Return who sends when over which hertz, one piece for each upload, counted from the first one's start.

    Shares of the band lie side by side in the order of the devices; blocks and turns are where they are.
    ``devices`` leaves out all others; None: nobody.
    """
    costs, block_hz = account(problem, allocation), problem.bandwidth_hz
    who = allocation.selected if devices is None else devices
    width = allocation.bandwidth_of_device_hz
    held = np.full(who.size, block_hz) if width is None else width[who]
    first_hz = allocation.block_of_device[who] * block_hz
    if problem.access == "shared-band":
        first_hz = np.cumsum(held) - held
    return schedule_of(
        device=who,
        first_hz=first_hz.astype(np.float64),
        width_hz=held,
        start_s=costs.upload_start_s[who],
        time_s=costs.upload_delay_s[who],
        power_w=allocation.transmit_power_w[who],
    )


def handed_on(problem: AllocationProblem, allocation: Allocation) -> UploadSchedule:
    """Return the schedule of an allocation of whole blocks, those that fall free going on to others.

    Blocks must be alike: problems with another access than one-block have no others.
    """
    if problem.is_frequency_selective or np.ptp(problem.block_noise_w) > 0.0:
        raise ProblemError(
            "blocks that go on to others must be alike, got gains or interference that differ between them. "
            "Leave out work_conserving."
        )
    width, who = allocation.bandwidth_of_device_hz, allocation.selected
    held = np.ones(who.size) if width is None else width[who] / problem.bandwidth_hz
    return hand_on_blocks(
        device=who,
        num_held=np.rint(held).astype(np.int64),
        power_w=allocation.transmit_power_w[who],
        max_power_w=problem.max_power_w[who],
        gain=problem.channel_gain[who],
        block_noise_w=float(problem.block_noise_w[0]),
        bandwidth_hz=problem.bandwidth_hz,
        num_blocks=problem.num_blocks,
        model_bits=problem.taking(allocation.offer_of_device).bits_of(who),
        rate=problem.rate,
        min_snr=problem.min_snr,
        first_block=allocation.block_of_device[who],
    )
