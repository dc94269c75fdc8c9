"""A cell's deadline: methods that plan meet it, the baselines run into it."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.experiments import experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.simulation.cell_scheduler import SERVES_GIVEN_DEVICES, CellScheduler
from fedwave.simulation.scheduler import Reports, Schedule


def schedule(
    method: str, deadline_s: float | None, *, report_bits: float = 0.0
) -> tuple[CellScheduler, Schedule]:
    losses = {} if deadline_s is None else {"deadline_s": deadline_s}
    sim = build_simulation(
        experiment_from(
            {
                "data": {"dataset": "synthetic", "num_samples": 4000, "shape": [4]},
                "partition": {"num_devices": 60},
                "model": {"kind": "softmax"},
                "cell": {"preset": "paper", "method": method, "losses": losses, "report_bits": report_bits},
            }
        )
    )
    assert isinstance(sim.scheduler, CellScheduler)
    everyone = np.arange(len(sim.train))
    reports = Reports(everyone, np.random.default_rng(0).uniform(100.0, 900.0, len(everyone)))
    return sim.scheduler, sim.scheduler.schedule(0, reports)


@pytest.mark.parametrize("method", ["optimal", "ives", "chen2020"])
@pytest.mark.parametrize("report_bits", [0.0, 0.05])
def test_a_method_that_plans_meets_the_deadline_with_every_upload(method: str, report_bits: float) -> None:
    _, free = schedule(method, None, report_bits=report_bits)
    assert free.costs is not None
    upload_s = float(free.costs.upload_time_s.max())
    deadline_s = free.costs.delay_s - 0.4 * upload_s  # cuts the upload phase to 60 %
    _, cut = schedule(method, deadline_s, report_bits=report_bits)
    assert cut.costs is not None
    assert len(cut.selected) > 0
    assert np.array_equal(cut.received, cut.selected)
    assert cut.costs.delay_s <= deadline_s
    assert cut.costs.upload_time_s.max() < upload_s


@pytest.mark.parametrize("method", sorted(SERVES_GIVEN_DEVICES))
def test_a_baseline_loses_what_is_late_and_pays_for_it(method: str) -> None:
    _, free = schedule(method, None)
    assert free.costs is not None
    finish_s = free.costs.compute_time_s.max() + free.costs.upload_time_s[free.selected]
    deadline_s = float(np.median(finish_s))
    _, cut = schedule(method, deadline_s)
    assert cut.costs is not None
    assert np.array_equal(cut.selected, free.selected)
    assert np.array_equal(cut.received, free.selected[finish_s <= deadline_s])
    assert 0 < len(cut.received) < len(cut.selected)
    assert cut.costs.delay_s == deadline_s
    assert np.array_equal(cut.costs.upload_energy_j, free.costs.upload_energy_j)


def test_a_deadline_that_does_not_bind_changes_nothing() -> None:
    _, free = schedule("optimal", None)
    assert free.costs is not None
    _, same = schedule("optimal", 2.0 * free.costs.delay_s)
    assert same.costs is not None
    assert np.array_equal(same.selected, free.selected)
    assert same.costs.delay_s == free.costs.delay_s
