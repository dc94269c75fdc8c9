"""An ideal network: every upload arrives and nothing is counted."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.server import Plan
from fedwave.simulation.world import IdealWorld
from fedwave.wireless.delivery import UploadFate
from tests.server.radios import CONTRIBUTION, GREEDY_RADIO, play, radio_planner


@pytest.mark.parametrize("selected", [[], [4], [0, 3, 7]])
def test_everybody_arrives_at_no_cost(selected: list[int]) -> None:
    world = IdealWorld()
    assert world.channel(3) is None
    reports = play(
        radio_planner(GREEDY_RADIO).planner, CONTRIBUTION[:2], 0, radio_planner(GREEDY_RADIO).channel
    )
    plan = Plan(selected=np.array(selected, dtype=np.int64))
    outcome = world.answer(3, plan, reports.reports, None)
    assert outcome.received.tolist() == selected
    assert outcome.fate.tolist() == [UploadFate.ARRIVED] * len(selected)
    assert outcome.costs is None
