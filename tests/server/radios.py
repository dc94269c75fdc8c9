"""Small radio cells whose every number is written out, and planners over them. Numpy alone, no files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedwave.allocation import METHODS, Allocation
from fedwave.selection import POLICIES
from fedwave.server import (
    CellPlanner,
    Outcome,
    Plan,
    Planner,
    PlannerState,
    PolicyRunner,
    RadioTerms,
    Reports,
    RoundAims,
    Work,
)
from fedwave.units import IntArray
from fedwave.wireless.delivery import UploadFate, UploadRisks
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw

# The weight of a second at which an upload with (I + B N0) / h = 1 W is cheapest at SNR 3, rate 2: the
# derivative of (p + eta_2) / log2(1 + p) vanishes where (1 + x) ln(1 + x) - x = eta_2.
SNR_3 = 4 * math.log(4) - 3

# Both devices have tau c D = 4 cycles of work. Device 0 alone is at its power limit.
GREEDY_RADIO: dict[str, Any] = {
    "channel_gain": [3.0, 1.0],
    "interference_w": [0.0, 0.0],
    "max_power_w": [1 / 3, 5.0],
    "max_frequency_hz": [2.0, 1.0],
    "capacitance": [8 * SNR_3, SNR_3 / 8],
    "cycles_per_sample": [0.5, 0.25],
}
GREEDY = {"method": "greedy", "delay_weight": SNR_3}

# (I + B N0) / h of device 0 on block 0 and device 1 on block 1 is 1/3 + 2/7 = 13/21, the other way round
# 2/3 + 1/7 = 17/21. So the first is better, and eta_2 makes its best common SNR 3, rate 2.
ETA_2 = 13 / 21 * SNR_3
OPTIMAL_RADIO: dict[str, Any] = {
    "channel_gain": [3.0, 7.0],
    "interference_w": [0.0, 1.0],
    "max_power_w": [1.5, 2.0],
    "max_frequency_hz": [2.0, 1.0],
    "capacitance": [3 * ETA_2, 5 * ETA_2],  # SP1: T^3 = (3 + 5) 4^3, so T = 8 and nu = 1/2
    "cycles_per_sample": [0.5, 0.25],
}

# One entry for each device of ``random_radio``.
CONTRIBUTION = [30.0, -4.0, 80.0, 55.0, 10.0, 80.0, 2.0, 41.0, 60.0]


def random_radio(num_devices: int = 9, num_blocks: int = 4) -> dict[str, Any]:
    """Return a cell drawn as in Table III, with a gain for each block."""
    rng = np.random.default_rng(5)
    return {
        "channel_gain": rng.uniform(0.1, 1.0, (num_devices, num_blocks)).tolist(),
        "interference_w": rng.uniform(0.0, 0.8, num_blocks).tolist(),
        "max_power_w": rng.uniform(0.1, 1.0, num_devices).tolist(),
        "max_frequency_hz": rng.uniform(0.1, 2.0, num_devices).tolist(),
        "capacitance": rng.uniform(0.0, 1.0, num_devices).tolist(),
        "cycles_per_sample": rng.uniform(0.0, 0.25, num_devices).tolist(),
    }


# Which settings of ``cell_planner`` belong to the terms of the link and to its risks; others are aims.
RISKS = ("deadline_s", "outage_snr", "outage_margin", "packet_error_waterfall")
TERMS = ("bandwidth_hz", "noise_psd_w_per_hz", "rate", "radio", "downlink", "report_bits")


@dataclass(frozen=True)
class Planned:
    """A planner's answer in one round."""

    asked: IntArray
    reports: Reports
    plan: Plan
    state: PlannerState

    @property
    def allocation(self) -> Allocation:
        assert self.plan.allocation is not None
        return self.plan.allocation


@dataclass(frozen=True)
class RadioPlanner:
    """A planner and the channel that it meets in every round."""

    planner: CellPlanner
    channel: ChannelDraw

    def play(self, contribution: list[float], round_index: int = 0) -> Planned:
        return play(self.planner, contribution, round_index, self.channel)


def radio_planner(radio: dict[str, Any], **settings: Any) -> RadioPlanner:
    """Return a planner over the numbers of a radio."""
    own = {name: np.array(values, dtype=float) for name, values in radio.items()}
    channel = ChannelDraw(own.pop("channel_gain"), own.pop("interference_w"))
    return RadioPlanner(cell_planner(Fleet(**own), len(channel.interference_w), **settings), channel)


def cell_planner(
    fleet: Fleet,
    num_blocks: int,
    *,
    method: str = "optimal",
    policy: str = "top-contribution",
    num_selected: int | None = None,
    policy_options: dict[str, Any] | None = None,
    everyone_computes: bool = False,
    seed: int = 0,
    **settings: Any,
) -> CellPlanner:
    """Return a planner of two local steps (tau) over 4 and 8, 4 and 8, ... samples; B = N0 = S = 1.

    By default as many devices upload as there are blocks, and problem (P) decides alone where it can.
    """
    num_devices = fleet.num_devices
    if num_selected is None:
        decides = policy == "top-contribution" and not METHODS[method].serves_given_devices
        num_selected = num_devices if decides else min(num_blocks, num_devices)
    samples = np.resize(np.array([4, 8]), num_devices)
    risks = {name: settings.pop(name) for name in RISKS if name in settings}
    terms = {name: settings.pop(name) for name in TERMS if name in settings}
    work = {name: settings.pop(name) for name in ("model_bits", "num_local_steps") if name in settings}
    options = settings.pop("method_options", {})
    return CellPlanner(
        runner=PolicyRunner(
            POLICIES[policy](num_selected=num_selected, **(policy_options or {})),
            samples,
            seed,
            everyone_computes,
        ),
        fleet=fleet,
        terms=RadioTerms(
            num_blocks=num_blocks,
            risks=UploadRisks(**risks),
            **{"bandwidth_hz": 1.0, "noise_psd_w_per_hz": 1.0, **terms},
        ),
        aims=RoundAims(**{"energy_weight": 1.0, "delay_weight": 1.0, **settings}),
        work=Work(**{"model_bits": 1.0, "num_local_steps": 2, "num_samples": samples, **work}),
        method=method,
        method_options=options,
    )


def play(
    planner: Planner,
    contribution: list[float],
    round_index: int = 0,
    channel: ChannelDraw | None = None,
    state: PlannerState | None = None,
) -> Planned:
    """Return a round's plan when the computing devices report these of the contributions; all arrives.

    A device's loss is a thousand less its contribution, so the two rank the devices the other way round.
    """
    before = planner.initial_state() if state is None else state
    asked = planner.ask(round_index, before)
    worth = np.array(contribution, dtype=float)[asked]
    reports = Reports(
        device_index=asked,
        contribution=worth,
        loss=1000.0 - worth,
        num_samples=np.resize(np.array([4, 8]), len(contribution))[asked],
        gradient_norms=np.ones((len(asked), 2)),
    )
    plan = planner.plan(round_index, asked, reports, channel, before)
    after = planner.after(round_index, reports, plan, all_arrived(plan), before)
    return Planned(asked, reports, plan, after)


def all_arrived(plan: Plan) -> Outcome:
    """Return the outcome of a plan on an ideal network."""
    return Outcome(plan.selected, np.full(len(plan.selected), UploadFate.ARRIVED, dtype=np.int64))
