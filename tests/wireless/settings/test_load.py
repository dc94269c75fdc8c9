"""Presets, files and overrides in layers, and the one line that each mistake gets."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tomli_w

from fedwave.errors import ConfigError
from fedwave.settings import merge, validate
from fedwave.wireless.cell import Cell
from fedwave.wireless.channels.three_gpp import ThreeGppConfig
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.settings.load import load_cell, load_cell_config, with_preset


def error_of(overrides, preset="umi-3.5ghz-bare") -> str:
    with pytest.raises(ConfigError) as caught:
        load_cell_config(preset, overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def resolve_cell_table(table) -> CellConfig:
    return validate(CellConfig, with_preset(table), root="cell")


def test_an_unknown_preset_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r'no cell preset "uma-2hz"\. Did you mean "uma-2ghz"\?'):
        load_cell_config("uma-2hz")


def test_a_missing_or_broken_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the cell file .*: No such file or directory"):
        load_cell_config(str(tmp_path / "none.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("num_blocks = = 3")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load_cell_config(str(broken))


def test_paths_start_at_the_file_that_names_them(tmp_path):
    toml = tmp_path / "mine.toml"
    toml.write_text('preset = "paper"\n[fleet]\npath = "fleet.csv"\n')
    assert load_cell_config(str(toml)).fleet.path == tmp_path / "fleet.csv"
    from_shell = load_cell_config(str(toml), {"fleet": {"path": "here.csv"}})
    assert str(from_shell.fleet.path) == "here.csv"


def test_overrides_reach_into_tables():
    config = load_cell_config("umi-3.5ghz-bare", {"channel": {"placement": {"radius_m": 99.0}}})
    assert isinstance(config.channel, ThreeGppConfig)
    assert config.channel.placement.radius_m == 99.0
    assert config.channel.placement.min_distance_m == 10


def test_another_kind_replaces_the_whole_table():
    config = load_cell_config("umi-3.5ghz-bare", {"interference": {"kind": "drawn", "power_w": 1e-15}})
    assert config.interference.power_w == 1e-15


def test_the_other_spelling_of_a_quantity_replaces_the_presets():
    config = load_cell_config("umi-3.5ghz-bare", {"fleet": {"max_power_w": 0.1}, "noise_psd_w_per_hz": 1e-20})
    assert config.fleet.max_power_dbm is None
    assert config.noise_psd_dbm_per_hz is None


def test_merging_leaves_its_inputs_alone():
    base, top = {"a": {"b": 1}}, {"a": {"c": 2}}
    assert merge(base, top) == {"a": {"b": 1, "c": 2}}
    assert (base, top) == ({"a": {"b": 1}}, {"a": {"c": 2}})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"num_blocks": 0},
            "cell.num_blocks must be greater than or equal to 1, got 0. Without a radio block",
        ),
        ({"num_block": 3}, 'unknown key "cell.num_block". Did you mean "num_blocks"?'),
        ({"channel": {"fadin": 1}}, 'unknown key "cell.channel.fadin". Did you mean "fading"?'),
        (
            {"fleet": {"max_power_w": {"lo": 1, "high": 2}}},
            'unknown key "cell.fleet.max_power_w.lo". Did you mean "low"?',
        ),
        ({"fleet": {"max_power_w": "a"}}, "cell.fleet.max_power_w must be a valid number"),
        (
            {"fleet": {"max_power_w": {"low": 3, "high": 2}}},
            "low must not exceed high, got low = 3, high = 2",
        ),
        ({"fleet": {"max_power_w": 1, "max_power_dbm": 1}}, "max_power_w and max_power_dbm are both given"),
        ({"channel": {"kind": "x"}}, 'cell.channel: there is no channel "x". Choose one of: uniform, 3gpp'),
        (
            {"channel": {"kind": "log-distance"}},
            "cell.channel.reference_loss_db, cell.channel.exponent and cell.channel.placement are missing",
        ),
        ({"channel": {"carrier_frequency_hz": 3.5}}, "If that is GHz, write 3.5e9."),
        ({"channel": {"scenario": "inf"}}, "cell.channel.scenario must be 'umi', 'uma' or 'rma', got 'inf'"),
        ({"channel": {"placement": {"min_distance_m": 999}}}, "must be below radius_m = 250, got 999"),
        ({"noise_psd_w_per_hz": -174}, "If that is dBm/Hz, use noise_psd_dbm_per_hz."),
        (
            {"channel": {"antenna_gain_db": 1e5}},
            "cell.channel.antenna_gain_db must be less than or equal to 1000",
        ),
        ({"fleet": {"max_power_dbm": 1e5}}, "max_power_dbm must lie within 1000 dBm, got 100000"),
        ({"losses": {"dropout_probability": float("nan")}}, "cell.losses.dropout_probability must be"),
        ({"bandwidth_hz": 0}, "cell.bandwidth_hz must be greater than 0, got 0"),
        ({"bandwidth_hz": float("nan")}, "cell.bandwidth_hz must be a finite number, got nan"),
        ({"losses": {"dropout_probability": 1.5}}, "must be less than or equal to 1, got 1.5"),
        (
            {"interference": {"kind": "listed", "power_w": [1, -90]}},
            "cell.interference.power_w[1] must be greater",
        ),
        (
            {"interference": {"kind": "evenly-spaced", "low_w": -90, "high_w": 1}},
            "If that is dBm, convert it: watts are",
        ),
    ],
)
def test_each_mistake_gets_its_line(overrides, message):
    assert message in error_of(overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"radio": {"power_set": "measured-x50"}},
            'no power set "measured-x50". Did you mean "measured-x55"?',
        ),
        ({"radio": {"waiting": "sleep"}}, 'waiting = "sleep" is a state of a power set, and none is named'),
        ({"radio": {"waiting": "deep"}}, "cell.radio.waiting must be 'idle', 'sleep', 'micro-sleep' or 'mon"),
        (
            {"radio": {"power_set": "tr38840", "waiting": "sleep"}, "idle_power_w": 0.1},
            'radio.waiting = "sleep" and idle_power_w = 0.1 are both given. Keep one of them',
        ),
        ({"radio": {"power_set": "tr38840", "receive_bandwidth_hz": "x"}}, "receive_bandwidth_hz must be"),
        ({"radio": {"power_set": 3}}, "cell.radio.power_set must be"),
        ({"radio": {"power_set": "tr38840"}, "downlink": 3}, "cell.downlink must be"),
    ],
)
def test_each_mistake_about_power_sets_gets_its_line(overrides, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_cell_config("fedl2021", overrides)


def powers(overrides, preset="umi-3.5ghz"):
    """Return watts while sending at 1 W, while receiving, and in each state of rest, and when idle."""
    config = load_cell_config(preset, overrides)
    return (
        float(config.radio.power.drain_w(np.ones(1))[0]),
        config.downlink.receive_power_w,
        [state.power_w for state in config.waiting.states],
        config.idle_power_w,
    )


def test_another_power_set_replaces_all_watts_of_the_preset_and_explicit_watts_beat_the_set():
    send, receive, rest, idle = powers({"radio": {"power_set": "measured-x55"}})
    assert (send, receive, idle) == pytest.approx((1 / 0.0676844 + 1.7762157, 1.2369574, 0.0), rel=1e-6)
    assert rest == pytest.approx([0.4547934, 0.2918426, 0.168], rel=1e-6)
    mine = {
        "radio": {"power_set": "measured-x55", "amplifier_efficiency": 0.5},
        "downlink": {"receive_power_w": 0.7},
    }
    assert powers(mine)[:2] == pytest.approx((2 + 1.7762157, 0.7), rel=1e-6)
    assert powers({"radio": {"circuit_power_w": 9.0}})[0] == pytest.approx(1 / 0.3 + 9.0)


def test_a_later_idle_power_replaces_sleep_and_a_later_sleep_the_idle_power():
    assert powers({"idle_power_w": 0.2})[2:] == ([], 0.2)
    assert powers({"idle_power_w": 0.0})[2:] == ([], 0.0)
    assert powers({"radio": {"waiting": "micro-sleep"}})[2] == pytest.approx([45 * 1.470565e-3], rel=1e-6)
    assert powers({"radio": {"waiting": "monitor"}})[2] == pytest.approx([55 * 1.470565e-3], rel=1e-6)


def test_a_resolved_cell_is_read_back_as_it_was_and_takes_another_set(tmp_path):
    def resolved(preset, overrides, name):
        config = load_cell_config(preset, overrides)
        path = tmp_path / f"{name}.toml"
        path.write_text(tomli_w.dumps(config.model_dump(mode="json", exclude_none=True)))
        return config, path

    config, path = resolved("umi-3.5ghz", {"radio": {"circuit_power_w": 0.5}}, "mine")
    assert load_cell_config(path) == config
    again, _ = resolved(path, {"radio": {"power_set": "measured-x55"}}, "again")
    assert again == load_cell_config("umi-3.5ghz", {"radio": {"power_set": "measured-x55"}})
    narrow = load_cell_config(path, {"radio": {"receive_bandwidth_hz": 20e6}})
    assert narrow.downlink.receive_power_w == pytest.approx(120 * 1.470565e-3, rel=1e-6)
    assert narrow.radio.circuit_power_w == 0.5


def test_a_table_without_preset_must_be_complete():
    with pytest.raises(ConfigError, match=r"cell\.num_blocks, cell\.bandwidth_hz, .* are missing"):
        validate(CellConfig, {}, root="cell")
    both = {"noise_psd_w_per_hz": 1.0, "noise_psd_dbm_per_hz": -174.0}
    assert "exactly one of noise_psd_w_per_hz and noise_psd_dbm_per_hz" in error_of(both)


def test_a_cell_is_loaded_and_built_in_one_call():
    ours = load_cell("umi-3.5ghz-bare", num_devices=4, seed=3, overrides={"num_blocks": 2})
    theirs = Cell.build(load_cell_config("umi-3.5ghz-bare", {"num_blocks": 2}), num_devices=4, seed=3)
    assert ours.config == theirs.config
    assert (ours.draw(1).channel_gain == theirs.draw(1).channel_gain).all()
