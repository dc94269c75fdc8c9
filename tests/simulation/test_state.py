"""The state of a run as tensors by name, and back: every part saves itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fedwave.errors import RunError
from fedwave.learning.server_steps import ServerMomentum
from fedwave.selection import History, Penalties
from fedwave.server.policy_runner import history_to_state
from fedwave.simulation.ledger import Ledger
from fedwave.simulation.penalties import PenaltyState
from fedwave.simulation.power import Charge
from fedwave.simulation.state import PARTS, State

PARAMETERS = {"conv1.weight": torch.randn(2, 3), "bias": torch.tensor(0.25)}
STEPS = {"num_local_steps": np.array([4])}


def full_state() -> State:
    step = ServerMomentum()
    _, velocity = step.step(
        PARAMETERS,
        [{name: 2.0 * value for name, value in PARAMETERS.items()}],
        None,
        step.initial_state(PARAMETERS),
    )
    planner = {
        **history_to_state(History.empty(3)),
        "budget_j": np.array([[0.5, 1.5]]),
        "flags": np.array([True, False]),
    }
    charge = Charge(np.array([0.5, 0.0, 4.0]), 90.0)
    ledger, penalties = Ledger(12.5, np.array([1.0, 2.0, 3.0])), PenaltyState(Penalties(0.5, 3.0))
    return State(7, PARAMETERS, velocity, planner, ledger, charge, penalties, STEPS)


def test_a_state_comes_back_from_its_tensors_bit_by_bit() -> None:
    state = full_state()
    back = State.from_tensors(7, {name: value.clone() for name, value in state.to_tensors().items()})
    assert back.next_round == 7
    for part in ("parameters", "server_step"):
        mine, theirs = getattr(state, part), getattr(back, part)
        assert sorted(mine) == list(theirs)
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert sorted(state.planner) == list(back.planner)
    for name, values in state.planner.items():
        np.testing.assert_array_equal(back.planner[name], values)
        assert back.planner[name].dtype == values.dtype
    assert state.ledger is not None
    assert back.ledger is not None
    assert back.ledger.elapsed_s == 12.5
    assert back.ledger.device_energy_j.tolist() == [1.0, 2.0, 3.0]
    assert back.charge is not None
    assert back.charge.clock_s == 90.0
    assert back.charge.charge_j.tolist() == [0.5, 0.0, 4.0]
    assert back.local_steps["num_local_steps"].tolist() == [4]
    assert back.local_steps["num_local_steps"].dtype == np.int64
    assert any(bool(value.any()) for value in back.server_step.values())  # a momentum that is not zero


def test_arrays_that_share_memory_are_saved_one_by_one(tmp_path: Path) -> None:
    never = np.full(3, np.nan)
    state = State(1, PARAMETERS, planner={"charge_j": never, "capacity_j": never}, charge=Charge(never, 0.0))
    save_file(state.to_tensors(), tmp_path / "state.safetensors")  # which refuses shared memory
    assert sorted(load_file(tmp_path / "state.safetensors")) == sorted(state.to_tensors())


def test_each_tensor_is_named_after_its_part() -> None:
    names = set(full_state().to_tensors())
    assert {name.partition(".")[0] for name in names} == set(PARTS)
    assert {"parameters.conv1.weight", "server_step.bias", "planner.history.last_loss"} <= names
    assert {"planner.budget_j", "ledger.elapsed_s", "ledger.device_energy_j"} <= names


def test_parts_that_hold_nothing_come_back_as_nothing() -> None:
    state = State(0, {"w": torch.zeros(1)})
    assert list(state.to_tensors()) == ["parameters.w"]
    back = State.from_tensors(0, state.to_tensors())
    assert back.server_step == {}
    assert back.planner == {}
    assert back.ledger is None


def test_parameters_come_back_in_the_order_of_their_names() -> None:
    back = State.from_tensors(0, {"parameters.b": torch.zeros(1), "parameters.a": torch.zeros(1)})
    assert list(back.parameters) == ["a", "b"]


@pytest.mark.parametrize("name", ["optimiser.w", "w", ""])
def test_an_unknown_part_is_refused(name: str) -> None:
    with pytest.raises(RunError) as caught:
        State.from_tensors(0, {"parameters.w": torch.zeros(1), name: torch.zeros(1)})
    assert str(caught.value) == (
        f'the checkpoint holds "{name}", which is no part of a state (parameters, server_step, planner, '
        "ledger, charge, penalties, local_steps). It was written by another version of fedwave; use that one."
    )


def test_a_state_on_another_device_keeps_every_part() -> None:
    state = full_state()
    there = state.to(torch.device("cpu"))
    assert there.next_round == 7
    assert all(torch.equal(there.parameters[name], value) for name, value in state.parameters.items())
    assert all(torch.equal(there.server_step[name], value) for name, value in state.server_step.items())
    assert there.planner is state.planner
    assert there.ledger is state.ledger
    assert there.local_steps is state.local_steps
    meta = state.to(torch.device("meta"))
    kinds = {value.device.type for part in (meta.parameters, meta.server_step) for value in part.values()}
    assert kinds == {"meta"}
