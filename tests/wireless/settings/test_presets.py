"""The shipped cells: their files, and what is in them."""

from __future__ import annotations

import tomllib
from importlib import resources

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.settings.load import load_cell
from fedwave.wireless.settings.presets import CELL_PRESETS, preset_text

THREE_GPP = ("umi-3.5ghz", "uma-2ghz", "rma-700mhz")


PAPERS = tuple(name for name in CELL_PRESETS if name not in THREE_GPP)


@pytest.mark.parametrize("preset", PAPERS)
def test_cells_of_papers_have_ideal_radios_and_a_free_downlink(preset):
    cell = load_cell(preset, num_devices=3)
    assert cell.rate_model == RateModel()
    assert cell.radio_power == RadioPower()
    assert cell.downlink is None
    assert cell.waiting.states == ()
    assert cell.config.idle_power_w == 0.0
    assert not cell.fleet.min_frequency_hz.any()


@pytest.mark.parametrize("preset", THREE_GPP)
def test_3gpp_cells_have_modems_amplifiers_and_a_broadcast(preset):
    cell = load_cell(preset, num_devices=3)
    assert cell.rate_model == RateModel(efficiency=0.65, max_spectral_efficiency=6.3, min_snr=10**-0.6)
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
