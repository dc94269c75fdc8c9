from __future__ import annotations

import inspect
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, allocate
from fedwave.errors import ProblemError
from fedwave.wireless.sanity import UnitWarning
from tests.allocation.allocation_problems import small_problem


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_power_w": [1.0, 2.0]}, r"max_power_w must have shape \(3,\), got \(2,\). There are 3 devices"),
        ({"channel_gain": np.ones((3, 5))}, r"channel_gain must have shape \(3,\) or \(3, 2\), got \(3, 5\)"),
        ({"channel_gain": np.ones((2, 3, 1))}, r"channel_gain must have shape .* got \(2, 3, 1\)"),
        (
            {"contribution": [[1.0, 2.0, 3.0]]},
            r"contribution must be a one-dimensional array .* got shape \(1, 3\)",
        ),
        (
            {"interference_w": 0.5},
            r"interference_w must be a one-dimensional array with one value per block, got shape \(\). "
            r"Write np.full\(num_blocks, value\) if all are alike",
        ),
        ({"interference_w": -0.5, "channel_gain": np.ones((3, 5))}, "interference_w must be >= 0, got -0.5"),
        ({"max_delay": 3.0}, r"AllocationProblem has no field 'max_delay'. Did you mean \"max_delay_s\"\?"),
        ({"chanel_gain": 3.0}, r"has no field 'chanel_gain'. Did you mean \"channel_gain\"\?"),
        ({"colour": 1}, "has no field 'colour'. Choose one of: contribution, channel_gain, interference_w"),
        ({"max_energy_j": [1.0, 2.0]}, r"max_energy_j must have shape \(3,\), got \(2,\)"),
        ({"contribution": [1.0, np.nan, 2.0]}, r"contribution must be finite, got nan at index 1"),
        ({"max_power_w": [1.0, np.inf, 2.0]}, r"max_power_w must be finite, got inf at index 1"),
        ({"channel_gain": [[1, 1], [1, np.nan], [1, 1]]}, r"must be finite, got nan at device 1, block 1"),
        ({"contribution": ["a", "b", "c"]}, r"contribution must hold numbers only, got \['a', 'b', 'c'\]"),
        (
            {"channel_gain": [1.0, -0.5, 1.0]},
            r"channel_gain must be >= 0, got -0.5 at index 1. A gain is a power",
        ),
        ({"max_power_w": [1.0, 1.0, -30]}, r"max_power_w must be >= 0, got -30 at index 2. .* convert dBm"),
        ({"interference_w": [-1.0, 0.0]}, r"interference_w must be >= 0, got -1 at index 0"),
        ({"workload_cycles": [-1.0, 0.0, 1.0]}, r"workload_cycles must be >= 0"),
        ({"bandwidth_hz": 0}, r"bandwidth_hz must be > 0, got 0"),
        ({"model_bits": -1}, r"model_bits must be > 0, got -1"),
        ({"bandwidth_hz": np.nan}, r"bandwidth_hz must be a finite number > 0, got nan"),
        ({"model_bits": None}, r"model_bits must be one number, got None"),
        ({"energy_weight": True}, r"energy_weight must be one number, got True"),
        ({"delay_weight": "0.5"}, r"delay_weight must be one number, got '0.5'"),
        ({"model_bits": [1.0, 2.0]}, r"model_bits must be one number, got \[1.0, 2.0\]"),
        ({"max_power_w": True}, r"max_power_w must hold numbers only, got True"),
        ({"contribution": ["1", "2", "3"]}, r"contribution must hold numbers only, got \['1', '2', '3'\]"),
        ({"capacitance": np.ones(3, dtype=bool)}, r"capacitance must hold numbers only, got array"),
        (
            {"channel_gain": [1 + 1j, 1.0, 1.0]},
            r"channel_gain must hold real numbers, got complex128. .* abs",
        ),
        ({"max_energy_j": [1j, 1j, 1j]}, r"max_energy_j must hold real numbers, got complex128"),
        (
            {"max_power_w": np.array([1.0, 2.0, 3.0], dtype=object)},
            r"max_power_w must hold numbers only, got",
        ),
        (
            {"max_power_w": [10**400, 1, 1]},
            r"max_power_w must hold numbers only, got \[1000.*\.\.\. \(object",
        ),
        ({"bandwidth_hz": 1 + 0j}, r"bandwidth_hz must be one number, got \(1\+0j\)"),
        ({"bandwidth_hz": np.complex128(1)}, r"bandwidth_hz must be one number, got np.complex128"),
        ({"bandwidth_hz": np.array(True)}, r"bandwidth_hz must be one number, got array\(True\)"),
        ({"bandwidth_hz": np.array([1.0])}, r"bandwidth_hz must be one number, got array\(\[1"),
        ({"model_bits": 10**400}, r"model_bits must be a finite number > 0, got inf"),
        ({"energy_weight": -0.5}, r"energy_weight must be >= 0, got -0.5. A negative weight rewards wasting"),
        ({"delay_weight": -1}, r"delay_weight must be >= 0, got -1"),
        ({"max_delay_s": 0.0}, r"max_delay_s must be > 0, got 0"),
        ({"max_energy_j": -1.0}, r"max_energy_j must be >= 0, got -1 at index 0. Use None for no limit"),
        (
            {"delay_weight": 0},
            r"delay_weight must be > 0 when there is no max_delay_s, got 0. .* set max_delay_s",
        ),
        ({"noise_psd_w_per_hz": 0}, r"must be > 0, got 0 on block 0. Without noise the rate is infinite"),
    ],
)
def test_bad_input_is_refused_with_one_clear_line(changes, message):
    with pytest.raises(ProblemError, match=message) as caught:
        small_problem(**changes)
    assert "\n" not in str(caught.value)


