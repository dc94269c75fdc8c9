"""Heights for which TR 38.901 has no formula are refused, not continued to a wrong loss."""

from __future__ import annotations

import pytest

from fedwave.errors import ConfigError
from fedwave.wireless.settings.load import load_cell, load_cell_config


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
