"""A cell against its numbers worked out by hand, and what each part of a draw depends on."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib

import numpy as np
import pytest
import tomli_w
from numpy.testing import assert_allclose, assert_array_equal

from fedwave.errors import ProblemError
from fedwave.settings import validate
from fedwave.wireless.cell import Cell
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.rate import RateModel
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.settings.load import load_cell, load_cell_config
from fedwave.wireless.settings.presets import CELL_PRESETS
from tests.wireless import by_hand

PLACES = [name for name in CELL_PRESETS if not name.startswith("paper")]
EXACT = {"rtol": 1e-12}  # the same numbers; only the order of rounding differs


def build(preset="umi-3.5ghz-bare", overrides=None, *, num_devices=30, seed=7) -> Cell:
    return Cell.build(load_cell_config(preset, overrides), num_devices=num_devices, seed=seed)


def fleet_arrays(cell: Cell) -> list[np.ndarray]:
    return [getattr(cell.fleet, field.name) for field in dataclasses.fields(cell.fleet)]


def save_gains(tmp_path, *shape: int) -> tuple[np.ndarray, dict]:
    gains = np.random.default_rng(0).uniform(1e-12, 1e-9, shape)
    np.save(tmp_path / "gains.npy", gains)
    return gains, {"kind": "file", "path": str(tmp_path / "gains.npy")}


# Worked out by hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_every_presets_fleet_is_the_one_worked_out_by_hand(preset, seed):
    cell = build(preset, seed=seed)
    for name, expected in by_hand.fleet(preset, 30, seed).items():
        assert_allclose(getattr(cell.fleet, name), expected, **EXACT)
    assert cell.noise_w == pytest.approx(by_hand.noise_w(preset), rel=1e-12)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_every_presets_channel_is_the_one_worked_out_by_hand(preset, seed):
    cell = build(preset, seed=seed)
    for round_index in (0, 3):
        drawn_round = 0 if by_hand.numbers(preset)["redraw"] == "static" else round_index
        draw = cell.draw(round_index)
        is_averaged = cell.channel.ergodic_k_factor is not None
        tolerance = {"rtol": 4e-3} if is_averaged else EXACT  # 0.02 dB: Gauss's rule of 24 points
        if cell.config.rate.per_moment:  # 0.065 dB: of the tables, and 0.02 dB that they are rounded down
            if round_index > 0:
                continue
            tolerance = {"rtol": 1.5e-2}
        expected = by_hand.gain(preset, drawn_round, 30, seed)
        # Far below the floor it counts only that there is no link.
        is_heard = cell.fleet.max_power_w * expected.T > 0.05 * cell.noise_w
        assert_allclose(draw.channel_gain[is_heard.T], expected[is_heard.T], **tolerance)
        if cell.config.rate.per_moment:
            assert (draw.channel_gain <= expected * (1 + 1e-4)).all()
        assert_allclose(draw.interference_w, by_hand.interference_w(preset, drawn_round, seed), rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("preset", PLACES)
def test_every_presets_places_are_those_worked_out_by_hand(preset, seed):
    cell = build(preset, num_devices=200, seed=seed)
    distance_m, angle_rad = by_hand.distances_m(preset, 200, seed), by_hand.angles_rad(200, seed)
    assert_allclose(cell.distance_m, distance_m, **EXACT)
    assert_allclose(cell.position_m[:, 0], distance_m * np.cos(angle_rad), rtol=1e-9)
    assert_allclose(cell.position_m[:, 1], distance_m * np.sin(angle_rad), rtol=1e-9)
    path_loss_db, shadowing_db = by_hand.losses_db(preset, 200, seed)
    assert_allclose(cell.large_scale.path_loss_db, path_loss_db, **EXACT)
    assert_allclose(cell.large_scale.shadowing_db, shadowing_db, **EXACT)
    if cell.config.channel.kind == "3gpp":
        assert_array_equal(cell.large_scale.is_line_of_sight, by_hand.in_sight(preset, 200, seed))
        assert 0 < cell.large_scale.is_line_of_sight.sum() < 200
    else:
        assert cell.large_scale.is_line_of_sight is None


def test_cells_without_geometry_have_no_places():
    cell = build("paper")
    assert cell.large_scale is cell.position_m is cell.distance_m is None


@pytest.mark.parametrize("preset", ["umi-3.5ghz-bare", "fedl2021"])
def test_rician_fading_is_a_steady_path_and_two_normal_components(preset):
    fading = {"kind": "rician", "rician_k_db": 6.0, "per_block": True}
    cell = build(preset, {"channel": {"fading": fading}, "redraw": "each-round"})
    shape = (30, cell.num_blocks)
    rng = by_hand.stream(7, by_hand.CHANNEL, 2)
    in_phase, quadrature = rng.standard_normal(shape), rng.standard_normal(shape)
    path_loss_db, shadowing_db = by_hand.losses_db(preset, 30, 7)
    is_steady = by_hand.in_sight(preset, 30, 7) if preset == "umi-3.5ghz-bare" else np.ones(30, dtype=bool)
    for i in range(30):
        k = 10**0.6 if is_steady[i] else 0.0
        steady, spread = math.sqrt(k / (k + 1)), math.sqrt(1 / (2 * (k + 1)))
        power = (steady + spread * in_phase[i]) ** 2 + (spread * quadrature[i]) ** 2
        expected = 10 ** (-(path_loss_db[i] + shadowing_db[i]) / 10) * power
        assert_allclose(cell.draw(2).channel_gain[i], expected, **EXACT)


def test_flat_fading_takes_one_draw_per_device():
    cell = build(overrides={"channel": {"fading": {"kind": "rayleigh", "per_block": False}}})
    power = by_hand.stream(7, by_hand.CHANNEL, 1).standard_exponential(30)
    assert_allclose(cell.draw(1).channel_gain, power * cell.large_scale.gain, **EXACT)


def test_without_fading_the_gain_is_the_large_scale_gain_with_its_antennas():
    cell = build(overrides={"channel": {"fading": {"kind": "none"}, "antenna_gain_db": 6.0}})
    path_loss_db, shadowing_db = by_hand.losses_db("umi-3.5ghz-bare", 30, 7)
    assert_allclose(cell.draw(0).channel_gain, 10 ** ((6.0 - path_loss_db - shadowing_db) / 10), **EXACT)


def test_high_devices_in_a_city_see_their_own_roofs():
    """UMa at 20 m: h_E is 1 m with probability 1 / (1 + C), else 12, 15 or 18 m; it moves the breakpoint."""
    cell = build(
        "uma-2ghz-bare", {"channel": {"device_height_m": 20.0, "line_of_sight": "always"}}, num_devices=300
    )
    rng = by_hand.stream(7, by_hand.FLEET, by_hand.ROOFS)
    roof_m = 12.0 + 3.0 * rng.integers(0, 3, 300)
    luck = rng.random(300)
    num_moved = 0
    for i, d in enumerate(by_hand.distances_m("uma-2ghz-bare", 300, 7)):
        lift = 0.7**1.5 * 1.25 * (d / 100) ** 3 * math.exp(-d / 150)
        height_m = 1.0 if luck[i] < 1 / (1 + lift) else roof_m[i]
        num_moved += height_m > 1
        bend = 4 * (25 - height_m) * (20 - height_m) * 2e9 / 3e8
        d3 = math.hypot(d, 5.0)
        near = 28 + 22 * math.log10(d3) + 20 * math.log10(2)
        far = 28 + 40 * math.log10(d3) + 20 * math.log10(2) - 9 * math.log10(bend**2 + 25)
        assert cell.large_scale.path_loss_db[i] == pytest.approx(near if d <= bend else far, rel=1e-12)
    assert 30 < num_moved < 300


@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        (
            "umi-3.5ghz-bare",
            {"base_station_height_m": 14.0, "device_height_m": 2.0, "carrier_frequency_hz": 28e9},
        ),
        (
            "uma-2ghz-bare",
            {"base_station_height_m": 30.0, "device_height_m": 2.0, "carrier_frequency_hz": 0.9e9},
        ),
        (
            "rma-700mhz-bare",
            {"base_station_height_m": 50.0, "building_height_m": 9.0, "street_width_m": 30.0},
        ),
        ("chen2020", {"reference_loss_db": 128.1, "reference_distance_m": 1000.0, "exponent": 3.76}),
    ],
)
@pytest.mark.parametrize("sight", [True, False])
def test_heights_and_surroundings_reach_the_path_loss(preset, settings, sight):
    forced = {} if preset == "chen2020" else {"line_of_sight": "always" if sight else "never"}
    cell = build(preset, {"channel": {**settings, **forced}})
    channel = {**by_hand.numbers(preset)["channel"], **settings}
    expected = [by_hand.path_loss_db(channel, d, sight) for d in by_hand.distances_m(preset, 30, 7)]
    assert_allclose(cell.large_scale.path_loss_db, expected, **EXACT)


def test_without_a_height_a_scenario_has_its_own():
    """Table 7.2-1 and 7.2-3: base stations of UMi, UMa and RMa stand at 10, 25 and 35 m."""
    for preset in ("umi-3.5ghz-bare", "uma-2ghz-bare", "rma-700mhz-bare"):
        table = load_cell_config(preset).model_dump(mode="json", exclude_none=True)
        del table["channel"]["base_station_height_m"]
        bare = Cell.build(CellConfig.model_validate(table), num_devices=30, seed=7)
        assert_array_equal(bare.large_scale.path_loss_db, build(preset).large_scale.path_loss_db)


def test_the_papers_numbers_stay_put():
    """Published runs depend on these draws: a change here changes every figure."""
    cell = build("paper", num_devices=3, seed=0)
    draw = cell.draw(0)
    assert cell.fleet.max_power_w.tolist() == [0.2007793516394134, 0.21398365084168303, 0.7080062687793914]
    assert draw.channel_gain.tolist() == [0.9507848761128666, 0.47058348182420817, 0.6977261073201304]
    assert draw.interference_w[:2].tolist() == [0.042128753440698934, 0.7652457211747143]


def test_the_papers_cell_is_table_iii():
    cell = build("paper", num_devices=5000)
    draw = cell.draw(0)
    assert (cell.num_blocks, cell.bandwidth_hz, cell.noise_psd_w_per_hz) == (20, 1.0, 1.0)
    # Means of U(0,1), U(0,2), U(0,1), U(0,0.25), U(0.1,1); four standard errors.
    for array, low, high in [
        (cell.fleet.max_power_w, 0, 1),
        (cell.fleet.max_frequency_hz, 0, 2),
        (cell.fleet.capacitance, 0, 1),
        (cell.fleet.cycles_per_sample, 0, 0.25),
        (draw.channel_gain, 0.1, 1),
    ]:
        assert low <= array.min() < array.max() <= high
        four_standard_errors = 4 * (high - low) / math.sqrt(12 * 5000)
        assert array.mean() == pytest.approx((low + high) / 2, abs=four_standard_errors)
    assert ((draw.interference_w >= 0) & (draw.interference_w <= 0.8)).all()


@pytest.mark.parametrize(
    ("distance_m", "snr_db"), [(50, 45.3), (100, 34.8), (200, 24.2), (300, 18.0), (500, 10.2)]
)
def test_a_street_cell_without_sight_has_the_usual_snr(distance_m, snr_db, tmp_path):
    """UMi NLoS 3.5 GHz, 23 dBm in 180 kHz, noise figure 5 dB: 23 - loss + 174 - 52.55 - 5 dB."""
    positions = tmp_path / "positions.csv"
    positions.write_text(f"x_m,y_m\n{distance_m},0\n")
    cell = build(
        overrides={
            "bandwidth_hz": 180e3,
            "interference": {"kind": "none"},
            "channel": {
                "line_of_sight": "never",
                "shadowing": False,
                "fading": {"kind": "none"},
                "placement": {"kind": "file", "path": str(positions)},
            },
        },
        num_devices=1,
    )
    snr = cell.fleet.max_power_w * cell.draw(0).channel_gain / cell.noise_w
    assert 10 * math.log10(snr[0]) == pytest.approx(snr_db, abs=0.05)


# Rounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_a_round_is_the_same_whichever_rounds_were_drawn_before(preset):
    in_sequence = build(preset, {"redraw": "each-round"})
    for round_index in range(3):
        in_sequence.draw(round_index)
    alone = build(preset, {"redraw": "each-round"})
    for round_index in (3, 0):
        first, second = in_sequence.draw(round_index), alone.draw(round_index)
        assert_array_equal(first.channel_gain, second.channel_gain)
        assert_array_equal(first.interference_w, second.interference_w)


@pytest.mark.parametrize("preset", ["paper", "umi-3.5ghz-bare", "fedl2021"])
def test_a_static_cell_repeats_round_zero_and_a_redrawn_one_does_not(preset):
    static, redrawn = build(preset, {"redraw": "static"}), build(preset, {"redraw": "each-round"})
    assert_array_equal(static.draw(5).channel_gain, redrawn.draw(0).channel_gain)
    assert_array_equal(static.draw(5).interference_w, redrawn.draw(0).interference_w)
    assert static.draw(5) is static.draw(0)
    assert (redrawn.draw(5).channel_gain != redrawn.draw(0).channel_gain).all()


@pytest.mark.parametrize("redraw", ["static", "each-round"])
def test_a_recording_keeps_its_rounds_whatever_the_cell_redraws(redraw, tmp_path):
    gains, channel = save_gains(tmp_path, 4, 30, 20)
    cell = build(overrides={"redraw": redraw, "channel": channel})
    for round_index in (0, 3):
        draw = cell.draw(round_index)
        assert_array_equal(draw.channel_gain, gains[round_index])
        drawn_round = 0 if redraw == "static" else round_index
        expected_w = by_hand.interference_w("umi-3.5ghz-bare", drawn_round, 7)
        assert_allclose(draw.interference_w, expected_w, **EXACT)


def test_a_recording_that_is_too_short_is_noticed_before_the_first_round(tmp_path):
    _, channel = save_gains(tmp_path, 4, 30, 20)
    cell = build(overrides={"channel": channel})
    cell.check_rounds(4)
    with pytest.raises(ProblemError, match=r"holds 4 rounds, but round 4 is asked for"):
        cell.check_rounds(5)
    build(overrides={"channel": {**channel, "beyond_last_round": "cycle"}}).check_rounds(5)
    save_gains(tmp_path, 30, 20)  # one channel for all rounds
    build(overrides={"channel": channel}).check_rounds(5)


@dataclasses.dataclass
class CountsRounds:
    """A channel of one's own."""

    has_own_rounds: bool
    large_scale: None = None
    ergodic_k_factor: None = None
    warnings: tuple[str, ...] = ("mind the gap",)
    asked: list[int] = dataclasses.field(default_factory=list)

    def gain(self, round_index, *, rng):
        self.asked.append(round_index)
        return np.full(30, float(round_index)) + rng.random(30)


