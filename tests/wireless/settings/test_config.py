"""Every setting of a cell takes values of its own type alone, and an option only where it belongs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from fedwave.errors import ConfigError
from fedwave.wireless.channels import CHANNELS
from fedwave.wireless.channels.fading import FADINGS, DelayLineFading, NoFading, RayleighFading, RicianFading
from fedwave.wireless.channels.gains_file import FileConfig
from fedwave.wireless.channels.log_distance import LogDistanceConfig
from fedwave.wireless.channels.placement import PLACEMENTS, DiscPlacement, DistancePlacement, FilePlacement
from fedwave.wireless.channels.sionna import SionnaConfig
from fedwave.wireless.channels.three_gpp import ThreeGppConfig
from fedwave.wireless.channels.uniform import UniformConfig
from fedwave.wireless.interference import (
    INTERFERENCES,
    DrawnInterference,
    EvenInterference,
    HexagonalInterference,
    ListedInterference,
    NoInterference,
    NoiseRise,
)
from fedwave.wireless.settings.config import CellConfig, DownlinkConfig, LossConfig, RadioConfig, RateConfig
from fedwave.wireless.settings.distribution import Uniform
from fedwave.wireless.settings.fleet import FleetConfig
from fedwave.wireless.settings.load import load_cell_config

NOT_NUMBERS = [True, False, "1", "1e3", "x", "", [1.0], math.nan, math.inf, -math.inf]

# Wrong values of each sort of setting.
WRONG: dict[str, list[Any]] = {
    "number": [*NOT_NUMBERS, {}, {"low": 0, "high": 1}, 1 + 0j],
    "distribution": [
        *NOT_NUMBERS,
        {},
        {"low": 0.0},
        {"low": 2.0, "high": 1.0},
        {"low": 0.0, "high": 1.0, "middle": 0.5},
        *({"low": wrong, "high": 1.0} for wrong in NOT_NUMBERS),
        *({"low": 0.0, "high": wrong} for wrong in NOT_NUMBERS),
    ],
    "count": [*NOT_NUMBERS, 7.0, 1.5, 0, -1, {}],
    "flag": [0, 1, 0.0, "true", "yes", "", [], [True], math.nan, {}],
    "word": [True, 0, 1.5, "rubbish", "", math.nan, [], ["static"], {}],
    "text": [True, 1, 1.5, ["text"], {}],
    "file": [True, 1, 1.5, math.nan, ["gains.npy"], {}],
    "powers": [True, 1.0, "12", "", {}, *([wrong] for wrong in NOT_NUMBERS), [1.0, -1.0]],
    "section": [True, 1, 1.5, math.nan, "x", [], [{}]],
    "part": [True, 1, 1.5, math.nan, "x", "", [], [{}], {"kind": 3}, {"kind": "x"}],
}

FADING = {"kind": "rician", "rician_k_db": 3.0, "per_block": False}
DISC = {"kind": "disc", "radius_m": 9.0}
RANGE = {"low": 0, "high": 1}

# For each section: what it cannot do without, and each setting's sort with right values.
SECTIONS: dict[type[BaseModel], tuple[dict[str, Any], dict[str, tuple[str, list[Any]]]]] = {
    Uniform: ({"low": -1.0, "high": 9.0}, {"low": ("number", [0, -0.5]), "high": ("number", [3, 2.5])}),
    DiscPlacement: (
        {"radius_m": 9.0},
        {
            "kind": ("word", ["disc"]),
            "radius_m": ("number", [7, 0.5]),
            "min_distance_m": ("number", [0, 1.5]),
        },
    ),
    DistancePlacement: (
        {"min_distance_m": 1.0, "max_distance_m": 2.0},
        {
            "kind": ("word", ["uniform-distance"]),
            "min_distance_m": ("number", [0, 1.5]),
            "max_distance_m": ("number", [7, 1.0]),
        },
    ),
    FilePlacement: (
        {"path": "a.csv"},
        {"kind": ("word", ["file"]), "path": ("file", ["b.csv", Path("b.csv")])},
    ),
    NoFading: ({}, {"kind": ("word", ["none"])}),
    RayleighFading: ({}, {"kind": ("word", ["rayleigh"]), "per_block": ("flag", [True, False])}),
    RicianFading: (
        {},
        {
            "kind": ("word", ["rician"]),
            "rician_k_db": ("number", [-20, 0, 7.5]),
            "per_block": ("flag", [True, False]),
        },
    ),
    DelayLineFading: (
        {},
        {
            "kind": ("word", ["delay-line"]),
            "ergodic": ("flag", [True, False]),
            "speed_km_per_h": ("number", [0, 3.5]),
            "round_interval_s": ("number", [10, 0.5]),
        },
    ),
    UniformConfig: (
        {"low": 0.1, "high": 1.0},
        {"kind": ("word", ["uniform"]), "low": ("number", [0, 0.5]), "high": ("number", [1, 2.5])},
    ),
    ThreeGppConfig: (
        {"scenario": "rma", "carrier_frequency_hz": 1e9, "placement": DISC},
        {
            "kind": ("word", ["3gpp"]),
            "scenario": ("word", ["umi", "uma", "rma"]),
            "carrier_frequency_hz": ("number", [500_000_000, 28e9]),
            "base_station_height_m": ("number", [10, 35.5]),
            "device_height_m": ("number", [2, 1.5]),
            "building_height_m": ("number", [5, 12.5]),
            "street_width_m": ("number", [5, 12.5]),
            "line_of_sight": ("word", ["random", "always", "never"]),
            "shadowing": ("flag", [True, False]),
            "antenna_gain_db": ("number", [-3, 8.5]),
            "base_station_antenna_gain_dbi": ("number", [8, 8.5]),
            "num_receive_antennas": ("count", [1, 64]),
            "indoor_share": ("number", [0, 1, 0.8]),
            "high_loss_share": ("number", [0, 0.0]),  # in RMa none
            "indoor_floors": ("flag", [False]),
            "car_share": ("number", [0, 1, 0.5]),
            "placement": ("part", [DISC, DiscPlacement(radius_m=3.0)]),
            "fading": ("part", [FADING, "none", NoFading()]),
        },
    ),
    LogDistanceConfig: (
        {"reference_loss_db": 40.0, "exponent": 4.0, "placement": DISC},
        {
            "kind": ("word", ["log-distance"]),
            "reference_loss_db": ("number", [0, -3.5]),
            "reference_distance_m": ("number", [1000, 0.5]),
            "exponent": ("number", [2, 3.76]),
            "shadowing_std_db": ("number", [0, 7.5]),
            "antenna_gain_db": ("number", [-3, 8.5]),
            "base_station_antenna_gain_dbi": ("number", [8, 8.5]),
            "num_receive_antennas": ("count", [1, 64]),
            "placement": ("part", [DISC]),
            "fading": ("part", [FADING, "rayleigh"]),
        },
    ),
    FileConfig: (
        {"path": "a.npy"},
        {
            "kind": ("word", ["file"]),
            "path": ("file", ["b.npy", Path("b.npy")]),
            "in_db": ("flag", [True, False]),
            "beyond_last_round": ("word", ["error", "cycle"]),
        },
    ),
    NoInterference: ({}, {"kind": ("word", ["none"])}),
    DrawnInterference: (
        {"power_w": 0.1},
        {"kind": ("word", ["drawn"]), "power_w": ("distribution", [0, 0.5, RANGE, Uniform(low=0, high=2)])},
    ),
    EvenInterference: (
        {"low_w": 0.1, "high_w": 0.2},
        {
            "kind": ("word", ["evenly-spaced"]),
            "low_w": ("number", [0, 0.5]),
            "high_w": ("number", [0, 0.5]),
        },
    ),
    NoiseRise: (
        {"rise_db": 3.0},
        {
            "kind": ("word", ["noise-rise"]),
            "rise_db": ("distribution", [0, 0.5, RANGE]),
            "averaged": ("flag", [True, False]),
        },
    ),
    ListedInterference: (
        {"power_w": [0.1]},
        {"kind": ("word", ["listed"]), "power_w": ("powers", [[], [0, 0.5], (1.5,)])},
    ),
    FleetConfig: (
        {},
        {
            "max_power_w": ("distribution", [1, 0.2, RANGE]),
            "max_power_dbm": ("distribution", [23, 0.2, -10, RANGE]),
            "max_frequency_hz": ("distribution", [1_000_000_000, 2e9, RANGE]),
            "min_frequency_hz": ("distribution", [0, 3e8, RANGE]),
            "capacitance": ("distribution", [0, 2e-28, RANGE]),
            "cpu": ("word", ["fedl", "phone", "single-board", "microcontroller"]),
            "static_power_w": ("distribution", [0, 0.09, RANGE]),
            "joules_per_cycle": ("distribution", [0, 2e-10, RANGE]),
            "joules_per_operation": ("distribution", [0, 2e-10, RANGE]),
            "cycles_per_operation": ("distribution", [1, 0.25, RANGE]),
            "cycles_per_sample": ("distribution", [250_880, 0.25, RANGE]),
            "path": ("file", ["fleet.csv"]),
        },
    ),
    LossConfig: (
        {},
        {
            "outage_snr_db": ("number", [0, -6.5]),
            "outage_margin_db": ("number", [0, 6.5]),
            "packet_error_waterfall": ("number", [1, 1.08]),
            "dropout_probability": ("number", [0, 1, 0.5]),
            "deadline_s": ("number", [3, 0.5]),
        },
    ),
    SionnaConfig: (
        {
            "scenario": "umi",
            "carrier_frequency_hz": 3.5e9,
            "placement": {"kind": "disc", "radius_m": 100.0},
            "num_rounds": 3,
        },
        {
            "kind": ("word", ["sionna"]),
            "scenario": ("word", ["umi", "uma", "rma"]),
            "carrier_frequency_hz": ("number", [2_000_000_000, 3.5e9]),
            "base_station_height_m": ("number", [10, 25.5]),
            "device_height_m": ("number", [2, 1.5]),
            "placement": ("part", [{"kind": "disc", "radius_m": 50}]),
            "num_rounds": ("count", [1, 20]),
            "round_interval_s": ("number", [10, 0.5]),
            "speed_km_per_h": ("number", [0, 3.5]),
        },
    ),
    RateConfig: (
        {},
        {
            "efficiency": ("number", [1, 0.65]),
            "max_spectral_efficiency": ("number", [6, 6.3]),
            "min_sinr_db": ("number", [-6, -6.5]),
            "per_moment": ("flag", [True, False]),
        },
    ),
    RadioConfig: (
        {},
        {
            "power_set": ("text", ["tr38840", "measured-x55"]),
            "amplifier_efficiency": ("number", [1, 0.3]),
            "circuit_power_w": ("number", [0, 0.37]),
            "waiting": ("word", ["idle"]),
            "receive_bandwidth_hz": ("number", [20e6, 1]),
        },
    ),
    DownlinkConfig: (
        {},
        {
            "broadcast": ("flag", [False]),
            "power_w": ("number", [9, 9.1]),
            "power_dbm": ("number", [40, 39.6]),
            "noise_figure_db": ("number", [9, 8.5]),
            "noise_rise_db": ("number", [3, 1.5]),
            "receive_power_w": ("number", [0, 0.44]),
            "num_receive_antennas": ("count", [1]),  # more need a rate
            "rate": ("section", [{"efficiency": 0.6}]),
        },
    ),
    HexagonalInterference: (
        {"site_distance_m": 500.0, "p0_dbm": -90.0, "reference_loss_db": 34.0, "exponent": 3.53},
        {
            "kind": ("word", ["hexagonal"]),
            "site_distance_m": ("number", [500, 433.5]),
            "p0_dbm": ("number", [-90, -80.5]),
            "alpha": ("number", [0, 1, 0.8]),
            "max_power_dbm": ("number", [23, 26.5]),
            "load": ("number", [0, 1, 0.5]),
            "reference_loss_db": ("number", [34, 34.5]),
            "reference_distance_m": ("number", [1, 1000.0]),
            "exponent": ("number", [4, 3.53]),
            "shadowing_std_db": ("number", [0, 7.82]),
            "min_distance_m": ("number", [10, 35.5]),
        },
    ),
    CellConfig: (
        {
            "num_blocks": 3,
            "bandwidth_hz": 1.0,
            "noise_psd_w_per_hz": 1.0,
            "channel": {"kind": "uniform", "low": 0.1, "high": 1.0},
            "fleet": {},
        },
        {
            "description": ("text", ["", "a cell"]),
            "normalised": ("flag", [True, False]),
            "num_blocks": ("count", [1, 20]),
            "blocks_per_device": ("count", [1, 4]),
            "access": ("word", ["one-block", "shared-band", "blocks", "tdma"]),
            "max_uploads": ("count", [1, 20]),
            "work_conserving": ("flag", [False]),
            "rate": ("section", [{"efficiency": 0.65}]),
            "radio": ("section", [{"circuit_power_w": 0.1}]),
            "downlink": ("section", [{"broadcast": True, "power_dbm": 40}]),
            "bandwidth_hz": ("number", [1, 180e3]),
            "noise_psd_w_per_hz": ("number", [1, 4e-21]),
            "noise_psd_dbm_per_hz": ("number", [-174, -173.5]),
            "noise_figure_db": ("number", [5, 0.5]),
            "redraw": ("word", ["static", "each-round"]),
            "channel": ("part", [{"kind": "uniform", "low": 0, "high": 2}]),
            "fleet": ("section", [{"max_power_dbm": 23}]),
            "interference": ("part", ["none", {"kind": "none"}, {"kind": "drawn", "power_w": 0.5}]),
            "losses": ("section", [{"deadline_s": 3}]),
            "idle_power_w": ("number", [0, 0.17]),
            "carbon_intensity_g_per_kwh": ("number", [0, 381.5]),
        },
    ),
}
FIELDS = [
    pytest.param(section, name, sort, right, id=f"{section.__name__}.{name}")
    for section, (_, settings) in SECTIONS.items()
    for name, (sort, right) in settings.items()
]


def with_setting(section: type[BaseModel], name: str, value: Any) -> dict[str, Any]:
    """Return the section's example with one setting changed, without its other spelling."""
    example = SECTIONS[section][0]
    spellings = {key for pair in section.alternatives if name in pair for key in pair}
    return {**{key: old for key, old in example.items() if key not in spellings}, name: value}


