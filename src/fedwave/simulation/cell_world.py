"""A radio cell as it answers a plan: uploads that are lost, joules and seconds of every device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedwave.allocation import Allocation
from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.server import Outcome, Plan, Reports, RoundCosts, UploadLinks, Work
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.cell import Cell
from fedwave.wireless.delivery import upload_outcome
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.link import compute_delay_s, compute_energy_j, upload_energy_j
from fedwave.wireless.phases import (
    ReportPhase,
    broadcast_delay_s,
    report_phase,
    upload_phase,
    workload_cycles,
)
from fedwave.wireless.terms import ChannelDraw, RadioTerms


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
    """Answers over a cell. It knows the truth of the channel; a planner knows what it is told."""

    counts_costs: ClassVar[bool] = True

    cell: Cell
    terms: RadioTerms  # the cell's own, with the size of a report
    work: Work
    seed: int
    idle_power_w: float = 0.0  # what a waiting device draws; the paper neglects it

    @property
    def fleet(self) -> Fleet:
        """The devices' hardware."""
        return self.cell.fleet

    def channel(self, round_index: int) -> ChannelDraw:
        """Return the round's gains and interference."""
        return self.cell.draw(round_index)

    def answer(self, round_index: int, plan: Plan, reports: Reports, channel: ChannelDraw | None) -> Outcome:
        """Return what becomes of the uploads and what everything cost, Eq. (23)-(31)."""
        if channel is None or plan.allocation is None:
            raise ProblemError("a cell answers plans with blocks and powers, got none. Use a CellPlanner.")
        num_devices, who = self.cell.num_devices, reports.device_index
        computes = np.zeros(num_devices, dtype=bool)
        computes[who] = True
        work = self.work
        workload = workload_cycles(
            self.fleet, num_samples=work.num_samples, num_local_steps=work.num_local_steps, computes=computes
        )
        links, slot_time = self._uploads(plan, plan.allocation, channel)
        timeline = _Timeline(
            broadcast_s=broadcast_delay_s(self.terms, channel, listeners=who, model_bits=work.model_bits),
            compute_time_s=compute_delay_s(plan.allocation.cpu_frequency_hz, workload_cycles=workload),
            reporting=report_phase(self.terms, self.fleet.max_power_w, channel, device_index=who)
            if plan.needs_reports
            else ReportPhase.skipped(num_devices),
            slot_time_s=slot_time,
            deadline_s=self.terms.risks.deadline_s,
        )
        if timeline.deadline_s is None and np.isinf(slot_time).any():
            device = int(np.argmax(slot_time))
            raise ProblemError(
                f"the upload of device {device} never ends, as its rate is {links.rate_bps[device]:g} bit/s. "
                "Give it power and a gain, or set cell.losses.deadline_s."
            )
        outcome = upload_outcome(
            self.terms.risks,
            device_index=plan.selected,
            num_devices=num_devices,
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
        fleet, downlink, radio = self.fleet, self.terms.downlink, self.terms.radio
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
            allocation.cpu_frequency_hz,
            workload_cycles=workload,
            capacitance=fleet.capacitance,
            static_power_w=fleet.static_power_w,
            joules_per_cycle=fleet.joules_per_cycle,
        )
        idle_time = np.maximum(delay_s - (downlink_time + compute_time + report_time + upload_time), 0.0)
        resting = self.cell.waiting.energy_j(
            listen_time_s=downlink_time,
            sending=(
                (timeline.reports_start_s + timeline.reporting.start_s, report_time),
                (np.full(self.cell.num_devices, timeline.uploads_start_s), upload_time),
            ),
            end_s=delay_s,
        )
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
            idle_energy_j=self.idle_power_w * idle_time + resting,
            idle_time_s=idle_time,
            delay_s=delay_s,
            links=links,
        )

    def _uploads(
        self, plan: Plan, allocation: Allocation, channel: ChannelDraw
    ) -> tuple[UploadLinks, FloatArray]:
        """Return the links of the uploads, and how long each device's lasts (0 without one)."""
        selected = plan.selected
        uploads = upload_phase(
            self.terms,
            channel,
            device_index=selected,
            block=allocation.block_of_device[selected],
            power_w=allocation.transmit_power_w[selected],
            model_bits=self.work.model_bits,
        )
        slot_time = np.zeros(self.cell.num_devices)
        slot_time[selected] = uploads.time_s
        links = UploadLinks.without_uploads(self.work.num_samples)
        for name in ("channel_gain", "interference_w", "sinr", "rate_bps"):
            getattr(links, name)[selected] = getattr(uploads, name)
        return links, slot_time


def _share(time_s: FloatArray, full_time_s: FloatArray) -> FloatArray:
    """Return how much of each update was done; exactly 1 where nothing was cut off."""
    share = np.ones_like(full_time_s)
    np.divide(time_s, full_time_s, out=share, where=time_s < full_time_s)
    return share
