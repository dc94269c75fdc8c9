"""Traces of runs: replayed with the run's own planner they give the run's own joules and seconds again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ProblemError, RunError
from fedwave.longterm.trace import Trace, replay, trace_of_run
from fedwave.runs.compare import read_run
from fedwave.runs.run import run_experiment
from fedwave.wireless.delivery import UploadRisks
from tests.longterm.small_traces import small_trace
from tests.runs.small_runs import tiny

CELL = {"preset": "umi-3.5ghz", "num_blocks": 3, "energy_weight": 0.02, "delay_weight": 0.03}


def test_a_trace_replays_the_run_that_left_it(tmp_path: Path) -> None:
    settings = tiny(cell=CELL, num_rounds=3, selection={"num_selected": "auto"})
    path = run_experiment(settings, tmp_path / "run").path
    run, trace = read_run(path), trace_of_run(path)
    found = replay(trace)
    assert (trace.num_rounds, trace.num_devices) == (3, 6)
    np.testing.assert_allclose(found.energy_j.sum(axis=1), run.curve("energy_j"), rtol=1e-9)
    np.testing.assert_allclose(found.num_received, run.curve("num_received"))
    paid = 0.02 * run.curve("energy_j") + 0.03 * run.curve("delay_s")
    np.testing.assert_allclose(found.utility, run.curve("contribution") - paid, rtol=1e-6)
    assert found.mean_utility == pytest.approx(found.utility.mean())
    assert found.worst_energy_j == pytest.approx(found.energy_j.mean(axis=0).max())


def test_a_run_without_a_cell_or_with_silent_devices_is_refused(tmp_path: Path) -> None:
    path = run_experiment(tiny(num_rounds=1), tmp_path / "plain").path
    with pytest.raises(RunError, match="has no radio cell, so no joules"):
        trace_of_run(path)
    some = tiny(cell=CELL, num_rounds=1, selection={"policy": "uniform", "num_selected": 2})
    path = run_experiment(some, tmp_path / "some").path
    with pytest.raises(ProblemError, match="the contribution of every device in every round"):
        trace_of_run(path)


def test_another_access_than_one_block_each_is_refused() -> None:
    trace = small_trace(3, 2, 2)
    world = replace(trace.world, terms=replace(trace.world.terms, access="tdma"))
    with pytest.raises(ProblemError, match='one block each, got a cell with access = "tdma"'):
        Trace(world=world, planner=trace.planner, contribution=trace.contribution)
    world = replace(trace.world, terms=replace(trace.world.terms, work_conserving=True))
    with pytest.raises(ProblemError, match='a cell with access = "one-block" and work_conserving'):
        Trace(world=world, planner=trace.planner, contribution=trace.contribution)


def test_a_trace_with_luck_in_it_is_refused() -> None:
    trace = small_trace(3, 2, 2)
    for risks in (UploadRisks(dropout_probability=0.1), UploadRisks(packet_error_waterfall=0.5)):
        world = replace(trace.world, terms=replace(trace.world.terms, risks=risks))
        with pytest.raises(ProblemError, match="uploads that arrive for certain"):
            Trace(world=world, planner=trace.planner, contribution=trace.contribution)
