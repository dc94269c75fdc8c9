"""Path loss against values worked out by hand from TR 38.901, Tables 7.4.1-1 and 7.4.2-1."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ProblemError
from fedwave.wireless.path_loss import (
    RuralMacro,
    UrbanMacro,
    UrbanMicro,
    draw_environment_height_m,
    highest_environment_m,
    log_distance_path_loss_db,
)

UMI = UrbanMicro(carrier_frequency_hz=3.5e9)
UMA = UrbanMacro(carrier_frequency_hz=2e9)
RMA = RuralMacro(carrier_frequency_hz=0.7e9)
HAND_TOLERANCE_DB = 0.002  # the hand values are rounded to three decimals


def loss(scenario, distance_m: float, *, los: bool) -> float:
    return float(scenario.path_loss_db(np.array([float(distance_m)]), np.array([los]))[0])


def test_breakpoints_are_where_the_report_puts_them():
    assert UMI.breakpoint_distance_m() == pytest.approx(210.0)  # 4 * (10 - 1) * (1.5 - 1) * 3.5e9 / 3e8
    assert UMA.breakpoint_distance_m() == pytest.approx(320.0)  # 4 * (25 - 1) * (1.5 - 1) * 2e9 / 3e8
    assert RMA.breakpoint_distance_m() == pytest.approx(769.690, abs=1e-3)  # 2 pi * 35 * 1.5 * 0.7e9 / 3e8


@pytest.mark.parametrize(
    ("scenario", "distance_m", "los", "hand_db"),
    [
        # UMi, heights 10 and 1.5 m: d3 = sqrt(d^2 + 8.5^2); log10(3.5) = 0.544068
        # 50 m: d3 = 50.71735, log 1.705157: 32.4 + 35.80829 + 10.88136
        (UMI, 50, True, 79.090),
        # 300 m, past 210 m: log d3 2.477296; log10(210^2 + 8.5^2) = 4.645150:
        # 32.4 + 99.09182 + 10.88136 - 9.5 * 4.645150
        (UMI, 300, True, 98.244),
        # NLoS: 22.4 + 35.3 log d3 + 21.3 * 0.544068 = 33.98865 + 35.3 log d3
        (UMI, 50, False, 94.181),  # 33.98865 + 35.3 * 1.705157
        (UMI, 200, False, 115.229),  # 33.98865 + 35.3 * 2.301422
        (UMI, 500, False, 129.265),  # 33.98865 + 35.3 * 2.699033
        # UMa, heights 25 and 1.5 m: d3 = sqrt(d^2 + 23.5^2); log10(2) = 0.301030
        (UMA, 100, True, 78.277),  # log d3 2.011673: 28 + 44.25680 + 6.02060
        # 500 m, past 320 m: log d3 2.699449; log10(320^2 + 23.5^2) = 5.012636:
        # 28 + 107.97797 + 6.02060 - 9 * 5.012636
        (UMA, 500, True, 96.885),
        (UMA, 100, False, 98.177),  # 13.54 + 39.08 * 2.011673 + 6.02060
        (UMA, 500, False, 125.055),  # 13.54 + 39.08 * 2.699449 + 6.02060
        # RMa, heights 35 and 1.5 m, h = 5 m: 5^1.72 = 15.93046, times 0.03 and 0.044: 0.477914, 0.700940
        # 200 m: d3 = 202.7862, log 2.307038: 20 log10(40 pi * 202.7862 * 0.7 / 3) = 75.48450;
        # + 0.477914 * 2.307038 - 0.700940 + 0.002 * log10(5) * 202.7862 (log10(5) = 0.698970)
        (RMA, 200, True, 76.170),
        (RMA, 500, True, 84.633),  # d3 = 501.1210: 83.34258 + 1.290340 - 0.700940 + 0.700537
        # 2000 m, past 769.69 m: loss there 87.07005 + 1.379411 - 0.700940 + 1.075981 = 88.82450;
        # + 40 log10(2000.2805 / 769.6902) = 16.59100
        (RMA, 2000, True, 105.416),
        # NLoS: 161.04 - 7.1 * 1.301030 + 7.5 * 0.698970 - 24.294490 * 1.544068
        #       - 3.098039 - (3.2 * 1.246129^2 - 4.97) + 38.633389 (log d3 - 3)
        #     = 116.435497 + 38.633389 (log d3 - 3)
        (RMA, 1000, False, 116.445),  # log d3 - 3 = 0.000244
        (RMA, 2000, False, 128.068),  # log d3 - 3 = 0.301091
        # Devices 10 m high, blocked. UMi: d3 = 200, log 2.301030: 33.98865 + 81.22636 - 0.3 * 8.5
        (UrbanMicro(carrier_frequency_hz=3.5e9, device_height_m=10), 200, False, 112.665),
        # UMa: d3 = sqrt(500^2 + 15^2) = 500.2249, log 2.699165: 13.54 + 105.48338 + 6.02060 - 0.6 * 8.5
        (UrbanMacro(carrier_frequency_hz=2e9, device_height_m=10), 500, False, 119.944),
        # RMa: the last bracket is 3.2 * log10(117.5)^2 - 4.97 = 8.742182 in place of -0.000919;
        # d3 = sqrt(1000^2 + 25^2), log d3 - 3 = 0.000136: 116.435497 - 0.000919 - 8.742182 + 0.005242
        (RuralMacro(carrier_frequency_hz=0.7e9, device_height_m=10), 1000, False, 107.698),
    ],
)
def test_path_loss_agrees_with_hand_arithmetic(scenario, distance_m, los, hand_db):
    assert loss(scenario, distance_m, los=los) == pytest.approx(hand_db, abs=HAND_TOLERANCE_DB)


@pytest.mark.parametrize("scenario", [UMI, UMA, RMA])
def test_the_two_line_of_sight_slopes_meet_at_the_breakpoint(scenario):
    distance_m = scenario.breakpoint_distance_m()
    # RMa joins at d_3D = d_BP, UMi and UMa at d_2D: RMa may step by a hundredth of a dB.
    assert loss(scenario, distance_m * (1 - 1e-9), los=True) == pytest.approx(
        loss(scenario, distance_m * (1 + 1e-9), los=True), abs=0.02
    )


@pytest.mark.parametrize("scenario", [UMI, UMA, RMA])
def test_a_blocked_path_never_loses_less_than_a_clear_one(scenario):
    distance_m = np.geomspace(10, 5000, 200)
    clear_db = scenario.path_loss_db(distance_m, np.ones(200, dtype=bool))
    blocked_db = scenario.path_loss_db(distance_m, np.zeros(200, dtype=bool))
    assert (blocked_db >= clear_db).all()
    assert (np.diff(clear_db) > -0.02).all()
    assert (np.diff(blocked_db) > 0).all()


@pytest.mark.parametrize("scenario", [UMI, UMA, RMA])
def test_nearer_than_ten_metres_counts_as_ten(scenario):
    assert loss(scenario, 0.5, los=True) == loss(scenario, 10, los=True)


@pytest.mark.parametrize(
    ("scenario", "distance_m", "hand"),
    [
        (UMI, 5, 1.0),
        (UMI, 18, 1.0),
        (UMI, 36, 0.68394),  # 18/36 + exp(-1) * (1 - 18/36) = 0.5 + 0.367879 * 0.5
        (UMI, 100, 0.23098),  # 0.18 + 0.0621765 * 0.82
        (UMA, 100, 0.34767),  # 0.18 + 0.2044766 * 0.82
        (UMA, 300, 0.06804),  # 0.06 + 0.0085493 * 0.94
        # Devices at 23 m: C' = 1; 0.3476708 * (1 + 1.25 * 1 * exp(-2/3) = 0.6417714)
        (UrbanMacro(carrier_frequency_hz=2e9, device_height_m=23), 100, 0.57080),
        # Devices at 18 m: C' = 0.5^1.5 = 0.3535534; 1.25 * 8 * exp(-4/3) = 2.6359714; 0.09 + 0.0418107 * 0.91
        (UrbanMacro(carrier_frequency_hz=2e9, device_height_m=18), 200, 0.24738),
        (RMA, 10, 1.0),
        (RMA, 200, 0.82696),  # exp(-0.19)
        (RMA, 1000, 0.37158),  # exp(-0.99)
    ],
)
def test_line_of_sight_probability_agrees_with_hand_arithmetic(scenario, distance_m, hand):
    assert scenario.los_probability(np.array([float(distance_m)]))[0] == pytest.approx(hand, abs=1e-5)


def test_shadowing_spread_depends_on_sight_and_on_the_rural_breakpoint():
    distance_m = np.array([100.0, 100.0, 2000.0])
    los = np.array([True, False, True])
    assert_allclose(UMI.shadowing_std_db(distance_m, los), [4.0, 7.82, 4.0])
    assert_allclose(UMA.shadowing_std_db(distance_m, los), [4.0, 6.0, 4.0])
    assert_allclose(RMA.shadowing_std_db(distance_m, los), [4.0, 8.0, 6.0])  # 2000 m is past 770 m


def test_ground_level_devices_have_an_environment_height_of_one_metre():
    height_m = draw_environment_height_m(
        np.full(1000, 200.0), device_height_m=1.5, rng=np.random.default_rng(0)
    )
    assert (height_m == 1.0).all()


def test_high_devices_see_roofs_as_often_as_the_report_says():
    # 200 m, 22.5 m high: C = 0.95^1.5 * 1.25 * 8 * exp(-4/3) = 0.9259455 * 2.6359714 = 2.4407659,
    # so h_E = 1 m with probability 1 / 3.4407659 = 0.290633; roofs 12, 15, 18, 21 m share the rest.
    num = 40_000
    height_m = draw_environment_height_m(
        np.full(num, 200.0), device_height_m=22.5, rng=np.random.default_rng(1)
    )
    values, counts = np.unique(height_m, return_counts=True)
    assert values.tolist() == [1.0, 12.0, 15.0, 18.0, 21.0]
    assert_allclose(counts / num, [0.290633, *[0.709367 / 4] * 4], atol=0.01)  # over 4 standard errors


@pytest.mark.parametrize(
    ("reference_loss_db", "reference_m", "exponent", "distance_m", "hand_db"),
    [
        (0.0, 1.0, 2.0, 500.0, 53.979),  # Chen: 20 log10(500)
        (40.0, 1.0, 4.0, 50.0, 107.959),  # FEDL: 40 + 40 log10(50)
        (128.1, 1000.0, 3.76, 250.0, 105.463),  # 128.1 + 37.6 log10(0.25)
    ],
)
def test_log_distance_path_loss(reference_loss_db, reference_m, exponent, distance_m, hand_db):
    got_db = log_distance_path_loss_db(
        np.array([distance_m]),
        reference_loss_db=reference_loss_db,
        reference_distance_m=reference_m,
        exponent=exponent,
    )
    assert got_db[0] == pytest.approx(hand_db, abs=HAND_TOLERANCE_DB)


@pytest.mark.parametrize("scenario", [UrbanMicro, UrbanMacro])
def test_a_device_below_the_range_of_the_city_models_is_refused(scenario):
    assert scenario(carrier_frequency_hz=2e9, device_height_m=1.5).breakpoint_distance_m() > 0
    for height_m in (1.0, 1.49):
        with pytest.raises(ProblemError, match=f"device_height_m must be >= 1.5 .*, got {height_m:g}"):
            scenario(carrier_frequency_hz=2e9, device_height_m=height_m)


def test_a_base_station_must_stand_above_its_surroundings():
    with pytest.raises(ProblemError, match="must exceed UMi's environment height of 1 m, got 1 and 1.5"):
        UrbanMicro(carrier_frequency_hz=2e9, base_station_height_m=1.0)
    with pytest.raises(ProblemError, match="must exceed UMa's environment height of 21 m, got 20 and 22.5"):
        UrbanMacro(
            carrier_frequency_hz=2e9,
            base_station_height_m=20.0,
            device_height_m=22.5,
            environment_height_m=21.0,
        )
    with pytest.raises(ProblemError, match="must exceed UMa's environment height of 21 m, got 20 and 22.5"):
        UrbanMacro(
            carrier_frequency_hz=2e9,
            base_station_height_m=20.0,
            device_height_m=22.5,
            environment_height_m=np.array([1.0, 21.0]),  # the highest counts
        )


def test_within_18_metres_no_roof_is_in_between():
    near_m = np.full(200, 17.9)
    drawn_m = draw_environment_height_m(near_m, device_height_m=22.5, rng=np.random.default_rng(0))
    assert set(drawn_m) == {1.0}


@pytest.mark.parametrize(
    ("device_m", "highest_m"),
    [(1.5, 1.0), (13.0, 1.0), (13.1, 12.0), (16.4, 12.0), (16.5, 15.0), (22.5, 21.0)],
)
def test_the_highest_roof_is_the_last_of_12_15_and_so_on_up_to_the_device_less_one_and_a_half(
    device_m, highest_m
):
    assert highest_environment_m(device_m) == highest_m
