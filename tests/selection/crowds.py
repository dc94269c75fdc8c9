"""Candidates to choose from, for the tests of policies."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fedwave.selection import Candidates, History


def crowd(num_devices: int, **columns: Any) -> Candidates:
    """Return devices 0, 1, ... of which nothing is known but the given columns."""
    history = columns.pop("history", History.empty(num_devices))
    return Candidates(
        **{
            "device_index": np.arange(num_devices),
            "num_samples": np.full(num_devices, 10),
            "history": history,
            **{name: np.asarray(values) for name, values in columns.items()},
        }
    )


def last_selected(*rounds: int) -> History:
    """Return a history in which the devices were last selected in these rounds."""
    times = [int(own >= 0) for own in rounds]
    return History(
        times_selected=np.array(times),
        last_selected=np.array(rounds),
        last_contribution=np.full(len(rounds), np.nan),
        last_loss=np.full(len(rounds), np.nan),
    )


@st.composite
def crowds(draw: st.DrawFn) -> Candidates:
    """Any candidates: gaps in the indices, equal scores, some never selected before."""
    index = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=25)))
    columns = st.lists(st.integers(-3, 3), min_size=len(index), max_size=len(index))
    rounds = draw(st.lists(st.integers(-1, 4), min_size=len(index), max_size=len(index)))
    samples = draw(st.lists(st.integers(1, 50), min_size=len(index), max_size=len(index)))
    return crowd(
        len(index),
        device_index=index,
        num_samples=samples,
        history=last_selected(*rounds),
        contribution=np.array(draw(columns), dtype=float),
        loss=np.array(draw(columns), dtype=float),
    )
