"""One round of Alg. 1 and its four actors: the air, the devices, the server, and the world that answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from fedwave.devices.base import Devices
from fedwave.errors import shown
from fedwave.learning import Parameters
from fedwave.learning.gradient_spread import gradient_divergence
from fedwave.learning.parameters import distance
from fedwave.learning.quantise import received_model
from fedwave.learning.server_steps import ServerStep
from fedwave.server import LocalSteps, Planner, Reports, StepsHeard
from fedwave.server.local_steps import next_steps
from fedwave.server.planner import MIN_KEPT_MODELS
from fedwave.simulation.facts import RoundFacts, Trait
from fedwave.simulation.ledger import Ledger
from fedwave.simulation.penalties import ChangingPenalties
from fedwave.simulation.power import Charge, Power
from fedwave.simulation.state import State
from fedwave.simulation.world import World
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.terms import ChannelDraw

_MEMBERS = {
    "planner": (
        "initial_state",
        "ask",
        "plan",
        "after",
        "with_devices",
        "max_models",
        "num_blocks",
        "describe",
    ),
    "world": ("counts_costs", "fleet", "channel", "answer"),
    "server_step": ("initial_state", "step", "needs_each_model"),
}
_BASES = {"planner": " Derive it from fedwave.server.PlannerDefaults or PlannerAround, which have it."}


@dataclass(frozen=True, kw_only=True, eq=False)
class Federation:
    """Who decides, who answers, and how received models become the next global model."""

    planner: Planner
    world: World
    server_step: ServerStep
    bits_per_parameter: int = 32  # of an upload
    power: Power | None = None  # the batteries that the devices live on; None: they never run out
    penalties: ChangingPenalties | None = None  # where lambda_1 and lambda_2 are estimated; None: fixed
    shows_regret: bool = False  # the world says what a plan was worth with gains that no planner knew
    local_steps: LocalSteps | None = None  # who chooses tau of every round; None: it is always the same
    shows_shares: bool = False  # devices hold other than one block each: devices.csv says what, and when

    def __post_init__(self) -> None:
        for part, members in _MEMBERS.items():
            for member in members:
                if not hasattr(getattr(self, part), member):
                    raise TypeError(
                        f"a {part} must have {', '.join(members)}, got {shown(getattr(self, part))} without "
                        f"{member}.{_BASES.get(part, ' Add it.')}"
                    )

    @property
    def traits(self) -> frozenset[Trait]:
        """What decides which columns the tables have."""
        has: dict[Trait, bool] = {
            "cell": self.world.counts_costs,
            "battery": self.power is not None,
            "estimation": self.shows_regret,
            "penalties": self.penalties is not None,
            "steps": self.local_steps is not None,
            "access": self.shows_shares,
        }
        return frozenset(trait for trait, is_there in has.items() if is_there)


def play_round(federation: Federation, devices: Devices, state: State) -> tuple[State, RoundFacts]:
    """Return the state after one round, and what happened in it."""
    k, before = state.next_round, state.parameters
    if federation.power is not None and state.charge is not None:  # who is flat is not asked
        planner = federation.power.among_awake(federation.planner, state.charge)
        federation = replace(federation, planner=planner)
    planner, channel = federation.planner, federation.world.channel(k)
    asked = planner.ask(k, state.planner)
    # Devices keep what contributes most by fixed penalties; others may choose otherwise.
    max_models = planner.max_models if federation.penalties is None else MIN_KEPT_MODELS
    steps = {} if federation.local_steps is None else {"num_local_steps": next_steps(state.local_steps)}
    reports = devices.report(k, before, asked, max_models=max_models, **steps)  # Alg. 1, 3-11
    if federation.penalties is not None and state.penalties is not None:
        penalties, reports = federation.penalties.after_reports(k, before, reports, state.penalties)
        state = replace(state, penalties=penalties)
    facts = decide_round(federation, state, asked, reports, channel)
    received = facts.outcome.received
    seen: list[Parameters] | None = None if federation.local_steps is None else []
    if len(received):  # else the model stays as it is
        models, weights = devices.collect(received), facts.plan.weights_of(received)
        state = take_models(federation, state, models, weights, seen=seen)
    after = close_round(federation, state, facts)
    if federation.local_steps is not None:
        after = choose_steps(federation.local_steps, after, facts, before, seen or [])
    return after, replace(
        facts,
        ledger=after.ledger,
        update_norm=distance(before, after.parameters),
        penalties=after.penalties,
        local_steps=after.local_steps,
    )


def decide_round(
    federation: Federation, state: State, asked: IntArray, reports: Reports, channel: ChannelDraw | None
) -> RoundFacts:
    """Return who uploads, and what the world answers: Alg. 1, line 12; Alg. 3."""
    k = state.next_round
    plan = federation.planner.plan(k, asked, reports, channel, state.planner)
    outcome = federation.world.answer(k, plan, reports, channel)
    if federation.power is not None and state.charge is not None:
        outcome = federation.power.drain(plan, outcome, state.charge)
    return RoundFacts(round_index=k, reports=reports, plan=plan, outcome=outcome)


def close_round(federation: Federation, state: State, facts: RoundFacts) -> State:
    """Return the state after a round but for its model: the planner has heard what became of its plan."""
    k, costs, battery = facts.round_index, facts.outcome.costs, facts.outcome.battery
    planner = federation.planner.after(k, facts.reports, facts.plan, facts.outcome, state.planner)
    charge = state.charge if battery is None else Charge(battery.charge_j, battery.clock_s)
    after = replace(state, next_round=k + 1, planner=planner, charge=charge)
    if costs is None:
        return after
    before = state.ledger or Ledger.empty(len(costs.compute_energy_j))
    return replace(after, ledger=before.after(costs))


def choose_steps(
    local_steps: LocalSteps, state: State, facts: RoundFacts, before: Parameters, models: list[Parameters]
) -> State:
    """Return the state with the next round's number of local steps, given the models as they arrived."""
    received, reports = facts.outcome.received, facts.reports
    rows = np.searchsorted(reports.device_index, received)
    heard = StepsHeard(
        num_local_steps=next_steps(state.local_steps),
        reports=reports,
        plan=facts.plan,
        outcome=facts.outcome,
        gradient_divergence=gradient_divergence(
            before, models, reports.gradient_norms[rows, 0], facts.plan.weights_of(received)
        )
        if models
        else np.zeros(0),
    )
    return replace(state, local_steps=local_steps.after(heard, state.local_steps))


def take_models(
    federation: Federation,
    state: State,
    models: Iterable[Parameters],
    weights: FloatArray | None,
    *,
    seen: list[Parameters] | None = None,
) -> State:
    """Return the state with the next global model, made of one or more uploads: Alg. 1, line 13; Eq. (6).

    ``weights`` are those of the models, in their order; None: all weigh the same. ``seen`` is given those
    that the server received.
    """
    bits = federation.bits_per_parameter
    received: Iterable[Parameters] = (received_model(state.parameters, own, bits) for own in models)
    if seen is not None:
        seen += received
        received = seen
    parameters, step_state = federation.server_step.step(
        state.parameters, received, weights, state.server_step
    )
    return replace(state, parameters=parameters, server_step=step_state)
