"""The settings of batteries: draws within their ranges, each from a stream of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedwave.errors import FedwaveError
from fedwave.settings import validate
from fedwave.wireless.settings.battery import BatteryConfig, draw_batteries


def config(**given: Any) -> BatteryConfig:
    return validate(BatteryConfig, {"capacity_j": 100.0, **given}, root="cell.battery")


def test_batteries_are_full_and_lossless_by_default() -> None:
    found = draw_batteries(config(), num_devices=3, seed=0)
    assert found.initial_charge_j.tolist() == found.capacity_j.tolist() == [100.0] * 3
    assert not found.draw_w.any()
    assert not found.min_charge_j.any()
    assert found.interval_s == 0.0
    assert not found.harvest.energy_j(0.0, 1e6).any()


def test_each_quantity_is_drawn_by_itself_and_shares_are_of_the_own_capacity() -> None:
    given = {"capacity_j": {"low": 50.0, "high": 150.0}, "min_charge": 0.25}
    found = draw_batteries(config(**given, initial_charge={"low": 0.5, "high": 1.0}), num_devices=400, seed=3)
    assert found.capacity_j.mean() == pytest.approx(100.0, abs=4 * 100.0 / np.sqrt(12 * 400))
    share = found.initial_charge_j / found.capacity_j
    assert share.min() >= 0.5
    assert share.mean() == pytest.approx(0.75, abs=4 * 0.5 / np.sqrt(12 * 400))
    assert abs(np.corrcoef(share, found.capacity_j)[0, 1]) < 0.2
    np.testing.assert_allclose(found.min_charge_j, 0.25 * found.capacity_j)
    plain = draw_batteries(config(**given), num_devices=400, seed=3)
    assert plain.capacity_j.tolist() == found.capacity_j.tolist()
    assert draw_batteries(config(**given), num_devices=400, seed=4).capacity_j[0] != plain.capacity_j[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"capacity_j": 0.0}, r"cell\.battery\.capacity_j must lie in .* got 0"),
        ({"capacity_j": {"low": -2.0, "high": -1.0}}, "capacity_j must lie in"),
        ({"initial_charge": 1.5}, r"initial_charge must lie in 0 to 1, got 1\.5"),
        ({"draw_w": -0.1}, r"draw_w must lie in 0 to .* got -0\.1"),
        ({"min_charge": 1.0}, "min_charge"),
        ({"interval_s": -1.0}, "interval_s"),
        ({"harvest": {"kind": "constant", "power_w": 1.0}}, "needs cell.battery.interval_s > 0, got 0"),
        ({"harvest": {"kind": "dey", "peak_w": 1.0}, "interval_s": 1.0}, "day"),
        ({"harvest": {"kind": "day"}, "interval_s": 1.0}, "peak_w"),
    ],
)
def test_what_no_battery_can_be_is_refused_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(FedwaveError, match=message) as caught:
        draw_batteries(config(**given), num_devices=4, seed=0)
    assert "\n" not in str(caught.value)
