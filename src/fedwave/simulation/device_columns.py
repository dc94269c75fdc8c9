"""The columns of devices.csv and heldout.csv. A new one is one more line: reader and documentation follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ProblemError
from fedwave.simulation.column import PLANNERS_OWN, Column, Kind, of_allocation, of_costs, of_ledger
from fedwave.simulation.facts import RoundFacts


def _scaled(facts: RoundFacts) -> NDArray[Any]:
    scaled = facts.plan.scaled_contribution
    return np.full(len(facts.run.device_ids), math.nan) if scaled is None else scaled


def _norms_of_steps(facts: RoundFacts) -> list[NDArray[Any]]:
    """Return a column for each local step; of the first one alone where rounds have different numbers."""
    norms = facts.reports.gradient_norms
    return [facts.spread(column) for column in (norms[:, :1] if "steps" in facts.run.traits else norms).T]


def _link(name: str) -> Callable[[RoundFacts], Any]:
    return lambda facts: getattr(facts.links, name)


def _of_plan(facts: RoundFacts) -> dict[str, NDArray[Any]]:
    """Return the columns that the planner gave with its plan, one value for each device."""
    num_devices = len(facts.run.device_ids)
    for name, values in facts.plan.columns.items():
        if np.shape(values) != (num_devices,):
            raise ProblemError(
                f'a plan\'s column "{name}" needs one value for each of the {num_devices} devices, got shape '
                f"{np.shape(values)}. Give NaN for those of which there is nothing to say."
            )
    return {name: np.asarray(values, dtype=np.float64) for name, values in facts.plan.columns.items()}


DEVICE_COLUMNS: tuple[Column, ...] = (
    Column(
        "train_loss",
        "number",
        "loss after adaptation at the global model; empty if the device did not compute",
        lambda facts: facts.spread(facts.reports.loss),
    ),
    Column(
        "gradient_norm_{step}",
        "number",
        "norm of the gradient at each local step; at the first alone with algorithm.local_steps",
        _norms_of_steps,
    ),
    Column(
        "contribution",
        "number",
        "u_i, Eq. (21)",
        lambda facts: facts.spread(facts.reports.contribution),
    ),
    Column(
        "is_selected",
        "integer",
        "1 if it was to upload",
        lambda facts: facts.mask(facts.plan.selected),
    ),
    Column(
        "scaled_contribution",
        "number",
        "the contribution as the allocation saw it",
        _scaled,
        needs="cell",
    ),
    Column(
        "is_received",
        "integer",
        "1 if its upload arrived",
        lambda facts: facts.mask(facts.outcome.received),
        needs="cell",
    ),
    Column("block", "integer", "its radio block; -1: none", of_allocation("block_of_device"), needs="cell"),
    Column(
        "bandwidth_hz",
        "number",
        "what it holds of the band when uploads begin, or in its slot; 0 without an upload",
        of_allocation("bandwidth_of_device_hz"),
        needs="access",
    ),
    Column(
        "upload_start_s",
        "number",
        "when its upload begins after the first one; 0 unless devices take turns",
        of_costs("upload_start_s"),
        needs="access",
    ),
    Column("num_samples", "integer", "D_i, its training samples", _link("num_samples"), needs="cell"),
    Column(
        "channel_gain", "number", "h on its block; empty without one", _link("channel_gain"), needs="cell"
    ),
    Column("interference_w", "number", "I of its block", _link("interference_w"), needs="cell"),
    Column("sinr", "number", "p h / (I + B N0), as a ratio", _link("sinr"), needs="cell"),
    Column("rate_bps", "number", "its rate, Eq. (25)", _link("rate_bps"), needs="cell"),
    Column("transmit_power_w", "number", "its power", of_allocation("transmit_power_w"), needs="cell"),
    Column(
        "cpu_frequency_hz", "number", "its CPU frequency", of_allocation("cpu_frequency_hz"), needs="cell"
    ),
    *(
        Column(f"{phase}_{what}", "number", f"{unit} of {meaning}", of_costs(f"{phase}_{what}"), needs="cell")
        for phase, meaning in (
            ("downlink", "listening to the broadcast"),
            ("compute", "the local update"),
            ("report", "the contribution report"),
            ("upload", "the upload"),
            ("idle", "waiting"),
        )
        for what, unit in (("energy_j", "joules"), ("time_s", "seconds"))
    ),
    Column(
        "cumulative_energy_j",
        "number",
        "the device's joules so far",
        of_ledger("device_energy_j"),
        needs="cell",
    ),
    Column(
        "battery_j",
        "number",
        "the charge of its battery when the next round begins",
        lambda facts: facts.battery.charge_j,
        needs="battery",
    ),
    Column(
        "harvested_j",
        "number",
        "joules that came in since the round began; a full battery does not hold them all",
        lambda facts: facts.battery.harvested_j,
        needs="battery",
    ),
    Column(
        PLANNERS_OWN,
        "number",
        "what its planner says of the device, e.g. planner_price_per_j and planner_queue_j of "
        "drift-plus-penalty: as the round was planned",
        _of_plan,
    ),
)

HELDOUT_COLUMNS: tuple[tuple[str, Kind, str], ...] = (
    ("num_query", "integer", "query samples of the device"),
    ("loss", "number", "query loss after adaptation"),
    ("{metric}", "number", "the task's metric on the query set"),
)
