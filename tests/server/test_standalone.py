"""A planner works in anybody's server: numpy and scipy, no deep learning, no settings, no simulated world."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

# A round of URAL and one of FedAvg, where importing anything else fails.
SERVER = """
import sys
for name in ("torch", "pydantic", "typer", "rich", "sklearn", "matplotlib", "fedwave.simulation"):
    sys.modules[name] = None
import numpy as np
from fedwave.selection import POLICIES
from fedwave.server import CellPlanner, Outcome, PolicyPlanner, PolicyRunner
from fedwave.server import RadioTerms, Reports, RoundAims, Work
from fedwave.wireless.terms import ChannelDraw
from fedwave.wireless.fleet import Fleet

fleet = Fleet(np.array([1.0, 1.0, 1.0]), np.ones(3), np.ones(3), np.full(3, 0.1))
channel = ChannelDraw(np.array([1.0, 2.0, 3.0]), np.zeros(2))
samples = np.array([10, 10, 10])
over_cell = CellPlanner(
    runner=PolicyRunner(POLICIES["top-contribution"](num_selected=3), samples, seed=0),
    fleet=fleet,
    terms=RadioTerms(num_blocks=2, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0),
    aims=RoundAims(energy_weight=1.0, delay_weight=1.0),
    work=Work(model_bits=1.0, num_local_steps=1, num_samples=samples),
)
ideal = PolicyPlanner(PolicyRunner(POLICIES["round-robin"](num_selected=2), samples, seed=0))
for planner in (over_cell, ideal):
    state = planner.initial_state()
    for k in range(2):
        asked = planner.ask(k, state)
        reports = Reports(
            device_index=asked,
            contribution=np.array([10.0, 30.0, 20.0])[asked],
            loss=np.ones(len(asked)),
            num_samples=samples[asked],
            gradient_norms=np.ones((len(asked), 1)),
        )
        plan = planner.plan(k, asked, reports, channel, state)
        outcome = Outcome(plan.selected, np.zeros(len(plan.selected), dtype=np.int64))
        state = planner.after(k, reports, plan, outcome, state)
        print(plan.selected.tolist(), state["history.times_selected"].tolist())
loaded = {name.split(".")[0] for name in sys.modules if sys.modules[name] is not None}
print(sorted(loaded & {"torch", "pydantic", "typer", "rich", "sklearn", "matplotlib"}))
print(sorted(name for name in sys.modules if name.startswith(("fedwave.simulation.", "fedwave.learning"))))
"""


def test_a_server_plans_rounds_where_only_numpy_and_scipy_can_be_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVER],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[1, 2] [0, 1, 1]",
        "[1, 2] [0, 2, 2]",
        "[0, 1] [1, 1, 0]",
        "[0, 2] [2, 1, 1]",
        "[]",
        "[]",
    ]
