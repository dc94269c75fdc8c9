"""One round with hand-written actors: who is asked what, in which order, and what becomes of the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch

from fedwave.learning import Parameters
from fedwave.server import Outcome, Plan, PlannerState, Reports, RoundCosts, StepsHeard
from fedwave.simulation.facts import RoundFacts
from fedwave.simulation.ledger import Ledger
from fedwave.simulation.round import Federation, choose_steps, play_round
from fedwave.simulation.state import State
from fedwave.units import FloatArray
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.terms import ChannelDraw

CHANNEL = ChannelDraw(np.ones(4), np.zeros(2))
REPORTS = Reports(
    device_index=np.array([0, 2, 3]),
    contribution=np.array([3.0, 1.0, 2.0]),
    loss=np.array([0.5, 0.6, 0.7]),
    num_samples=np.array([10, 20, 30]),
    gradient_norms=np.ones((3, 1)),
)
PLAN = Plan(selected=np.array([0, 3]))
THETA = {"w": torch.tensor([1.0, 2.0])}
MODELS = {0: {"w": torch.tensor([3.0, 5.0])}, 3: {"w": torch.tensor([4.0, 9.0])}}


def costs(delay_s: float = 2.0) -> RoundCosts:
    zeros = np.zeros(4)
    return RoundCosts(
        compute_energy_j=np.array([1.0, 0.0, 2.0, 3.0]),
        compute_time_s=zeros,
        report_energy_j=zeros,
        report_time_s=zeros,
        upload_energy_j=np.array([0.5, 0.0, 0.0, 0.25]),
        upload_time_s=zeros,
        idle_energy_j=zeros,
        idle_time_s=zeros,
        delay_s=delay_s,
    )


@dataclass
class Actors:
    """A planner, a world, devices and a server step that note what they are asked."""

    outcome: Outcome
    models: dict[int, Parameters]
    planned: Plan = PLAN
    log: list[Any] = field(default_factory=list)

    # The world
    counts_costs = True
    fleet = None

    def channel(self, round_index: int) -> ChannelDraw:
        self.log.append(("channel", round_index))
        return CHANNEL

    def answer(self, round_index: int, plan: Plan, reports: Reports, channel: ChannelDraw | None) -> Outcome:
        assert (plan, reports, channel) == (self.planned, REPORTS, CHANNEL)
        self.log.append(("answer", round_index))
        return self.outcome

    # The planner
    max_models = 17
    num_blocks = 2

    def initial_state(self) -> PlannerState:
        raise AssertionError("a round starts from the state that it is given")

    def ask(self, round_index: int, state: PlannerState) -> Any:
        self.log.append(("ask", round_index, dict(state)))
        return REPORTS.device_index

    def plan(
        self,
        round_index: int,
        asked: Any,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        assert asked is REPORTS.device_index
        assert (reports, channel) == (REPORTS, CHANNEL)
        self.log.append(("plan", round_index, dict(state)))
        return self.planned

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        assert (reports, plan, outcome) == (REPORTS, self.planned, self.outcome)
        self.log.append(("after", round_index, dict(state)))
        return {"seen": "after"}  # type: ignore[dict-item]

    def with_devices(self, **devices: Any) -> Actors:
        raise AssertionError("all simulated devices are there")

    def describe(self) -> dict[str, Any]:
        raise AssertionError("a summary is no part of the round")

    # The devices
    def report(self, round_index: int, parameters: Parameters, device_index: Any, *, max_models: int) -> Any:
        assert parameters is THETA
        self.log.append(("report", round_index, device_index.tolist(), max_models))
        return REPORTS

    def collect(self, device_index: Any) -> Iterator[Parameters]:
        for device in device_index.tolist():
            self.log.append(("upload", device))
            yield self.models[device]

    def evaluate(self, parameters: Parameters) -> Any:
        raise AssertionError("evaluation is no part of the round")

    def close(self) -> None:
        raise AssertionError("whoever opened the devices closes them")


@dataclass
class SumsUp:
    """A server step: the weighted sum of the models; its state is the number of models so far."""

    needs_each_model = True
    log: list[Any]

    def initial_state(self, parameters: Parameters) -> Parameters:
        raise AssertionError("a round starts from the state that it is given")

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        assert parameters is THETA
        self.log.append("step" if weights is None else ("step", weights.tolist()))
        taken = [model["w"] for model in models]
        return {"w": torch.stack(taken).sum(0)}, {"count": state["count"] + len(taken)}


def play(
    outcome: Outcome,
    *,
    ledger: Ledger | None = None,
    models: dict[int, Parameters] = MODELS,
    bits_per_parameter: int = 32,
    plan: Plan = PLAN,
) -> tuple[State, State, RoundFacts, list[Any]]:
    actors = Actors(outcome, models, plan)
    federation = Federation(
        planner=actors,
        world=actors,
        server_step=SumsUp(actors.log),
        bits_per_parameter=bits_per_parameter,
    )
    before = State(4, THETA, {"count": torch.tensor(10)}, {"seen": "before"}, ledger)  # type: ignore[dict-item]
    after, facts = play_round(federation, actors, before)
    return before, after, facts, actors.log


def test_the_actors_take_their_turns_as_in_algorithm_1() -> None:
    outcome = Outcome(np.array([0, 3]), np.zeros(2, dtype=np.int64))
    before, after, facts, log = play(outcome)
    assert log == [
        ("channel", 4),
        ("ask", 4, {"seen": "before"}),
        ("report", 4, [0, 2, 3], 17),
        ("plan", 4, {"seen": "before"}),
        ("answer", 4),
        "step",
        ("upload", 0),
        ("upload", 3),
        ("after", 4, {"seen": "before"}),
    ]
    assert after.next_round == 5
    assert after.parameters["w"].tolist() == [7.0, 14.0]
    assert int(after.server_step["count"]) == 12
    assert after.planner == {"seen": "after"}
    assert after.ledger is None
    assert facts.round_index == 4
    assert (facts.reports, facts.plan, facts.outcome) == (REPORTS, PLAN, outcome)
    # The state that it started from is untouched.
    assert (before.next_round, before.planner) == (4, {"seen": "before"})
    assert before.parameters["w"].tolist() == [1.0, 2.0]
    assert int(before.server_step["count"]) == 10


def test_only_what_arrived_enters_the_servers_step() -> None:
    _, after, _, log = play(Outcome(np.array([3]), np.array([1, 0])))
    assert [entry for entry in log if entry[0] == "upload"] == [("upload", 3)]
    assert after.parameters["w"].tolist() == [4.0, 9.0]
    assert int(after.server_step["count"]) == 11


def test_when_nothing_arrives_model_and_server_step_stay_but_the_round_has_passed() -> None:
    nobody = Outcome(np.zeros(0, dtype=np.int64), np.array([1, 1]), costs())
    before, after, _, log = play(nobody)
    assert log[-1] == ("after", 4, {"seen": "before"})  # no step, no upload
    assert after.parameters is before.parameters
    assert after.server_step is before.server_step
    assert after.planner == {"seen": "after"}
    assert after.next_round == 5
    assert after.ledger is not None
    assert after.ledger.energy_j == 6.75  # energy was spent all the same


def test_the_ledger_starts_with_the_first_costs_and_goes_on_from_there() -> None:
    arrived = np.array([0, 3]), np.zeros(2, dtype=np.int64)
    _, first, _, _ = play(Outcome(*arrived, costs(2.0)))
    assert first.ledger is not None
    assert first.ledger.elapsed_s == 2.0
    assert first.ledger.device_energy_j.tolist() == [1.5, 0.0, 2.0, 3.25]
    before, second, _, _ = play(Outcome(*arrived, costs(0.5)), ledger=first.ledger)
    assert second.ledger is not None
    assert second.ledger.elapsed_s == 2.5
    assert second.ledger.device_energy_j.tolist() == [3.0, 0.0, 4.0, 6.5]
    assert before.ledger is first.ledger
    assert first.ledger.elapsed_s == 2.0
    # A round without costs leaves the account alone.
    _, third, _, _ = play(Outcome(*arrived), ledger=first.ledger)
    assert third.ledger is first.ledger


@pytest.mark.parametrize(("bits", "exact"), [(32, True), (16, False)])
def test_an_upload_with_fewer_bits_is_the_rounded_change_to_the_global_model(bits: int, exact: bool) -> None:
    change = 1.0 + 2.0**-12  # half a unit in the last place of a float16 at 1
    models = {device: {"w": THETA["w"] + torch.tensor([change, 2.0])} for device in MODELS}
    outcome = Outcome(np.array([0, 3]), np.zeros(2, dtype=np.int64))
    _, after, _, _ = play(outcome, models=models, bits_per_parameter=bits)
    expected = 2 * (1.0 + (change if exact else 1.0))
    assert after.parameters["w"].tolist() == [expected, 8.0]


def test_the_step_gets_the_weights_of_those_that_arrived() -> None:
    weighted = Plan(selected=np.array([0, 2, 3]), weights=np.array([1.0, 10.0, 4.0]))
    _, _, _, log = play(Outcome(np.array([0, 3]), np.array([0, 1, 0])), plan=weighted)
    assert ("step", [1.0, 4.0]) in log


def test_the_facts_of_a_round_have_the_ledger_after_it() -> None:
    _, after, facts, _ = play(Outcome(np.array([0]), np.array([0, 1]), costs(2.0)))
    assert facts.ledger is after.ledger
    assert facts.frame is None


def test_a_planner_without_a_member_is_named_before_the_first_round() -> None:
    class Forgetful:
        def initial_state(self) -> PlannerState:
            return {}

        ask = plan = with_devices = describe = initial_state
        max_models = 1

    actors = Actors(Outcome(np.array([0]), np.zeros(2, dtype=np.int64)), MODELS)
    with pytest.raises(TypeError, match=r"a planner must have .*, got .* without after\. Derive it from"):
        Federation(planner=Forgetful(), world=actors, server_step=SumsUp([]))  # type: ignore[arg-type]


class Notes:
    """Local steps that note what they hear."""

    heard: StepsHeard

    def initial_state(self) -> PlannerState:
        raise AssertionError("a round starts from the state that it is given")

    def after(self, heard: StepsHeard, state: PlannerState) -> PlannerState:
        self.heard = heard
        return {"num_local_steps": state["num_local_steps"] + 1}


def test_local_steps_hear_how_far_first_gradients_differ() -> None:
    """By hand: the uploads went (2, 3) and (3, 7), their first gradients have norms 5 and 2."""
    reports = replace(REPORTS, gradient_norms=np.array([[5.0, 50.0], [7.0, 70.0], [2.0, 20.0]]))
    assert reports.device_index.tolist() == [0, 2, 3]
    facts = RoundFacts(
        round_index=4,
        reports=reports,
        plan=PLAN,
        outcome=Outcome(fate=np.array([UploadFate.ARRIVED] * 2), received=np.array([0, 3])),
    )
    state = State(next_round=5, parameters=THETA, local_steps={"num_local_steps": np.array([2])})
    notes = Notes()
    after = choose_steps(notes, state, facts, THETA, list(MODELS.values()))
    assert after.local_steps["num_local_steps"].tolist() == [3]
    assert notes.heard.num_local_steps == 2
    one, two = 5.0 * np.array([-2, -3]) / 13**0.5, 2.0 * np.array([-3, -7]) / 58**0.5
    half = float(np.linalg.norm(one - two)) / 2  # from their mean
    assert notes.heard.gradient_divergence == pytest.approx([half, half])
