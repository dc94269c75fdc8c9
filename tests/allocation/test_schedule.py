"""The band over time: every bit is sent, nobody shares a hertz at a time; it ends as the account says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave import load_cell, problem_of_cell
from fedwave.allocation import Allocation, AllocationProblem, account, allocate
from fedwave.allocation.schedule import handed_on, upload_schedule
from fedwave.errors import ProblemError
from fedwave.wireless.schedule import UploadSchedule

ACCESSES = ("one-block", "blocks", "shared-band", "tdma")
N, M = 24, 6


def solved(access: str, seed: int = 0) -> tuple[AllocationProblem, Allocation]:
    cell = load_cell("umi-3.5ghz", num_devices=N, seed=seed, overrides={"access": access, "num_blocks": M})
    worth = np.random.default_rng(seed).exponential(1.0, N)
    problem = problem_of_cell(cell, worth, model_bits=2e6, energy_weight=0.3, delay_weight=0.3)
    return problem, allocate(problem)


def sent_bits(problem: AllocationProblem, schedule: UploadSchedule) -> np.ndarray:
    """Return the bits of each device by Shannon's formula as the modem has it, piece by piece."""
    bits = np.zeros(problem.num_devices)
    density_w = (problem.interference_w[0] / problem.bandwidth_hz) + problem.noise_psd_w_per_hz
    for k, device in enumerate(schedule.device):
        snr = schedule.power_w[k] * problem.channel_gain[device] / (schedule.width_hz[k] * density_w)
        hertz_s = schedule.width_hz[k] * (schedule.end_s[k] - schedule.start_s[k])
        bits[device] += hertz_s * float(problem.rate.spectral_efficiency(np.array(snr)))
    return bits


def overlap(schedule: UploadSchedule) -> float:
    """Return the largest hertz seconds that two pieces have in common."""
    last_hz = schedule.first_hz + schedule.width_hz
    found = 0.0
    for a in range(schedule.device.size):
        for b in range(a):
            wide = min(last_hz[a], last_hz[b]) - max(schedule.first_hz[a], schedule.first_hz[b])
            long = min(schedule.end_s[a], schedule.end_s[b]) - max(schedule.start_s[a], schedule.start_s[b])
            found = max(found, max(wide, 0.0) * max(long, 0.0))
    return found


@pytest.mark.parametrize("access", ACCESSES)
def test_a_schedule_sends_every_model_and_uses_no_hertz_twice(access: str) -> None:
    problem, found = solved(access)
    schedule = upload_schedule(problem, found)
    assert schedule.device.tolist() == found.selected.tolist()
    assert found.num_selected >= 3
    assert sent_bits(problem, schedule)[found.selected] == pytest.approx(problem.model_bits, rel=1e-9)
    band_hz = M * problem.bandwidth_hz
    assert overlap(schedule) <= 1e-9 * band_hz * found.upload_delay_s
    assert (schedule.first_hz + schedule.width_hz <= band_hz * (1 + 1e-9)).all()
    assert (schedule.first_hz >= 0).all()
    assert schedule.end_s.max() == pytest.approx(found.upload_delay_s)
    joules = schedule.energy_j(N, radio=problem.radio)
    assert joules == pytest.approx(account(problem, found).upload_energy_j)


def test_who_is_named_is_drawn_and_the_others_keep_their_place() -> None:
    problem, found = solved("tdma")
    some = found.selected[1::2]
    every, schedule = upload_schedule(problem, found), upload_schedule(problem, found, some)
    assert schedule.device.tolist() == some.tolist()
    assert schedule.start_s.tolist() == every.start_s[1::2].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_blocks_that_are_handed_on_send_every_model_no_later(seed: int) -> None:
    problem, found = solved("blocks", seed)
    rigid, schedule = upload_schedule(problem, found), handed_on(problem, found)
    assert sent_bits(problem, schedule)[found.selected] == pytest.approx(problem.model_bits, rel=1e-9)
    assert overlap(schedule) <= 1e-9 * M * problem.bandwidth_hz * found.upload_delay_s
    assert (schedule.end_of_device_s(N) <= rigid.end_of_device_s(N) * (1 + 1e-12)).all()
    most = np.bincount(schedule.device, minlength=N)[found.selected]
    went_on = most.sum() > np.rint(rigid.width_hz / problem.bandwidth_hz).sum()
    assert went_on == bool(np.ptp(rigid.end_s) > 1e-9 * found.upload_delay_s)  # not if all end together
    assert went_on or seed == 2


@pytest.mark.parametrize("seed", range(3))
def test_one_block_each_is_handed_on_from_where_it_was_planned(seed: int) -> None:
    problem, found = solved("one-block", seed)
    schedule = handed_on(problem, found)
    assert sent_bits(problem, schedule)[found.selected] == pytest.approx(problem.model_bits, rel=1e-9)
    assert overlap(schedule) <= 1e-9 * M * problem.bandwidth_hz * found.upload_delay_s
    for device in found.selected:
        first = schedule.first_hz[(schedule.device == device) & (schedule.start_s == 0.0)]
        assert found.block_of_device[device] * problem.bandwidth_hz in first.tolist()
        if found.num_selected == M:  # nothing is idle at first
            assert first.size == 1


def test_blocks_that_differ_cannot_be_handed_on() -> None:
    problem, found = solved("one-block")
    noisy = replace(problem, interference_w=problem.interference_w * np.linspace(1.0, 2.0, M))
    with pytest.raises(ProblemError, match="must be alike, got gains or interference that differ"):
        handed_on(noisy, found)