def test_scalars_stand_for_equal_devices():
    problem = small_problem(max_power_w=1.5, capacitance=0.5, max_energy_j=2.0)
    np.testing.assert_array_equal(problem.max_power_w, [1.5, 1.5, 1.5])
    np.testing.assert_array_equal(problem.max_energy_j, [2.0, 2.0, 2.0])


def test_inputs_are_neither_copied_nor_made_read_only():
    gain = np.array([1.0, 0.5, 0.25])
    problem = small_problem(channel_gain=gain)
    assert np.shares_memory(problem.channel_gain, gain)
    assert gain.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        problem.channel_gain[0] = 2.0


def test_integers_and_lists_are_accepted():
    problem = small_problem(contribution=[1, 2, 3], model_bits=10)
    assert problem.contribution.dtype == np.float64
    assert problem.model_bits == 10.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_snr": -1.0}, r"min_snr must be >= 0, got -1. Give a ratio, not decibels"),
        ({"min_snr": np.inf}, r"min_snr must be a finite number >= 0, got inf"),
        ({"packet_error_waterfall": -0.1}, r"packet_error_waterfall must be >= 0, got -0.1. Use None for no"),
        ({"max_round_delay_s": 0.0}, r"max_round_delay_s must be > 0, got 0"),
        ({"fixed_delay_s": -1.0}, r"fixed_delay_s must be >= 0, got -1. Use 0 if the round has no other"),
        ({"min_frequency_hz": [0.1, -0.1, 0.1]}, r"min_frequency_hz must be >= 0, got -0.1 at index 1"),
        ({"min_frequency_hz": [0.1, 0.1]}, r"min_frequency_hz must have shape \(3,\), got \(2,\)"),
        ({"rate": 0.65}, r"rate must be a RateModel, got float. See fedwave.wireless.rate"),
        (
            {"radio": {"circuit_power_w": 1}},
            r"radio must be a RadioPower, got dict. See fedwave.wireless.rate",
        ),
    ],
)
def test_bad_terms_of_the_link_are_refused_with_one_clear_line(changes, message):
    with pytest.raises(ProblemError, match=message) as caught:
        small_problem(**changes)
    assert "\n" not in str(caught.value)


def test_who_plans_for_no_losses_sees_a_problem_without_them():
    plain = small_problem(max_delay_s=3.0)
    assert plain.without_risks is plain
    assert not plain.has_risks
    for risk in ({"min_snr": 0.1}, {"packet_error_waterfall": 0.1}, {"max_round_delay_s": 9.0}):
        risky = small_problem(max_delay_s=3.0, **risk)
        assert risky.has_risks
        safe = risky.without_risks
        assert not safe.has_risks
        assert safe.max_delay_s == 3.0
    assert not small_problem(packet_error_waterfall=0.0).has_risks
    patient = small_problem(delay_weight=0.0, max_round_delay_s=9.0).without_risks
    assert patient.max_delay_s == 9.0  # otherwise no best delay would exist
    assert small_problem(max_round_delay_s=9.0).without_risks.max_delay_s is None


def test_the_fastest_computing_is_that_of_the_slowest_device():
    assert small_problem().fastest_compute_s == 2.0
    assert small_problem(workload_cycles=0.0).fastest_compute_s == 0.0
    assert small_problem(max_frequency_hz=[1.0, 0.0, 1.0]).fastest_compute_s == np.inf
    assert small_problem(max_frequency_hz=[1.0, 0.0, 1.0], workload_cycles=[1, 0, 1]).fastest_compute_s == 1.0


