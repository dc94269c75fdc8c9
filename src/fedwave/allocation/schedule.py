"""An allocation as a picture of the band over time: who sends when, over which hertz, at what power."""

from __future__ import annotations

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, account
from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.rate import RateModel
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
    """Return the schedule of an allocation of whole blocks, those that fall free going on to others."""
    who = allocation.selected
    return hand_on(
        allocation,
        who,
        max_power_w=problem.max_power_w,
        channel_gain=problem.channel_gain,
        block_noise_w=problem.block_noise_w,
        bandwidth_hz=problem.bandwidth_hz,
        num_blocks=problem.num_blocks,
        model_bits=problem.taking(allocation.offer_of_device).bits_of(who),
        rate=problem.rate,
        min_snr=problem.min_snr,
    )


def hand_on(
    allocation: Allocation,
    who: IntArray,
    *,
    max_power_w: FloatArray,
    channel_gain: FloatArray,
    block_noise_w: FloatArray,
    bandwidth_hz: float,
    num_blocks: int,
    model_bits: float | FloatArray,
    rate: RateModel,
    min_snr: float,
) -> UploadSchedule:
    """Return the schedule of these devices over the links that there are, which a plan may know otherwise.

    Blocks must be alike: problems with another access than one-block have no others.
    """
    if channel_gain.ndim != 1 or np.ptp(block_noise_w) > 0.0:
        raise ProblemError(
            "blocks that go on to others must be alike, got gains or interference that differ between them. "
            "Average them, as the 3GPP presets do, or leave out work_conserving."
        )
    width = allocation.bandwidth_of_device_hz
    held = np.ones(who.size) if width is None else width[who] / bandwidth_hz
    return hand_on_blocks(
        device=who,
        num_held=np.rint(held).astype(np.int64),
        power_w=allocation.transmit_power_w[who],
        max_power_w=max_power_w[who],
        gain=channel_gain[who],
        block_noise_w=float(block_noise_w[0]),
        bandwidth_hz=bandwidth_hz,
        num_blocks=num_blocks,
        model_bits=model_bits,
        rate=rate,
        min_snr=min_snr,
        first_block=allocation.block_of_device[who],
    )
