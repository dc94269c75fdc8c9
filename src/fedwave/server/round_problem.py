"""From a cell and the devices' contributions to one round's allocation problem (P)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.allocation import AllocationProblem
from fedwave.errors import ProblemError, shown
from fedwave.server.aims import RoundAims, Work
from fedwave.units import BoolArray, FloatArray
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.phases import broadcast_delay_s, report_phase, workload_cycles
from fedwave.wireless.terms import ChannelDraw, RadioTerms

if TYPE_CHECKING:  # a cell is read from settings, which needs more than numpy
    from fedwave.wireless.cell import Cell

# Plan for a deadline and a threshold that are harder by two billionths: the allocation may use its tolerance
# of one, and the sum of a round's phases, or an SNR taken from a power, may round to the wrong side.
PLANNING_MARGIN = 2e-9


def round_problem(
    *,
    contribution: FloatArray,
    channel: ChannelDraw,
    fleet: Fleet,
    terms: RadioTerms,
    aims: RoundAims,
    work: Work,
    computes: BoolArray | None = None,
    needs_reports: bool = True,
    **link: Any,
) -> AllocationProblem:
    """Return problem (P) of one round: a fleet, the channel it meets, and what its updates are worth.

    ``contribution`` is on the scale of the aims already. ``computes`` says who does; by default all. Uploads
    wait for the reports of all that compute, unless nobody ``needs_reports``. ``link`` are further fields of
    ``AllocationProblem``, from ``rate`` on; they replace those that follow from the terms.
    """
    risks = terms.risks
    own = {
        "rate": terms.rate,
        "radio": terms.radio,
        "min_frequency_hz": fleet.min_frequency_hz,
        "min_snr": risks.planned_min_snr * (1.0 + PLANNING_MARGIN),
        "packet_error_waterfall": risks.packet_error_waterfall,
    }
    if risks.deadline_s is not None:
        active = np.arange(fleet.num_devices) if computes is None else np.flatnonzero(computes)
        before_uploads_s = broadcast_delay_s(terms, channel, listeners=active, model_bits=work.model_bits)
        if needs_reports:
            phase = report_phase(terms, fleet.max_power_w, channel, device_index=active)
            before_uploads_s += phase.duration_s
        own["max_round_delay_s"] = risks.deadline_s * (1.0 - PLANNING_MARGIN)
        own["fixed_delay_s"] = before_uploads_s
    return AllocationProblem(
        contribution=contribution,
        channel_gain=channel.channel_gain,
        interference_w=channel.interference_w,
        max_power_w=fleet.max_power_w,
        workload_cycles=workload_cycles(
            fleet, num_samples=work.num_samples, num_local_steps=work.num_local_steps, computes=computes
        ),
        max_frequency_hz=fleet.max_frequency_hz,
        capacitance=fleet.capacitance,
        model_bits=work.model_bits,
        bandwidth_hz=terms.bandwidth_hz,
        noise_psd_w_per_hz=terms.noise_psd_w_per_hz,
        energy_weight=aims.energy_weight,
        delay_weight=aims.delay_weight,
        max_delay_s=aims.max_delay_s,
        max_energy_j=aims.max_energy_j,
        **{**own, **link},
    )


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
    max_energy_j: FloatArray | float | None = None,
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
    return round_problem(
        contribution=worth,
        channel=cell.draw(round_index),
        fleet=cell.fleet,
        terms=cell.terms,
        aims=RoundAims(
            energy_weight=energy_weight,
            delay_weight=delay_weight,
            max_delay_s=max_delay_s,
            max_energy_j=max_energy_j,
        ),
        work=Work(model_bits=model_bits, num_local_steps=num_local_steps, num_samples=samples),
        **link,
    )
