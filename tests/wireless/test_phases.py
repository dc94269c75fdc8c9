"""The report phase worked out by hand: B = N0 = 1, so that p h = 1, 3, 15 give 1, 2, 4 bit/s."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.wireless.fleet import Fleet
from fedwave.wireless.phases import longest_upload_s, report_phase, upload_phase, workload_cycles
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.terms import ChannelDraw, RadioTerms


def phase(
    power_w, gain, device_index, *, interference_w=(0.0, 0.0), report_bits=4.0, bandwidth_hz=1.0, noise=1.0
):
    power_w, gain = np.array(power_w, dtype=float), np.array(gain, dtype=float)
    found = report_phase(
        RadioTerms(
            num_blocks=len(interference_w),
            bandwidth_hz=bandwidth_hz,
            noise_psd_w_per_hz=noise,
            report_bits=report_bits,
        ),
        power_w,
        ChannelDraw(gain, np.array(interference_w)),
        device_index=np.array(device_index, dtype=np.int64),
    )
    time_s, phase_s = found.time_s, found.duration_s
    assert time_s.shape == power_w.shape
    assert isinstance(phase_s, float)
    return time_s, phase_s


def test_devices_take_turns_and_a_turn_lasts_as_long_as_its_slowest_report():
    # Two blocks: 0 and 1 report in 4 / 1 and 4 / 2 s, then 3 and 4 in 4 / 4 and 4 / 2 s; 2 does not report.
    time_s, phase_s = phase([1, 1, 1, 1, 1], [1, 3, 15, 15, 3], [0, 1, 3, 4])
    assert time_s == pytest.approx([4, 2, 0, 1, 2])
    assert phase_s == pytest.approx(4 + 2)


def test_the_last_turn_may_be_short():
    time_s, phase_s = phase([1, 1, 1], [15, 15, 1], [0, 1, 2])
    assert time_s == pytest.approx([1, 1, 4])
    assert phase_s == pytest.approx(1 + 4)


def test_the_order_given_is_the_order_of_the_turns():
    _, phase_s = phase([1, 1, 1], [15, 15, 1], [0, 2, 1])
    assert phase_s == pytest.approx(4 + 1)


def test_each_member_of_a_turn_has_a_block_of_its_own():
    # Block 1 has I = 2: device 3 needs p h = 9 there for the SNR of 3. Gains differ by block as well.
    gain = [[99, 99], [99, 99], [3, 99], [99, 9]]
    time_s, phase_s = phase([1, 1, 1, 1], gain, [2, 3], interference_w=(0.0, 2.0))
    assert time_s == pytest.approx([0, 0, 2, 2])
    assert phase_s == pytest.approx(2)


def test_a_report_goes_at_full_power_over_one_block():
    # p h = 0.5 * 12 = 6 over B N0 = 2: SNR 3, rate 2 * 2 = 4 bit/s.
    time_s, phase_s = phase([0.5], [12], [0], bandwidth_hz=2.0, report_bits=64.0)
    assert time_s == pytest.approx([16])
    assert phase_s == pytest.approx(16)
    assert phase([0.5], [12], [0], noise=2.0)[0] == pytest.approx([2])  # 6 over 2: SNR 3, 2 bit/s


def test_nobody_waits_for_a_device_without_a_signal():
    time_s, phase_s = phase([1, 1, 1], [0, 3, 0], [0, 1, 2])
    assert time_s == pytest.approx([0, 2, 0])
    assert phase_s == pytest.approx(2)


@pytest.mark.parametrize(("device_index", "report_bits"), [([], 4.0), ([0, 1], 0.0)])
def test_no_reports_take_no_time(device_index, report_bits):
    time_s, phase_s = phase([1, 1], [1, 3], device_index, report_bits=report_bits)
    assert time_s.tolist() == [0, 0]
    assert phase_s == 0.0


def test_inputs_are_left_alone():
    power_w, gain, who = np.ones(3), np.ones((3, 2)), np.array([0, 2])
    for array in (power_w, gain, who):
        array.flags.writeable = False
    terms = RadioTerms(num_blocks=2, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0, report_bits=1.0)
    report_phase(terms, power_w, ChannelDraw(gain, np.zeros(2)), device_index=who)


@pytest.mark.parametrize(
    ("limits", "ends_s"),
    [
        ({}, [np.inf, np.inf]),
        ({"max_delay_s": 2.5}, [2.5, 2.5]),
        ({"max_energy_j": 6.0}, [3.0, 1.0]),  # 2 W and 6 W are drained
        ({"max_energy_j": np.array([1.0, np.inf])}, [0.5, np.inf]),
        ({"max_delay_s": 2.5, "max_energy_j": 6.0}, [2.5, 1.0]),
    ],
)
def test_an_upload_is_broken_off_at_the_first_of_its_limits(limits, ends_s):
    radio = RadioPower(amplifier_efficiency=0.5, circuit_power_w=1.0)
    found = longest_upload_s(np.array([0.5, 2.5]), radio=radio, **limits)
    assert found.tolist() == ends_s


def test_a_radio_that_drains_nothing_lasts_for_ever():
    assert longest_upload_s(np.zeros(1), radio=RadioPower(), max_energy_j=1.0).tolist() == [np.inf]


def test_the_work_is_steps_times_cycles_times_samples_of_those_that_compute():
    fleet = Fleet(np.ones(2), np.ones(2), np.ones(2), np.array([7.0, 8.0]))
    sizes = {"num_samples": np.array([10, 20]), "num_local_steps": 3}
    assert workload_cycles(fleet, **sizes).tolist() == [3 * 7 * 10, 3 * 8 * 20]
    idle = workload_cycles(fleet, **sizes, computes=np.array([False, True]))
    assert idle.tolist() == [0.0, 3 * 8 * 20]


@pytest.mark.parametrize("per_block", [False, True])
def test_an_upload_meets_the_gain_and_the_noise_of_its_own_block(per_block):
    # Device 2 on block 1 (I = 3, B N0 = 1) at 4 W and a gain of 3: SNR 3, 2 bit/s; device 0: SNR 1.
    gain = np.array([[1.0, 99.0], [99.0, 99.0], [99.0, 3.0]]) if per_block else np.array([1.0, 99.0, 3.0])
    uploads = upload_phase(
        RadioTerms(num_blocks=2, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0),
        ChannelDraw(gain, np.array([0.0, 3.0])),
        device_index=np.array([0, 2]),
        block=np.array([0, 1]),
        power_w=np.array([1.0, 4.0]),
        model_bits=8.0,
    )
    assert uploads.channel_gain.tolist() == [1.0, 3.0]
    assert uploads.interference_w.tolist() == [0.0, 3.0]
    assert uploads.sinr == pytest.approx([1.0, 3.0])
    assert uploads.rate_bps == pytest.approx([1.0, 2.0])
    assert uploads.time_s == pytest.approx([8.0, 4.0])


def test_where_the_modem_has_no_link_no_slot_is_granted():
    uploads = upload_phase(
        RadioTerms(num_blocks=2, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0, rate=RateModel(min_snr=2.0)),
        ChannelDraw(np.array([1.0, 3.0]), np.zeros(2)),
        device_index=np.array([0, 1]),
        block=np.array([0, 1]),
        power_w=np.array([1.0, 1.0]),
        model_bits=8.0,
    )
    assert uploads.time_s == pytest.approx([0.0, 4.0])
