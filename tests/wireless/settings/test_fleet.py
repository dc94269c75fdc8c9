"""Fleets: drawn by their distributions, or read from a file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ConfigError, ProblemError
from fedwave.settings import validate
from fedwave.wireless.cell import Cell
from fedwave.wireless.link import compute_energy_j
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.settings.distribution import Uniform
from fedwave.wireless.settings.fleet import FleetConfig, draw_fleet
from fedwave.wireless.settings.load import load_cell_config, with_preset


def test_a_fleet_follows_its_distributions():
    config = FleetConfig(
        max_power_dbm=23.0,
        max_frequency_hz=Uniform(low=1e9, high=2e9),
        capacitance=2e-28,
        cycles_per_sample=Uniform(low=0, high=0.25),
    )
    fleet = draw_fleet(config, num_devices=20_000, seed=0)
    assert_allclose(fleet.max_power_w, 0.1995262315)
    assert fleet.max_frequency_hz.mean() == pytest.approx(1.5e9, rel=0.006)
    assert fleet.max_frequency_hz.min() >= 1e9
    assert fleet.cycles_per_sample.mean() == pytest.approx(0.125, rel=0.018)


def test_columns_of_the_fleet_are_drawn_independently():
    uniform = FleetConfig(
        max_power_w=Uniform(low=0, high=1),
        max_frequency_hz=Uniform(low=0, high=2),
        capacitance=Uniform(low=0, high=1),
        cycles_per_sample=Uniform(low=0, high=1),
    )
    before = draw_fleet(uniform, num_devices=50, seed=3)
    after = draw_fleet(uniform.model_copy(update={"max_power_w": 0.5}), num_devices=50, seed=3)
    assert (after.max_power_w == 0.5).all()
    assert (after.max_frequency_hz == before.max_frequency_hz).all()
    assert (after.cycles_per_sample == before.cycles_per_sample).all()
    assert abs(np.corrcoef(before.max_power_w, before.capacitance)[0, 1]) < 0.5


def test_work_follows_from_the_models_operations_unless_it_is_given():
    config = load_cell_config("umi-3.5ghz", {"fleet": {"cycles_per_operation": 0.5}})
    cell = Cell.build(config, num_devices=2, seed=0, operations_per_sample=1e6)
    assert cell.fleet.cycles_per_sample.tolist() == [5e5, 5e5]
    given = load_cell_config("umi-3.5ghz", {"fleet": {"cycles_per_sample": 7.0}})
    assert given.fleet.cycles_per_operation is None
    cell = Cell.build(given, num_devices=2, seed=0, operations_per_sample=1e6)
    assert cell.fleet.cycles_per_sample.tolist() == [7.0, 7.0]


def test_joules_of_an_operation_are_the_same_at_any_frequency():
    given = {"max_power_w": 1.0, "max_frequency_hz": 1e8, "cycles_per_operation": 2.0}
    config = FleetConfig(**given, joules_per_operation=1.5e-9)
    fleet = draw_fleet(config, num_devices=3, seed=0, operations_per_sample=1e6)
    assert fleet.capacitance.tolist() == [0.0] * 3  # nothing depends on the frequency, unless it is given
    assert fleet.cycles_per_sample.tolist() == [2e6] * 3
    for frequency_hz in (1e6, 1e8):
        work = 10 * fleet.cycles_per_sample  # ten samples, ten million operations
        energy = compute_energy_j(
            np.full(3, frequency_hz),
            workload_cycles=work,
            capacitance=fleet.capacitance,
            joules_per_cycle=fleet.joules_per_cycle,
        )
        assert_allclose(energy, 0.015, rtol=1e-15)
    idle = FleetConfig(**given | {"cycles_per_operation": 0.0}, joules_per_operation=1.5e-9)
    assert draw_fleet(idle, num_devices=2, seed=0).joules_per_cycle.tolist() == [0.0, 0.0]
    cycles = FleetConfig(**given | {"capacitance": 3e-28}, joules_per_cycle=Uniform(low=1e-10, high=2e-10))
    fleet = draw_fleet(cycles, num_devices=5000, seed=0)
    assert fleet.joules_per_cycle.mean() == pytest.approx(1.5e-10, rel=0.01)
    assert set(fleet.capacitance) == {3e-28}  # both given: both count
    with pytest.raises(ProblemError, match=r"fleet\.capacitance is not given"):
        draw_fleet(FleetConfig(**given), num_devices=2, seed=0)


def test_two_spellings_at_once_are_refused():
    for one, other in (
        ("cycles_per_sample", "cycles_per_operation"),
        ("joules_per_cycle", "joules_per_operation"),
    ):
        with pytest.raises(ConfigError, match=f"{one} and {other} are both given"):
            load_cell_config("umi-3.5ghz", {"fleet": {one: 1.0, other: 1.0}})


def test_a_csv_may_have_static_powers_and_joules(tmp_path):
    path = write(tmp_path, "static_power_w,joules_per_cycle,capacitance\n0.1,2e-10,0\n0.2,3e-10,0\n")
    fleet = Cell.build(load_cell_config("umi-3.5ghz", {"fleet": {"path": path}}), num_devices=2, seed=0).fleet
    assert fleet.static_power_w.tolist() == [0.1, 0.2]
    assert fleet.joules_per_cycle.tolist() == [2e-10, 3e-10]
    path = write(tmp_path, "max_power_w,max_frequency_hz,cycles_per_sample,joules_per_cycle\n1,1e9,5,2e-10\n")
    fleet = draw_fleet(FleetConfig(path=path), num_devices=1, seed=0)
    assert fleet.capacitance.tolist() == [0.0]


@pytest.mark.parametrize(
    ("column", "values"),
    [("max_power_dbm", "30\n20"), ("max_power_mw", "1000\n100"), ("max_power_w", "1\n0.1")],
)
def test_a_csv_may_have_powers_in_dbm_and_milliwatts(tmp_path, column, values):
    path = write(tmp_path, f"{column}\n{values}\n")
    fleet = Cell.build(load_cell_config("umi-3.5ghz", {"fleet": {"path": path}}), num_devices=2, seed=0).fleet
    assert fleet.max_power_w == pytest.approx([1.0, 0.1])


def test_all_that_is_not_given_is_named_at_once(tmp_path):
    path = write(tmp_path, "max_power_dbm\n20\n", "mine.csv")
    told = (
        "fleet.max_frequency_hz, fleet.capacitance and fleet.cycles_per_sample are not given, nor columns in "
        'mine.csv. Set each to a number or to {low, high}; fleet.cpu = "phone" sets those of a processor.'
    )
    with pytest.raises(ProblemError, match=f"^{re.escape(told)}$"):
        draw_fleet(FleetConfig(path=path), num_devices=1, seed=0)
    given = {"max_frequency_hz": 1e9, "capacitance": 1e-28, "cycles_per_sample": 5.0}
    told = "fleet.max_power_w is not given, nor is there a fleet CSV. Set it to a number or to {low, high}."
    with pytest.raises(ProblemError, match=f"^{re.escape(told)}$"):
        draw_fleet(FleetConfig(**given), num_devices=1, seed=0)


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def resolve_cell_table(table) -> CellConfig:
    return validate(CellConfig, with_preset(table), root="cell")


def test_a_fleet_may_have_work_and_processors_that_cost_nothing():
    free = {"fleet": {"capacitance": 0, "cycles_per_sample": 0}}
    fleet = Cell.build(load_cell_config("umi-3.5ghz", free), num_devices=2, seed=0).fleet
    assert fleet.capacitance.tolist() == fleet.cycles_per_sample.tolist() == [0.0, 0.0]


def test_a_column_that_is_nowhere_is_missed_in_the_csv_too(tmp_path):
    table = load_cell_config("paper").model_dump(mode="json", exclude_none=True)
    table["fleet"] = {"path": write(tmp_path, "max_power_w\n1\n")}
    with pytest.raises(ProblemError, match=r"max_frequency_hz, .* are not given, nor columns in table\.csv"):
        Cell.build(resolve_cell_table(table), num_devices=1, seed=0)


def test_a_fleet_csv_replaces_the_columns_it_has(tmp_path):
    path = write(tmp_path, "device,max_power_w,max_frequency_hz\n0,0.1,1e9\n1,0.2,2e9\n")
    cell = Cell.build(load_cell_config("umi-3.5ghz", {"fleet": {"path": path}}), num_devices=2, seed=0)
    assert cell.fleet.max_power_w.tolist() == [0.1, 0.2]
    assert cell.fleet.max_frequency_hz.tolist() == [1e9, 2e9]
    assert cell.fleet.capacitance.tolist() == [1.7e-28, 1.7e-28]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_powr_w\n1\n2\n", r'unknown column "max_powr_w"\. Did you mean "max_power_w"\?'),
        ("max_power_w\n1\n", r"has 1 devices, but the cell has 2\. Give one row per device"),
        ("max_power_w\n1\nx\n", r'has max_power_w = "x" for device 1 in line 3\. Write a number'),
        ("max_power_w,capacitance\n1,1\n1\n", r"has 1 values in line 3, but 2 columns"),
        ("max_power_w\n1\n0\n", r"max_power_w must be > 0 for every device, got 0 at device 1"),
        ("max_power_w\n1\nnan\n", r"max_power_w must be > 0 for every device, got nan at device 1"),
        ("", "is empty"),
    ],
)
def test_a_bad_fleet_csv_is_one_line(tmp_path, text, message):
    config = load_cell_config("umi-3.5ghz", {"fleet": {"path": write(tmp_path, text)}})
    with pytest.raises(ProblemError, match=message) as caught:
        Cell.build(config, num_devices=2, seed=0)
    assert "\n" not in str(caught.value)