def is_refused(section: type[BaseModel], table: dict[str, Any]) -> bool:
    try:
        section.model_validate(table)
    except (ValidationError, ConfigError):
        return True
    return False


def sections_of(annotation: Any) -> set[type[BaseModel]]:
    """Return the sections that an annotation may stand for; a part stands for those of its kinds."""
    if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
        return {section for part in get_args(annotation) for section in sections_of(part)}
    if annotation.model_config.get("extra") == "allow":
        return set().union(*map(sections_of, annotation.kinds().registry.values()))
    fields = annotation.model_fields.values()
    return {annotation}.union(*(sections_of(field.annotation) for field in fields))


def test_no_section_and_no_setting_is_left_out():
    assert set(SECTIONS) == sections_of(CellConfig)
    for section, (_, settings) in SECTIONS.items():
        example_choice = SECTIONS[section][0].get(section.choice or "")
        assert set(settings) == set(section.model_fields) - section.foreign_options(example_choice)


@pytest.mark.parametrize(("section", "name", "sort", "right"), FIELDS)
def test_wrong_types_are_refused_everywhere(section, name, sort, right):
    for wrong in WRONG[sort]:
        assert is_refused(section, with_setting(section, name, wrong)), wrong


@pytest.mark.parametrize(("section", "name", "sort", "right"), FIELDS)
def test_right_values_are_taken_as_they_are(section, name, sort, right):
    for value in right:
        got = getattr(section.model_validate(with_setting(section, name, value)), name)
        if sort == "number":
            assert type(got) is float
        if sort == "file":
            assert got == Path(value)
        elif sort == "powers":
            assert got == tuple(value)
        elif isinstance(value, dict):
            assert {key: getattr(got, key) for key in value} == value
        elif sort == "part" and isinstance(value, str):
            assert got.kind == value
        else:
            assert got == value


