"""The scale on which contributions meet joules and seconds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedwave.server.aims import ContributionScale

U = np.array([3.0, -1.0, 0.0, 8.0])


def test_raw_leaves_contributions_as_they_are() -> None:
    assert ContributionScale()(U).tolist() == U.tolist()
    assert ContributionScale("raw", 5.0)(U).tolist() == U.tolist()


def test_the_footnotes_constant_is_added_to_each() -> None:
    assert ContributionScale("constant", 2.5)(U).tolist() == [5.5, 1.5, 2.5, 10.5]
    assert ContributionScale("constant", -2.5)(U).tolist() == [0.5, -3.5, -2.5, 5.5]
    assert ContributionScale("constant")(U).tolist() == U.tolist()


def test_normalised_contributions_have_mean_size_one_and_keep_their_sign() -> None:
    assert_allclose(ContributionScale("normalised")(U), [1.0, -1 / 3, 0.0, 8 / 3])  # mean |u| = 3
    assert_allclose(ContributionScale("normalised")(np.array([2.0, 6.0])), [0.5, 1.5])  # mean 1
    assert_allclose(ContributionScale("normalised")(np.array([-2.0, -6.0])), [-0.5, -1.5])


def test_the_mean_size_of_normalised_contributions_may_be_chosen() -> None:
    assert_allclose(ContributionScale("normalised", size=30.0)(U), 10.0 * U)  # mean |u| was 3
    assert ContributionScale("raw", size=30.0)(U).tolist() == U.tolist()


def test_there_is_nothing_to_normalise_in_zeros_or_in_nobody() -> None:
    scale = ContributionScale("normalised")
    assert scale(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert scale(np.zeros(0)).tolist() == []
    assert_allclose(scale(np.array([-4.0])), [-1.0])


@pytest.mark.parametrize("kind", ["raw", "constant", "normalised"])
@given(values=st.lists(st.floats(-1e6, 1e6).filter(lambda u: u == 0 or abs(u) > 1e-6), max_size=8))
def test_no_scale_changes_the_ranking_or_its_input(kind: str, values: list[float]) -> None:
    given_u = np.array(values)
    scaled = ContributionScale(kind, 7.0 if kind == "constant" else 0.0)(given_u)
    assert given_u.tolist() == values
    order = np.argsort(given_u, kind="stable")
    assert (np.diff(scaled[order]) >= 0).all()
    if kind == "normalised" and given_u.any():
        assert_allclose(np.abs(scaled).mean(), 1.0)