def test_a_channel_of_ones_own_can_be_put_into_a_cell():
    cell = dataclasses.replace(build("chen2020"), channel=CountsRounds(has_own_rounds=True))
    luck = by_hand.stream(7, by_hand.CHANNEL, 0).random(30)
    assert_array_equal(cell.draw(4).channel_gain, 4.0 + luck)
    assert cell.warnings == ("mind the gap",)
    assert cell.position_m is None


def test_a_static_cell_asks_its_channel_for_round_zero_once():
    channel = CountsRounds(has_own_rounds=False)
    cell = dataclasses.replace(build("chen2020"), channel=channel)
    cell.check_rounds(100)
    assert channel.asked == []
    for round_index in (4, 2):
        cell.draw(round_index)
    assert channel.asked == [0]


def test_a_file_in_decibels_is_heard_in_linear_gains(tmp_path):
    np.save(tmp_path / "gains.npy", np.full((30, 20), -90.0))
    channel = {"kind": "file", "path": str(tmp_path / "gains.npy"), "in_db": True}
    assert_allclose(build(overrides={"channel": channel}).draw(0).channel_gain, 1e-9, **EXACT)


# What depends on what --------------------------------------------------------------------------------------


def test_another_seed_is_another_cell():
    ours, theirs = build(seed=7), build(seed=8)
    assert (ours.position_m != theirs.position_m).all()
    assert (ours.fleet.max_frequency_hz != theirs.fleet.max_frequency_hz).all()
    assert (ours.large_scale.shadowing_db != theirs.large_scale.shadowing_db).all()
    assert (ours.draw(0).channel_gain != theirs.draw(0).channel_gain).all()
    assert (ours.draw(0).interference_w != theirs.draw(0).interference_w).all()