def test_the_cpus_have_the_deadline_that_binds_them():
    assert small_problem(max_delay_s=3.0).compute_deadline_s == np.inf
    assert small_problem(max_delay_s=3.0, max_compute_delay_s=5.0).compute_deadline_s == 5.0
    patient = {"delay_weight": 0.0, "max_delay_s": 3.0}
    assert small_problem(**patient).compute_deadline_s == 3.0  # nothing else would hurry them
    assert small_problem(**patient, max_compute_delay_s=5.0).compute_deadline_s == 5.0
    ends = {"max_round_delay_s": 9.0, "fixed_delay_s": 1.0}
    assert small_problem(**patient, **ends).compute_deadline_s == 8.0
    assert small_problem(**patient, **ends, max_compute_delay_s=5.0).compute_deadline_s == 5.0


def test_one_interference_stands_for_all_blocks_that_the_gains_have():
    gains = np.arange(1.0, 13.0).reshape(3, 4)
    problem = small_problem(channel_gain=gains, interference_w=0.25, noise_psd_w_per_hz=0.5, bandwidth_hz=2)
    assert problem.interference_w.tolist() == [0.25] * 4
    assert problem.block_noise_w.tolist() == [1.25] * 4
    assert not problem.interference_w.flags.writeable
    assert replace(problem, interference_w=0.0).num_blocks == 4


def test_the_signature_still_names_every_field():
    named = list(inspect.signature(AllocationProblem).parameters)
    assert named == [field.name for field in fields(AllocationProblem)]


SI = {"bandwidth_hz": 180e3, "noise_psd_w_per_hz": 4e-21}


def test_a_power_in_dbm_warns_where_the_problem_is_made():
    message = r"max_power_w reaches 23 W; a phone sends 0.2 W. If that is 23 dBm, give .*dbm_to_watt\(23\)"
    with pytest.warns(UnitWarning, match=message) as met:
        problem = small_problem(max_power_w=[0.2, 23.0, 0.1], **SI)
    assert [warning.filename.endswith("allocation_problems.py") for warning in met] == [True]
    assert problem.warnings == (str(met[0].message),)
    with pytest.warns(UnitWarning, match="more than a broadcast tower. Is it in mW"):
        small_problem(max_power_w=20e3, **SI)


@pytest.mark.parametrize(
    "values",
    [
        {"max_power_w": 10.0, **SI},  # the largest that is believed
        {"max_power_w": 23.0},  # as in the paper: B = N0 = 1
        {"max_power_w": 23.0, **SI, "noise_psd_w_per_hz": 1.1e-12},  # no receiver has so much noise
        {"max_power_w": 23.0, **SI, "noise_psd_w_per_hz": 3.9e-22},  # or so little
        {"max_power_w": 23.0, **SI, "bandwidth_hz": 999.0},
    ],
)
def test_a_power_is_believed_where_it_is_small_or_the_problem_has_no_units(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small_problem(**values).warnings == ()


def test_each_device_may_have_a_price_for_its_joules():
    problem = small_problem(energy_weight=[1.0, 0.0, 2.0])
    assert problem.has_prices
    assert problem.counts_energy
    assert problem.price_of(np.array([2, 0])).tolist() == [2.0, 1.0]
    assert problem.energy_cost(np.array([3.0, np.inf, 5.0])) == 13.0  # free joules may be endless
    assert not problem.energy_weight.flags.writeable
    one = small_problem(energy_weight=2)
    assert not one.has_prices
    assert one.price_of(np.array([2, 0])) == 2.0
    assert one.energy_cost(np.array([1.0, 2.0, 3.0])) == 12.0
    assert not small_problem(energy_weight=[0.0, 0.0, 0.0]).counts_energy
    free = small_problem(energy_weight=[0.0, 0.0, 0.0], delay_weight=0.0)  # nothing costs anything
    assert allocate(free).contribution == pytest.approx(9.0)
    for wrong, message in (
        ([1.0, 2.0], r"energy_weight must have shape \(3,\), got \(2,\)"),
        ([1.0, -2.0, 0.0], r"energy_weight must be >= 0, got -2 at index 1\. A negative weight rewards"),
        ([1.0, np.nan, 0.0], r"energy_weight must be finite, got nan at index 1"),
        (["a", "b", "c"], r"energy_weight must hold"),
    ):
        with pytest.raises(ProblemError, match=message):
            small_problem(energy_weight=wrong)
    with pytest.raises(ProblemError, match="delay_weight must be > 0 when there is no max_delay_s"):
        small_problem(energy_weight=[0.0, 1.0, 0.0], delay_weight=0.0)
