"""Training over a radio cell: the allocation decides who uploads, and every joule and second is counted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedwave.allocation import Allocation, AllocationProblem, account, allocate
from fedwave.rng import Stream, generator
from fedwave.selection import TopContribution, Uniform
from fedwave.simulation.contribution_scale import ContributionScale
from fedwave.simulation.ledger import RoundCosts
from fedwave.simulation.scheduler import Reports, Schedule
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.cell import Cell, ChannelDraw
from fedwave.wireless.link import uplink_rate_bps, upload_delay_s
from fedwave.wireless.losses import UploadFate, UploadOutcome, upload_outcome

# scheme: (allocation method, who selects), Sec. VII of the paper
SCHEMES: dict[str, tuple[str, str]] = {
    "ural": ("optimal", "nufm"),
    "ural-ives": ("ives", "nufm"),
    "nufm-greedy": ("greedy", "nufm"),
    "nufm-random": ("random", "nufm"),
    "ru-greedy": ("greedy", "uniform"),
    "ru-random": ("random", "uniform"),
}
# These serve the devices they are given; the other methods choose the devices themselves, Eq. (43).
SERVES_GIVEN_DEVICES = frozenset({"greedy", "random", "fedl"})
MIN_KEPT_MODELS = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class CellScheduler:
    """Lets an allocation method decide on the uploads over a cell, and accounts for what they cost."""

    cell: Cell
    num_samples: IntArray  # D_i of each training device
    num_local_steps: int  # tau
    model_bits: float  # S
    method: str
    selection: str  # "nufm" or "uniform"
    energy_weight: float  # eta_1
    delay_weight: float  # eta_2
    scale: ContributionScale
    seed: int
    max_delay_s: float | None = None  # hard limits that the allocation respects
    max_energy_j: float | None = None
    report_bits: float = 0.0  # size of the contribution report; the paper neglects it
    idle_power_w: float = 0.0  # what a waiting device draws; the paper neglects it
    everyone_computes: bool = (
        False  # with uniform selection: let the others compute as well, as Eq. (30) has it
    )

    @property
    def max_models(self) -> int:
        """Any device may be chosen: keep the likeliest, and compute the few others again."""
        return max(4 * self.cell.num_blocks, MIN_KEPT_MODELS)

    def computing(self, round_index: int) -> IntArray:
        """Return who computes: everyone, or with uniform selection only those drawn beforehand."""
        if self.selection == "uniform" and not self.everyone_computes:
            return self._drawn_uniformly(round_index)
        return np.arange(self.cell.num_devices, dtype=np.int64)

    def schedule(self, round_index: int, reports: Reports) -> Schedule:
        """Return who uploads, who arrives, and what the round cost."""
        draw = self.cell.draw(round_index)
        problem = self._problem(draw, reports)
        allocation = self._allocate(round_index, problem, reports)
        time_left_s = self._time_left_s(draw, allocation, reports)
        if time_left_s is not None and 0.0 < time_left_s < allocation.upload_delay_s:
            # A method that plans knows the cell's deadline; the baselines run into it, as they are defined.
            problem = replace(problem, max_delay_s=time_left_s)
            allocation = self._allocate(round_index, problem, reports)
        selected = allocation.selected
        outcome, costs = self._play(round_index, draw, problem, allocation, reports)
        received = selected[outcome.arrived]
        return Schedule(
            selected,
            received,
            costs=costs,
            round_columns=self._round_columns(allocation, outcome),
            device_columns=self._device_columns(problem, allocation, outcome),
        )

    def _problem(self, draw: ChannelDraw, reports: Reports) -> AllocationProblem:
        """Return problem (P) of this round; who does not compute has no work and no contribution."""
        fleet = self.cell.fleet
        computes = np.zeros(self.cell.num_devices)
        computes[reports.positions] = 1.0
        contribution = np.zeros(self.cell.num_devices)
        contribution[reports.positions] = self.scale(reports.contribution)
        return AllocationProblem(
            contribution=contribution,
            channel_gain=draw.channel_gain,
            interference_w=draw.interference_w,
            max_power_w=fleet.max_power_w,
            workload_cycles=computes * self.num_local_steps * fleet.cycles_per_sample * self.num_samples,
            max_frequency_hz=fleet.max_frequency_hz,
            capacitance=fleet.capacitance,
            model_bits=self.model_bits,
            bandwidth_hz=self.cell.bandwidth_hz,
            noise_psd_w_per_hz=self.cell.noise_psd_w_per_hz,
            energy_weight=self.energy_weight,
            delay_weight=self.delay_weight,
            max_delay_s=self.max_delay_s,
            max_energy_j=self.max_energy_j,
        )

    def _allocate(self, round_index: int, problem: AllocationProblem, reports: Reports) -> Allocation:
        return allocate(
            problem,
            self.method,
            rng=generator(self.seed, Stream.ALLOCATION, round_index),
            selected=self._asked(round_index, problem, reports),
        )

    def _time_left_s(self, draw: ChannelDraw, allocation: Allocation, reports: Reports) -> float | None:
        """Return what the deadline leaves for the upload, if there is one and the method can plan for it."""
        deadline_s = self.cell.config.losses.deadline_s
        if deadline_s is None or self.method in SERVES_GIVEN_DEVICES:
            return None
        _, report_phase_s = self._report(draw, reports)
        # A billionth early: the sum of the phases may round to just past the deadline.
        left = deadline_s * (1.0 - 1e-9) - allocation.compute_delay_s - report_phase_s
        return left if self.max_delay_s is None else min(left, self.max_delay_s)

    def _asked(self, round_index: int, problem: AllocationProblem, reports: Reports) -> IntArray | None:
        """Return the devices to serve or to choose among; None leaves the choice to the allocation."""
        if self.selection == "uniform":
            return self._drawn_uniformly(round_index)
        if self.method in SERVES_GIVEN_DEVICES:  # n_k = M, as in the paper
            policy = TopContribution(min(self.cell.num_blocks, len(reports.positions)))
            rng = generator(self.seed, Stream.SELECTION, round_index)
            return policy.select(problem.num_devices, problem.contribution, rng=rng)
        return None

    def _drawn_uniformly(self, round_index: int) -> IntArray:
        policy = Uniform(min(self.cell.num_blocks, self.cell.num_devices))
        rng = generator(self.seed, Stream.SELECTION, round_index)
        return policy.select(self.cell.num_devices, None, rng=rng)

    def _play(
        self,
        round_index: int,
        draw: ChannelDraw,
        problem: AllocationProblem,
        allocation: Allocation,
        reports: Reports,
    ) -> tuple[UploadOutcome, RoundCosts]:
        """Return what becomes of the uploads and what everything cost, Eq. (23)-(31)."""
        shares = account(problem, allocation)
        report_time, report_phase_s = self._report(draw, reports)
        # All reports must be in before the blocks are given out: uploads start together.
        uploads_start_s = float(shares.compute_delay_s.max(initial=0.0)) + report_phase_s
        selected = allocation.selected
        block = allocation.block_of_device[selected]
        snr = (
            allocation.transmit_power_w[selected]
            * problem.gain_of(selected, block)
            / problem.block_noise_w[block]
        )
        losses = self.cell.config.losses
        outcome = upload_outcome(
            losses,
            device_index=selected,
            num_devices=self.cell.num_devices,
            snr=snr,
            finish_time_s=uploads_start_s + shares.upload_delay_s[selected],
            rng=generator(self.seed, Stream.UPLOAD_LOSS, round_index),
        )
        # The server does not know who left, so it waits for the slot of a device that dropped out too.
        delay_s = uploads_start_s + float(shares.upload_delay_s.max(initial=0.0))
        if losses.deadline_s is not None:
            delay_s = min(delay_s, losses.deadline_s)
        sends = np.zeros(self.cell.num_devices)
        sends[selected[outcome.transmitted]] = 1.0
        upload_time = sends * shares.upload_delay_s
        busy = shares.compute_delay_s + report_time + upload_time
        idle_time = np.maximum(delay_s - busy, 0.0)
        return outcome, RoundCosts(
            compute_energy_j=shares.compute_energy_j,
            compute_time_s=shares.compute_delay_s,
            report_energy_j=report_time * self.cell.fleet.max_power_w,
            report_time_s=report_time,
            upload_energy_j=sends * shares.upload_energy_j,
            upload_time_s=upload_time,
            idle_energy_j=self.idle_power_w * idle_time,
            idle_time_s=idle_time,
            delay_s=delay_s,
        )

    def _report(self, draw: ChannelDraw, reports: Reports) -> tuple[FloatArray, float]:
        """Return each device's time to report its contribution, and how long the reports take together.

        A report goes at full power over one block. The devices take turns, as many at a time as there are
        blocks; a turn lasts as long as its slowest report. Nobody waits for a device without a signal.
        """
        time_s = np.zeros(self.cell.num_devices)
        ignores_contribution = self.selection == "uniform" and self.method in SERVES_GIVEN_DEVICES
        if self.report_bits == 0.0 or ignores_contribution:
            return time_s, 0.0
        num_blocks = self.cell.num_blocks
        turns = [reports.positions[i : i + num_blocks] for i in range(0, len(reports.positions), num_blocks)]
        phase_s = 0.0
        for members in turns:
            block = np.arange(len(members))
            gain = draw.channel_gain
            rate = uplink_rate_bps(
                self.cell.fleet.max_power_w[members],
                gain[members, block] if gain.ndim == 2 else gain[members],
                interference_w=draw.interference_w[block],
                bandwidth_hz=self.cell.bandwidth_hz,
                noise_psd_w_per_hz=self.cell.noise_psd_w_per_hz,
            )
            heard = members[rate > 0]
            time_s[heard] = upload_delay_s(rate[rate > 0], model_bits=self.report_bits)
            phase_s += float(time_s[members].max())
        return time_s, phase_s

    def _round_columns(self, allocation: Allocation, outcome: UploadOutcome) -> dict[str, Any]:
        lost = {
            f"num_{fate.name.lower()}": int(np.sum(outcome.fate == fate))
            for fate in UploadFate
            if fate is not UploadFate.ARRIVED
        }
        return {
            "contribution": allocation.contribution,
            "objective": allocation.objective,
            "objective_gap": allocation.gap if math.isfinite(allocation.upper_bound) else None,
            "allocation_status": allocation.status.value,
            **lost,
            "note": _note(allocation, outcome),
        }

    def _device_columns(
        self, problem: AllocationProblem, allocation: Allocation, outcome: UploadOutcome
    ) -> dict[str, Any]:
        arrived = np.zeros(problem.num_devices, dtype=np.int64)
        arrived[allocation.selected[outcome.arrived]] = 1
        return {
            "scaled_contribution": problem.contribution,
            "is_received": arrived,
            "block": allocation.block_of_device,
            "transmit_power_w": allocation.transmit_power_w,
            "cpu_frequency_hz": allocation.cpu_frequency_hz,
        }


def _note(allocation: Allocation, outcome: UploadOutcome) -> str:
    """Return what a reader of the round should know, or nothing."""
    if allocation.num_selected == 0:
        why = allocation.reason or "no upload is worth its energy and delay"
        return f"nobody uploads, the model stays as it is: {why}"
    if not outcome.arrived.any():
        return "no upload arrived, the model stays as it is"
    return allocation.reason
