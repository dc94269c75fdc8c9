"""Blocks over time: everything adds up, nobody is later than without, and an example by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.schedule import UploadSchedule, hand_on_blocks, schedule_of

RADIO = RadioPower(amplifier_efficiency=0.5, circuit_power_w=0.3)


def draw(seed: int) -> dict[str, Any]:
    """Return uploads of a few devices on whole blocks, at powers below their peaks, some blocks spare."""
    rng = np.random.default_rng(seed)
    count, num_blocks = int(rng.integers(1, 6)), int(rng.integers(6, 10))
    held = rng.multinomial(num_blocks - int(rng.integers(0, 3)) - count, np.ones(count) / count) + 1
    peak = rng.uniform(0.5, 4.0, count)
    return {
        "device": np.sort(rng.choice(20, count, replace=False)),
        "num_held": held,
        "power_w": peak * rng.uniform(0.2, 1.0, count),
        "max_power_w": peak,
        "gain": rng.uniform(0.2, 1.5, count),
        "block_noise_w": 0.7,
        "bandwidth_hz": 2.0,
        "num_blocks": num_blocks,
        "model_bits": 5.0,
        "rate": RateModel(efficiency=0.8, max_spectral_efficiency=3.0, min_snr=0.01),
    }


def alone_s(values: dict[str, Any]) -> np.ndarray:
    """Return how long each upload takes on its own blocks, by the definitions."""
    held, noise = values["num_held"], values["block_noise_w"]
    snr = values["power_w"] * values["gain"] / (held * noise)
    se = np.where(snr >= 0.01, np.minimum(0.8 * np.log2(1.0 + snr), 3.0), 0.0)
    return np.asarray(values["model_bits"] / (held * values["bandwidth_hz"] * se))


def test_uploads_begin_on_the_blocks_that_they_are_given() -> None:
    values = draw(0) | {"num_held": np.array([1, 2]), "num_blocks": 3}
    values |= {name: values[name][:2] for name in ("device", "power_w", "max_power_w", "gain")}
    found = hand_on_blocks(**values, first_block=np.array([2, 0]))
    begins = found.start_s == 0.0
    for i, blocks in enumerate(([2], [0, 1])):
        held = found.first_hz[begins & (found.device == values["device"][i])] / 2.0
        assert sorted(held.tolist()) == blocks
    side_by_side = hand_on_blocks(**values)
    assert found.end_of_device_s(20) == pytest.approx(side_by_side.end_of_device_s(20))


@pytest.mark.parametrize("seed", range(20))
def test_every_upload_sends_its_model_and_no_block_has_two_at_a_time(seed: int) -> None:
    values = draw(seed)
    found = hand_on_blocks(**values)
    assert found.width_hz.tolist() == [2.0] * found.device.size
    for i, device in enumerate(values["device"]):
        mine = found.device == device
        snr = found.power_w[mine] * values["gain"][i] / values["block_noise_w"]
        se = np.minimum(0.8 * np.log2(1.0 + snr), 3.0)
        sent = (found.width_hz[mine] * se * (found.end_s - found.start_s)[mine]).sum()
        assert sent == pytest.approx(values["model_bits"], rel=1e-9)
        for moment in np.unique(found.start_s):
            now = mine & (found.start_s <= moment) & (moment < found.end_s)
            assert found.power_w[now].sum() <= values["max_power_w"][i] * (1 + 1e-12)
    for block in range(values["num_blocks"]):
        here = np.flatnonzero(found.first_hz == block * 2.0)
        order = here[np.argsort(found.start_s[here])]
        assert (found.start_s[order][1:] >= found.end_s[order][:-1] - 1e-12).all()
    assert found.first_hz.max() < values["num_blocks"] * 2.0


@pytest.mark.parametrize("seed", range(20))
def test_nobody_ends_later_and_nobody_takes_more_energy(seed: int) -> None:
    values = draw(seed)
    found = hand_on_blocks(**values)
    alone = alone_s(values)
    ends = found.end_of_device_s(20)[values["device"]]
    assert (ends <= alone * (1 + 1e-12)).all()
    joules = found.energy_j(20, radio=RADIO)[values["device"]]
    assert (joules <= alone * (values["power_w"] / 0.5 + 0.3) * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(20))
def test_no_block_is_idle_that_somebody_could_use(seed: int) -> None:
    """At every moment between events: free blocks only where one more makes nobody faster."""
    values = draw(seed)
    found = hand_on_blocks(**values)
    events = np.unique(np.concatenate([found.start_s, found.end_s]))
    for moment in 0.5 * (events[1:] + events[:-1]):
        now = (found.start_s < moment) & (moment < found.end_s)
        if now.sum() == values["num_blocks"]:
            continue
        for i, device in enumerate(values["device"]):
            held = int((now & (found.device == device)).sum())
            if held == 0:
                continue

            def speed(blocks: int, i: int = i) -> float:
                density = values["power_w"][i] / values["num_held"][i]
                watts = min(density * blocks, values["max_power_w"][i])
                snr = watts * values["gain"][i] / (blocks * 0.7)
                return blocks * min(0.8 * math.log2(1 + snr), 3.0) if snr >= 0.01 else 0.0

            assert speed(held + 1) <= speed(held) * (1 + 1e-9)


def test_two_devices_by_hand() -> None:
    """SNR 1 on each block of a hertz is a bit a second. The first sends 2 bits on two blocks, then helps out.

    The second has one block and 2 bits to send: 1 bit in the first second, then the other over three blocks
    at the same power each, in a third of a second.
    """
    values: dict[str, Any] = {
        "device": np.array([3, 5]),
        "num_held": np.array([2, 1]),
        "power_w": np.array([2.0, 1.0]),
        "max_power_w": np.array([2.0, 9.0]),
        "gain": np.ones(2),
        "block_noise_w": 1.0,
        "bandwidth_hz": 1.0,
        "num_blocks": 3,
        "model_bits": 2.0,
        "rate": RateModel(),
    }
    found = hand_on_blocks(**values)
    assert found.end_of_device_s(6).tolist() == pytest.approx([0, 0, 0, 1.0, 0, 4 / 3])
    rows = sorted(zip(found.device, found.first_hz, found.start_s, found.end_s, found.power_w, strict=True))
    third = pytest.approx(4 / 3)
    assert rows[:2] == [(3, 0.0, 0.0, 1.0, 1.0), (3, 1.0, 0.0, 1.0, 1.0)]
    assert rows[2:] == [
        (5, 0.0, 1.0, third, 1.0),
        (5, 1.0, 1.0, third, 1.0),
        (5, 2.0, 0.0, 1.0, 1.0),
        (5, 2.0, 1.0, third, 1.0),
    ]
    joules = found.energy_j(6, radio=RADIO)
    assert joules[5] == pytest.approx(2.0 / 0.5 + 0.3 * 4 / 3)  # one circuit for all its blocks
    cut = found.energy_j(6, radio=RADIO, until_s=0.5)
    assert cut[[3, 5]].tolist() == pytest.approx([2 * 0.5 / 0.5 + 0.15, 0.5 / 0.5 + 0.15])
    weak = hand_on_blocks(**values | {"max_power_w": np.array([2.0, 1.0])})  # now one watt for all of them
    assert weak.end_of_device_s(6)[5] == pytest.approx(1.0 + 1.0 / (3 * math.log2(4 / 3)))
    stubborn = hand_on_blocks(**values | {"max_power_w": np.array([2.0, 1.0]), "min_snr": 0.9})
    assert stubborn.end_of_device_s(6)[5] == pytest.approx(2.0)  # thinner, it would not be decoded
    just = hand_on_blocks(**values | {"max_power_w": np.array([2.0, 1.0]), "min_snr": 0.5})
    assert just.end_of_device_s(6)[5] == pytest.approx(1.0 + 1.0 / (2 * math.log2(1.5)))  # on two it is


def test_a_free_block_goes_to_whoever_would_end_last() -> None:
    """SNRs of 3, 1 and 0.5: 2, 1 and 0.58 bit a second. The last gets the first one's block."""
    found = hand_on_blocks(
        device=np.arange(3),
        num_held=np.ones(3, dtype=np.int64),
        power_w=np.array([3.0, 1.0, 0.5]),
        max_power_w=np.full(3, 9.0),
        gain=np.ones(3),
        block_noise_w=1.0,
        bandwidth_hz=1.0,
        num_blocks=3,
        model_bits=2.0,
        rate=RateModel(),
    )
    freed = (found.first_hz == 0.0) & (found.start_s == 1.0)
    assert found.device[freed].tolist() == [2]
    slow = math.log2(1.5)
    left = 2.0 - slow - 2 * slow  # after the second one ends, too
    assert found.end_of_device_s(3)[2] == pytest.approx(2.0 + left / (3 * slow))


def test_who_has_no_link_sends_nothing() -> None:
    values = draw(0)
    found = hand_on_blocks(**values | {"gain": np.zeros(values["device"].size)})
    assert found.device.size == 0
    assert found.energy_j(20, radio=RADIO).tolist() == [0.0] * 20


def test_a_schedule_of_single_pieces_leaves_out_who_does_not_send() -> None:
    found = schedule_of(
        device=np.array([1, 4]),
        first_hz=np.array([0.0, 3.0]),
        width_hz=np.array([3.0, 1.0]),
        start_s=np.array([0.0, 2.0]),
        time_s=np.array([2.0, 0.0]),
        power_w=np.array([1.0, 1.0]),
    )
    assert isinstance(found, UploadSchedule)
    assert (found.device.tolist(), found.end_s.tolist()) == ([1], [2.0])
