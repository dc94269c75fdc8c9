"""The contract of every kind of channel in ``CHANNELS``, whatever it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fedwave.testing import check_channel
from fedwave.wireless.cell import Cell
from fedwave.wireless.channels import CHANNELS, Channel, ChannelPart
from fedwave.wireless.settings.load import load_cell_config

NUM_DEVICES, NUM_BLOCKS = 6, 4
PLACEMENT = {"kind": "disc", "radius_m": 200.0, "min_distance_m": 20.0}


@pytest.fixture
def settings(tmp_path) -> dict[str, dict[str, Any]]:
    """Settings of each kind. A new kind needs an entry here."""
    path = tmp_path / "gains.npy"
    np.save(path, np.random.default_rng(0).uniform(1e-12, 1e-9, (3, NUM_DEVICES, NUM_BLOCKS)))
    rayleigh = {"kind": "rayleigh"}
    return {
        "uniform": {"low": 0.1, "high": 1.0},
        "3gpp": {
            "scenario": "umi",
            "carrier_frequency_hz": 3.5e9,
            "placement": PLACEMENT,
            "fading": rayleigh,
        },
        "log-distance": {"reference_loss_db": 40, "exponent": 4, "placement": PLACEMENT, "fading": rayleigh},
        "file": {"path": path},
        "sionna": {
            "scenario": "umi",
            "carrier_frequency_hz": 3.5e9,
            "placement": PLACEMENT,
            "num_rounds": 3,
        },
    }


def build(kind: str, settings: dict[str, dict[str, Any]], *, seed: int = 3) -> Channel:
    if kind == "sionna":
        pytest.importorskip("sionna")
    part = ChannelPart.model_validate({"kind": kind, **settings[kind]})
    return part.create(
        "channel", num_devices=NUM_DEVICES, num_blocks=NUM_BLOCKS, bandwidth_hz=360e3, seed=seed
    )


def gain(channel: Channel, round_index: int, seed: int = 0) -> np.ndarray:
    return channel.gain(round_index, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("kind", CHANNELS)
def test_the_name_in_the_dict_is_the_kind_in_the_settings(kind, settings):
    assert set(settings) == set(CHANNELS)
    assert CHANNELS[kind].model_fields["kind"].default == kind


@pytest.mark.parametrize("kind", CHANNELS)
def test_every_channel_keeps_the_contract(kind, settings):
    if kind == "sionna":
        pytest.importorskip("sionna")
    check_channel(kind, num_devices=NUM_DEVICES, num_blocks=NUM_BLOCKS, **settings[kind])


@pytest.mark.parametrize("kind", CHANNELS)
def test_a_channel_has_rounds_of_its_own_or_takes_them_from_the_generator(kind, settings):
    channel = build(kind, settings)
    same_luck = np.array_equal(gain(channel, 0), gain(channel, 1))
    same_round = np.array_equal(gain(channel, 0, seed=0), gain(channel, 0, seed=1))
    assert (same_luck, same_round) == ((False, True) if channel.has_own_rounds else (True, False))


@pytest.mark.parametrize("kind", CHANNELS)
def test_places_follow_the_seed_where_there_are_any(kind, settings):
    channel, again, other = (build(kind, settings, seed=seed) for seed in (3, 3, 4))
    if channel.large_scale is None:
        return
    assert channel.large_scale.position_m.shape == (NUM_DEVICES, 2)
    assert_array_equal(channel.large_scale.gain, again.large_scale.gain)
    assert (channel.large_scale.gain != other.large_scale.gain).all()


@pytest.mark.parametrize("kind", CHANNELS)
def test_every_kind_makes_a_cell_by_its_name(kind, settings):
    if kind == "sionna":
        pytest.importorskip("sionna")
    table = {"kind": kind, **settings[kind]}
    config = load_cell_config("umi-3.5ghz", {"num_blocks": NUM_BLOCKS, "channel": table})
    cell = Cell.build(config, num_devices=NUM_DEVICES, seed=3)
    assert type(cell.channel) is type(build(kind, settings))
    assert cell.warnings == cell.channel.warnings == ()
    assert cell.draw(1).channel_gain.shape[0] == NUM_DEVICES


def test_a_channel_without_fading_lends_out_no_array_of_its_own(settings):
    for kind in ("3gpp", "log-distance"):
        channel = build(kind, {kind: {**settings[kind], "fading": {"kind": "none"}}})
        gain(channel, 0)[:] = 0.0
        assert (channel.large_scale.gain > 0).all()
