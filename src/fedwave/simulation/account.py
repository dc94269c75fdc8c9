"""What a run of anybody's would cost over a cell: messages, bytes and operations in, seconds and joules out.

No model and no trainer are needed: a table says who was sent how many bytes, computed how many operations and
sent how many bytes in each round. The arithmetic is that of ``fedwave run``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from fedwave.errors import ProblemError
from fedwave.server import RoundCosts
from fedwave.simulation.round_account import Timeline, round_costs
from fedwave.units import FloatArray, IntArray, carbon_g
from fedwave.wireless.cell import Cell
from fedwave.wireless.link import compute_delay_s
from fedwave.wireless.phases import ReportPhase, broadcast_delay_s, report_phase, upload_phase
from fedwave.wireless.terms import ChannelDraw

PHASES = ("downlink", "compute", "report", "upload", "idle")


@dataclass(frozen=True, kw_only=True, eq=False)
class Messages:
    """One entry for each device that took part in a round, in any order; NaN where nothing was decided.

    A device without an entry in a round was not asked. What was not decided is: full power, full frequency,
    and blocks by the least sum of upload times.
    """

    round_index: IntArray
    device: IntArray
    download_bytes: FloatArray  # the global model, as it comes down
    work: FloatArray  # multiply-adds; samples in a cell whose fleet has cycles_per_sample
    report_bytes: FloatArray
    upload_bytes: FloatArray
    block: FloatArray
    transmit_power_w: FloatArray
    cpu_frequency_hz: FloatArray

    def rounds(self) -> Iterator[tuple[int, Messages]]:
        """Yield each round with its own entries, by device."""
        for round_index in np.unique(self.round_index).tolist():
            own = np.flatnonzero(self.round_index == round_index)
            own = own[np.argsort(self.device[own], kind="stable")]
            yield round_index, Messages(**{name: values[own] for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class Account:
    """The cost of each round, and of all of them."""

    round_index: list[int]
    costs: list[RoundCosts]
    carbon_intensity_g_per_kwh: float | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def delay_s(self) -> float:
        """Seconds of all rounds."""
        return sum(one.delay_s for one in self.costs)

    @property
    def energy_j(self) -> float:
        """Joules of all devices in all rounds."""
        return sum(one.energy_j for one in self.costs)

    @property
    def carbon_g(self) -> float | None:
        """Grams of CO2 of these joules; None where nobody said what they are worth."""
        intensity = self.carbon_intensity_g_per_kwh
        return None if intensity is None else carbon_g(self.energy_j, intensity)

    @property
    def device_energy_j(self) -> FloatArray:
        """Joules of each device of the cell."""
        return np.asarray(np.sum([one.device_energy_j for one in self.costs], axis=0))

    def rows(self) -> list[dict[str, float]]:
        """Return a row for each round: seconds, joules by phase and in all, grams of CO2 if asked for."""
        found = []
        for round_index, one in zip(self.round_index, self.costs, strict=True):
            row = {"round": round_index, "delay_s": one.delay_s}
            row |= {f"{phase}_energy_j": float(getattr(one, f"{phase}_energy_j").sum()) for phase in PHASES}
            row["energy_j"] = one.energy_j
            if self.carbon_intensity_g_per_kwh is not None:
                row["carbon_g"] = carbon_g(one.energy_j, self.carbon_intensity_g_per_kwh)
            found.append(row)
        return found


def account(cell: Cell, messages: Messages) -> Account:
    """Return what these messages and operations cost over a cell, Eq. (23)-(31).

    Build the cell with ``operations_per_sample=1.0``, so that its fleet has cycles for each unit of work. A
    round is broadcast, computing, reports, uploads; more uploads than blocks take turns in the order of
    devices, each as long as its slowest. The table says who sent, so nobody drops out.
    """
    if len(messages.device) == 0:
        raise ProblemError("the table has no messages, so nothing can be accounted. Give at least one row.")
    if messages.device.max() >= cell.num_devices:
        raise ProblemError(
            f"the table has device {messages.device.max()}, but the cell has {cell.num_devices} devices, "
            "counted from 0. Give it more."
        )
    if cell.config.access != "one-block" or cell.config.work_conserving:
        given = f'access = "{cell.config.access}"' if cell.config.access != "one-block" else "work_conserving"
        raise ProblemError(
            f"messages of others are accounted with one block each, got cell.{given}. Leave it out."
        )
    warnings: list[str] = []
    if cell.config.losses.dropout_probability > 0.0:
        warnings.append("losses.dropout_probability is not drawn: the table says who sent.")
    round_index, costs = [], []
    for k, own in messages.rounds():
        round_index.append(k)
        costs.append(_round(cell, k, own, warnings))
    return Account(round_index, costs, cell.config.carbon_intensity_g_per_kwh, warnings)


def _round(cell: Cell, round_index: int, own: Messages, warnings: list[str]) -> RoundCosts:
    """Return what one round costs."""
    if len(np.unique(own.device)) < len(own.device):
        raise ProblemError(
            f"round {round_index} has a device twice. Add up its bytes and operations: one row for each."
        )
    fleet, channel = cell.fleet, cell.terms.on_all_blocks(cell.draw(round_index))
    workload = _spread(cell, own, own.work) * fleet.cycles_per_sample
    power_w = _spread(cell, own, own.transmit_power_w, otherwise=fleet.max_power_w)
    frequency_hz = _spread(cell, own, own.cpu_frequency_hz, otherwise=fleet.max_frequency_hz)
    listens = _spread(cell, own, own.download_bytes) > 0
    terms = replace(cell.terms, report_bits=8.0 * float(own.report_bytes.max()))
    start_s, time_s = _slots(cell, round_index, own, channel, power_w, warnings)
    reporting = ReportPhase.skipped(cell.num_devices)
    if terms.report_bits > 0.0:
        reporting = report_phase(
            terms, fleet.max_power_w, channel, device_index=own.device[own.report_bytes > 0]
        )
    timeline = Timeline(
        broadcast_s=broadcast_delay_s(
            terms,
            channel,
            listeners=np.flatnonzero(listens),
            model_bits=8.0 * float(own.download_bytes.max()),
        ),
        compute_time_s=compute_delay_s(frequency_hz, workload_cycles=workload),
        reporting=reporting,
        slot_time_s=time_s,
        slot_start_s=start_s,
        deadline_s=terms.risks.deadline_s,
    )
    return round_costs(
        timeline,
        cell=cell,
        terms=terms,
        listens=listens,
        sends=np.flatnonzero(time_s > 0),
        transmit_power_w=power_w,
        cpu_frequency_hz=frequency_hz,
        workload_cycles=workload,
        idle_power_w=cell.config.idle_power_w,
    )


def _slots(
    cell: Cell,
    round_index: int,
    own: Messages,
    channel: ChannelDraw,
    power_w: FloatArray,
    warnings: list[str],
) -> tuple[FloatArray, FloatArray]:
    """Return when each device's upload begins, counted from the first's, and how long it takes; 0: none."""
    start_s, time_s = np.zeros((2, cell.num_devices))
    uploads = own.upload_bytes > 0
    devices, bits, block = own.device[uploads], 8.0 * own.upload_bytes[uploads], own.block[uploads]
    is_decided = ~np.isnan(block)
    if is_decided.any() and not is_decided.all():
        raise ProblemError(
            f"round {round_index} gives a block to some of its uploads only. Give one to each, or to none."
        )
    if is_decided.all() and len(np.unique(block)) < len(block):
        raise ProblemError(
            f"round {round_index} gives a block to two uploads. A block holds one at a time; leave blocks "
            "out, and uploads take turns."
        )
    if is_decided.any() and block.max() >= cell.num_blocks:
        raise ProblemError(
            f"round {round_index} has block {block.max():g}, but the cell has {cell.num_blocks} blocks, "
            "counted from 0. Correct it."
        )
    begins_s = 0.0
    for first in range(0, len(devices), cell.num_blocks):
        turn = slice(first, first + cell.num_blocks)
        members = devices[turn]
        chosen = (
            block[turn] if is_decided.any() else _best_blocks(cell, channel, members, bits[turn], power_w)
        )
        phase = upload_phase(
            cell.terms,
            channel,
            device_index=members,
            block=chosen.astype(np.int64),
            power_w=power_w[members],
            model_bits=1.0,
        )
        own_s = bits[turn] * phase.time_s
        if not np.isfinite(own_s).all():
            raise ProblemError(
                f"the upload of device {members[np.argmax(own_s)]} in round {round_index} never ends: it has "
                "no signal. Give it power, or leave it out."
            )
        unheard = members[own_s == 0.0]
        if unheard.size:
            warnings.append(
                f"round {round_index}: device{'s' * (unheard.size > 1)} {', '.join(map(str, unheard))} below "
                "the modem's floor: no slot, no cost."
            )
        start_s[members], time_s[members] = begins_s, own_s
        begins_s += float(own_s.max(initial=0.0))
    return start_s, time_s


def _best_blocks(
    cell: Cell, channel: ChannelDraw, members: IntArray, bits: FloatArray, power_w: FloatArray
) -> IntArray:
    """Return the blocks with the least sum of upload times, one for each of the devices."""
    noise_w = channel.interference_w + cell.noise_w
    gain = channel.channel_gain[members]
    snr = power_w[members, np.newaxis] * (gain[:, np.newaxis] if gain.ndim == 1 else gain) / noise_w
    efficiency = cell.rate_model.spectral_efficiency(snr)
    reachable = efficiency > 0.0
    time_s = np.divide(bits[:, np.newaxis], efficiency, out=np.zeros_like(snr), where=reachable)
    time_s[~reachable] = 10.0 * (1.0 + time_s.max(initial=0.0)) * len(members)  # the last resort
    return np.asarray(linear_sum_assignment(time_s)[1], dtype=np.int64)


def _spread(cell: Cell, own: Messages, values: FloatArray, otherwise: FloatArray | float = 0.0) -> FloatArray:
    """Return a column of the round as one of all devices; what is NaN or missing is as otherwise."""
    full = np.array(np.broadcast_to(np.asarray(otherwise, dtype=np.float64), cell.num_devices))
    is_given = ~np.isnan(values)
    full[own.device[is_given]] = values[is_given]
    return full
