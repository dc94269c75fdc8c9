"""The watts of a radio's states, by the arithmetic of TR 38.840 and of the measured currents."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.wireless.power_sets import POWER_SETS, WAITING_KINDS, reception_scale

REPORT, MODEM = POWER_SETS["tr38840"], POWER_SETS["measured-x55"]


@pytest.mark.parametrize(
    ("megahertz", "scale"),
    [(100, 1.0), (80, 0.85), (40, 0.55), (20, 0.4), (10, 0.325), (7.2, 0.325), (400, 1.0), (90, 0.925)],
)
def test_reception_scales_with_the_bandwidth_part_as_the_report_has_it(megahertz, scale):
    assert reception_scale(megahertz * 1e6) == pytest.approx(scale, rel=1e-12)


def test_the_reports_unit_follows_from_an_amplifier_of_thirty_per_cent():
    # 23 dBm are 199.526 mW and 0 dBm 1 mW: 198.526 / 0.3 = 661.754 mW for 450 units.
    assert REPORT.unit_w == pytest.approx(661.754e-3 / 450, rel=1e-5)
    assert REPORT.deep_sleep_w == REPORT.unit_w
    assert REPORT.sending.amplifier_efficiency == pytest.approx(0.3, rel=1e-12)
    assert REPORT.sending.circuit_power_w == pytest.approx(250 * 1.470565e-3 - 1e-3 / 0.3, rel=1e-5)


def test_the_modems_unit_follows_from_its_currents():
    # 142 mA between deep sleep and 92.5 units: 1.5519 mA a unit at 4.2 V.
    assert MODEM.unit_w == pytest.approx(4.2 * 0.142 / 91.5, rel=1e-12)
    assert MODEM.deep_sleep_w == pytest.approx(0.168)
    assert MODEM.watts(92.5) == pytest.approx(4.2 * 0.182)


@pytest.mark.parametrize(
    ("power_set", "zero_dbm_w", "full_w"), [(REPORT, 0.36764, 1.02940), (MODEM, 1.79099, 4.72410)]
)
def test_sending_meets_the_reports_two_points_and_is_straight_between(power_set, zero_dbm_w, full_w):
    drain_w = power_set.sending.drain_w(np.array([1e-3, 10**2.3 * 1e-3, (1e-3 + 10**2.3 * 1e-3) / 2]))
    assert drain_w == pytest.approx([zero_dbm_w, full_w, (zero_dbm_w + full_w) / 2], rel=1e-5)
    assert drain_w[0] == pytest.approx(power_set.watts(250), rel=1e-12)
    assert drain_w[1] == pytest.approx(power_set.watts(700), rel=1e-12)


@pytest.mark.parametrize(
    ("power_set", "megahertz", "watts"),
    # Units of 300 x scale; the modem's scale begins at 168 mW for one unit of 6.518033 mW.
    [
        (REPORT, 100, 300 * 1.470565e-3),
        (REPORT, 40, 165 * 1.470565e-3),
        (REPORT, 20, 120 * 1.470565e-3),
        (MODEM, 100, 0.168 + 299 * 6.518033e-3),
        (MODEM, 40, 0.168 + 164 * 6.518033e-3),
        (MODEM, 20, 0.168 + 119 * 6.518033e-3),
    ],
)
def test_receiving_takes_300_units_at_100_megahertz(power_set, megahertz, watts):
    assert power_set.receive_power_w(megahertz * 1e6) == pytest.approx(watts, rel=1e-5)


def test_sleep_has_the_reports_three_states():
    states = REPORT.waiting("sleep", 40e6).states
    units = [(state.power_w / REPORT.unit_w, state.ramp_energy_j / REPORT.unit_w * 1e3) for state in states]
    assert units == [pytest.approx(pair) for pair in [(45, 0), (20, 100), (1, 450)]]  # unit milliseconds
    assert [state.min_time_s for state in states] == [0, 6e-3, 20e-3]


def test_the_modems_sleep_begins_at_its_own_floor():
    micro, light, deep = MODEM.waiting("sleep", 40e6).states
    assert (micro.power_w, light.power_w, deep.power_w) == pytest.approx((0.4547934, 0.2918426, 0.168))
    assert (light.ramp_energy_j, deep.ramp_energy_j) == pytest.approx((0.6518033e-3, 2.933115e-3), rel=1e-6)


def test_other_ways_to_wait_have_one_state_without_ramp():
    (micro,) = MODEM.waiting("micro-sleep", 40e6).states
    assert (micro.power_w, micro.ramp_energy_j, micro.min_time_s) == (MODEM.watts(45), 0, 0)
    (monitor,) = MODEM.waiting("monitor", 40e6).states
    assert (monitor.power_w, monitor.ramp_energy_j) == (pytest.approx(0.168 + 54 * 6.518033e-3), 0)
    assert MODEM.waiting("idle", 40e6).states == ()
    assert WAITING_KINDS == ("idle", "sleep", "micro-sleep", "monitor")


def test_every_set_says_where_it_comes_from():
    assert all(len(power_set.source) > 20 for power_set in POWER_SETS.values())
