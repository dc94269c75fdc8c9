"""A radio cell as it answers a plan: uploads that are lost, joules and seconds of every device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation import Allocation
from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.server import Plan, Reports
from fedwave.server.round_problem import round_workload_cycles
from fedwave.simulation.ledger import RoundCosts, UploadLinks
from fedwave.simulation.world import Outcome
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.cell import Cell
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.delivery import upload_outcome
from fedwave.wireless.link import (
    compute_delay_s,
    compute_energy_j,
    uplink_rate_bps,
    upload_delay_s,
    upload_energy_j,
)
from fedwave.wireless.reporting import ReportPhase, report_turns


@dataclass(frozen=True, kw_only=True, eq=False)
class _Timeline:
    """The phases of a round, as long as nothing cuts them off: broadcast, computing, reports, uploads."""

    broadcast_s: float
    compute_time_s: FloatArray  # of each device
    reporting: ReportPhase
    slot_time_s: FloatArray  # of each device's upload, 0 without one
    deadline_s: float | None

    @property
    def reports_start_s(self) -> float:
        """All have computed."""
        return self.broadcast_s + float(self.compute_time_s.max(initial=0.0))

    @property
    def uploads_start_s(self) -> float:
        """All reports are in: only then are blocks given out, and uploads start together."""
        return self.reports_start_s + self.reporting.duration_s

    @property
    def end_s(self) -> float:
        """The last slot is over, also that of a device that dropped out, which the server cannot know."""
        end = self.uploads_start_s + float(self.slot_time_s.max(initial=0.0))
        return end if self.deadline_s is None else min(end, self.deadline_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class CellWorld:
    """Plays rounds over a cell. It knows the truth of the channel; a planner knows what it is told."""

    cell: Cell
    num_samples: IntArray  # D_i of each training device
    num_local_steps: int  # tau
    model_bits: float  # S
    seed: int
    report_bits: float = 0.0  # size of the contribution report; the paper neglects it
    idle_power_w: float = 0.0  # what a waiting device draws; the paper neglects it

    def channel(self, round_index: int) -> ChannelDraw:
        """Return the round's gains and interference."""
        return self.cell.draw(round_index)

    def play(self, round_index: int, plan: Plan, reports: Reports, channel: ChannelDraw | None) -> Outcome:
        """Return what becomes of the uploads and what everything cost, Eq. (23)-(31)."""
        if channel is None or plan.allocation is None:
            raise ProblemError("a cell plays plans with blocks and powers, got none. Use a CellPlanner.")
        computes = np.zeros(self.cell.num_devices, dtype=bool)
        computes[reports.device_index] = True
        workload = round_workload_cycles(self.cell.fleet, self.num_samples, self.num_local_steps, computes)
        links, slot_time = self._uploads(plan, channel)
        timeline = _Timeline(
            broadcast_s=self._broadcast_s(reports, channel),
            compute_time_s=compute_delay_s(plan.allocation.cpu_frequency_hz, workload_cycles=workload),
            reporting=self._report(plan, reports, channel),
            slot_time_s=slot_time,
            deadline_s=self.cell.upload_risks.deadline_s,
        )
        if timeline.deadline_s is None and np.isinf(slot_time).any():
            device = int(np.argmax(slot_time))
            raise ProblemError(
                f"the upload of device {device} never ends, as its rate is {links.rate_bps[device]:g} bit/s. "
                "Give it power and a gain, or set cell.losses.deadline_s."
            )
        outcome = upload_outcome(
            self.cell.upload_risks,
            device_index=plan.selected,
            num_devices=self.cell.num_devices,
            snr=links.sinr[plan.selected],
            finish_time_s=timeline.uploads_start_s + slot_time[plan.selected],
            rng=generator(self.seed, Stream.UPLOAD_LOSS, round_index),
        )
        sends = plan.selected[outcome.transmitted]
        costs = self._costs(plan.allocation, timeline, computes, sends, workload, links)
        return Outcome(plan.selected[outcome.arrived], outcome.fate, costs)

    def _costs(
        self,
        allocation: Allocation,
        timeline: _Timeline,
        computes: BoolArray,
        sends: IntArray,
        workload: FloatArray,
        links: UploadLinks,
    ) -> RoundCosts:
        """Return everybody's joules and seconds in every phase.

        At the round's end everybody stops: what is late pays for the time until then, not for more.
        """
        broadcast_s, delay_s = timeline.broadcast_s, timeline.end_s
        fleet, downlink, radio = self.cell.fleet, self.cell.downlink, self.cell.radio_power
        downlink_time = np.where(computes, min(broadcast_s, delay_s), 0.0)
        compute_time = np.minimum(timeline.compute_time_s, max(delay_s - broadcast_s, 0.0))
        report_time = timeline.reporting.time_until_s(delay_s - timeline.reports_start_s)
        upload_time, upload_energy = np.zeros((2, self.cell.num_devices))
        upload_time[sends] = np.minimum(
            timeline.slot_time_s[sends], max(delay_s - timeline.uploads_start_s, 0.0)
        )
        power = allocation.transmit_power_w
        upload_energy[sends] = upload_energy_j(power[sends], upload_time[sends], radio=radio)
        full_compute_energy = compute_energy_j(
            allocation.cpu_frequency_hz, workload_cycles=workload, capacitance=fleet.capacitance
        )
        idle_time = np.maximum(delay_s - (downlink_time + compute_time + report_time + upload_time), 0.0)
        return RoundCosts(
            downlink_energy_j=downlink_time * (0.0 if downlink is None else downlink.receive_power_w),
            downlink_time_s=downlink_time,
            broadcast_energy_j=0.0 if downlink is None else downlink.power_w * min(broadcast_s, delay_s),
            compute_energy_j=full_compute_energy * _share(compute_time, timeline.compute_time_s),
            compute_time_s=compute_time,
            report_energy_j=report_time * radio.drain_w(fleet.max_power_w),
            report_time_s=report_time,
            upload_energy_j=upload_energy,
            upload_time_s=upload_time,
            idle_energy_j=self.idle_power_w * idle_time,
            idle_time_s=idle_time,
            delay_s=delay_s,
            links=links,
        )

    def _broadcast_s(self, reports: Reports, channel: ChannelDraw) -> float:
        if self.cell.downlink is None:
            return 0.0
        return self.cell.downlink.broadcast_time_s(
            channel.channel_gain, listeners=reports.device_index, model_bits=self.model_bits
        )

    def _uploads(self, plan: Plan, channel: ChannelDraw) -> tuple[UploadLinks, FloatArray]:
        """Return the links of the uploads, and how long each device's lasts (0 without one)."""
        assert plan.allocation is not None  # play
        selected, cell = plan.selected, self.cell
        block = plan.allocation.block_of_device[selected]
        power = plan.allocation.transmit_power_w[selected]
        gain = channel.channel_gain
        gain = gain[selected, block] if gain.ndim == 2 else gain[selected]
        interference_w = channel.interference_w[block]
        rate = uplink_rate_bps(
            power,
            gain,
            interference_w=interference_w,
            bandwidth_hz=cell.bandwidth_hz,
            noise_psd_w_per_hz=cell.noise_psd_w_per_hz,
            rate_model=cell.rate_model,
        )
        sinr = power * gain / (interference_w + cell.bandwidth_hz * cell.noise_psd_w_per_hz)
        slot_time = np.zeros(cell.num_devices)
        slot_time[selected] = upload_delay_s(rate, model_bits=self.model_bits)
        # Where the modems have no link at all, the server grants no slot: nothing is sent.
        slot_time[selected[sinr < cell.rate_model.min_snr]] = 0.0
        links = UploadLinks.without_uploads(self.num_samples)
        for column, values in (
            (links.channel_gain, gain),
            (links.interference_w, interference_w),
            (links.sinr, sinr),
            (links.rate_bps, rate),
        ):
            column[selected] = values
        return links, slot_time

    def _report(self, plan: Plan, reports: Reports, channel: ChannelDraw) -> ReportPhase:
        if not plan.waits_for_reports:
            return ReportPhase.skipped(self.cell.num_devices)
        return report_turns(
            self.cell.fleet.max_power_w,
            channel,
            device_index=reports.device_index,
            report_bits=self.report_bits,
            bandwidth_hz=self.cell.bandwidth_hz,
            noise_psd_w_per_hz=self.cell.noise_psd_w_per_hz,
            rate_model=self.cell.rate_model,
        )


def _share(time_s: FloatArray, full_time_s: FloatArray) -> FloatArray:
    """Return how much of each update was done; exactly 1 where nothing was cut off."""
    share = np.ones_like(full_time_s)
    np.divide(time_s, full_time_s, out=share, where=time_s < full_time_s)
    return share
