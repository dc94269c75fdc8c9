"""The account: sums of what devices spend, running over rounds."""

from __future__ import annotations

from numpy.testing import assert_allclose

from fedwave.simulation.ledger import Ledger
from tests.server.round_costs import COSTS


def test_the_ledger_adds_rounds_up_and_changes_nothing_in_place() -> None:
    empty = Ledger.empty(2)
    once = empty.after(COSTS)
    twice = once.after(COSTS)
    assert (empty.elapsed_s, empty.energy_j) == (0.0, 0.0)
    assert once.elapsed_s == 24.5
    assert twice.elapsed_s == 49.0
    assert_allclose(twice.device_energy_j, [1002.2, 84.4])
    assert_allclose(twice.energy_j, 1086.6)
    assert_allclose(once.device_energy_j, [501.1, 42.2])


def test_an_account_comes_back_from_its_arrays() -> None:
    ledger = Ledger.empty(2).after(COSTS)
    arrays = ledger.to_arrays()
    assert {name: array.shape for name, array in arrays.items()} == {
        "elapsed_s": (1,),
        "device_energy_j": (2,),
    }
    back = Ledger.from_arrays(arrays)
    assert back.elapsed_s == 24.5
    assert isinstance(back.elapsed_s, float)
    assert back.device_energy_j.tolist() == ledger.device_energy_j.tolist()
