"""The shipped cells: their files, and what is in them."""

from __future__ import annotations

import hashlib
import tomllib
from importlib import resources

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation import allocate
from fedwave.server.round_problem import problem_of_cell
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.settings.load import load_cell
from fedwave.wireless.settings.presets import CELL_PRESETS, preset_text

THREE_GPP = ("umi-3.5ghz", "uma-2ghz", "rma-700mhz")
BARE = tuple(f"{name}-bare" for name in THREE_GPP)
PAPERS = tuple(name for name in CELL_PRESETS if name not in THREE_GPP + BARE)
# Of the gains and the interference of three rounds, 30 devices, seed 7: what the presets had before they were
# calibrated, to the last bit.
BARE_DIGESTS = {
    "umi-3.5ghz-bare": "e3c403ee5c317c6d",
    "uma-2ghz-bare": "3f8312b1033a5090",
    "rma-700mhz-bare": "78ee70045864c61d",
}


@pytest.mark.parametrize("preset", PAPERS)
def test_cells_of_papers_have_ideal_radios_and_a_free_downlink(preset):
    cell = load_cell(preset, num_devices=3)
    assert cell.rate_model == RateModel()
    assert cell.radio_power == RadioPower()
    assert cell.downlink is None
    assert cell.waiting.states == ()
    assert cell.config.idle_power_w == 0.0
    slowest_hz = 0.3e9 if preset == "fedl2021-tdma" else 0.0
    assert cell.fleet.min_frequency_hz.tolist() == [slowest_hz] * 3


def test_fedl_in_turn_has_the_places_and_processors_of_fedl_and_one_band_for_all():
    """FEDL's own power for slots: ln(1 + p h / (W N0)) = v with (v - 1) e^v + 1 = eta_2 h / (eta_1 W N0)."""
    cell, other = (load_cell(name, num_devices=5, seed=3) for name in ("fedl2021-tdma", "fedl2021"))
    assert cell.config.access == "tdma"
    assert cell.config.num_blocks * cell.config.bandwidth_hz == 1e6
    assert_allclose(cell.draw(0).channel_gain, other.draw(0).channel_gain)
    assert_allclose(cell.fleet.max_frequency_hz, other.fleet.max_frequency_hz)
    problem = problem_of_cell(cell, np.ones(5), model_bits=1e6, energy_weight=1.0, delay_weight=0.05)
    found = allocate(problem, "fedl-power")
    assert found.num_selected == 5  # FEDL chooses nobody
    noise_w = 1e6 * 1e-16
    for gain, power_w in zip(problem.channel_gain, found.transmit_power_w, strict=True):
        v = np.log1p(power_w * gain / noise_w)
        if power_w < 1.0 - 1e-9:  # Ptx_Max
            assert_allclose((v - 1) * np.exp(v) + 1, 0.05 * gain / noise_w, rtol=1e-6)
    assert (found.transmit_power_w < 0.999).any()
    rates_bps = 1e6 * np.log2(1 + found.transmit_power_w * problem.channel_gain / noise_w)
    assert_allclose(found.upload_delay_s, (1e6 / rates_bps).sum())  # one slot after another


@pytest.mark.parametrize("preset", BARE)
def test_the_bare_cells_are_the_presets_of_old_to_the_last_bit(preset):
    cell = load_cell(preset, num_devices=30, seed=7)
    assert cell.rate_model == RateModel(efficiency=0.65, max_spectral_efficiency=6.3, min_snr=10**-0.6)
    assert cell.downlink.rate == cell.rate_model
    assert cell.radio_power == RadioPower(amplifier_efficiency=0.3, circuit_power_w=0.37)
    assert cell.downlink.receive_power_w == 0.44
    digest = hashlib.sha256()
    for round_index in range(3):
        draw = cell.draw(round_index)
        assert draw.downlink_gain is None  # the broadcast takes the uplink's gains
        digest.update(draw.channel_gain.tobytes())
        digest.update(draw.interference_w.tobytes())
    assert digest.hexdigest()[:16] == BARE_DIGESTS[preset]


# Rows of TR 36.942, Annex A (LTE), and of TR 38.803 (NR; it caps the SINR, at 22 dB up and 30 dB down).
LTE_UP, LTE_DOWN = (0.4, 2.0), (0.6, 4.4)
NR_UP, NR_DOWN = (0.4, 0.4 * np.log2(1 + 10**2.2)), (0.6, 0.6 * np.log2(1 + 10**3))


