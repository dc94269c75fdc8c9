"""What computing and an upload cost, worked out by hand, Eq. (23)-(29)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fedwave.wireless.link import (
    compute_delay_s,
    compute_energy_j,
    uplink_rate_bps,
    uplink_snr,
    upload_delay_s,
    upload_energy_j,
)
from fedwave.wireless.rate import RadioPower


def test_computing_costs_half_the_capacitance_times_cycles_times_the_square_of_the_frequency():
    frequency_hz = np.array([2.0, 3.0])
    energy_j = compute_energy_j(
        frequency_hz, workload_cycles=np.array([10.0, 20.0]), capacitance=np.array(0.5)
    )
    assert_array_equal(energy_j, [0.25 * 10 * 4, 0.25 * 20 * 9])
    assert_array_equal(compute_delay_s(frequency_hz, workload_cycles=np.array([10.0, 21.0])), [5.0, 7.0])


def test_no_work_takes_no_time_and_work_at_a_standstill_never_ends():
    delay_s = compute_delay_s(np.array([0.0, 0.0]), workload_cycles=np.array([0.0, 1.0]))
    assert_array_equal(delay_s, [0.0, math.inf])


def test_a_rate_is_bandwidth_times_the_logarithm_of_one_plus_the_sinr():
    # p h = 6 over I + B N0 = 0.5 + 3 * 0.5 = 2: an SNR of 3, two bits for each hertz.
    power_w, gain = np.array([2.0]), np.array([3.0])
    assert uplink_snr(power_w, gain, np.array([2.0]))[0] == 3.0
    rate_bps = uplink_rate_bps(
        power_w, gain, interference_w=np.array([0.5]), bandwidth_hz=3.0, noise_psd_w_per_hz=0.5
    )
    assert rate_bps[0] == pytest.approx(6.0, rel=1e-15)
    tiny = uplink_rate_bps(
        np.array([1e-20]), np.ones(1), interference_w=np.zeros(1), bandwidth_hz=1.0, noise_psd_w_per_hz=1.0
    )
    assert tiny[0] == pytest.approx(1e-20 / math.log(2.0), rel=1e-15, abs=0.0)


def test_an_upload_takes_its_bits_over_its_rate_at_the_radios_drain():
    delay_s = upload_delay_s(np.array([4.0, 0.0]), model_bits=8.0)
    assert_array_equal(delay_s, [2.0, math.inf])
    assert upload_energy_j(np.array([0.5]), np.array([2.0]))[0] == 1.0
    radio = RadioPower(amplifier_efficiency=0.5, circuit_power_w=0.25)
    assert upload_energy_j(np.array([0.5]), np.array([2.0]), radio=radio)[0] == 2.5  # (1 + 0.25) * 2


def test_static_power_and_joules_of_a_cycle_by_hand():
    # 8 cycles at 2 Hz take 4 s: 0.5 * 3 * 8 * 4 = 48 J, 5 W for 4 s are 20 J, and 8 cycles of 0.25 J are 2 J.
    given = {"workload_cycles": np.array([8.0]), "capacitance": np.array([3.0])}
    frequency = np.array([2.0])
    assert compute_energy_j(frequency, **given).tolist() == [48.0]
    assert compute_energy_j(frequency, **given, static_power_w=np.array([5.0])).tolist() == [68.0]
    assert compute_energy_j(frequency, **given, static_power_w=5.0, joules_per_cycle=0.25).tolist() == [70.0]
    assert compute_energy_j(frequency, **given, joules_per_cycle=0.25).tolist() == [50.0]
    work = {"workload_cycles": np.array([8.0, 8.0, 0.0]), "capacitance": np.zeros(3)}
    energy = compute_energy_j(np.zeros(3), **work, static_power_w=np.array([5.0, 0.0, 5.0]))
    assert energy.tolist() == [np.inf, 0.0, 0.0]  # endless at 5 W, endless for nothing, no work
