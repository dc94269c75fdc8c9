"""Settings: presets, files, overrides, and the one line each mistake gets."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from fedwave.errors import ConfigError, ProblemError
from fedwave.settings import merge, validate
from fedwave.wireless.cell import Cell
from fedwave.wireless.channels.three_gpp import ThreeGppConfig
from fedwave.wireless.config import CellConfig
from fedwave.wireless.load import CELL_PRESETS, load_cell, load_cell_config, with_preset


def error_of(overrides, preset="umi-3.5ghz") -> str:
    with pytest.raises(ConfigError) as caught:
        load_cell_config(preset, overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def resolve_cell_table(table) -> CellConfig:
    return validate(CellConfig, with_preset(table), root="cell")


def test_presets_on_disk_are_the_presets_in_the_list():
    files = resources.files("fedwave.wireless").joinpath("presets").iterdir()
    assert sorted(file.name for file in files) == sorted(f"{name}.toml" for name in CELL_PRESETS)


@pytest.mark.parametrize("name", CELL_PRESETS)
def test_every_number_of_a_preset_is_explained(name):
    """A line with a number has a comment on it or above it."""
    text = resources.files("fedwave.wireless").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
    lines = text.splitlines()
    in_explained_group = False
    for line in lines:
        if not line.strip() or line.startswith("["):
            in_explained_group = False
        if "#" in line:
            in_explained_group = True
        has_number = any(character.isdigit() for character in line.partition("=")[2])
        if has_number and not line.startswith(("description", "preset", "kind")):
            assert in_explained_group, f"{name}: {line}"
    tomllib.loads(text)


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
    config = load_cell_config("umi-3.5ghz", {"channel": {"placement": {"radius_m": 99.0}}})
    assert isinstance(config.channel, ThreeGppConfig)
    assert config.channel.placement.radius_m == 99.0
    assert config.channel.placement.min_distance_m == 10


def test_another_kind_replaces_the_whole_table():
    config = load_cell_config("umi-3.5ghz", {"interference": {"kind": "drawn", "power_w": 1e-15}})
    assert config.interference.power_w == 1e-15


def test_the_other_spelling_of_a_quantity_replaces_the_presets():
    config = load_cell_config("umi-3.5ghz", {"fleet": {"max_power_w": 0.1}, "noise_psd_w_per_hz": 1e-20})
    assert config.fleet.max_power_dbm is None
    assert config.noise_psd_dbm_per_hz is None


def test_merging_leaves_its_inputs_alone():
    base, top = {"a": {"b": 1}}, {"a": {"c": 2}}
    assert merge(base, top) == {"a": {"b": 1, "c": 2}}
    assert (base, top) == ({"a": {"b": 1}}, {"a": {"c": 2}})


def test_noise_figure_and_density_become_one_number():
    config = load_cell_config("umi-3.5ghz")
    assert config.effective_noise_psd_w_per_hz == pytest.approx(1.258925e-20, rel=1e-6)  # -169 dBm/Hz
    assert load_cell_config("paper").effective_noise_psd_w_per_hz == 1.0


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
        ({"channel": {"kind": "x"}}, 'cell.channel.kind "x" is unknown. Choose one of: uniform, 3gpp'),
        ({"channel": {"kind": "log-distance"}}, "cell.channel.reference_loss_db is missing"),
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


def test_a_table_without_preset_must_be_complete():
    with pytest.raises(ConfigError, match=r"cell\.num_blocks is missing"):
        validate(CellConfig, {}, root="cell")
    both = {"noise_psd_w_per_hz": 1.0, "noise_psd_dbm_per_hz": -174.0}
    assert "exactly one of noise_psd_w_per_hz and noise_psd_dbm_per_hz" in error_of(both)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"fleet": {"max_power_w": 0}},
            r"fleet\.max_power_w must be > 0 for every device, got 0 at device 0",
        ),
        ({"fleet": {"max_frequency_hz": 0}}, r"fleet\.max_frequency_hz must be > 0 .* got 0 at device 0"),
        ({"fleet": {"capacitance": -1}}, r"fleet\.capacitance must be >= 0 .* got -1"),
        ({"fleet": {"cycles_per_sample": -1}}, r"fleet\.cycles_per_sample must be >= 0 .* got -1"),
        ({"interference": {"kind": "drawn", "power_w": -90}}, r"interference\.power_w must be >= 0, got -90"),
        (
            {"interference": {"kind": "noise-rise", "rise_db": -3}},
            r"interference\.rise_db must lie in 0 to 1000, got -3",
        ),
        ({"interference": {"kind": "listed", "power_w": [0.1]}}, r"lists 1 blocks, but num_blocks is 20"),
    ],
)
def test_a_cell_that_cannot_work_is_refused(overrides, message):
    with pytest.raises(ProblemError, match=message) as caught:
        Cell.build(load_cell_config("umi-3.5ghz", overrides), num_devices=5, seed=0)
    assert "\n" not in str(caught.value)


def test_a_cell_needs_devices_and_a_complete_fleet():
    with pytest.raises(ProblemError, match="num_devices must be a whole number >= 1, got 0"):
        Cell.build(load_cell_config("paper"), num_devices=0, seed=0)
    table = load_cell_config("paper").model_dump(mode="json", exclude_none=True)
    del table["fleet"]["capacitance"]
    with pytest.raises(ProblemError, match=r"fleet\.capacitance is not given, nor is there a fleet CSV"):
        Cell.build(validate(CellConfig, table, root="cell"), num_devices=3, seed=0)


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_a_cell_is_loaded_and_built_in_one_call():
    ours = load_cell("umi-3.5ghz", num_devices=4, seed=3, overrides={"num_blocks": 2})
    theirs = Cell.build(load_cell_config("umi-3.5ghz", {"num_blocks": 2}), num_devices=4, seed=3)
    assert ours.config == theirs.config
    assert (ours.draw(1).channel_gain == theirs.draw(1).channel_gain).all()


def test_a_fleet_may_have_work_and_processors_that_cost_nothing():
    free = {"fleet": {"capacitance": 0, "cycles_per_sample": 0}}
    fleet = Cell.build(load_cell_config("umi-3.5ghz", free), num_devices=2, seed=0).fleet
    assert fleet.capacitance.tolist() == fleet.cycles_per_sample.tolist() == [0.0, 0.0]


def test_a_column_that_is_nowhere_is_missed_in_the_csv_too(tmp_path):
    table = load_cell_config("paper").model_dump(mode="json", exclude_none=True)
    table["fleet"] = {"path": write(tmp_path, "max_power_w\n1\n")}
    with pytest.raises(ProblemError, match=r"max_frequency_hz is not given, nor a column in table\.csv"):
        Cell.build(resolve_cell_table(table), num_devices=1, seed=0)


def test_a_fleet_csv_replaces_the_columns_it_has(tmp_path):
    path = write(tmp_path, "device,max_power_w,max_frequency_hz\n0,0.1,1e9\n1,0.2,2e9\n")
    cell = Cell.build(load_cell_config("umi-3.5ghz", {"fleet": {"path": path}}), num_devices=2, seed=0)
    assert cell.fleet.max_power_w.tolist() == [0.1, 0.2]
    assert cell.fleet.max_frequency_hz.tolist() == [1e9, 2e9]
    assert cell.fleet.capacitance.tolist() == [2e-28, 2e-28]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_powr_w\n1\n2\n", r'unknown column "max_powr_w"\. Did you mean "max_power_w"\?'),
        ("max_power_w\n1\n", r"has 1 devices, but the cell has 2\. Give one row per device"),
        ("max_power_w\n1\nx\n", r'has max_power_w = "x" for device 1 in line 3\. Write a number'),
        ("max_power_w,capacitance\n1,1\n1\n", r"has 1 values in line 3, but 2 columns"),
        ("max_power_w\n1\n0\n", r"max_power_w must be > 0 for every device, got 0 at device 1"),
        ("max_power_w\n1\nnan\n", r"max_power_w must be > 0 for every device, got nan at device 1"),
        ("", "is empty"),
    ],
)
def test_a_bad_fleet_csv_is_one_line(tmp_path, text, message):
    config = load_cell_config("umi-3.5ghz", {"fleet": {"path": write(tmp_path, text)}})
    with pytest.raises(ProblemError, match=message) as caught:
        Cell.build(config, num_devices=2, seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x_m\n1\n2\n", r'has no column "y_m"'),
        ("x_m,y_m\n1,1\ninf,1\n", r"not finite at device 1"),
        (None, r"Cannot read the positions file .*: No such file"),
    ],
)
def test_a_bad_positions_csv_is_one_line(tmp_path, text, message):
    path = str(tmp_path / "none.csv") if text is None else write(tmp_path, text)
    placement = {"kind": "file", "path": path}
    config = load_cell_config("umi-3.5ghz", {"channel": {"placement": placement}})
    with pytest.raises(ProblemError, match=message):
        Cell.build(config, num_devices=2, seed=0)


def test_a_device_at_the_base_station_has_no_log_distance_loss(tmp_path):
    placement = {"kind": "file", "path": write(tmp_path, "x_m,y_m\n5,0\n0,0\n")}
    config = load_cell_config("chen2020", {"channel": {"placement": placement}})
    with pytest.raises(ProblemError, match="Device 1 stands at the base station"):
        Cell.build(config, num_devices=2, seed=0)


def test_a_device_may_stand_nearer_than_a_metre(tmp_path):
    placement = {"kind": "file", "path": write(tmp_path, "x_m,y_m\n0.5,0\n")}
    cell = load_cell("chen2020", num_devices=1, overrides={"channel": {"placement": placement}})
    assert cell.draw(0).channel_gain == pytest.approx([4.0])  # d^-2
    assert "Is a device too close" in cell.warnings[0]