def test_blocks_and_losses_do_not_move_the_devices():
    before = build()
    after = build(overrides={"num_blocks": 7, "losses": {"dropout_probability": 0.5}})
    for ours, theirs in zip(fleet_arrays(before), fleet_arrays(after), strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(before.position_m, after.position_m)
    assert_array_equal(before.large_scale.gain, after.large_scale.gain)


def test_losses_and_interference_do_not_change_the_fading():
    snapshot = {"channel": {"fading": {"ergodic": False}}}
    before = build(overrides=snapshot).draw(2)
    others = {"losses": {"outage_snr_db": 3.0}, "interference": {"kind": "none"}}
    after = build(overrides={**snapshot, **others}).draw(2)
    assert_array_equal(before.channel_gain, after.channel_gain)


def test_the_channel_changes_neither_fleet_nor_interference():
    before = build()
    after = build(overrides={"channel": {"kind": "uniform", "low": 0.1, "high": 1.0}})
    for ours, theirs in zip(fleet_arrays(before), fleet_arrays(after), strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(before.draw(2).interference_w, after.draw(2).interference_w)


def test_sight_shadowing_and_places_are_drawn_apart():
    plain = build(num_devices=100).large_scale
    clear = build(overrides={"channel": {"line_of_sight": "always"}}, num_devices=100).large_scale
    assert clear.is_line_of_sight.all()
    blocked = build(overrides={"channel": {"line_of_sight": "never"}}, num_devices=100).large_scale
    assert not blocked.is_line_of_sight.any()
    assert_array_equal(plain.position_m, clear.position_m)
    assert_allclose(clear.shadowing_db / 4.0, blocked.shadowing_db / 7.82, **EXACT)
    unshadowed = build(overrides={"channel": {"shadowing": False}}, num_devices=100).large_scale
    assert not unshadowed.shadowing_db.any()
    assert_array_equal(plain.path_loss_db, unshadowed.path_loss_db)
    moved = build(overrides={"channel": {"placement": {"radius_m": 100}}}, num_devices=100).large_scale
    assert_array_equal(moved.shadowing_db[moved.is_line_of_sight], clear.shadowing_db[moved.is_line_of_sight])


def test_no_two_things_are_drawn_from_one_stream():
    """Uniform numbers behind fleet, places, sight, fading and interference: no two of them alike."""
    wide = {"low": 1.0, "high": 2.0}
    cell = build(
        "paper",
        {
            "num_blocks": 400,
            "channel": {"low": 1.0, "high": 2.0},
            "interference": {"kind": "drawn", "power_w": wide},
            "fleet": {
                **dict.fromkeys((*by_hand.COLUMNS, "static_power_w", "joules_per_cycle"), wide),
                "min_frequency_hz": {"low": 0.1, "high": 0.9},
            },
        },
        num_devices=400,
    )
    ring = {"kind": "uniform-distance", "min_distance_m": 1.0, "max_distance_m": 2.0}
    places = build("chen2020", {"channel": {"placement": ring, "shadowing_std_db": 1.0}}, num_devices=400)
    draws = [cell.draw(k) for k in (0, 1)]
    redrawn = dataclasses.replace(cell, config=cell.config.model_copy(update={"redraw": "each-round"})).draw(
        1
    )
    series = [
        *fleet_arrays(cell),
        draws[0].channel_gain,
        draws[0].interference_w,
        redrawn.channel_gain,
        redrawn.interference_w,
        places.distance_m,
        places.large_scale.shadowing_db,
    ]
    correlation = np.corrcoef(series)
    assert np.abs(correlation - np.eye(len(series))).max() < 0.2  # four standard errors: 4 / sqrt(400)


def test_more_devices_leave_the_first_ones_as_they_were():
    few, many = build(num_devices=10), build(num_devices=11)
    for ours, theirs in zip(fleet_arrays(few), fleet_arrays(many), strict=True):
        assert_array_equal(ours, theirs[:10])


# The contract ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_every_preset_is_sound_and_draws_read_only_arrays(preset):
    cell = build(preset)
    assert cell.warnings == ()
    assert cell.num_devices == 30
    draw = cell.draw(4)
    assert (draw.channel_gain > 0).all()
    assert (draw.channel_gain <= 1).all()
    assert (draw.interference_w >= 0).all()
    for array in (draw.channel_gain, draw.interference_w):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_one_device_and_one_block_are_enough(preset):
    cell = build(preset, {"num_blocks": 1}, num_devices=1)
    draw = cell.draw(0)
    assert draw.channel_gain.shape in {(1,), (1, 1)}
    assert draw.interference_w.shape == (1,)


def test_a_cell_hands_its_losses_on_in_linear_units():
    assert build("chen2020").upload_risks == UploadRisks(packet_error_waterfall=1.08)
    assert build().upload_risks == UploadRisks(outage_snr=10**-0.6)  # the modems' own floor of -6 dB
    low = build(overrides={"losses": {"outage_snr_db": -10.0, "outage_margin_db": 3.0}}).upload_risks
    assert low.planned_min_snr == pytest.approx(10**-0.3)  # -6 + 3 dB
    losses = {
        "outage_snr_db": 20.0,
        "packet_error_waterfall": 1.08,
        "dropout_probability": 0.25,
        "deadline_s": 7.0,
    }
    risks = build(overrides={"losses": losses}).upload_risks
    assert risks.outage_snr == pytest.approx(100.0)
    assert (risks.packet_error_waterfall, risks.dropout_probability, risks.deadline_s) == (1.08, 0.25, 7.0)


EVERYWHERE = [
    {},
    {"channel": {"kind": "file", "path": "gains.npy"}},
    {"interference": {"kind": "listed", "power_w": [0.1, 0.2]}},
]
WITH_PLACES = [
    {"channel": {"fading": {"kind": "none"}}},
    {"channel": {"fading": {"kind": "rician"}}},
    {"channel": {"fading": {"kind": "rician", "rician_k_db": 3.0, "per_block": False}}},
    {"channel": {"placement": {"kind": "file", "path": "positions.csv"}}},
]


@pytest.mark.parametrize(
    ("preset", "overrides"),
    [*((name, some) for name in CELL_PRESETS for some in EVERYWHERE)]
    + [(name, some) for name in PLACES for some in WITH_PLACES],
)
def test_resolved_settings_read_back_equal(preset, overrides):
    config = load_cell_config(preset, overrides)
    plain = config.model_dump(mode="json", exclude_none=True)
    assert CellConfig.model_validate(plain) == config
    assert CellConfig.model_validate(tomllib.loads(tomli_w.dumps(plain))) == config
    assert CellConfig.model_validate(json.loads(json.dumps(config.model_dump(mode="json")))) == config


def test_fading_averages_out_to_the_large_scale_gain():
    rayleigh = {"channel": {"fading": {"kind": "rayleigh"}}}
    cell = build(overrides={"num_blocks": 4000, **rayleigh}, num_devices=20)
    ratio = cell.draw(0).channel_gain.mean(axis=1) / cell.large_scale.gain
    assert np.abs(ratio - 1).max() < 0.07  # one standard error is 1 / sqrt(4000) = 0.016


def test_a_hundred_thousand_devices_are_drawn_in_bounded_memory():
    cell = build(overrides={"num_blocks": 20}, num_devices=100_000)
    draw = cell.draw(0)
    assert draw.channel_gain.shape == (100_000, 20)
    assert draw.channel_gain.nbytes == 16_000_000


def test_a_cells_broadcast_goes_over_all_its_blocks_into_a_devices_noise():
    down = load_cell("umi-3.5ghz-bare", num_devices=3, overrides={"num_blocks": 10}).downlink
    assert down.bandwidth_hz == 3.6e6
    assert 10 * math.log10(down.noise_w * 1e3) == pytest.approx(-174 + 65.563 + 9 + 3, abs=1e-3)
    assert 10 * math.log10(down.power_w * 1e3) == pytest.approx(39.6)
    off = {"downlink": {"broadcast": False}}
    assert load_cell("umi-3.5ghz-bare", num_devices=3, overrides=off).downlink is None


def test_a_group_of_blocks_is_one_wide_block():
    one = load_cell("umi-3.5ghz-bare", num_devices=4, overrides={"interference": {"kind": "none"}})
    four = load_cell(
        "umi-3.5ghz-bare",
        num_devices=4,
        overrides={"blocks_per_device": 4, "num_blocks": 5, "interference": {"kind": "none"}},
    )
    assert (four.num_blocks, four.bandwidth_hz) == (5, 4 * 360e3)
    assert four.noise_w == pytest.approx(4 * one.noise_w, rel=1e-9, abs=0.0)
    assert four.draw(0).channel_gain.shape == (4, 5)
    assert four.downlink.bandwidth_hz == one.downlink.bandwidth_hz


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
        Cell.build(load_cell_config("umi-3.5ghz-bare", overrides), num_devices=5, seed=0)
    assert "\n" not in str(caught.value)


def test_a_cell_needs_devices_and_a_complete_fleet():
    with pytest.raises(ProblemError, match="num_devices must be a whole number >= 1, got 0"):
        Cell.build(load_cell_config("paper"), num_devices=0, seed=0)
    table = load_cell_config("paper").model_dump(mode="json", exclude_none=True)
    del table["fleet"]["capacitance"]
    with pytest.raises(ProblemError, match=r"fleet\.capacitance is not given, nor is there a fleet CSV"):
        Cell.build(validate(CellConfig, table, root="cell"), num_devices=3, seed=0)


# Receive antennas and the broadcast's own mean ------------------------------------------------------------


@pytest.mark.parametrize("fading", ["rayleigh", "rician", {"kind": "delay-line", "ergodic": False}])
def test_gains_are_sums_over_antennas_that_fade_independently(fading):
    """The mean grows by N, the variance over the square of the mean falls by N."""
    channel = {"fading": fading, "num_receive_antennas": 1, "line_of_sight": "never"}
    shares = {}
    for num_antennas in (1, 4):
        overrides = {"channel": {**channel, "num_receive_antennas": num_antennas}}
        cell = build(overrides=overrides, num_devices=40)
        gains = np.stack([cell.draw(k).channel_gain for k in range(150)])
        shares[num_antennas] = gains / cell.large_scale.gain[:, None]
    for num_antennas, share in shares.items():
        # Of 6000 device-rounds, in which the 20 blocks may be alike.
        assert share.mean() == pytest.approx(num_antennas, abs=5 * math.sqrt(num_antennas / 6000))
    assert shares[4].var() / shares[1].var() == pytest.approx(4.0, rel=0.15)


def test_the_first_antenna_fades_as_a_single_one_does():
    one = build(overrides={"channel": {"fading": "rayleigh"}}).draw(2).channel_gain
    two = build(overrides={"channel": {"fading": "rayleigh", "num_receive_antennas": 2}}).draw(2).channel_gain
    assert (two > one).all()


def test_devices_that_walk_meet_each_antenna_at_its_own_phase():
    fading = {"kind": "delay-line", "ergodic": False, "round_interval_s": 1e-7}
    channel = {"fading": fading, "num_receive_antennas": 3}
    cell = build(overrides={"channel": channel})
    assert len(cell.channel.moving_rays) == 3
    now, soon = cell.draw(0).channel_gain, cell.draw(1).channel_gain
    assert_allclose(now, soon, rtol=1e-3)  # a tenth of a microsecond later
    one = build(overrides={"channel": {**channel, "num_receive_antennas": 1}}).draw(0).channel_gain
    assert (now > one).all()


def test_ergodic_rates_are_means_over_snapshots_of_several_antennas():
    """Without cap and floor: the rate at full power of the sum of three branches, against 800 rounds."""
    fading = {"kind": "delay-line", "ergodic": True}
    channel = {"line_of_sight": "never", "num_receive_antennas": 3, "fading": fading}
    lasting = build("rma-700mhz-bare", {"redraw": "static", "channel": channel}, num_devices=6)
    snapshot = {**channel, "fading": {**fading, "ergodic": False}}
    moment = build("rma-700mhz-bare", {"channel": snapshot}, num_devices=6)
    draw = lasting.draw(0)
    noise_w = draw.interference_w + lasting.noise_w
    power_w = lasting.fleet.max_power_w[:, None]
    drawn = np.mean([np.log1p(power_w * moment.draw(k).channel_gain / noise_w) for k in range(800)], axis=0)
    ours = np.log1p(power_w * draw.channel_gain / noise_w).mean(axis=1)
    # ln of a sum of three exponentials has a deviation of 0.63 at high SNR.
    assert_allclose(ours, drawn.mean(axis=1), atol=4 * 0.63 / math.sqrt(800))


@pytest.mark.parametrize("preset", ["umi-3.5ghz", "uma-2ghz", "rma-700mhz"])
def test_a_broadcast_is_heard_at_the_downlinks_own_snr(preset):
    """Each listener's rate is the mean over drawn fading of what its own modem makes of its own SNR."""
    cell = build(preset, num_devices=25)
    settings, k_factor = cell.config.downlink, cell.channel.ergodic_k_factor
    num_antennas, rate = settings.num_receive_antennas, settings.rate
    noise_w = 20 * cell.bandwidth_hz * 1e-3 * 10 ** ((-174 + 9 + settings.noise_rise_db) / 10)
    power_w = 1e-3 * 10 ** (settings.power_dbm / 10)
    ours = cell.downlink.rate_bps(cell.draw(0).downlink_gain) / (20 * cell.bandwidth_hz)
    rng = np.random.default_rng(1)
    for device, k in enumerate(k_factor):
        parts = rng.standard_normal((2, num_antennas, 40_000)) * math.sqrt(0.5 / (1 + k))
        fading = ((parts[0] + math.sqrt(k / (1 + k))) ** 2 + parts[1] ** 2).sum(axis=0)
        snr = power_w * cell.large_scale.gain[device] / noise_w * fading
        moments = np.minimum(rate.efficiency * np.log2(1 + snr), rate.max_spectral_efficiency)
        moments[snr < 0.1] = 0.0
        if moments.mean() > 0.6 * math.log2(1.1):
            error = 4.5 * moments.std() / math.sqrt(40_000)
            assert ours[device] == pytest.approx(moments.mean(), abs=error + 3e-3 * moments.mean())
        else:
            assert ours[device] == 0.0


def test_a_snapshot_is_planned_with_the_modem_as_it_is():
    """98 % of the cap and 3 dB above the floor are for uploads that outlast the fading."""
    cell = build("umi-3.5ghz", {"channel": {"fading": {"ergodic": False}}})
    assert cell.rate_model == RateModel(efficiency=0.4, max_spectral_efficiency=2.93, min_snr=0.1)
    assert cell.draw(0).channel_gain.shape == (30, 20)


def test_without_a_curve_of_its_own_a_broadcast_takes_one_antenna_of_the_uplink():
    one = build(overrides={"channel": {"fading": "none"}})
    four = build(overrides={"channel": {"fading": "none", "num_receive_antennas": 4}})
    assert one.draw(0).downlink_gain is None
    assert_allclose(four.draw(0).channel_gain, 4 * one.draw(0).channel_gain, **EXACT)
    assert_allclose(four.draw(0).downlink_gain, one.draw(0).channel_gain, **EXACT)


def test_averaged_interference_is_the_mean_of_what_is_drawn():
    rise = {"interference": {"rise_db": {"low": 1.0, "high": 9.0}}}
    drawn = build(overrides={**rise, "num_blocks": 4000}, num_devices=2)
    averaged = build(overrides={"interference": {**rise["interference"], "averaged": True}}, num_devices=2)
    power_w = drawn.draw(0).interference_w
    ours = averaged.draw(3).interference_w
    assert len(set(ours)) == 1
    assert ours[0] == pytest.approx(power_w.mean(), abs=4 * power_w.std() / math.sqrt(4000))


def test_behind_walls_no_path_is_steady():
    """Rician with K = 60 dB, everybody in sight: outdoors nobody fades, indoors it is Rayleigh."""
    channel = {
        "line_of_sight": "always",
        "indoor_share": 0.5,
        "fading": {"kind": "rician", "rician_k_db": 60.0},
    }
    cell = build(overrides={"channel": channel}, num_devices=200)
    share = cell.draw(0).channel_gain / cell.large_scale.gain[:, None]
    is_indoor = cell.large_scale.whereabouts.is_indoor
    assert 60 < is_indoor.sum() < 140
    assert_allclose(share[~is_indoor], 1.0, atol=0.02)
    assert share[is_indoor].var() == pytest.approx(1.0, abs=0.2)
