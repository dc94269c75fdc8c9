"""The contract of every preset, and what a draw depends on."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fedwave.wireless.cell import Cell
from fedwave.wireless.load import CELL_PRESETS, load_cell_config


def build(preset="umi-3.5ghz", overrides=None, *, num_devices=30, seed=7) -> Cell:
    return Cell.build(load_cell_config(preset, overrides), num_devices=num_devices, seed=seed)


def fleet_arrays(cell: Cell) -> list[np.ndarray]:
    return [getattr(cell.fleet, field.name) for field in dataclasses.fields(cell.fleet)]


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_every_preset_draws_valid_shapes_and_values(preset):
    cell = build(preset)
    draw = cell.draw(4)
    assert draw.channel_gain.shape in {(30,), (30, cell.num_blocks)}
    assert draw.interference_w.shape == (cell.num_blocks,)
    assert draw.channel_gain.dtype == draw.interference_w.dtype == np.float64
    assert np.isfinite(draw.channel_gain).all()
    assert (draw.channel_gain > 0).all()
    assert (draw.channel_gain <= 1).all()
    assert np.isfinite(draw.interference_w).all()
    assert (draw.interference_w >= 0).all()
    for array in fleet_arrays(cell):
        assert array.shape == (30,)
        assert np.isfinite(array).all()
        assert (array > 0).all()
    assert cell.noise_psd_w_per_hz > 0
    assert cell.warnings == ()
    if cell.large_scale is not None:
        assert cell.position_m.shape == (30, 2)
        assert cell.distance_m.shape == (30,)


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_every_preset_is_a_function_of_seed_and_round(preset):
    in_sequence = build(preset)
    for round_index in range(3):
        in_sequence.draw(round_index)
    alone = build(preset)
    for round_index in (3, 0):
        first, second = in_sequence.draw(round_index), alone.draw(round_index)
        assert_array_equal(first.channel_gain, second.channel_gain)
        assert_array_equal(first.interference_w, second.interference_w)
    for ours, theirs in zip(fleet_arrays(in_sequence), fleet_arrays(alone), strict=True):
        assert_array_equal(ours, theirs)
    assert not np.array_equal(build(preset, seed=8).draw(0).channel_gain, alone.draw(0).channel_gain)


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_rounds_differ_only_where_the_cell_is_redrawn(preset):
    cell = build(preset)
    same = np.array_equal(cell.draw(0).channel_gain, cell.draw(1).channel_gain)
    assert same == (cell.config.redraw == "static")


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_one_device_and_one_block_are_enough(preset):
    draw = build(preset, {"num_blocks": 1}, num_devices=1).draw(0)
    assert draw.channel_gain.shape in {(1,), (1, 1)}


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_every_preset_survives_a_round_trip_through_plain_data(preset):
    config = load_cell_config(preset)
    assert type(config).model_validate(config.model_dump(mode="json")) == config


def test_blocks_and_losses_do_not_move_the_devices():
    before = build()
    after = build(overrides={"num_blocks": 7, "losses": {"dropout_probability": 0.5}})
    for ours, theirs in zip(fleet_arrays(before), fleet_arrays(after), strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(before.position_m, after.position_m)
    assert_array_equal(before.large_scale.gain, after.large_scale.gain)


def test_losses_and_interference_do_not_change_the_fading():
    before = build().draw(2)
    after = build(overrides={"losses": {"outage_snr_db": 3.0}, "interference": {"kind": "none"}}).draw(2)
    assert_array_equal(before.channel_gain, after.channel_gain)


def test_more_devices_leave_the_first_ones_where_they_were():
    few, many = build(num_devices=10), build(num_devices=11)
    assert_array_equal(few.fleet.max_frequency_hz, many.fleet.max_frequency_hz[:10])


def test_fading_averages_out_to_the_large_scale_gain():
    cell = build(overrides={"num_blocks": 4000}, num_devices=20)
    ratio = cell.draw(0).channel_gain.mean(axis=1) / cell.large_scale.gain
    assert np.abs(ratio - 1).max() < 0.07  # one standard error is 1 / sqrt(4000) = 0.016


def test_without_fading_the_gain_is_the_large_scale_gain():
    cell = build(overrides={"channel": {"fading": {"kind": "none"}}})
    assert_array_equal(cell.draw(0).channel_gain, cell.large_scale.gain)


def test_flat_fading_gives_one_gain_per_device():
    cell = build(overrides={"channel": {"fading": {"kind": "rician", "per_block": False}}})
    assert cell.draw(0).channel_gain.shape == (30,)


def test_only_devices_in_sight_have_a_steady_path():
    fading = {"kind": "rician", "rician_k_db": 20.0}
    cell = build(overrides={"num_blocks": 400, "channel": {"fading": fading}}, num_devices=200)
    power = cell.draw(0).channel_gain / cell.large_scale.gain[:, None]
    in_sight = cell.large_scale.is_line_of_sight
    assert power[in_sight].var() == pytest.approx(201 / 101**2, abs=0.005)  # (1 + 2K) / (1 + K)^2, K = 100
    assert power[~in_sight].var() == pytest.approx(1.0, abs=0.05)


def test_antenna_gain_raises_every_gain_alike():
    plain, lifted = build(), build(overrides={"channel": {"antenna_gain_db": 10.0}})
    assert np.allclose(lifted.large_scale.gain, 10 * plain.large_scale.gain)


def test_line_of_sight_can_be_forced():
    always = build(overrides={"channel": {"line_of_sight": "always"}})
    never = build(overrides={"channel": {"line_of_sight": "never"}})
    assert always.large_scale.is_line_of_sight.all()
    assert not never.large_scale.is_line_of_sight.any()


def test_high_devices_in_a_city_macro_cell_are_drawn():
    cell = build("uma-2ghz", {"channel": {"device_height_m": 20.0}}, num_devices=200)
    assert np.isfinite(cell.large_scale.path_loss_db).all()


def test_drawn_arrays_cannot_be_changed_by_accident():
    draw = build("paper").draw(0)
    with pytest.raises(ValueError, match="read-only"):
        draw.channel_gain[0] = 0.0


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


def test_the_papers_numbers_stay_put():
    """Published runs depend on these draws: a change here changes every figure."""
    cell = build("paper", num_devices=3, seed=0)
    draw = cell.draw(0)
    assert cell.fleet.max_power_w.tolist() == [0.2007793516394134, 0.21398365084168303, 0.7080062687793914]
    assert draw.channel_gain.tolist() == [0.9507848761128666, 0.47058348182420817, 0.6977261073201304]
    assert draw.interference_w[:2].tolist() == [0.042128753440698934, 0.7652457211747143]


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


def test_a_hundred_thousand_devices_are_drawn_in_bounded_memory():
    cell = build(overrides={"num_blocks": 100}, num_devices=100_000)
    draw = cell.draw(0)
    assert draw.channel_gain.shape == (100_000, 100)
    assert draw.channel_gain.nbytes == 80_000_000
