from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ProblemError
from fedwave.selection import contribution, turning_point

LAMBDA = {"similarity_penalty": 0.7, "variance_penalty": 1.3}


def test_equals_the_papers_sum_written_out_by_hand() -> None:
    # Two steps with norms 3 and 5 on 4 samples: (9 - 2(0.7+0.65)3) + (25 - 2(0.7+0.65)5) = 34 - 21.6
    got = contribution([[3.0, 5.0]], [4], **LAMBDA)
    assert got == pytest.approx([12.4])


@given(
    st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1e3), st.integers(1, 1000)), min_size=1, max_size=8)
)
def test_equals_a_literal_loop(rows: list[tuple[float, float, int]]) -> None:
    norms = np.array([row[:2] for row in rows])
    samples = np.array([row[2] for row in rows])
    for got, (first, second, count) in zip(contribution(norms, samples, **LAMBDA), rows, strict=True):
        expected = 0.0
        for norm in (first, second):  # Alg. 1, line 8
            expected += norm**2 - 2 * (0.7 + 1.3 / count**0.5) * norm
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_it_falls_until_the_turning_point_and_rises_after() -> None:
    point = float(turning_point([9], **LAMBDA)[0])
    assert point == pytest.approx(0.7 + 1.3 / 3)
    norms = np.array([[0.0], [0.5 * point], [point], [1.5 * point], [2.0 * point]])
    scores = contribution(norms, np.full(5, 9), **LAMBDA)
    assert scores[0] > scores[1] > scores[2] < scores[3] < scores[4]
    assert scores[4] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("norms", "samples", "message"),
    [
        ([1.0, 2.0], [1, 1], "must have shape (devices, local steps), got (2,)"),
        ([[1.0], [2.0]], [1], "one entry for each of the 2 devices, got shape (1,)"),
        ([[np.nan]], [1], "must be finite and not negative"),
        ([[-1.0]], [1], "must be finite and not negative"),
        ([[3.0, 2.0], [5.0, -1.0]], [1, 1], "must be finite and not negative"),
        ([[1.0]], [0], "num_samples must be positive, got 0"),
    ],
)
def test_bad_input_is_named(norms: list[object], samples: list[int], message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        contribution(np.array(norms, dtype=float), samples, **LAMBDA)
    assert message in str(caught.value)