@pytest.mark.parametrize(("section", "name", "sort", "right"), FIELDS)
def test_null_stands_for_not_given_and_only_there(section, name, sort, right):
    example = {key: value for key, value in SECTIONS[section][0].items() if key != name}
    field = section.model_fields[name]
    if field.default is None and (section, name) != (CellConfig, "noise_psd_w_per_hz"):
        without = section.model_validate(example)
        assert section.model_validate({**example, name: None}) == without
    else:
        assert is_refused(section, {**example, name: None})


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_settings_cannot_change_and_unknown_ones_are_refused(section):
    example = SECTIONS[section][0]
    settings = section.model_validate(example)
    for name in section.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(settings, name, getattr(settings, name))
    with pytest.raises(ValidationError, match="extra_forbidden"):
        section.model_validate({**example, "unknown": 1})


@pytest.mark.parametrize(
    ("section", "name", "outside"),
    [
        (ThreeGppConfig, "carrier_frequency_hz", [0.499e9, 100.1e9]),
        (ThreeGppConfig, "base_station_height_m", [4.9, 150.1]),
        (ThreeGppConfig, "device_height_m", [0.9, 22.6]),
        (ThreeGppConfig, "building_height_m", [4.9, 50.1]),
        (ThreeGppConfig, "street_width_m", [4.9, 50.1]),
        (ThreeGppConfig, "antenna_gain_db", [-1000.1, 1000.1]),
        (LogDistanceConfig, "reference_loss_db", [-1000.1, 1000.1]),
        (LogDistanceConfig, "reference_distance_m", [0.0, -1.0]),
        (LogDistanceConfig, "exponent", [0.0, -1.0]),
        (LogDistanceConfig, "shadowing_std_db", [-0.1]),
        (RicianFading, "rician_k_db", [-1000.1, 1000.1]),
        (UniformConfig, "low", [-0.1, 1.1]),
        (UniformConfig, "high", [0.0, 0.05]),
        (DiscPlacement, "radius_m", [0.0, -1.0]),
        (DiscPlacement, "min_distance_m", [-0.1, 9.0]),
        (DistancePlacement, "min_distance_m", [-0.1, 2.1]),
        (DistancePlacement, "max_distance_m", [0.0, 0.9]),
        (EvenInterference, "low_w", [-0.1]),
        (EvenInterference, "high_w", [-0.1]),
        (FleetConfig, "max_power_dbm", [-1000.1, 1000.1, {"low": -1000.1, "high": 0}]),
        (LossConfig, "outage_snr_db", [-1000.1, 1000.1]),
        (LossConfig, "outage_margin_db", [-0.1, 1000.1]),
        (RateConfig, "efficiency", [0.0, 1.1]),
        (RateConfig, "max_spectral_efficiency", [0.0, -1.0]),
        (RadioConfig, "amplifier_efficiency", [0.0, 1.1]),
        (RadioConfig, "circuit_power_w", [-0.1]),
        (RadioConfig, "receive_bandwidth_hz", [0.0, -1.0]),
        (RadioConfig, "power_set", ["x55", ""]),
        (RadioConfig, "waiting", ["sleep"]),  # without a power set
        (CellConfig, "idle_power_w", [-0.1]),
        (CellConfig, "carbon_intensity_g_per_kwh", [-1.0]),
        (DownlinkConfig, "broadcast", [True]),  # without a power
        (DownlinkConfig, "power_w", [0.0, -1.0]),
        (DownlinkConfig, "noise_rise_db", [-0.1]),
        (DownlinkConfig, "receive_power_w", [-0.1]),
        (DownlinkConfig, "num_receive_antennas", [2]),  # without a rate of its own
        (ThreeGppConfig, "indoor_share", [-0.1, 1.1]),
        (ThreeGppConfig, "car_share", [-0.1, 1.1]),
        (ThreeGppConfig, "high_loss_share", [0.5, 1.1]),  # the example is RMa
        (ThreeGppConfig, "indoor_floors", [True]),
        (HexagonalInterference, "alpha", [-0.1, 1.1]),
        (HexagonalInterference, "load", [-0.1, 1.1]),
        (HexagonalInterference, "site_distance_m", [0.0]),
        (LossConfig, "packet_error_waterfall", [0.0, -1.0]),
        (LossConfig, "dropout_probability", [-0.1, 1.1]),
        (LossConfig, "deadline_s", [0.0, -1.0]),
        (CellConfig, "bandwidth_hz", [0.0, -1.0]),
        (CellConfig, "noise_psd_w_per_hz", [0.0, -1.0]),
        (CellConfig, "noise_figure_db", [-1000.1, 1000.1]),
    ],
)
def test_values_outside_their_range_are_refused(section, name, outside):
    for value in outside:
        assert is_refused(section, with_setting(section, name, value)), value


