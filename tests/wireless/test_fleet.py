"""What a fleet may hold."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.wireless.fleet import Fleet


def test_frequencies_have_a_floor_below_their_ceiling():
    plain = Fleet(np.ones(2), np.full(2, 2.0), np.ones(2), np.ones(2))
    assert plain.min_frequency_hz.tolist() == [0.0, 0.0]
    with pytest.raises(ProblemError, match="min_frequency_hz must lie in 0 to max_frequency_hz .* got 3 at"):
        Fleet(np.ones(2), np.full(2, 2.0), np.ones(2), np.ones(2), np.array([1.0, 3.0]))


def test_what_is_no_real_number_is_refused():
    with pytest.raises(ProblemError, match="fleet.max_frequency_hz must hold real numbers, got complex128"):
        Fleet(np.ones(2), np.ones(2) + 1j, np.ones(2), np.ones(2))
    with pytest.raises(ProblemError, match="fleet.capacitance must hold numbers only"):
        Fleet(np.ones(2), np.ones(2), np.ones(2, dtype=bool), np.ones(2))
