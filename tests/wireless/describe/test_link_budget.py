"""The link budget adds up, and is what Eq. (25), (28), (29) say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.wireless.cell import Cell
from fedwave.wireless.describe.link_budget import link_budget
from fedwave.wireless.settings.load import load_cell_config
from fedwave.wireless.settings.presets import CELL_PRESETS
from fedwave.wireless.terms import ChannelDraw


@pytest.mark.parametrize("preset", CELL_PRESETS)
@pytest.mark.parametrize("num_devices", [1, 2, 51])
def test_every_row_adds_up(preset, num_devices):
    cell = Cell.build(load_cell_config(preset), num_devices=num_devices, seed=1)
    budget = link_budget(cell, cell.draw(0), model_bits=1e6)
    assert [row.who for row in budget.rows] == ["best", "median", "worst"]
    for row in budget.rows:
        assert row.transmit_power_dbm + row.channel_gain_db - row.noise_dbm == pytest.approx(
            row.sinr_db, abs=1e-9
        )
        place = cell.large_scale
        assert (row.path_loss_db is None) == (row.distance_m is None) == (place is None)
        if place is not None:
            assert row.distance_m == place.distance_m[row.device_index]
            sight = place.is_line_of_sight
            assert row.is_line_of_sight == (None if sight is None else sight[row.device_index])
            gain_db = row.antenna_gain_db - row.path_loss_db - row.shadowing_db + row.fading_db
            gain_db += row.combining_gain_db - (row.penetration_db or 0.0)
            assert gain_db == pytest.approx(row.channel_gain_db, abs=1e-9)
            antennas = cell.config.channel.num_receive_antennas
            assert row.combining_gain_db == pytest.approx(10 * math.log10(antennas))
            inside = place.whereabouts
            assert row.penetration_db == (None if inside is None else inside.penetration_db[row.device_index])
        assert row.transmit_power_dbm + row.channel_gain_db == pytest.approx(row.received_power_dbm)
        figure = 10 ** (row.noise_figure_db / 10)
        assert row.thermal_noise_w * figure + row.interference_w == pytest.approx(
            row.noise_w, rel=1e-9, abs=0.0
        )
        rate = cell.config.rate
        share = rate.efficiency * math.log2(1 + 10 ** (row.sinr_db / 10))
        cap = 0.98 if rate.per_moment else 1.0  # through fading a plan counts on 98 % of the cap,
        share = min(share, cap * (rate.max_spectral_efficiency or math.inf))
        if rate.min_sinr_db is not None:  # and on a floor that lies 3 dB higher
            floor_db = rate.min_sinr_db + (3.0 if rate.per_moment else 0.0)
            assert row.margin_db == pytest.approx(row.sinr_db - floor_db)
            share = 0.0 if row.margin_db < 0 else share
        rate_bps = cell.bandwidth_hz * share
        assert row.rate_bps == pytest.approx(rate_bps)
        if rate_bps == 0.0:
            assert row.upload_delay_s == row.upload_energy_j == math.inf
            continue
        drain_w = row.transmit_power_w / cell.config.radio.amplifier_efficiency
        drain_w += cell.config.radio.circuit_power_w
        assert row.upload_delay_s == pytest.approx(1e6 / rate_bps)
        assert row.upload_energy_j == pytest.approx(drain_w * 1e6 / rate_bps)
    best, median, worst = budget.rows
    assert best.sinr_db >= median.sinr_db >= worst.sinr_db


def test_the_typical_block_has_the_middle_snr():
    cell = Cell.build(load_cell_config("umi-3.5ghz-bare"), num_devices=9, seed=1)
    draw = cell.draw(0)
    links = link_budget(cell, draw, model_bits=1.0).links
    snr = cell.fleet.max_power_w[:, None] * draw.channel_gain / (draw.interference_w + cell.noise_w)
    for device_index in range(9):
        assert links.sinr[device_index] == pytest.approx(np.sort(snr[device_index])[10])  # 20 blocks
    paper = Cell.build(load_cell_config("paper"), num_devices=9, seed=1)
    noise_w = np.sort(paper.draw(0).interference_w)[::-1] + 1.0
    assert link_budget(paper, paper.draw(0), model_bits=1.0).rows[0].noise_w == pytest.approx(noise_w[10])


@pytest.mark.parametrize(("num_devices", "rank"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3)])
def test_the_median_is_the_middle_device_or_the_better_of_two(num_devices, rank):
    cell = Cell.build(
        load_cell_config("paper", {"fleet": {"max_power_w": 1.0}}), num_devices=num_devices, seed=1
    )
    gain = np.random.default_rng(2).permutation(np.arange(1.0, num_devices + 1))
    draw = ChannelDraw(channel_gain=gain, interference_w=np.zeros(20))
    best, median, worst = link_budget(cell, draw, model_bits=1.0).rows
    assert (best.channel_gain, worst.channel_gain) == (num_devices, 1.0)
    assert median.channel_gain == num_devices - rank


def test_a_device_without_a_channel_never_finishes():
    cell = Cell.build(load_cell_config("paper"), num_devices=2, seed=1)
    draw = ChannelDraw(channel_gain=np.array([0.5, 0.0]), interference_w=np.zeros(20))
    worst = link_budget(cell, draw, model_bits=1.0).rows[-1]
    assert worst.device_index == 1
    assert worst.sinr_db == -math.inf
    assert worst.upload_delay_s == math.inf


def test_a_model_has_a_size():
    cell = Cell.build(load_cell_config("paper"), num_devices=2, seed=1)
    with pytest.raises(ProblemError, match="model_bits must be a finite number > 0, got 0"):
        link_budget(cell, cell.draw(0), model_bits=0.0)
