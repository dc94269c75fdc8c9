"""The columns of rounds.csv. A new one is one more line: table, reader and documentation follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.selection import Penalties
from fedwave.server import Hindsight
from fedwave.server.local_steps import next_steps
from fedwave.simulation.column import Column, of_allocation, of_costs, of_ledger
from fedwave.simulation.facts import RoundFacts
from fedwave.wireless.delivery import UploadFate


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


def _in_hindsight(figure: Callable[[Hindsight], float]) -> Callable[[RoundFacts], float | None]:
    def value(facts: RoundFacts) -> float | None:
        return None if facts.outcome.hindsight is None else figure(facts.outcome.hindsight)

    return value


def _of_steps(name: str) -> Callable[[RoundFacts], float | None]:
    def value(facts: RoundFacts) -> float | None:
        found = facts.local_steps.get(name)
        return None if found is None else float(found[0])

    return value


def _lost(fate: UploadFate) -> Callable[[RoundFacts], int]:
    return lambda facts: facts.count(fate)


def _total(name: str) -> Callable[[RoundFacts], float]:
    return lambda facts: float(getattr(facts.costs, name).sum())


def _of_heldout(name: str) -> Callable[[RoundFacts], float | None]:
    return lambda facts: None if facts.heldout is None else getattr(facts.heldout, name)


def _of_training(name: str) -> Callable[[RoundFacts], float | None]:
    return lambda facts: None if facts.training is None else getattr(facts.training, name)


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
        needs="steps",
    ),
    *(
        Column(name, "number", meaning, _of_steps(name), needs="steps")
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
        needs="steps",
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
        Column(name, "number", meaning, value, needs="penalties")
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
        of_allocation("contribution"),
        needs="cell",
    ),
    Column(
        "objective", "number", "U - eta_1 E - eta_2 T, problem (P)", of_allocation("objective"), needs="cell"
    ),
    Column(
        "objective_gap",
        "number",
        "proven relative distance to the optimum; empty if nothing is proven",
        _gap,
        needs="cell",
    ),
    Column(
        "allocation_status",
        "text",
        "how the method ended: optimal, gap reached, converged, feasible, infeasible, limit",
        lambda facts: of_allocation("status")(facts).value,
        needs="cell",
    ),
    Column(
        "true_objective",
        "number",
        "the same of the plan with the gains that uploads met, luck averaged out",
        _in_hindsight(lambda hindsight: hindsight.plan.objective),
        needs="estimation",
    ),
    Column(
        "clairvoyant_objective",
        "number",
        "the certified optimum with those gains",
        _in_hindsight(lambda hindsight: hindsight.clairvoyant.objective),
        needs="estimation",
    ),
    Column(
        "regret",
        "number",
        "its proven bound less true_objective",
        _in_hindsight(lambda hindsight: hindsight.regret),
        needs="estimation",
    ),
    *(
        Column(
            f"num_{fate.name.lower()}",
            "integer",
            meaning,
            _lost(fate),
            needs="cell",
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
        needs="cell",
    ),
    Column(
        "downlink_energy_j",
        "number",
        "joules of listening to the broadcast of the global model",
        _total("downlink_energy_j"),
        needs="cell",
    ),
    Column(
        "downlink_time_s",
        "number",
        "seconds of that broadcast",
        lambda facts: float(facts.costs.downlink_time_s.max(initial=0.0)),
        needs="cell",
    ),
    Column(
        "broadcast_energy_j",
        "number",
        "joules of the base station for it; no battery's, so in no sum",
        of_costs("broadcast_energy_j"),
        needs="cell",
    ),
    Column(
        "compute_energy_j",
        "number",
        "joules of all local updates",
        _total("compute_energy_j"),
        needs="cell",
    ),
    Column(
        "report_energy_j",
        "number",
        "joules of all contribution reports",
        _total("report_energy_j"),
        needs="cell",
    ),
    Column("upload_energy_j", "number", "joules of all uploads", _total("upload_energy_j"), needs="cell"),
    Column("idle_energy_j", "number", "joules of waiting", _total("idle_energy_j"), needs="cell"),
    Column("energy_j", "number", "the round's joules", of_costs("energy_j"), needs="cell"),
    Column("delay_s", "number", "the round's seconds on the cell's clock", of_costs("delay_s"), needs="cell"),
    Column("cumulative_energy_j", "number", "joules so far", of_ledger("energy_j"), needs="cell"),
    Column(
        "cumulative_delay_s",
        "number",
        "seconds so far on the cell's clock",
        of_ledger("elapsed_s"),
        needs="cell",
    ),
    Column(
        "num_flat",
        "integer",
        "uploads lost because the battery ran out",
        _lost(UploadFate.FLAT),
        needs="battery",
    ),
    Column(
        "num_awake",
        "integer",
        "devices with charge enough for the next round",
        lambda facts: int(facts.battery.is_awake.sum()),
        needs="battery",
    ),
    Column(
        "clock_s",
        "number",
        "when the next round begins, in seconds since the first, pauses included",
        lambda facts: facts.battery.clock_s,
        needs="battery",
    ),
    Column("wall_time_s", "number", "seconds that this computer took", lambda facts: facts.wall_time_s),
)
