"""The adapter to Sionna: its arithmetic by hand everywhere, its channel where Sionna is installed."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fedwave.errors import MissingExtraError, ProblemError
from fedwave.wireless.channels.sionna import SionnaChannel, _block_gains, sionna_gains
from fedwave.wireless.multipath import draw_multipath, independent_echoes
from fedwave.wireless.settings.load import load_cell

HAS_SIONNA = importlib.util.find_spec("sionna") is not None
needs_sionna = pytest.mark.skipif(not HAS_SIONNA, reason="Sionna is not installed")
STREET = {"kind": "sionna", "scenario": "umi", "carrier_frequency_hz": 3.5e9, "num_rounds": 12}
PLACEMENT = {"kind": "disc", "radius_m": 250.0, "min_distance_m": 10.0}


def street(num_devices=40, seed=0, **settings):
    channel = {**STREET, "placement": PLACEMENT, **settings}
    return load_cell("umi-3.5ghz", num_devices=num_devices, seed=seed, overrides={"channel": channel})


def test_a_blocks_gain_is_the_mean_over_its_subcarriers():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    amplitude = rng.standard_normal((70, 3, 2)) + 1j * rng.standard_normal((70, 3, 2))  # device, path, round
    delay_s = rng.uniform(0, 1e-6, (70, 3))
    gains = _block_gains(
        torch,
        torch.tensor(amplitude[None, None, None, :, None]),
        torch.tensor(delay_s[None, None]),
        num_blocks=2,
        bandwidth_hz=120e3,
    )
    assert gains.shape == (2, 70, 2)
    for device, round_index, block in ((0, 0, 0), (69, 1, 1), (64, 0, 1)):
        power = []
        for subcarrier in range(12 * block, 12 * (block + 1)):
            frequency_hz = (subcarrier - 11.5) * 10e3
            turn = np.exp(-2j * np.pi * frequency_hz * delay_s[device])
            power.append(abs((amplitude[device, :, round_index] * turn).sum()) ** 2)
        assert gains[round_index, device, block] == pytest.approx(np.mean(power), rel=1e-5)


def test_rounds_are_played_one_by_one_and_come_to_an_end():
    gains = np.random.default_rng(0).random((3, 5, 4))
    channel = SionnaChannel(gains=gains)
    assert_array_equal(channel.gain(2, rng=np.random.default_rng(0)), gains[2])
    with pytest.raises(
        ProblemError, match="has drawn 3 rounds, but round 3 is asked for. Raise channel.num_rounds"
    ):
        channel.gain(3, rng=np.random.default_rng(0))
    channel.gain(0, rng=np.random.default_rng(0))[:] = 0.0
    assert channel.gains.all()
    assert channel.warnings == ()


def test_without_sionna_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sionna"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sionna", None)  # as if it were not there
    with pytest.raises(
        MissingExtraError, match=r'A channel of Sionna needs sionna.*pip install "fedwave\[sionna\]"'
    ):
        street()


@needs_sionna
def test_one_topology_for_all_rounds():
    """Sight and shadowing stay: a device's mean gain moves by fading alone, not by 10 dB of new places."""
    gains_db = 10 * np.log10(street(num_devices=60).channel.gains.mean(axis=2))
    assert gains_db.std(axis=0).mean() < 4.0
    assert gains_db.mean(axis=0).std() > 8.0


@needs_sionna
def test_the_same_seed_is_the_same_channel():
    first, again, other = street(seed=3), street(seed=3), street(seed=4)
    assert_array_equal(first.channel.gains, again.channel.gains)
    assert not np.array_equal(first.channel.gains, other.channel.gains)
    assert_array_equal(first.draw(5).channel_gain, first.channel.gains[5])


@needs_sionna
def test_devices_that_stand_still_keep_their_channel():
    still = street(speed_km_per_h=0.0).channel.gains
    assert_allclose(still, np.broadcast_to(still[:1], still.shape), rtol=1e-3)


@needs_sionna
@pytest.mark.parametrize(("scenario", "carrier_hz", "block_hz", "height_m", "near_m", "far_m"), [
    ("umi", 3.5e9, 360e3, 10.0, 10.0, 250.0),
    ("uma", 2e9, 180e3, 25.0, 35.0, 500.0),
    ("rma", 0.7e9, 180e3, 35.0, 35.0, 2500.0),
])  # fmt: skip
def test_our_blocks_fade_as_sionnas(scenario, carrier_hz, block_hz, height_m, near_m, far_m):
    """Over far devices, mostly blocked: correlation of neighbouring blocks and the best of 20."""
    rng = np.random.default_rng(0)
    distance_m, angle = rng.uniform(0.6 * far_m, far_m, 150), rng.uniform(0, 2 * np.pi, 150)
    theirs = sionna_gains(
        scenario,
        carrier_frequency_hz=carrier_hz,
        position_m=np.column_stack([distance_m * np.cos(angle), distance_m * np.sin(angle)]),
        base_station_height_m=height_m,
        device_height_m=1.5,
        num_blocks=20,
        bandwidth_hz=block_hz,
        num_rounds=20,
        round_interval_s=10.0,
        speed_m_per_s=3 / 3.6,
        seed=1,
    )
    sight = (
        np.exp(-(distance_m - 10) / 1000)
        if scenario == "rma"
        else (
            18 / distance_m + np.exp(-distance_m / {"umi": 36, "uma": 63}[scenario]) * (1 - 18 / distance_m)
        )
    )
    multipath = draw_multipath(
        scenario,
        carrier_frequency_hz=carrier_hz,
        is_line_of_sight=rng.random(150) < sight,
        gain_normal=rng.standard_normal(150),
        rng=rng,
    )
    ours = np.stack(
        [
            multipath.block_gain(
                *independent_echoes(multipath, rng=rng), num_blocks=20, bandwidth_hz=block_hz
            )
            for _ in range(20)
        ]
    )

    def statistics(gain):
        own = gain / gain.mean(axis=(0, 2))[:, None]
        pairs = [np.corrcoef(own[..., m].ravel(), own[..., m + 1].ravel())[0, 1] for m in range(19)]
        return np.mean(pairs), np.mean(10 * np.log10(gain.max(-1) / gain.mean(-1)))

    (our_next, our_best), (their_next, their_best) = statistics(ours), statistics(theirs)
    assert our_next == pytest.approx(their_next, abs=0.05)
    assert our_best == pytest.approx(their_best, abs=0.4)
