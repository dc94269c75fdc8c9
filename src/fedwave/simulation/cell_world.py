"""A radio cell as it answers a plan: uploads that are lost, joules and seconds of every device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedwave.allocation import Allocation, allocate, evaluate
from fedwave.allocation.schedule import hand_on
from fedwave.allocation.tolerance import exceeds
from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.server import Hindsight, Outcome, Plan, Reports, UploadLinks, Work
from fedwave.server.round_problem import PLANNING_MARGIN
from fedwave.simulation.round_account import Timeline, round_costs
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.cell import Cell
from fedwave.wireless.delivery import upload_outcome
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.link import compute_delay_s
from fedwave.wireless.phases import (
    ReportPhase,
    broadcast_delay_s,
    longest_upload_s,
    report_phase,
    upload_phase,
    workload_cycles,
)
from fedwave.wireless.sanity import units_were_said
from fedwave.wireless.terms import ChannelDraw, RadioTerms


@dataclass(frozen=True, kw_only=True, eq=False)
class CellWorld:
    """Answers over a cell. It knows the truth of the channel; a planner knows what it is told."""

    counts_costs: ClassVar[bool] = True

    cell: Cell
    terms: RadioTerms  # the cell's own, with the size of a report
    work: Work
    seed: int
    idle_power_w: float = 0.0  # what a waiting device draws; the paper neglects it
    max_upload_s: float | None = None  # an upload is broken off then: only a plan on wrong gains comes so far
    max_upload_j: float | None = None  # or with this joule
    shows_regret: bool = False  # evaluate each plan with the true gains, against the certified optimum

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
        work = self.work.with_gradients(reports.num_gradients)
        workload = workload_cycles(
            self.fleet, num_samples=work.num_samples, num_local_steps=work.num_local_steps, computes=computes
        )
        links, slot_time, is_broken_off = self._uploads(plan, plan.allocation, channel)
        slot_start, schedule = None, None
        if self.terms.access == "tdma":
            slot_start = np.zeros(num_devices)
            slot_start[plan.selected] = np.cumsum(slot_time[plan.selected]) - slot_time[plan.selected]
        if self.terms.work_conserving:
            schedule = hand_on(
                plan.allocation,
                plan.selected,
                max_power_w=self.fleet.max_power_w,
                channel_gain=channel.channel_gain,
                block_noise_w=channel.interference_w + self.terms.noise_w,
                bandwidth_hz=self.terms.bandwidth_hz,
                num_blocks=self.terms.num_blocks,
                model_bits=self.work.model_bits,
                rate=self.terms.rate,
                min_snr=self.terms.risks.planned_min_snr,
            )
            slot_time = schedule.end_of_device_s(num_devices)
            links.rate_bps[plan.selected] = np.divide(  # its mean
                work.model_bits,
                slot_time[plan.selected],
                out=np.zeros(plan.selected.size),
                where=slot_time[plan.selected] > 0.0,
            )
        timeline = Timeline(
            broadcast_s=broadcast_delay_s(self.terms, channel, listeners=who, model_bits=work.model_bits),
            compute_time_s=compute_delay_s(plan.allocation.cpu_frequency_hz, workload_cycles=workload),
            reporting=report_phase(self.terms, self.fleet.max_power_w, channel, device_index=who)
            if plan.needs_reports
            else ReportPhase.skipped(num_devices),
            slot_time_s=slot_time,
            slot_start_s=slot_start,
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
            finish_time_s=(timeline.slots_start_s + slot_time)[plan.selected],
            rng=generator(self.seed, Stream.UPLOAD_LOSS, round_index),
            is_broken_off=is_broken_off,
        )
        sends = plan.selected[outcome.transmitted]
        costs = round_costs(
            timeline,
            cell=self.cell,
            terms=self.terms,
            listens=computes,
            sends=sends,
            transmit_power_w=plan.allocation.transmit_power_w,
            cpu_frequency_hz=plan.allocation.cpu_frequency_hz,
            workload_cycles=workload,
            idle_power_w=self.idle_power_w,
            links=links,
            schedule=schedule,
        )
        hindsight = self._hindsight(plan, plan.allocation, channel, timeline) if self.shows_regret else None
        return Outcome(plan.selected[outcome.arrived], outcome.fate, costs, hindsight=hindsight)

    def _hindsight(
        self, plan: Plan, allocation: Allocation, channel: ChannelDraw, timeline: Timeline
    ) -> Hindsight | None:
        """Return what the plan is worth with the true gains, and the optimum with them; luck plays no part.

        The true problem is the planner's own, but for the gains, the phases that follow from them, and the
        planner's margin over the threshold, which nothing in nature asks for. None without a problem.
        """
        if plan.problem is None:
            return None
        channel = self.terms.on_all_blocks(channel)
        threshold = replace(self.terms.risks, outage_margin=1.0).planned_min_snr
        fixed_s = 0.0
        if plan.problem.max_round_delay_s is not None:
            fixed_s = timeline.broadcast_s + timeline.reporting.duration_s
        with units_were_said():  # by the cell, once for all rounds
            true_problem = replace(
                plan.problem,
                channel_gain=channel.channel_gain,
                interference_w=channel.interference_w,
                min_snr=threshold * (1.0 + PLANNING_MARGIN),
                fixed_delay_s=fixed_s,
            )
            return Hindsight(evaluate(allocation, true_problem), allocate(true_problem))

    def _uploads(
        self, plan: Plan, allocation: Allocation, channel: ChannelDraw
    ) -> tuple[UploadLinks, FloatArray, BoolArray]:
        """Return the uploads' links, how long each device's lasts (0 without one), and who is cut off."""
        selected = plan.selected
        uploads = upload_phase(
            self.terms,
            channel,
            device_index=selected,
            block=allocation.block_of_device[selected],
            power_w=allocation.transmit_power_w[selected],
            model_bits=self.work.model_bits,
            width_hz=_of(allocation.bandwidth_of_device_hz, selected),
        )
        limit_s = longest_upload_s(
            allocation.transmit_power_w[selected],
            radio=self.terms.radio,
            max_delay_s=self.max_upload_s,
            max_energy_j=self.max_upload_j,
        )
        is_broken_off = exceeds(uploads.time_s, limit_s)
        slot_time = np.zeros(self.cell.num_devices)
        slot_time[selected] = np.where(is_broken_off, limit_s, uploads.time_s)
        links = UploadLinks.without_uploads(self.work.num_samples)
        for name in ("channel_gain", "interference_w", "sinr", "rate_bps"):
            getattr(links, name)[selected] = getattr(uploads, name)
        return links, slot_time, is_broken_off


def _of(values: FloatArray | None, index: IntArray) -> FloatArray | None:
    return None if values is None else values[index]
