"""Heights for which TR 38.901 has no formula are refused, not continued to a wrong loss."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.errors import ConfigError, ProblemError
from fedwave.wireless.load import load_cell, load_cell_config
from fedwave.wireless.path_loss import (
    UrbanMacro,
    UrbanMicro,
    draw_environment_height_m,
    highest_environment_m,
)


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


@pytest.mark.parametrize(
    ("preset", "channel", "message"),
    [
        (
            "umi-3.5ghz",
            {"device_height_m": 1.0},
            "cell.channel: device_height_m must be >= 1.5 in UMi, got 1",
        ),
        ("uma-2ghz", {"device_height_m": 1.4}, "device_height_m must be >= 1.5 in UMa, got 1.4"),
        (
            "uma-2ghz",
            {"device_height_m": 22.5, "base_station_height_m": 20.0},
            "must exceed UMa's environment height of 21 m",
        ),
    ],
)
def test_settings_say_so_before_anything_is_drawn(preset, channel, message):
    with pytest.raises(ConfigError, match=message):
        load_cell_config(preset, {"channel": channel})


def test_the_countryside_goes_down_to_one_metre():
    assert load_cell("rma-700mhz", num_devices=3, overrides={"channel": {"device_height_m": 1.0}})


@pytest.mark.parametrize("preset", ["umi-3.5ghz", "uma-2ghz", "rma-700mhz", "fedl2021"])
def test_processors_reach_one_to_two_gigahertz_as_in_fedl(preset):
    frequency_hz = load_cell(preset, num_devices=2000, seed=1).fleet.max_frequency_hz
    assert 1e9 <= frequency_hz.min() < 1.01e9
    assert 1.99e9 < frequency_hz.max() <= 2e9
