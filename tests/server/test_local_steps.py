"""The number of the next round's local steps, as a state holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.server.local_steps import next_steps


def test_the_next_number_stands_in_the_state() -> None:
    assert next_steps({"num_local_steps": np.array([7])}) == 7
    assert next_steps({"num_local_steps": np.array([0]), "other": np.zeros(3)}) == 0


@pytest.mark.parametrize("held", [None, np.array([1.0]), np.array([1, 2]), np.array([-1]), np.array(3)])
def test_a_state_that_does_not_say_it_is_refused(held: Any) -> None:
    with pytest.raises(ProblemError) as caught:
        next_steps({} if held is None else {"num_local_steps": held})
    assert str(caught.value) == (
        f"the state of local steps must hold num_local_steps as one int64 >= 0, got {held}. Return it from "
        "initial_state and after."
    )