def test_the_limits_themselves_are_inside():
    assert UniformConfig(low=0.5, high=0.5).low == 0.5
    assert DistancePlacement(min_distance_m=3.0, max_distance_m=3.0).max_distance_m == 3.0
    assert Uniform(low=1.0, high=1.0).high == 1.0
    for power_dbm in (-1000.0, 1000.0):
        assert FleetConfig(max_power_dbm=power_dbm).max_power_dbm == power_dbm


# Options of a kind -----------------------------------------------------------------------------------------

RMA = {"building_height_m": 5.0, "street_width_m": 20.0}


@pytest.mark.parametrize(("scenario", "own"), [("umi", {}), ("uma", {}), ("rma", RMA)])
def test_a_scenario_fills_in_its_own_options_and_has_no_others(scenario, own):
    table = {**SECTIONS[ThreeGppConfig][0], "scenario": scenario}
    settings = ThreeGppConfig.model_validate(table)
    for option, default in RMA.items():
        assert getattr(settings, option) == own.get(option)
        if option in own:
            assert (
                getattr(ThreeGppConfig.model_validate({**table, option: default + 1}), option) == default + 1
            )
        else:
            with pytest.raises(ConfigError, match=rf'{option} .*scenario "{scenario}".* Leave it out'):
                ThreeGppConfig.model_validate({**table, option: 12.0})


