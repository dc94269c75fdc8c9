"""When a round's phases begin and end, and what everybody's joules and seconds come to. Numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.server import RoundCosts, UploadLinks
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.cell import Cell
from fedwave.wireless.link import compute_energy_j, upload_energy_j
from fedwave.wireless.phases import ReportPhase
from fedwave.wireless.schedule import UploadSchedule
from fedwave.wireless.terms import RadioTerms


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """The phases of a round, as long as nothing cuts them off: broadcast, computing, reports, uploads."""

    broadcast_s: float
    compute_time_s: FloatArray  # of each device
    reporting: ReportPhase
    slot_time_s: FloatArray  # of each device's upload, 0 without one
    slot_start_s: FloatArray | None = None  # after the first upload's begin; None: all begin together
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
    def slots_start_s(self) -> FloatArray:
        """When each device's upload begins."""
        start_s = np.full(len(self.slot_time_s), self.uploads_start_s)
        return start_s if self.slot_start_s is None else start_s + self.slot_start_s

    @property
    def end_s(self) -> float:
        """The last slot is over, also that of a device that dropped out, which the server cannot know."""
        slot_end_s = self.slot_time_s if self.slot_start_s is None else self.slot_start_s + self.slot_time_s
        end = self.uploads_start_s + float(slot_end_s.max(initial=0.0))
        return end if self.deadline_s is None else min(end, self.deadline_s)


def round_costs(
    timeline: Timeline,
    *,
    cell: Cell,
    terms: RadioTerms,
    listens: BoolArray,
    sends: IntArray,
    transmit_power_w: FloatArray,
    cpu_frequency_hz: FloatArray,
    workload_cycles: FloatArray,
    idle_power_w: float,
    links: UploadLinks | None = None,
    schedule: UploadSchedule | None = None,
) -> RoundCosts:
    """Return everybody's joules and seconds in every phase, Eq. (23)-(31).

    At the round's end everybody stops: what is late pays for the time until then, not for more. With a
    ``schedule`` powers change in time, and its pieces are what is paid for.
    """
    broadcast_s, delay_s = timeline.broadcast_s, timeline.end_s
    fleet, downlink, radio = cell.fleet, terms.downlink, terms.radio
    downlink_time = np.where(listens, min(broadcast_s, delay_s), 0.0)
    compute_time = np.minimum(timeline.compute_time_s, max(delay_s - broadcast_s, 0.0))
    report_time = timeline.reporting.time_until_s(delay_s - timeline.reports_start_s)
    slots_start_s = timeline.slots_start_s
    upload_time, upload_energy = np.zeros((2, cell.num_devices))
    upload_time[sends] = np.minimum(
        timeline.slot_time_s[sends], np.maximum(delay_s - slots_start_s[sends], 0.0)
    )
    upload_energy[sends] = upload_energy_j(transmit_power_w[sends], upload_time[sends], radio=radio)
    if schedule is not None:
        pieces_j = schedule.energy_j(
            cell.num_devices, radio=radio, until_s=delay_s - timeline.uploads_start_s
        )
        upload_energy[sends] = pieces_j[sends]
    full_compute_energy = compute_energy_j(
        cpu_frequency_hz,
        workload_cycles=workload_cycles,
        capacitance=fleet.capacitance,
        static_power_w=fleet.static_power_w,
        joules_per_cycle=fleet.joules_per_cycle,
    )
    idle_time = np.maximum(delay_s - (downlink_time + compute_time + report_time + upload_time), 0.0)
    resting = cell.waiting.energy_j(
        listen_time_s=downlink_time,
        sending=(
            (timeline.reports_start_s + timeline.reporting.start_s, report_time),
            (slots_start_s, upload_time),
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
        idle_energy_j=idle_power_w * idle_time + resting,
        idle_time_s=idle_time,
        delay_s=delay_s,
        links=links,
        upload_start_s=slots_start_s - timeline.uploads_start_s,
        schedule=schedule,
    )


def _share(time_s: FloatArray, full_time_s: FloatArray) -> FloatArray:
    """Return how much of each update was done; exactly 1 where nothing was cut off."""
    share = np.ones_like(full_time_s)
    np.divide(time_s, full_time_s, out=share, where=time_s < full_time_s)
    return share
