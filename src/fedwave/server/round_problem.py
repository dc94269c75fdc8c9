"""From a cell and the devices' contributions to one round's allocation problem (P)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.allocation import AllocationProblem
from fedwave.errors import ProblemError, shown
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.downlink import Downlink
from fedwave.wireless.fleet import Fleet

if TYPE_CHECKING:  # a cell is read from settings, which needs more than numpy
    from fedwave.wireless.cell import Cell

# Plan for a deadline and a threshold that are harder by two billionths: the allocation may use its tolerance
# of one, and the sum of a round's phases, or an SNR taken from a power, may round to the wrong side.
HARDER = 2e-9


def round_problem(
    *,
    contribution: FloatArray,
    channel: ChannelDraw,
    fleet: Fleet,
    workload_cycles: FloatArray,
    bandwidth_hz: float,
    noise_psd_w_per_hz: float,
    model_bits: float,
    energy_weight: float,
    delay_weight: float,
    max_delay_s: float | None = None,
    max_energy_j: float | None = None,
    **link: Any,
) -> AllocationProblem:
    """Return problem (P) of one round: a fleet, the channel it meets, and what its updates are worth.

    ``link`` are further fields of ``AllocationProblem``, from ``rate`` on.
    """
    return AllocationProblem(
        contribution=contribution,
        channel_gain=channel.channel_gain,
        interference_w=channel.interference_w,
        max_power_w=fleet.max_power_w,
        workload_cycles=workload_cycles,
        max_frequency_hz=fleet.max_frequency_hz,
        capacitance=fleet.capacitance,
        model_bits=model_bits,
        bandwidth_hz=bandwidth_hz,
        noise_psd_w_per_hz=noise_psd_w_per_hz,
        energy_weight=energy_weight,
        delay_weight=delay_weight,
        max_delay_s=max_delay_s,
        max_energy_j=max_energy_j,
        **link,
    )


def planned_risks(
    *,
    min_snr: float,
    packet_error_waterfall: float | None,
    deadline_s: float | None,
    fixed_delay_s: float,
) -> dict[str, Any]:
    """Return the fields of ``AllocationProblem`` with which a plan keeps clear of losses.

    ``min_snr`` is the threshold with its margin, ``fixed_delay_s`` what else the deadline must hold.
    """
    return {
        "min_snr": min_snr * (1.0 + HARDER),
        "packet_error_waterfall": packet_error_waterfall,
        "max_round_delay_s": None if deadline_s is None else deadline_s * (1.0 - HARDER),
        "fixed_delay_s": 0.0 if deadline_s is None else fixed_delay_s,
    }


def broadcast_delay_s(
    downlink: Downlink | None, channel: ChannelDraw, *, listeners: IntArray, model_bits: float
) -> float:
    """Return how long the global model takes to come down to these devices; 0 if that is free."""
    if downlink is None:
        return 0.0
    return downlink.broadcast_time_s(channel.channel_gain, listeners=listeners, model_bits=model_bits)


def round_workload_cycles(
    fleet: Fleet, num_samples: IntArray, num_local_steps: int, computes: BoolArray | None = None
) -> FloatArray:
    """Return tau c D of Eq. (23), (24), each device's work in a round; 0 for those that do not compute."""
    share = np.ones(fleet.num_devices) if computes is None else computes.astype(np.float64)
    return share * num_local_steps * fleet.cycles_per_sample * num_samples


def problem_of_cell(
    cell: Cell,
    contribution: ArrayLike,
    *,
    round_index: int = 0,
    num_samples: ArrayLike = 10,
    num_local_steps: int = 1,
    model_bits: float = 1.0,
    energy_weight: float = 1.0,
    delay_weight: float = 1.0,
    max_delay_s: float | None = None,
    max_energy_j: float | None = None,
    **link: Any,
) -> AllocationProblem:
    """Return problem (P) of one round of a cell, e.g. of ``load_cell("paper", num_devices=100, seed=0)``.

    ``num_samples`` is D of every device, or one number for all. Channel, modem, radio and risks are those
    that training over this cell would meet in that round, when all devices compute and reports are free.
    ``link`` are further fields of ``AllocationProblem``, from ``rate`` on; they replace the cell's own.
    """
    if not hasattr(cell, "fleet"):  # the class itself needs more than numpy
        raise TypeError(
            f'cell must be a cell, got {shown(cell)}. Make one with load_cell("paper", num_devices=100).'
        )
    try:
        worth = np.asarray(contribution, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError(f"contribution must hold numbers only, got {shown(contribution)}.") from None
    if worth.shape != (cell.num_devices,):
        raise ProblemError(
            f"contribution must have one entry for each of the cell's {cell.num_devices} devices, got shape "
            f"{worth.shape}. Build the cell with as many devices."
        )
    samples = np.broadcast_to(np.asarray(num_samples, dtype=np.int64), worth.shape)
    channel = cell.draw(round_index)
    return round_problem(
        contribution=worth,
        channel=channel,
        fleet=cell.fleet,
        workload_cycles=round_workload_cycles(cell.fleet, samples, num_local_steps),
        bandwidth_hz=cell.bandwidth_hz,
        noise_psd_w_per_hz=cell.noise_psd_w_per_hz,
        model_bits=model_bits,
        energy_weight=energy_weight,
        delay_weight=delay_weight,
        max_delay_s=max_delay_s,
        max_energy_j=max_energy_j,
        **{**_own_link(cell, channel, model_bits), **link},
    )


def _own_link(cell: Cell, channel: ChannelDraw, model_bits: float) -> dict[str, Any]:
    risks = cell.upload_risks
    return {
        "rate": cell.rate_model,
        "radio": cell.radio_power,
        "min_frequency_hz": cell.fleet.min_frequency_hz,
        **planned_risks(
            min_snr=risks.planned_min_snr,
            packet_error_waterfall=risks.packet_error_waterfall,
            deadline_s=risks.deadline_s,
            fixed_delay_s=broadcast_delay_s(
                cell.downlink, channel, listeners=np.arange(cell.num_devices), model_bits=model_bits
            ),
        ),
    }