def test_the_names_in_the_dicts_are_the_kinds_of_the_sections():
    for registry in (CHANNELS, FADINGS, INTERFERENCES, PLACEMENTS):
        assert {
            name: section().kind if name == "none" else section.model_fields["kind"].default
            for name, section in registry.items()
        } == {name: name for name in registry}


def test_the_one_line_names_the_whole_key():
    with pytest.raises(ConfigError, match=r'^channel\.building_height_m .*"umi"') as street:
        load_cell_config("umi-3.5ghz", {"channel": {"building_height_m": 5.0}})
    with pytest.raises(
        ConfigError,
        match=r'^unknown key "cell\.channel\.fading\.per_block"\. It is an option of rayleigh and rician',
    ) as fading:
        load_cell_config("umi-3.5ghz", {"channel": {"fading": {"kind": "none", "per_block": True}}})
    assert "\n" not in f"{street.value}{fading.value}"


def test_what_a_preset_says_about_its_scenario_goes_with_it():
    config = load_cell_config("rma-700mhz", {"channel": {"scenario": "umi"}})
    assert config.channel.building_height_m is None
    kept = load_cell_config("rma-700mhz", {"channel": {"street_width_m": 12.0}})
    assert (kept.channel.building_height_m, kept.channel.street_width_m) == (5.0, 12.0)
    fading = load_cell_config("fedl2021", {"channel": {"fading": {"kind": "none"}}}).channel.fading
    assert fading == NoFading()


