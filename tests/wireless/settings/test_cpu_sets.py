"""Processors by name: they reproduce the measurements they come from, and give way to what is given."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.wireless.cell import Cell
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.link import compute_delay_s, compute_energy_j
from fedwave.wireless.settings.cpu_sets import CPU_SETS
from fedwave.wireless.settings.fleet import FleetConfig, draw_fleet
from fedwave.wireless.settings.load import load_cell_config

OPERATIONS = 1e6  # of a sample


def fleet_of(cpu: str, num_devices: int = 4000, **given) -> Fleet:
    config = FleetConfig(cpu=cpu, max_power_w=0.2, **given)
    return draw_fleet(config, num_devices=num_devices, seed=3, operations_per_sample=OPERATIONS)


def joules_per_operation(fleet: Fleet, frequency_hz: float) -> np.ndarray:
    frequency = np.full(fleet.num_devices, frequency_hz)
    energy = compute_energy_j(
        frequency,
        workload_cycles=fleet.cycles_per_sample,
        capacitance=fleet.capacitance,
        static_power_w=fleet.static_power_w,
        joules_per_cycle=fleet.joules_per_cycle,
    )
    return energy / OPERATIONS


def test_the_names_are_those_of_the_setting():
    for name in CPU_SETS:
        assert FleetConfig(cpu=name).resolved.cpu is None
    assert set(CPU_SETS) == {"fedl", "phone", "single-board", "microcontroller"}


def test_a_phone_takes_what_was_measured_on_phones():
    fleet = fleet_of("phone")
    joules = joules_per_operation(fleet, 2.4e9)
    assert joules.mean() == pytest.approx(200e-12, rel=0.03)  # DeepEn2023: 160 to 240 pJ, full speed
    # De Vogeleer et al.: energy is least somewhere between 0.2 and 1.6 GHz, and rises on both sides.
    window = np.linspace(0.2e9, 1.6e9, 141)
    mean = [joules_per_operation(fleet, frequency).mean() for frequency in window]
    assert window[int(np.argmin(mean))] == pytest.approx(0.81e9, abs=0.02e9)
    assert min(mean) < 0.4 * mean[0]
    assert min(mean) < 0.65 * mean[-1]


@pytest.mark.parametrize(("frequency_hz", "watts", "gflops"), [(1.5e9, 5.2, 11.433), (1.8e9, 7.2, 11.889)])
def test_a_single_board_computer_takes_what_linpack_took(frequency_hz, watts, gflops):
    cycles = frequency_hz / (0.5e9 * gflops)  # of a multiply-add, which is two of Linpack's operations
    fleet = fleet_of("single-board", cycles_per_operation=cycles)
    seconds = compute_delay_s(np.full(4000, frequency_hz), workload_cycles=fleet.cycles_per_sample)
    assert joules_per_operation(fleet, frequency_hz)[0] * OPERATIONS / seconds[0] == pytest.approx(
        watts, rel=0.01
    )
    drawn = fleet_of("single-board").cycles_per_sample / OPERATIONS
    assert drawn.min() - 0.005 < cycles < drawn.max() + 0.005


@pytest.mark.parametrize(
    ("operations", "per_second", "microjoules"),
    [
        (12.5e6, 4.505, 17315.114),
        (2.7e6, 13.759, 5481.633),
        (7.5e6, 4.522, 16573.080),
        (0.264e6, 131.950, 528.881),
    ],
)
def test_a_microcontroller_takes_what_mlperf_tiny_took(operations, per_second, microjoules):
    fleet = fleet_of("microcontroller")
    joules = joules_per_operation(fleet, 120e6)
    np.testing.assert_array_equal(joules, joules_per_operation(fleet, 30e6))  # at any frequency
    assert joules.min() * 0.98 < microjoules * 1e-6 / operations < joules.max() * 1.02
    cycles = fleet.cycles_per_sample / OPERATIONS
    assert cycles.min() * 0.98 < 120e6 / per_second / operations < cycles.max() * 1.02


def test_fedls_numbers_are_those_of_its_paper():
    fleet = fleet_of("fedl")
    assert set(fleet.capacitance) == {2e-28}
    assert set(fleet.min_frequency_hz) == {0.3e9}
    assert not fleet.static_power_w.any()
    assert not fleet.joules_per_cycle.any()
    assert 1e9 <= fleet.max_frequency_hz.min() < 1.01e9
    assert 1.99e9 < fleet.max_frequency_hz.max() <= 2e9


def test_what_is_given_beats_the_set():
    fleet = fleet_of("phone", 5, capacitance=5e-28, cycles_per_sample=7.0, joules_per_cycle=1e-12)
    assert set(fleet.capacitance) == {5e-28}
    assert set(fleet.cycles_per_sample) == {7.0}
    assert set(fleet.joules_per_cycle) == {1e-12}
    assert set(fleet.static_power_w) == {0.09}
    tiny = fleet_of("microcontroller", 5, joules_per_cycle=1e-12)
    assert set(tiny.joules_per_cycle) == {1e-12}  # the other spelling of what the set gives per operation


def test_a_later_name_displaces_the_numbers_before_it_and_later_numbers_stay():
    fedl = load_cell_config("fedl2021", {"fleet": {"cpu": "phone"}})
    fleet = Cell.build(fedl, num_devices=3, seed=0).fleet
    assert set(fleet.capacitance) == {1.7e-28}
    assert set(fleet.max_power_w) == {1.0}  # no processor says anything of the radio
    assert fedl.fleet.cycles_per_sample is None
    both = load_cell_config("fedl2021", {"fleet": {"cpu": "phone", "capacitance": 9e-28}})
    assert set(Cell.build(both, num_devices=3, seed=0).fleet.capacitance) == {9e-28}
    named = load_cell_config("umi-3.5ghz", {"fleet": {"capacitance": 9e-28}})
    fleet = Cell.build(named, num_devices=3, seed=0).fleet
    assert set(fleet.capacitance) == {9e-28}
    assert set(fleet.static_power_w) == {0.09}  # the preset's phones otherwise
