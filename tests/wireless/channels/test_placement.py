"""Where devices stand, and what shadowing adds, against theory.

Tolerances are about four standard errors at the sample size used; seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ProblemError
from fedwave.wireless.cell import Cell
from fedwave.wireless.channels.placement import (
    DiscPlacement,
    DistancePlacement,
    draw_shadowing_db,
    ground_distance_m,
)
from fedwave.wireless.settings.load import load_cell_config


def test_devices_fill_the_ring_evenly_in_area():
    position_m = DiscPlacement(radius_m=100.0, min_distance_m=20.0).positions_m(
        40_000, rng=np.random.default_rng(0)
    )
    distance_m = ground_distance_m(position_m)
    assert distance_m.min() >= 20
    assert distance_m.max() <= 100
    # The share within r is (r^2 - 20^2) / (100^2 - 20^2): 0.21875 at 50 m, 0.625 at 80 m.
    assert np.mean(distance_m < 50) == pytest.approx(0.21875, abs=0.01)
    assert np.mean(distance_m < 80) == pytest.approx(0.625, abs=0.01)
    assert_allclose(position_m.mean(axis=0), 0.0, atol=1.1)  # std of a coordinate is 51 m


def test_distances_can_be_uniform_themselves():
    position_m = DistancePlacement(min_distance_m=2.0, max_distance_m=50.0).positions_m(
        40_000, rng=np.random.default_rng(0)
    )
    distance_m = ground_distance_m(position_m)
    assert distance_m.mean() == pytest.approx(26.0, abs=0.3)
    assert np.mean(distance_m < 14) == pytest.approx(0.25, abs=0.01)


def test_shadowing_has_mean_zero_and_the_asked_spread():
    shadowing_db = draw_shadowing_db(np.repeat([4.0, 7.82], 50_000), rng=np.random.default_rng(0))
    assert shadowing_db.mean() == pytest.approx(0.0, abs=0.08)
    assert shadowing_db[:50_000].std() == pytest.approx(4.0, rel=0.013)
    assert shadowing_db[50_000:].std() == pytest.approx(7.82, rel=0.013)
    # Normal: 68.27 % within one standard deviation.
    assert np.mean(np.abs(shadowing_db[:50_000]) < 4.0) == pytest.approx(0.6827, abs=0.009)


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x_m\n1\n2\n", r'has no column "y_m"'),
        ("x_m,y_m\n1,1\ninf,1\n", r"not finite at device 1"),
        (None, r"Cannot read the positions file .*: No such file"),
    ],
)
def test_a_bad_positions_csv_is_one_line(tmp_path, text, message):
    path = str(tmp_path / "none.csv") if text is None else write(tmp_path, text)
    placement = {"kind": "file", "path": path}
    config = load_cell_config("umi-3.5ghz", {"channel": {"placement": placement}})
    with pytest.raises(ProblemError, match=message):
        Cell.build(config, num_devices=2, seed=0)