@pytest.mark.parametrize(
    ("section", "defaults"),
    [
        (DiscPlacement, {"min_distance_m": 0.0}),
        (RicianFading, {"rician_k_db": 9.0, "per_block": True}),
        (RayleighFading, {"per_block": True}),
        (DelayLineFading, {"ergodic": True, "speed_km_per_h": 3.0, "round_interval_s": None}),
        (
            ThreeGppConfig,
            {
                "base_station_height_m": None,
                "device_height_m": 1.5,
                "line_of_sight": "random",
                "shadowing": True,
                "antenna_gain_db": 0.0,
                "fading": NoFading(),
            },
        ),
        (
            LogDistanceConfig,
            {
                "reference_distance_m": 1.0,
                "shadowing_std_db": 0.0,
                "antenna_gain_db": 0.0,
                "fading": NoFading(),
            },
        ),
        (FileConfig, {"in_db": False, "beyond_last_round": "error"}),
        (FleetConfig, dict.fromkeys(FleetConfig.model_fields)),
        (
            LossConfig,
            {
                "outage_snr_db": None,
                "packet_error_waterfall": None,
                "dropout_probability": 0.0,
                "deadline_s": None,
            },
        ),
        (
            CellConfig,
            {
                "description": "",
                "normalised": False,
                "noise_figure_db": 0.0,
                "redraw": "static",
                "interference": NoInterference(),
                "losses": LossConfig(),
                "rate": RateConfig(),
                "radio": RadioConfig(),
                "downlink": DownlinkConfig(),
                "blocks_per_device": 1,
            },
        ),
    ],
)
def test_what_is_not_given_has_its_default(section, defaults):
    assert {name: section.model_fields[name].default for name in defaults} == defaults
    required = {name for name, field in section.model_fields.items() if field.is_required()}
    assert not required & set(defaults)


