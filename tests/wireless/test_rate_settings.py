"""Modem, amplifier and broadcast as settings: numbers by hand, and nothing extra by default."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ConfigError, ProblemError
from fedwave.wireless.cell import Cell
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.downlink import Downlink
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.link import uplink_rate_bps, upload_energy_j
from fedwave.wireless.load import CELL_PRESETS, load_cell, load_cell_config
from fedwave.wireless.radio_settings import DownlinkConfig, RadioConfig, RateConfig
from fedwave.wireless.rate import RadioPower, RateModel

THREE_GPP = ("umi-3.5ghz", "uma-2ghz", "rma-700mhz")
PAPERS = tuple(name for name in CELL_PRESETS if name not in THREE_GPP)


def rate_at(snr, model):
    return uplink_rate_bps(
        np.asarray(snr, dtype=float),
        np.ones(len(snr)),
        interference_w=np.zeros(len(snr)),
        bandwidth_hz=10.0,
        noise_psd_w_per_hz=0.1,
        rate_model=model,
    )


def test_a_modem_reaches_a_share_of_shannon_up_to_its_cap_and_nothing_below_its_floor():
    model = RateConfig(efficiency=0.5, max_spectral_efficiency=1.5, min_sinr_db=-10.0).model
    # SNR 3, 7, 15: 2, 3, 4 bit/s/Hz of Shannon; half of it is 1, 1.5, and 2 cut to 1.5. 0.09 is below -10 dB.
    assert_allclose(rate_at([3, 7, 15, 0.09], model), [10, 15, 15, 0])
    assert rate_at([0.1], model)[0] > 0


def test_the_default_is_shannons_rate_to_the_last_bit():
    snr = np.random.default_rng(0).uniform(0, 50, 100)
    assert np.array_equal(rate_at(snr, RateConfig().model), 10.0 * np.log1p(snr / 1.0) / np.log(2.0))


def test_sending_drains_the_amplifier_and_the_circuit():
    radio = RadioConfig(amplifier_efficiency=0.25, circuit_power_w=0.5).power
    assert_allclose(upload_energy_j(np.array([1.0]), np.array([2.0]), radio=radio), [9.0])  # (4 + 0.5) * 2
    assert upload_energy_j(np.array([1.0]), np.array([2.0]))[0] == 2.0


@pytest.mark.parametrize("preset", PAPERS)
def test_cells_of_papers_have_ideal_radios_and_a_free_downlink(preset):
    cell = load_cell(preset, num_devices=3)
    assert cell.rate_model == RateModel()
    assert cell.radio_power == RadioPower()
    assert cell.downlink is None
    assert not cell.fleet.min_frequency_hz.any()


@pytest.mark.parametrize("preset", THREE_GPP)
def test_3gpp_cells_have_modems_amplifiers_and_a_broadcast(preset):
    cell = load_cell(preset, num_devices=3)
    assert cell.rate_model == RateModel(efficiency=0.65, max_spectral_efficiency=6.3, min_snr=10**-0.6)
    assert cell.radio_power == RadioPower(amplifier_efficiency=0.3, circuit_power_w=0.37)
    assert cell.downlink is not None
    # TR 38.840: 700 units at 23 dBm, 250 at 0 dBm and 300 to receive.
    send, base = cell.radio_power.drain_w(np.array([0.2, 0.001]))
    assert send / base == pytest.approx(700 / 250, rel=0.02)
    assert cell.downlink.receive_power_w / base == pytest.approx(300 / 250, rel=0.02)
    assert_allclose(cell.fleet.min_frequency_hz, 0.3e9)


def test_a_broadcast_takes_the_worst_listeners_rate():
    down = Downlink(power_w=6.0, bandwidth_hz=2.0, noise_w=2.0, rate=RateModel())
    gain = np.array([5.0, 1.0, 1 / 3])  # SNR 15, 3, 1: 8, 4, 2 bit/s
    assert_allclose(down.rate_bps(gain), [8, 4, 2])
    everyone = np.arange(3)
    assert down.broadcast_time_s(gain, listeners=everyone, model_bits=8.0) == pytest.approx(4.0)
    assert down.broadcast_time_s(gain, listeners=everyone[:2], model_bits=8.0) == pytest.approx(2.0)
    spread = np.array([[4.0, 6.0], [0.0, 2.0]])  # the mean over blocks counts: 5 and 1
    assert down.broadcast_time_s(spread, listeners=everyone[:2], model_bits=8.0) == pytest.approx(2.0)


def test_nobody_waits_for_a_listener_out_of_reach():
    down = Downlink(power_w=6.0, bandwidth_hz=2.0, noise_w=2.0, rate=RateModel(min_snr=2.0))
    assert down.broadcast_time_s(np.array([1.0, 0.1]), listeners=np.arange(2), model_bits=8.0) == 2.0
    assert down.broadcast_time_s(np.array([0.1]), listeners=np.arange(1), model_bits=8.0) == 0.0


def test_a_cells_broadcast_goes_over_all_its_blocks_into_a_devices_noise():
    down = load_cell("umi-3.5ghz", num_devices=3, overrides={"num_blocks": 10}).downlink
    assert down.bandwidth_hz == 3.6e6
    assert 10 * math.log10(down.noise_w * 1e3) == pytest.approx(-174 + 65.563 + 9 + 3, abs=1e-3)
    assert 10 * math.log10(down.power_w * 1e3) == pytest.approx(39.6)
    off = {"downlink": {"broadcast": False}}
    assert load_cell("umi-3.5ghz", num_devices=3, overrides=off).downlink is None


def test_a_broadcast_needs_one_power():
    assert DownlinkConfig(broadcast=True, power_w=2.0).linear_power_w == 2.0
    with pytest.raises(ConfigError, match="a broadcast needs power_w or power_dbm, got neither"):
        load_cell_config("paper", {"downlink": {"broadcast": True}})
    with pytest.raises(ConfigError, match="power_w and power_dbm are both given"):
        load_cell_config("paper", {"downlink": {"power_w": 1.0, "power_dbm": 30.0}})


def test_a_floor_above_the_cap_is_refused():
    with pytest.raises(ConfigError, match="min_sinr_db = 10 lies above where the rate is capped"):
        load_cell_config("paper", {"rate": {"max_spectral_efficiency": 1.0, "min_sinr_db": 10.0}})


def test_a_group_of_blocks_is_one_wide_block():
    one = load_cell("umi-3.5ghz", num_devices=4, overrides={"interference": {"kind": "none"}})
    four = load_cell(
        "umi-3.5ghz",
        num_devices=4,
        overrides={"blocks_per_device": 4, "num_blocks": 5, "interference": {"kind": "none"}},
    )
    assert (four.num_blocks, four.bandwidth_hz) == (5, 4 * 360e3)
    assert four.noise_w == pytest.approx(4 * one.noise_w, rel=1e-9, abs=0.0)
    assert four.draw(0).channel_gain.shape == (4, 5)
    assert four.downlink.bandwidth_hz == one.downlink.bandwidth_hz


def test_a_planner_stays_above_the_outage_by_its_margin():
    assert UploadRisks().planned_min_snr == 0.0
    assert UploadRisks(outage_snr=4.0, outage_margin=2.0).planned_min_snr == 8.0
    with pytest.raises(ProblemError, match=r"outage_margin must be >= 1, got 0\.5"):
        UploadRisks(outage_margin=0.5)


def test_frequencies_have_a_floor_below_their_ceiling():
    plain = Fleet(np.ones(2), np.full(2, 2.0), np.ones(2), np.ones(2))
    assert plain.min_frequency_hz.tolist() == [0.0, 0.0]
    with pytest.raises(ProblemError, match="min_frequency_hz must lie in 0 to max_frequency_hz .* got 3 at"):
        Fleet(np.ones(2), np.full(2, 2.0), np.ones(2), np.ones(2), np.array([1.0, 3.0]))


def test_work_follows_from_the_models_operations_unless_it_is_given():
    config = load_cell_config("umi-3.5ghz", {"fleet": {"cycles_per_operation": 0.5}})
    cell = Cell.build(config, num_devices=2, seed=0, operations_per_sample=1e6)
    assert cell.fleet.cycles_per_sample.tolist() == [5e5, 5e5]
    given = load_cell_config("umi-3.5ghz", {"fleet": {"cycles_per_sample": 7.0}})
    assert given.fleet.cycles_per_operation is None
    cell = Cell.build(given, num_devices=2, seed=0, operations_per_sample=1e6)
    assert cell.fleet.cycles_per_sample.tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"efficiency": 0.0}, "efficiency must lie in 0 to 1, got 0"),
        ({"efficiency": 1.01}, "efficiency must lie in 0 to 1, got 1.01"),
        ({"max_spectral_efficiency": 0.0}, "max_spectral_efficiency must be > 0, got 0"),
        ({"max_spectral_efficiency": math.inf}, "max_spectral_efficiency must be > 0, got inf"),
        ({"min_snr": -0.1}, "min_snr must be >= 0, got -0.1"),
        ({"min_snr": math.inf}, "min_snr must be >= 0, got inf"),
        ({"max_spectral_efficiency": 1.0, "min_snr": 1.0}, "min_snr = 1 must lie below 1"),
    ],
)
def test_a_rate_that_no_modem_has_is_refused(settings, message):
    with pytest.raises(ProblemError, match=message):
        RateModel(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"amplifier_efficiency": 0.0}, "amplifier_efficiency must lie in 0 to 1, got 0"),
        ({"amplifier_efficiency": 1.01}, "amplifier_efficiency must lie in 0 to 1, got 1.01"),
        ({"circuit_power_w": -1.0}, "circuit_power_w must be >= 0, got -1"),
        ({"circuit_power_w": math.inf}, "circuit_power_w must be >= 0, got inf"),
    ],
)
def test_a_radio_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ProblemError, match=message):
        RadioPower(**settings)
