"""Models that weigh by samples: the same choice, and the mean of FedAvg."""

from __future__ import annotations

import numpy as np

from fedwave.server import SampleWeights
from fedwave.testing import check_planner
from tests.server.radios import CONTRIBUTION, play
from tests.server.test_policy_planner import planner


def test_every_chosen_device_weighs_as_many_as_its_samples() -> None:
    inner = planner("top-contribution", 4)
    plain, weighted = play(inner, CONTRIBUTION).plan, play(SampleWeights(inner), CONTRIBUTION).plan
    assert weighted.selected.tolist() == plain.selected.tolist()
    assert plain.weights is None
    assert weighted.weights is not None
    assert weighted.weights.tolist() == np.resize([4.0, 8.0], 9)[plain.selected].tolist()


def test_those_that_did_not_report_are_skipped() -> None:
    weighted = play(SampleWeights(planner("uniform", 4)), CONTRIBUTION)
    assert weighted.plan.weights is not None
    assert weighted.plan.weights.tolist() == np.resize([4.0, 8.0], 9)[weighted.asked].tolist()


def test_it_keeps_the_contract_of_planners() -> None:
    check_planner(SampleWeights)
