"""One round of Alg. 1 and its four actors: the air, the devices, the server, and the world that answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fedwave.devices.base import Devices
from fedwave.learning import Parameters
from fedwave.learning.quantise import received_model
from fedwave.learning.server_steps import ServerStep
from fedwave.server import Plan, Planner, Reports
from fedwave.simulation.ledger import Ledger
from fedwave.simulation.state import State
from fedwave.simulation.world import Outcome, World
from fedwave.wireless.channel_draw import ChannelDraw


@dataclass(frozen=True, kw_only=True, eq=False)
class Federation:
    """Who decides, who answers, and how received models become the next global model."""

    planner: Planner
    world: World
    server_step: ServerStep
    bits_per_parameter: int = 32  # of an upload


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundEvents:
    """What happened in a round, for the record."""

    round_index: int
    reports: Reports
    plan: Plan
    outcome: Outcome


def play_round(federation: Federation, devices: Devices, state: State) -> tuple[State, RoundEvents]:
    """Return the state after one round, and what happened in it."""
    k, planner = state.next_round, federation.planner
    channel = federation.world.channel(k)
    asked = planner.ask(k, state.planner)
    reports = devices.report(k, state.parameters, asked, max_models=planner.max_models)  # Alg. 1, 3-11
    after, events = decide_round(federation, state, reports, channel)
    if len(events.outcome.received):  # else the model stays as it is
        models = devices.collect(events.outcome.received)
        after = take_models(federation, after, models)
    return after, events


def decide_round(
    federation: Federation, state: State, reports: Reports, channel: ChannelDraw | None
) -> tuple[State, RoundEvents]:
    """Return the state after a round but for its model, and who uploads: Alg. 1, line 12; Alg. 3."""
    k = state.next_round
    plan, planner_state = federation.planner.plan(k, reports, channel, state.planner)
    outcome = federation.world.play(k, plan, reports, channel)
    after = replace(state, next_round=k + 1, planner=planner_state)
    if outcome.costs is not None:
        before = state.ledger or Ledger.empty(len(outcome.costs.compute_energy_j))
        after = replace(after, ledger=before.after(outcome.costs))
    return after, RoundEvents(round_index=k, reports=reports, plan=plan, outcome=outcome)


def take_models(federation: Federation, state: State, models: Iterable[Parameters]) -> State:
    """Return the state with the next global model, made of one or more uploads: Alg. 1, line 13; Eq. (6)."""
    received = (received_model(state.parameters, own, federation.bits_per_parameter) for own in models)
    parameters, step_state = federation.server_step.step(state.parameters, received, state.server_step)
    return replace(state, parameters=parameters, server_step=step_state)
