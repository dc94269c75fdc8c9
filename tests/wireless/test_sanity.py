"""Numbers that look like a unit slip are named with the likely mistake; normalised cells are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.wireless.cell import Cell
from fedwave.wireless.load import load_cell_config


def warnings_of(overrides, preset="umi-3.5ghz") -> tuple[str, ...]:
    return Cell.build(load_cell_config(preset, overrides), num_devices=20, seed=0).warnings


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"fleet": {"max_power_w": 2e4}}, "reaches 20000 W, more than a broadcast tower. Is it in mW or uW?"),
        ({"fleet": {"max_power_w": 23}}, "If that is 23 dBm, use fleet.max_power_dbm."),
        ({"bandwidth_hz": 0.18}, "bandwidth_hz is 0.18 Hz, below 1 Hz. Is it in MHz?"),
        ({"bandwidth_hz": 180}, "bandwidth_hz is 180 Hz; a block has 180e3 Hz or more. Is it in kHz"),
        ({"noise_psd_dbm_per_hz": -204}, "well below thermal noise"),
        ({"noise_psd_w_per_hz": 1e-3}, "Is it the power in a whole block?"),
        ({"fleet": {"max_frequency_hz": 2}}, "max_frequency_hz is at most 2 Hz"),
        ({"fleet": {"capacitance": 0.1}}, "Was it meant for frequencies in GHz?"),
        ({"channel": {"antenna_gain_db": 200}}, "A channel gain reaches"),
        ({"channel": {"kind": "uniform", "low": 0.1, "high": 2}}, "set normalised = true"),
        (
            {"channel": {"placement": {"min_distance_m": 0, "radius_m": 12}}},
            "nearer than 10 m, where TR 38.901 umi begins",
        ),
        ({"channel": {"placement": {"radius_m": 50_000}}}, "farther than 5000 m, where TR 38.901 umi ends"),
        ({"channel": {"device_height_m": 1.2}}, "defined for devices of 1.5 to 22.5 m, got 1.2 m"),
        ({"channel": {"base_station_height_m": 30}}, "defined for a base station at 10 m, got 30 m"),
    ],
)
def test_a_likely_slip_is_named(overrides, message):
    found = warnings_of(overrides)
    assert any(message in warning for warning in found), found
    assert all("\n" not in warning for warning in found)


def test_rural_limits_are_named():
    found = warnings_of({"channel": {"base_station_height_m": 5, "carrier_frequency_hz": 40e9}}, "rma-700mhz")
    assert any("base stations of 10 to 150 m" in warning for warning in found)
    assert any("up to 30 GHz" in warning for warning in found)
    far = {"channel": {"placement": {"radius_m": 6500, "min_distance_m": 6000}, "line_of_sight": "never"}}
    assert any(
        "20 device(s) stand farther than 5000 m" in warning for warning in warnings_of(far, "rma-700mhz")
    )
    far["channel"]["line_of_sight"] = "always"
    assert warnings_of(far, "rma-700mhz") == ()


def test_a_gains_file_in_decibels_by_mistake_is_noticed(tmp_path):
    path = tmp_path / "gains.npy"
    np.save(path, np.full((20, 20), 90.0))
    found = warnings_of({"channel": {"kind": "file", "path": str(path)}})
    assert any("Are the values dB" in warning for warning in found)


def test_normalised_cells_have_no_units_to_get_wrong():
    assert warnings_of({"channel": {"high": 2.0}, "fleet": {"max_power_w": 1e6}}, "paper") == ()