@pytest.mark.parametrize(
    ("preset", "up", "down"),
    [("umi-3.5ghz", NR_UP, NR_DOWN), ("uma-2ghz", LTE_UP, LTE_DOWN), ("rma-700mhz", NR_UP, NR_DOWN)],
)
def test_each_way_has_the_link_curve_of_its_row(preset, up, down):
    config = load_cell(preset, num_devices=3).config
    for rate, (efficiency, cap) in ((config.rate, up), (config.downlink.rate, down)):
        assert rate.efficiency == efficiency
        assert rate.max_spectral_efficiency == pytest.approx(cap, rel=2e-3)
        assert rate.min_sinr_db == -10
        assert rate.per_moment


@pytest.mark.parametrize(
    ("preset", "site_distance_m", "indoor", "car", "antennas"),
    [("umi-3.5ghz", 200, 0.8, 0.0, 8), ("uma-2ghz", 500, 0.8, 0.0, 4), ("rma-700mhz", 5000, 0.5, 0.5, 4)],
)
def test_places_follow_tables_7_2(preset, site_distance_m, indoor, car, antennas):
    cell = load_cell(preset, num_devices=4000, seed=3)
    radius_m = cell.config.channel.placement.radius_m
    # A hexagon of sites so far apart has the area sqrt(3)/2 d^2.
    assert np.pi * radius_m**2 == pytest.approx(np.sqrt(3) / 2 * site_distance_m**2, rel=5e-3)
    inside = cell.large_scale.whereabouts
    assert inside.is_indoor.mean() == pytest.approx(indoor, abs=4 * 0.5 / np.sqrt(4000))
    assert inside.is_in_car.mean() == pytest.approx(car, abs=4 * 0.5 / np.sqrt(4000))
    assert cell.num_receive_antennas == antennas
    assert cell.large_scale.antenna_gain_db == 8.0


@pytest.mark.parametrize("preset", THREE_GPP)
def test_3gpp_cells_have_modems_amplifiers_and_a_broadcast(preset):
    cell = load_cell(preset, num_devices=3)
    assert cell.downlink is not None
    # TR 38.840: 700 units at 23 dBm, 250 at 0 dBm, 300 to receive 100 MHz and less for a narrower carrier.
    send, base = cell.radio_power.drain_w(1e-3 * 10 ** np.array([2.3, 0.0]))
    assert send == pytest.approx(1.0294, rel=1e-4)
    assert send / base == pytest.approx(700 / 250)
    scale = {"umi-3.5ghz": 0.55, "uma-2ghz": 0.4, "rma-700mhz": 0.325}[preset]
    assert cell.downlink.receive_power_w / base == pytest.approx(scale * 300 / 250)
    assert [state.power_w / base for state in cell.waiting.states] == pytest.approx([0.18, 0.08, 0.004])
    assert_allclose(cell.fleet.min_frequency_hz, 0.3e9)


def test_processors_reach_one_to_two_gigahertz_as_in_fedl():
    frequency_hz = load_cell("fedl2021", num_devices=2000, seed=1).fleet.max_frequency_hz
    assert 1e9 <= frequency_hz.min() < 1.01e9
    assert 1.99e9 < frequency_hz.max() <= 2e9


@pytest.mark.parametrize("preset", ["umi-3.5ghz", "uma-2ghz", "rma-700mhz"])
def test_processors_of_3gpp_cells_are_phones(preset):
    fleet = load_cell(preset, num_devices=2000, seed=1).fleet
    assert 1.8e9 <= fleet.max_frequency_hz.min() < 1.81e9
    assert 2.79e9 < fleet.max_frequency_hz.max() <= 2.8e9
    assert set(fleet.static_power_w) == {0.09}


def test_presets_on_disk_are_the_presets_in_the_list():
    files = resources.files("fedwave.wireless.settings.presets").iterdir()
    found = sorted(file.name for file in files if file.name.endswith(".toml"))
    assert found == sorted(f"{name}.toml" for name in CELL_PRESETS)


@pytest.mark.parametrize("name", CELL_PRESETS)
def test_every_number_of_a_preset_is_explained(name):
    """A line with a number has a comment on it or above it."""
    text = preset_text(name)
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
