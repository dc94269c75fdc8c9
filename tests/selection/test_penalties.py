from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError
from fedwave.selection import PENALTIES, CalibratedPenalties, EstimatedPenalties, FixedPenalties, Penalties

THEORY = Penalties(40.0, 100.0)


def test_a_pair_has_its_turning_point_and_scales() -> None:
    assert Penalties(2.0, 6.0).turning_point(np.array([4, 9])) == pytest.approx([5.0, 4.0])
    assert Penalties(2.0, 6.0).times(0.5) == Penalties(1.0, 3.0)


def test_estimates_are_smoothed_with_what_was_before() -> None:
    rule = EstimatedPenalties(smoothing=0.75)
    assert rule.smoothed(None, THEORY) == THEORY
    assert rule.smoothed(THEORY, Penalties(80.0, 20.0)) == Penalties(50.0, 80.0)
    assert EstimatedPenalties(smoothing=0.0).smoothed(THEORY, Penalties(80.0, 20.0)) == Penalties(80.0, 20.0)
    assert rule.used(THEORY, np.ones(3), np.ones(3, dtype=np.int64)) is THEORY
    assert (FixedPenalties().needs_estimates, rule.needs_estimates) == (False, True)
    assert PENALTIES["calibrated"]().needs_estimates


@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 50)), min_size=1, max_size=30),
    st.floats(0.01, 1.0),
)
def test_calibration_puts_the_stated_share_above_the_turning_point(
    devices: list[tuple[float, int]], share: float
) -> None:
    norms, samples = np.array([one[0] for one in devices]), np.array([one[1] for one in devices])
    used = CalibratedPenalties(share_above=share).used(THEORY, norms, samples)
    assert used.similarity / used.variance == pytest.approx(0.4)
    ratios = norms / (40.0 + 100.0 / np.sqrt(samples))
    wanted = np.floor(share * len(norms) + 0.5)
    is_above = norms > used.turning_point(samples)
    if len(np.unique(np.round(ratios, 9))) == len(ratios):  # no ties that no threshold can part
        assert is_above.sum() == wanted
    assert not is_above.any() or ratios[is_above].min() > ratios[~is_above].max(initial=0.0)


def test_calibration_by_hand() -> None:
    # Points of the theory are 140 and 90: ratios 0.5, 0.2, 0.1. Between the second and the third: 0.15.
    used = CalibratedPenalties(share_above=2 / 3).used(
        THEORY, np.array([70.0, 18.0, 9.0]), np.array([1, 4, 4])
    )
    assert (used.similarity, used.variance) == pytest.approx((6.0, 15.0))
    everybody = CalibratedPenalties(share_above=1.0).used(THEORY, np.array([70.0, 18.0]), np.array([1, 4]))
    assert everybody.similarity == pytest.approx(4.0)  # half of the smallest ratio
    nobody = CalibratedPenalties(share_above=0.1).used(THEORY, np.array([70.0, 18.0]), np.array([1, 4]))
    assert nobody.similarity == pytest.approx(30.0)  # 0.75: beyond the largest


def test_where_there_is_nothing_to_scale_the_theory_stays() -> None:
    rule = CalibratedPenalties()
    nothing = Penalties(0.0, 0.0)
    assert rule.used(nothing, np.ones(2), np.array([1, 4])) is nothing
    assert rule.used(THEORY, np.zeros(0), np.zeros(0, dtype=np.int64)) is THEORY


def test_what_cannot_be_meant_is_refused() -> None:
    for name, least in (("every", 1), ("num_devices", 2), ("num_iterations", 1), ("num_probes", 1)):
        with pytest.raises(ConfigError, match=f"penalties.{name} must be a whole number >= {least}"):
            EstimatedPenalties(**{name: least - 1})
    for smoothing in (-0.1, 1.0):
        with pytest.raises(ConfigError, match="smoothing must be at least 0 and below 1, got"):
            EstimatedPenalties(smoothing=smoothing)
    for share in (0.0, 1.1):
        with pytest.raises(ConfigError, match="share_above must be above 0 and at most 1, got"):
            CalibratedPenalties(share_above=share)
