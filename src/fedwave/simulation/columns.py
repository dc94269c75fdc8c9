"""The columns of the tables: each one's name, type, meaning and value, in one place.

A new result column is one more line here: the tables, their reader and the documentation follow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ProblemError
from fedwave.metric import Metric
from fedwave.selection import Penalties
from fedwave.server import Hindsight
from fedwave.server.local_steps import next_steps
from fedwave.simulation.facts import RoundFacts
from fedwave.simulation.records import RoundRecord
from fedwave.wireless.delivery import UploadFate

Kind = Literal["integer", "number", "text", "devices"]
PLANNERS_OWN = "planner_{own}"  # of devices.csv


@dataclass(frozen=True)
class Column:
    """A column of a table. ``{metric}`` in a name is the task's metric, ``{step}`` each local step.

    ``{own}`` is each column that a planner gives with its plans.
    """

    name: str
    kind: Kind
    meaning: str
    value: Callable[[RoundFacts], Any]
    needs_cell: bool = False
    needs_battery: bool = False
    needs_estimation: bool = False  # of a run whose planner does not know the gains
    needs_penalties: bool = False  # of a run whose penalties are estimated
    needs_chosen_steps: bool = False  # of a run whose rounds have local steps of their own number
    needs_shares: bool = False  # of a run with another access than one block each

    def applies(
        self,
        *,
        over_cell: bool,
        on_battery: bool,
        shows_regret: bool = False,
        has_estimates: bool = False,
        chooses_steps: bool = False,
        shows_shares: bool = False,
    ) -> bool:
        """Return whether the tables of such a run have the column."""
        pairs = (
            (over_cell, self.needs_cell),
            (on_battery, self.needs_battery),
            (shows_regret, self.needs_estimation),
            (has_estimates, self.needs_penalties),
            (chooses_steps, self.needs_chosen_steps),
            (shows_shares, self.needs_shares),
        )
        return all(has or not need for has, need in pairs)


def _note(facts: RoundFacts) -> str:
    plan, outcome = facts.plan, facts.outcome
    if len(plan.selected) and len(outcome.received) == 0:
        return "no upload arrived, the model stays as it is"
    return plan.reason


def _gap(facts: RoundFacts) -> float | None:
    allocation = facts.plan.allocation
    return allocation.gap if allocation is not None and math.isfinite(allocation.upper_bound) else None


def _below(facts: RoundFacts) -> float | None:
    if facts.penalties is not None:
        return _share_below(facts, facts.penalties.used)
    if facts.run.turning_point is None:
        return None
    points = facts.run.turning_point[facts.reports.device_index]
    return _over_reports(np.mean, facts.first_norms < points)


def _share_below(facts: RoundFacts, penalties: Penalties) -> float | None:
    points = penalties.turning_point(facts.reports.num_samples)
    return _over_reports(np.mean, facts.first_norms < points)


def _used(name: str) -> Callable[[RoundFacts], float | None]:
    return lambda facts: None if facts.penalties is None else getattr(facts.penalties.used, name)


def _of_theory(
    figure: Callable[[RoundFacts, Penalties], float | None],
) -> Callable[[RoundFacts], float | None]:
    def value(facts: RoundFacts) -> float | None:
        theory = None if facts.penalties is None else facts.penalties.theory
        return None if theory is None else figure(facts, theory)

    return value


def _over_reports(figure: Callable[[NDArray[Any]], Any], values: NDArray[Any]) -> float | None:
    """Return a figure of those that computed; nothing where nobody did."""
    return float(figure(values)) if values.size else None


def _scaled(facts: RoundFacts) -> NDArray[Any]:
    scaled = facts.plan.scaled_contribution
    return np.full(len(facts.run.device_ids), math.nan) if scaled is None else scaled


def _allocation(name: str) -> Callable[[RoundFacts], Any]:
    return lambda facts: getattr(facts.plan.allocation, name)


def _in_hindsight(figure: Callable[[Hindsight], float]) -> Callable[[RoundFacts], float | None]:
    def value(facts: RoundFacts) -> float | None:
        return None if facts.outcome.hindsight is None else figure(facts.outcome.hindsight)

    return value


def _of_steps(name: str) -> Callable[[RoundFacts], float | None]:
    def value(facts: RoundFacts) -> float | None:
        found = facts.local_steps.get(name)
        return None if found is None else float(found[0])

    return value


def _norms_of_steps(facts: RoundFacts) -> list[NDArray[Any]]:
    """Return a column for each local step; of the first one alone where rounds have different numbers."""
    norms = facts.reports.gradient_norms
    return [facts.spread(column) for column in (norms[:, :1] if facts.run.chooses_steps else norms).T]


def _lost(fate: UploadFate) -> Callable[[RoundFacts], int]:
    return lambda facts: facts.count(fate)


def _total(name: str) -> Callable[[RoundFacts], float]:
    return lambda facts: float(getattr(facts.costs, name).sum())


def _cost(name: str) -> Callable[[RoundFacts], Any]:
    return lambda facts: getattr(facts.costs, name)


def _link(name: str) -> Callable[[RoundFacts], Any]:
    return lambda facts: getattr(facts.links, name)


def _of_heldout(name: str) -> Callable[[RoundFacts], float | None]:
    return lambda facts: None if facts.heldout is None else getattr(facts.heldout, name)


def _of_training(name: str) -> Callable[[RoundFacts], float | None]:
    return lambda facts: None if facts.training is None else getattr(facts.training, name)


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


def _of_ledger(name: str) -> Callable[[RoundFacts], Any]:
    return lambda facts: getattr(facts.ledger, name)


ROUND_COLUMNS: tuple[Column, ...] = (
    Column(
        "train_loss",
        "number",
        "mean loss after adaptation of the devices that computed, at the model that the round began with",
        lambda facts: _over_reports(np.mean, facts.reports.loss),
    ),
    Column(
        "heldout_loss",
        "number",
        "mean query loss of the held-out devices after adaptation; empty in rounds without evaluation",
        _of_heldout("mean_loss"),
    ),
    Column(
        "heldout_{metric}",
        "number",
        "mean over held-out devices of each one's metric",
        _of_heldout("mean_metric"),
    ),
    Column(
        "heldout_{metric}_pooled",
        "number",
        "the metric over all their query samples together",
        _of_heldout("pooled_metric"),
    ),
    Column(
        "training_loss",
        "number",
        "like heldout_loss, of all training devices, at the model that the round ended with; empty without "
        "evaluation.training_devices (train_loss: of those that computed, before the round, as they report)",
        _of_training("mean_loss"),
    ),
    Column(
        "training_loss_weighted",
        "number",
        "that loss over all their query samples together",
        _of_training("pooled_loss"),
    ),
    Column(
        "training_{metric}",
        "number",
        "mean over all training devices of each one's metric",
        _of_training("mean_metric"),
    ),
    Column(
        "update_norm",
        "number",
        "norm of the global model's change in the round; empty with Flower",
        lambda facts: facts.update_norm,
    ),
    Column("num_computed", "integer", "devices that computed", lambda facts: len(facts.reports)),
    Column(
        "num_selected",
        "integer",
        "devices that were to upload",
        lambda facts: len(facts.plan.selected),
    ),
    Column("num_received", "integer", "uploads that arrived", lambda facts: len(facts.outcome.received)),
    Column(
        "selected_devices",
        "devices",
        "their numbers in the partition, separated by spaces",
        lambda facts: facts.run.device_ids[facts.plan.selected].tolist(),
    ),
    Column(
        "num_local_steps",
        "integer",
        "tau of this round",
        lambda facts: facts.reports.gradient_norms.shape[1],
        needs_chosen_steps=True,
    ),
    *(
        Column(name, "number", meaning, _of_steps(name), needs_chosen_steps=True)
        for name, meaning in (
            (
                "loss_lipschitz",
                "rho after this round: change of the loss over the distance, as uploaders say",
            ),
            ("smoothness", "beta of Wang et al.: change of the gradient over the distance, likewise"),
            ("gradient_divergence", "delta: how far uploaders' gradients are from their mean"),
            ("drift_bound", "h(tau) of the next round's tau"),
            ("control_bound", "G(tau) of it, which it minimises as far as the budget allows"),
        )
    ),
    Column(
        "next_local_steps",
        "integer",
        "tau of the next round, chosen by these; 0: none fits into the budget, and the run ends",
        lambda facts: next_steps(facts.local_steps),
        needs_chosen_steps=True,
    ),
    Column(
        "gradient_norm_min",
        "number",
        "smallest norm of the first local step's gradient",
        lambda facts: _over_reports(np.min, facts.first_norms),
    ),
    Column(
        "gradient_norm_mean",
        "number",
        "mean of those norms",
        lambda facts: _over_reports(np.mean, facts.first_norms),
    ),
    Column(
        "gradient_norm_max",
        "number",
        "largest of those norms",
        lambda facts: _over_reports(np.max, facts.first_norms),
    ),
    Column(
        "share_below_turning_point",
        "number",
        "share of devices for which a smaller gradient would count more, see deviations.md",
        _below,
    ),
    *(
        Column(name, "number", meaning, value, needs_penalties=True)
        for name, meaning, value in (
            ("similarity_penalty", "lambda_1 that the round was scored with", _used("similarity")),
            ("variance_penalty", "lambda_2 that the round was scored with", _used("variance")),
            (
                "theory_similarity_penalty",
                "the least lambda_1 of Corollary 1, estimated and smoothed; empty before the first estimate",
                _of_theory(lambda _, theory: theory.similarity),
            ),
            (
                "theory_variance_penalty",
                "the same of lambda_2",
                _of_theory(lambda _, theory: theory.variance),
            ),
            (
                "theory_share_below_turning_point",
                "share of devices below the turning point of these two; 1: the bound prefers small gradients",
                _of_theory(_share_below),
            ),
        )
    ),
    Column(
        "contribution",
        "number",
        "U, Eq. (32), of what is expected to arrive",
        _allocation("contribution"),
        needs_cell=True,
    ),
    Column(
        "objective", "number", "U - eta_1 E - eta_2 T, problem (P)", _allocation("objective"), needs_cell=True
    ),
    Column(
        "objective_gap",
        "number",
        "proven relative distance to the optimum; empty if nothing is proven",
        _gap,
        needs_cell=True,
    ),
    Column(
        "allocation_status",
        "text",
        "how the method ended: optimal, gap reached, converged, feasible, infeasible, limit",
        lambda facts: _allocation("status")(facts).value,
        needs_cell=True,
    ),
    Column(
        "true_objective",
        "number",
        "the same of the plan with the gains that uploads met, luck averaged out",
        _in_hindsight(lambda hindsight: hindsight.plan.objective),
        needs_cell=True,
        needs_estimation=True,
    ),
    Column(
        "clairvoyant_objective",
        "number",
        "the certified optimum with those gains",
        _in_hindsight(lambda hindsight: hindsight.clairvoyant.objective),
        needs_cell=True,
        needs_estimation=True,
    ),
    Column(
        "regret",
        "number",
        "its proven bound less true_objective",
        _in_hindsight(lambda hindsight: hindsight.regret),
        needs_cell=True,
        needs_estimation=True,
    ),
    *(
        Column(
            f"num_{fate.name.lower()}",
            "integer",
            meaning,
            _lost(fate),
            needs_cell=True,
        )
        for fate, meaning in (
            (UploadFate.DROPPED_OUT, "devices that left before their upload"),
            (UploadFate.OUTAGE, "uploads below the decoder's threshold"),
            (UploadFate.PACKET_ERROR, "uploads lost to packet errors"),
            (UploadFate.LATE, "uploads that missed the deadline"),
        )
    ),
    Column(
        "note",
        "text",
        "what a reader of the round should know, e.g. why nobody uploads",
        _note,
        needs_cell=True,
    ),
    Column(
        "downlink_energy_j",
        "number",
        "joules of listening to the broadcast of the global model",
        _total("downlink_energy_j"),
        needs_cell=True,
    ),
    Column(
        "downlink_time_s",
        "number",
        "seconds of that broadcast",
        lambda facts: float(facts.costs.downlink_time_s.max(initial=0.0)),
        needs_cell=True,
    ),
    Column(
        "broadcast_energy_j",
        "number",
        "joules of the base station for it; no battery's, so in no sum",
        _cost("broadcast_energy_j"),
        needs_cell=True,
    ),
    Column(
        "compute_energy_j",
        "number",
        "joules of all local updates",
        _total("compute_energy_j"),
        needs_cell=True,
    ),
    Column(
        "report_energy_j",
        "number",
        "joules of all contribution reports",
        _total("report_energy_j"),
        needs_cell=True,
    ),
    Column("upload_energy_j", "number", "joules of all uploads", _total("upload_energy_j"), needs_cell=True),
    Column("idle_energy_j", "number", "joules of waiting", _total("idle_energy_j"), needs_cell=True),
    Column("energy_j", "number", "the round's joules", _cost("energy_j"), needs_cell=True),
    Column("delay_s", "number", "the round's seconds on the cell's clock", _cost("delay_s"), needs_cell=True),
    Column("cumulative_energy_j", "number", "joules so far", _of_ledger("energy_j"), needs_cell=True),
    Column(
        "cumulative_delay_s",
        "number",
        "seconds so far on the cell's clock",
        _of_ledger("elapsed_s"),
        needs_cell=True,
    ),
    Column(
        "num_flat",
        "integer",
        "uploads lost because the battery ran out",
        _lost(UploadFate.FLAT),
        needs_battery=True,
    ),
    Column(
        "num_awake",
        "integer",
        "devices with charge enough for the next round",
        lambda facts: int(facts.battery.is_awake.sum()),
        needs_battery=True,
    ),
    Column(
        "clock_s",
        "number",
        "when the next round begins, in seconds since the first, pauses included",
        lambda facts: facts.battery.clock_s,
        needs_battery=True,
    ),
    Column("wall_time_s", "number", "seconds that this computer took", lambda facts: facts.wall_time_s),
)

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
        needs_cell=True,
    ),
    Column(
        "is_received",
        "integer",
        "1 if its upload arrived",
        lambda facts: facts.mask(facts.outcome.received),
        needs_cell=True,
    ),
    Column("block", "integer", "its radio block; -1: none", _allocation("block_of_device"), needs_cell=True),
    Column(
        "bandwidth_hz",
        "number",
        "what it holds of the band when uploads begin, or in its slot; 0 without an upload",
        _allocation("bandwidth_of_device_hz"),
        needs_cell=True,
        needs_shares=True,
    ),
    Column(
        "upload_start_s",
        "number",
        "when its upload begins after the first one; 0 unless devices take turns",
        _cost("upload_start_s"),
        needs_cell=True,
        needs_shares=True,
    ),
    Column("num_samples", "integer", "D_i, its training samples", _link("num_samples"), needs_cell=True),
    Column(
        "channel_gain", "number", "h on its block; empty without one", _link("channel_gain"), needs_cell=True
    ),
    Column("interference_w", "number", "I of its block", _link("interference_w"), needs_cell=True),
    Column("sinr", "number", "p h / (I + B N0), as a ratio", _link("sinr"), needs_cell=True),
    Column("rate_bps", "number", "its rate, Eq. (25)", _link("rate_bps"), needs_cell=True),
    Column("transmit_power_w", "number", "its power", _allocation("transmit_power_w"), needs_cell=True),
    Column(
        "cpu_frequency_hz", "number", "its CPU frequency", _allocation("cpu_frequency_hz"), needs_cell=True
    ),
    *(
        Column(f"{phase}_{what}", "number", f"{unit} of {meaning}", _cost(f"{phase}_{what}"), needs_cell=True)
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
        _of_ledger("device_energy_j"),
        needs_cell=True,
    ),
    Column(
        "battery_j",
        "number",
        "the charge of its battery when the next round begins",
        lambda facts: facts.battery.charge_j,
        needs_battery=True,
    ),
    Column(
        "harvested_j",
        "number",
        "joules that came in since the round began; a full battery does not hold them all",
        lambda facts: facts.battery.harvested_j,
        needs_battery=True,
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


def record_round(facts: RoundFacts) -> RoundRecord:
    """Return the record of a round: every column that applies."""
    over_cell, on_battery = facts.outcome.costs is not None, facts.outcome.battery is not None
    kind = {"over_cell": over_cell, "on_battery": on_battery, "shows_shares": facts.run.shows_shares}
    kind |= {"shows_regret": facts.run.shows_regret, "has_estimates": facts.run.has_estimates}
    kind["chooses_steps"] = facts.run.chooses_steps
    columns = {
        column.name.format(metric=facts.run.metric.name): column.value(facts)
        for column in ROUND_COLUMNS
        if column.applies(**kind)
    }
    device_columns: dict[str, NDArray[Any]] = {}
    for column in DEVICE_COLUMNS:
        if not column.applies(**kind):
            continue
        value = column.value(facts)
        if column.name == PLANNERS_OWN:
            device_columns |= {column.name.format(own=own): one for own, one in value.items()}
        elif "{step}" in column.name:
            device_columns |= {column.name.format(step=step): one for step, one in enumerate(value)}
        else:
            device_columns[column.name] = value
    return RoundRecord(
        facts.round_index, columns, facts.run.device_ids, device_columns, facts.heldout, facts.plan
    )


def table_headers(
    metric: Metric,
    *,
    over_cell: bool,
    num_local_steps: int,
    on_battery: bool = False,
    shows_regret: bool = False,
    has_estimates: bool = False,
    chooses_steps: bool = False,
    shows_shares: bool = False,
) -> dict[str, list[str]]:
    """Return the names of the columns that a run's tables have, in order, but for those of its planner."""
    kind = {"over_cell": over_cell, "on_battery": on_battery, "chooses_steps": chooses_steps}
    kind["shows_shares"] = shows_shares
    kind |= {"shows_regret": shows_regret, "has_estimates": has_estimates}
    num_shown = 1 if chooses_steps else num_local_steps
    rounds = [c.name.format(metric=metric.name) for c in ROUND_COLUMNS if c.applies(**kind)]
    devices: list[str] = []
    for column in DEVICE_COLUMNS:
        if column.applies(**kind) and column.name != PLANNERS_OWN:
            steps = range(num_shown) if "{step}" in column.name else range(1)
            devices += [column.name.format(step=step) for step in steps]
    heldout = [name.format(metric=metric.name) for name, _, _ in HELDOUT_COLUMNS]
    return {
        "rounds.csv": ["round", *rounds],
        "devices.csv": ["round", "device", *devices],
        "heldout.csv": ["round", "device", *heldout],
    }


def kind_of(name: str, columns: Sequence[tuple[str, Kind]]) -> Kind | None:
    """Return the declared type of a column by its name; None if none is declared."""
    for declared, kind in columns:
        pattern = re.escape(declared).replace(r"\{metric\}", "[a-z_]+").replace(r"\{step\}", r"\d+")
        pattern = pattern.replace(r"\{own\}", "[a-z][a-z0-9_]*")
        if re.fullmatch(pattern, name):
            return kind
    return None