def test_sections_without_a_choice_have_no_foreign_options():
    assert CellConfig.foreign_options("umi") == frozenset()
    assert ThreeGppConfig.foreign_options(None) == frozenset()


def test_two_spellings_of_one_quantity_are_named():
    assert CellConfig.alternatives == (("noise_psd_w_per_hz", "noise_psd_dbm_per_hz"),)
    assert FleetConfig.alternatives == (
        ("max_power_w", "max_power_dbm"),
        ("cycles_per_sample", "cycles_per_operation"),
        ("joules_per_cycle", "joules_per_operation"),
    )


def test_a_broadcast_needs_one_power():
    assert DownlinkConfig(broadcast=True, power_w=2.0).linear_power_w == 2.0
    with pytest.raises(ConfigError, match="a broadcast needs power_w or power_dbm, got neither"):
        load_cell_config("paper", {"downlink": {"broadcast": True}})
    with pytest.raises(ConfigError, match="power_w and power_dbm are both given"):
        load_cell_config("paper", {"downlink": {"power_w": 1.0, "power_dbm": 30.0}})


def test_a_floor_above_the_cap_is_refused():
    with pytest.raises(ConfigError, match="min_sinr_db = 10 lies above where the rate is capped"):
        load_cell_config("paper", {"rate": {"max_spectral_efficiency": 1.0, "min_sinr_db": 10.0}})


def test_noise_figure_and_density_become_one_number():
    config = load_cell_config("umi-3.5ghz")
    assert config.effective_noise_psd_w_per_hz == pytest.approx(1.258925e-20, rel=1e-6)  # -169 dBm/Hz
    assert load_cell_config("paper").effective_noise_psd_w_per_hz == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"access": "tdma", "work_conserving": True},
            'work_conserving needs access = "one-block" or "blocks", got "tdma"',
        ),
        (
            {"work_conserving": True, "losses": {"packet_error_waterfall": 0.1}},
            "work_conserving and losses.packet_error_waterfall are both given",
        ),
        (
            {"access": "blocks", "losses": {"packet_error_waterfall": 0.1}},
            'access = "blocks" has no proof with losses.packet_error_waterfall',
        ),
    ],
)
def test_an_access_is_refused_what_it_cannot_do(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_cell_config("umi-3.5ghz", changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    right = {"access": "blocks", "work_conserving": True, "max_uploads": 3}
    assert load_cell_config("umi-3.5ghz", right).max_uploads == 3
