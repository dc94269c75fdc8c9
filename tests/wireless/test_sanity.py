"""Numbers that look like a unit slip are named with the likely mistake; normalised cells are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.load import load_cell_config


def warnings_of(overrides, preset="umi-3.5ghz-bare") -> tuple[str, ...]:
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
        ({"fleet": {"max_frequency_hz": 2, "min_frequency_hz": 0}}, "max_frequency_hz is at most 2 Hz"),
        ({"fleet": {"capacitance": 0.1}}, "Was it meant for frequencies in GHz?"),
        ({"channel": {"antenna_gain_db": 200}}, "A channel gain reaches"),
        ({"channel": {"kind": "uniform", "low": 0.1, "high": 2}}, "set normalised = true"),
        (
            {"channel": {"placement": {"min_distance_m": 0, "radius_m": 12}}},
            "nearer than 10 m, where TR 38.901 umi begins",
        ),
        ({"channel": {"placement": {"radius_m": 50_000}}}, "farther than 5000 m, where TR 38.901 umi ends"),
        ({"channel": {"base_station_height_m": 30}}, "defined for a base station at 10 m, got 30 m"),
    ],
)
def test_a_likely_slip_is_named(overrides, message):
    found = warnings_of(overrides)
    assert any(message in warning for warning in found), found
    assert all("\n" not in warning for warning in found)


def test_rural_limits_are_named():
    found = warnings_of(
        {"channel": {"base_station_height_m": 5, "carrier_frequency_hz": 40e9}}, "rma-700mhz-bare"
    )
    assert any("base stations of 10 to 150 m" in warning for warning in found)
    assert any("up to 30 GHz" in warning for warning in found)
    far = {"channel": {"placement": {"radius_m": 6500, "min_distance_m": 6000}, "line_of_sight": "never"}}
    assert any(
        "20 device(s) stand farther than 5000 m" in warning for warning in warnings_of(far, "rma-700mhz-bare")
    )
    far["channel"]["line_of_sight"] = "always"
    assert warnings_of(far, "rma-700mhz-bare") == ()


def test_a_gains_file_in_decibels_by_mistake_is_noticed(tmp_path):
    path = tmp_path / "gains.npy"
    np.save(path, np.full((20, 20), 90.0))
    found = warnings_of({"channel": {"kind": "file", "path": str(path)}})
    assert any("Are the values dB" in warning for warning in found)


def test_normalised_cells_have_no_units_to_get_wrong():
    assert warnings_of({"channel": {"high": 2.0}, "fleet": {"max_power_w": 1e6}}, "paper") == ()


@pytest.mark.parametrize(
    ("preset", "channel", "others"),
    [
        ("rma-700mhz-bare", {"base_station_height_m": 10.0}, {"base_station_height_m": 9.9}),
        ("rma-700mhz-bare", {"carrier_frequency_hz": 30e9}, {"carrier_frequency_hz": 30.1e9}),
        ("rma-700mhz-bare", {"device_height_m": 10.0}, {"device_height_m": 10.1}),
        ("rma-700mhz-bare", {"device_height_m": 1.0}, {"device_height_m": 10.1}),
        ("umi-3.5ghz-bare", {"base_station_height_m": 10.0}, {"base_station_height_m": 10.1}),
        ("uma-2ghz-bare", {"base_station_height_m": 25.0}, {"base_station_height_m": 10.0}),
    ],
)
def test_the_limits_of_a_model_belong_to_it(preset, channel, others):
    assert warnings_of({"channel": channel}, preset) == ()
    (found,) = warnings_of({"channel": others}, preset)
    assert "is defined" in found


@pytest.mark.parametrize(
    ("preset", "distance_m", "sight", "message"),
    [
        ("umi-3.5ghz-bare", 10.0, "always", None),
        ("umi-3.5ghz-bare", 9.9, "always", "1 device(s) stand nearer than 10 m"),
        ("umi-3.5ghz-bare", 5000.0, "never", None),
        ("umi-3.5ghz-bare", 5000.1, "always", "1 device(s) stand farther than 5000 m"),
        ("uma-2ghz-bare", 5000.1, "never", "1 device(s) stand farther than 5000 m"),
        ("rma-700mhz-bare", 5000.0, "never", None),
        ("rma-700mhz-bare", 5000.1, "never", "1 device(s) stand farther than 5000 m"),
        ("rma-700mhz-bare", 10_000.0, "always", None),
        ("rma-700mhz-bare", 10_000.1, "always", "1 device(s) stand farther than 10000 m"),
    ],
)
def test_places_are_counted_from_where_a_model_ends(preset, distance_m, sight, message, tmp_path):
    path = tmp_path / "positions.csv"
    path.write_text("x_m,y_m\n" + f"{distance_m},0\n" + "50,0\n" * 19)
    placement = {"kind": "file", "path": str(path)}
    found = warnings_of({"channel": {"placement": placement, "line_of_sight": sight}}, preset)
    if message is None:
        assert found == ()
    else:
        (warning,) = found
        assert warning.startswith(message)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"fleet": {"max_power_w": 10.0}}, {"fleet": {"max_power_w": 10.1}}),
        ({"bandwidth_hz": 1000.0}, {"bandwidth_hz": 999.0}),
        # With 5 dB of noise figure, a factor of 3.16: 4e-22 is a tenth of thermal noise.
        ({"noise_psd_w_per_hz": 1.27e-22}, {"noise_psd_w_per_hz": 1.26e-22}),
        ({"noise_psd_w_per_hz": 3.16e-13}, {"noise_psd_w_per_hz": 3.17e-13}),
        (
            {"fleet": {"max_frequency_hz": 1e6, "min_frequency_hz": 0}},
            {"fleet": {"max_frequency_hz": 0.9e6, "min_frequency_hz": 0}},
        ),
        ({"fleet": {"capacitance": 1e-20}}, {"fleet": {"capacitance": 1.1e-20}}),
        (
            {"channel": {"kind": "uniform", "low": 0.1, "high": 1.0}},
            {"channel": {"kind": "uniform", "low": 0.1, "high": 1.1}},
        ),
    ],
)
def test_each_warning_begins_where_it_should(inside, outside):
    assert warnings_of(inside) == ()
    assert len(warnings_of(outside)) == 1


def test_the_size_of_a_slip_decides_what_it_is_taken_for():
    (tower,) = warnings_of({"fleet": {"max_power_w": 10.1e3}})
    assert "broadcast tower" in tower
    (phone,) = warnings_of({"fleet": {"max_power_w": 10e3}})
    assert "fleet.max_power_dbm" in phone
    (hertz,) = warnings_of({"bandwidth_hz": 1.0})
    assert "kHz or MHz" in hertz
