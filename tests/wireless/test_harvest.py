"""What fills batteries: integrals against sums over small steps, and files that are wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.wireless.harvest import ConstantHarvest, DayHarvest, NoHarvest, TraceHarvest
from fedwave.wireless.settings.distribution import Uniform

RNG = np.random.default_rng(0)


def sun_w(hour: float, peak_w: float, rise_h: float, set_h: float) -> float:
    """The power at a time of day, written out."""
    hour = hour % 24.0
    if not rise_h <= hour <= set_h:
        return 0.0
    return peak_w * math.sin(math.pi * (hour - rise_h) / (set_h - rise_h))


@pytest.mark.parametrize(
    ("start_h", "begin_h", "end_h"), [(0, 0, 24), (10, 0, 1), (5, 0, 3), (0, 17.5, 31), (20, 3, 60)]
)
def test_the_sun_gives_the_integral_of_its_power(start_h: float, begin_h: float, end_h: float) -> None:
    sun = DayHarvest(peak_w=0.02, sunrise_h=5.0, sunset_h=20.0, start_h=start_h).build(num_devices=2, rng=RNG)
    steps = 200_000
    middle_h = begin_h + (np.arange(steps) + 0.5) * (end_h - begin_h) / steps
    power_w = [sun_w(start_h + hour, 0.02, 5.0, 20.0) for hour in middle_h]
    expected_j = float(np.mean(power_w)) * (end_h - begin_h) * 3600.0
    np.testing.assert_allclose(sun.energy_j(3600.0 * begin_h, 3600.0 * end_h), expected_j, rtol=1e-6)


def test_a_day_of_sun_is_two_over_pi_of_its_length() -> None:
    sun = DayHarvest(peak_w=2.0).build(num_devices=1, rng=RNG)
    assert sun.energy_j(0.0, 86_400.0)[0] == pytest.approx(2.0 * 43_200.0 * 2.0 / math.pi)
    assert sun.energy_j(0.0, 6 * 3600.0)[0] == 0.0  # before sunrise
    assert sun.energy_j(19 * 3600.0, 29 * 3600.0)[0] == pytest.approx(0.0, abs=1e-9)  # the night


def test_a_constant_power_is_power_times_time_and_may_differ_between_devices() -> None:
    harvest = ConstantHarvest(power_w=Uniform(low=1.0, high=3.0)).build(num_devices=500, rng=RNG)
    energy_j = harvest.energy_j(100.0, 104.0)
    assert energy_j.min() >= 4.0
    assert energy_j.max() < 12.0
    assert energy_j.mean() == pytest.approx(8.0, abs=4 * 4.0 * 2.0 / math.sqrt(12 * 500))
    assert NoHarvest().build(num_devices=3).energy_j(0.0, 9.0).tolist() == [0.0] * 3


def test_a_trace_holds_each_power_until_the_next_row(tmp_path: Path) -> None:
    (tmp_path / "sun.csv").write_text("time_s,power_w\n10,1\n20,3\n# cloud\n40,0.5\n")
    harvest = TraceHarvest(path=tmp_path / "sun.csv").build(num_devices=2)
    for begin, end, expected in (
        (0, 10, 0),
        (0, 15, 5),
        (15, 25, 20),
        (0, 40, 70),
        (39, 100, 33),
        (20, 20, 0),
    ):
        assert harvest.energy_j(begin, end).tolist() == [expected] * 2


def test_a_trace_may_have_a_column_for_each_device(tmp_path: Path) -> None:
    (tmp_path / "sun.csv").write_text("time_s,power_w_0,power_w_1\n0,1,2\n5,0,4\n")
    harvest = TraceHarvest(path=tmp_path / "sun.csv").build(num_devices=2)
    assert harvest.energy_j(0.0, 7.0).tolist() == [5.0, 18.0]
    with pytest.raises(ProblemError, match=r"time_s and power_w_0 to power_w_2, got time_s, power_w_0"):
        TraceHarvest(path=tmp_path / "sun.csv").build(num_devices=3)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("5,1\n5,2\n", "rising time_s"),
        ("", "rising time_s"),
        ("0,-1\n", 'power_w = "-1" in line 2'),
        ("0,1\n1,much\n", 'power_w = "much" in line 3'),
        ("0,inf\n", 'power_w = "inf"'),
    ],
)
def test_a_trace_that_is_wrong_is_refused_by_its_line(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "sun.csv").write_text("time_s,power_w\n" + rows)
    with pytest.raises(ProblemError, match=message):
        TraceHarvest(path=tmp_path / "sun.csv").build(num_devices=1)


def test_powers_below_zero_and_nights_before_mornings_are_refused() -> None:
    with pytest.raises(ProblemError, match=r"harvest\.power_w must be >= 0, got -1"):
        ConstantHarvest(power_w=Uniform(low=-1.0, high=1.0)).build(num_devices=1, rng=RNG)
    with pytest.raises(ProblemError, match="sunset_h must be after sunrise_h = 18, got 6"):
        DayHarvest(peak_w=1.0, sunrise_h=18.0, sunset_h=6.0).build(num_devices=1, rng=RNG)
