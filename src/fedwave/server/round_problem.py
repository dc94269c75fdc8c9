"""From a cell and the devices' contributions to one round's allocation problem (P)."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.allocation import AllocationProblem
from fedwave.errors import ProblemError, require_known, shown
from fedwave.parts import signature_of
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

# Fields of a problem that follow from a cell and its channel.
_GIVEN_BY_THE_ROUND = (
    "channel_gain",
    "interference_w",
    "max_power_w",
    "workload_cycles",
    "max_frequency_hz",
    "capacitance",
    "bandwidth_hz",
    "noise_psd_w_per_hz",
)


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
        "static_power_w": fleet.static_power_w,
        "joules_per_cycle": fleet.joules_per_cycle,
        "min_snr": risks.planned_min_snr * (1.0 + PLANNING_MARGIN),
        "packet_error_waterfall": risks.packet_error_waterfall,
        "access": terms.access,
        "max_uploads": terms.max_uploads,
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
    model_bits: float | None = None,
    energy_weight: FloatArray | float | None = None,
    delay_weight: float | None = None,
    max_delay_s: float | None = None,
    max_energy_j: FloatArray | float | None = None,
    **link: Any,
) -> AllocationProblem:
    """Return problem (P) of one round of a cell, e.g. of ``load_cell("paper", num_devices=100, seed=0)``.

    ``num_samples`` is D of every device, or one number for all. Channel, modem, radio and risks are those
    that training over this cell would meet in that round, when all devices compute and reports are free.
    In a cell with units ``model_bits`` must be given, and weights are by default those that ``fedwave cell``
    advises for contributions of about 1; in a normalised cell, as in the paper, all three are 1. ``link`` are
    further fields of ``AllocationProblem``, from ``rate`` on; they replace the cell's own.
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
    require_known(link, _further_fields(), what="problem_of_cell")
    model_bits, weights = _size_and_weights(
        cell, model_bits, {"energy_weight": energy_weight, "delay_weight": delay_weight}
    )
    samples = np.broadcast_to(np.asarray(num_samples, dtype=np.int64), worth.shape)
    return round_problem(
        contribution=worth,
        channel=cell.draw(round_index),
        fleet=cell.fleet,
        terms=cell.terms,
        aims=RoundAims(
            energy_weight=weights["energy_weight"],
            delay_weight=weights["delay_weight"],
            max_delay_s=max_delay_s,
            max_energy_j=max_energy_j,
        ),
        work=Work(model_bits=model_bits, num_local_steps=num_local_steps, num_samples=samples),
        **link,
    )


def _size_and_weights(
    cell: Cell, model_bits: float | None, given: dict[str, Any]
) -> tuple[float, dict[str, Any]]:
    """Return S and the weights as given, or else as fits the cell; only a cell without units has an S."""
    weights = {name: value for name, value in given.items() if value is not None}
    if cell.config.normalised:
        return 1.0 if model_bits is None else model_bits, {**dict.fromkeys(given, 1.0), **weights}
    if model_bits is None:
        raise ProblemError(
            "model_bits must be given in a cell with units, got None. It is parameters times bits per "
            "parameter: 113162 * 32 for the paper's CNN."
        )
    if len(weights) == len(given):
        return model_bits, weights
    from fedwave.wireless.describe.link_budget import link_budget  # a cell needs more than numpy

    advised = link_budget(cell, cell.draw(0), model_bits=model_bits).advised_weights(cell)
    if not advised:
        raise ProblemError(
            "energy_weight and delay_weight must be given in a cell whose median device is never heard, got "
            f"{given['energy_weight']} and {given['delay_weight']}. `fedwave cell` shows its link budget."
        )
    return model_bits, {**advised, **weights}


def _further_fields() -> list[str]:
    """Return what ``problem_of_cell`` may be given: its own arguments, and the fields that no cell has."""
    own = [name for name in signature_of(problem_of_cell).parameters if name not in ("cell", "link")]
    of_the_cell = set(signature_of(round_problem).parameters) | set(_GIVEN_BY_THE_ROUND)
    return own + [one.name for one in fields(AllocationProblem) if one.name not in {*own, *of_the_cell}]
