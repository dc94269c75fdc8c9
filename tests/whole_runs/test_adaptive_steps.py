"""Runs that choose their local steps: by the plain formula, within the budget, resumed to the bit."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError, RunError
from fedwave.experiments import Experiment
from fedwave.experiments.build import build_simulation
from fedwave.longterm.trace import trace_of_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from fedwave.server.local_steps import StepsHeard
from fedwave.server.planner import PlannerState
from fedwave.server.steps_bound import Budget, Landscape
from tests.runs.small_runs import AskToStopAfter, StopAfter, experiment, results
from tests.server.test_steps_bound import plain_bound

META_LR, PHI = 0.02, 0.3
TOTAL_S, TOTAL_J = 150.0, 60.0
# The paper's, with equal devices and equal work: what a step costs does not depend on who is drawn.
CELL: dict[str, Any] = {
    "preset": "paper",
    "num_blocks": 3,
    "method": "greedy",
    "fleet": {"max_power_w": 1.0, "max_frequency_hz": 1.0, "capacitance": 0.2, "cycles_per_sample": 0.1},
    "samples_counted": 10,
}


def adaptive(**changes: Any) -> Experiment:
    """Per-FedAvg over the paper's cell, whose rounds cost some 10 s and some joules each."""
    return experiment(
        **{
            "num_rounds": 40,
            "data": {"dataset": {"shape": [6]}},
            "model": {"kind": "softmax"},
            "algorithm": {"meta_lr": META_LR, "local_steps": {"kind": "adaptive", "phi": PHI}},
            "selection": {"num_selected": "auto", "policy": "uniform"},
            "cell": CELL,
            "stop": {"energy_j": TOTAL_J, "time_s": TOTAL_S},
            **changes,
        }
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = run_experiment(adaptive(), tmp_path_factory.mktemp("run") / "whole")
    assert found.stopped is not None
    assert "no further round fits into its budget" in found.stopped
    return found.path


def table(folder: Path) -> dict[str, Any]:
    return RunFolder(folder).table()


def test_every_round_has_the_steps_that_the_row_before_asks_for(whole: Path) -> None:
    rounds = table(whole)
    assert rounds["num_local_steps"][0] == 1
    assert rounds["num_local_steps"][1:].tolist() == rounds["next_local_steps"][:-1].tolist()
    assert rounds["next_local_steps"][-1] == 0
    assert (rounds["next_local_steps"][:-1] > 0).all()
    assert len(set(rounds["num_local_steps"].tolist())) > 2


def test_the_choice_is_that_of_the_plain_formula_on_the_tables(whole: Path) -> None:
    rounds, devices = table(whole), RunFolder(whole).table("devices.csv")
    num_rounds = len(rounds["round"])
    compute_s = devices["compute_time_s"].reshape(num_rounds, -1).max(axis=1)
    limited = 0
    for k in range(num_rounds):
        tau = int(rounds["num_local_steps"][k])
        land = Landscape(
            loss_lipschitz=rounds["loss_lipschitz"][k],
            smoothness=rounds["smoothness"][k],
            gradient_divergence=rounds["gradient_divergence"][k],
            step_size=META_LR,
        )
        whole_round = {"s": rounds["delay_s"][k], "j": rounds["energy_j"][k]}
        step = {"s": compute_s[k] / (tau + 1), "j": rounds["compute_energy_j"][k] / (tau + 1)}
        spent = {"s": rounds["cumulative_delay_s"][k], "j": rounds["cumulative_energy_j"][k]}
        total = {"s": TOTAL_S, "j": TOTAL_J}
        budgets = [Budget(total=total[m], step=step[m], fixed=whole_round[m] - tau * step[m]) for m in "sj"]
        plain = [plain_bound(t, land, budgets, PHI) for t in range(1, min(10 * tau, 100) + 1)]
        wanted = 1 + int(np.argmin(plain))
        fitting = [
            t
            for t in range(1, wanted + 1)
            if all(spent[m] + budgets["sj".index(m)].fixed + t * step[m] <= total[m] for m in "sj")
        ]
        limited += len(fitting) < wanted
        assert rounds["next_local_steps"][k] == max(fitting, default=0)
        if fitting:
            assert rounds["control_bound"][k] == pytest.approx(plain[len(fitting) - 1], rel=1e-9)
    assert 0 < limited < num_rounds


def test_computing_is_paid_for_every_step_and_the_gradient_that_measures(whole: Path) -> None:
    rounds, devices = table(whole), RunFolder(whole).table("devices.csv")
    simulation = build_simulation(adaptive())
    fleet = simulation.federation.world.fleet
    assert fleet is not None
    per_step = fleet.cycles_per_sample * simulation.train.num_samples  # 10 samples are counted of each
    shape = len(rounds["round"]), -1
    done = (devices["compute_time_s"] * devices["cpu_frequency_hz"]).reshape(shape)
    computed = np.isfinite(devices["gradient_norm_0"]).reshape(shape)
    expected = (rounds["num_local_steps"][:, None] + 1) * per_step * computed
    np.testing.assert_allclose(done, expected, rtol=1e-9)
    assert "gradient_norm_1" not in devices


def test_the_plan_expects_what_the_account_then_says(whole: Path) -> None:
    """Everything arrives, and only computing and uploads cost: the plan's objective is the account's."""
    rounds = table(whole)
    paid = rounds["energy_j"] + rounds["delay_s"]  # both weights are 1
    np.testing.assert_allclose(rounds["objective"], rounds["contribution"] - paid, rtol=1e-9)


def test_the_last_round_is_evaluated_though_no_round_says_so_beforehand(whole: Path, tmp_path: Path) -> None:
    found = table(run_experiment(adaptive(evaluation={"every": 1000}), tmp_path / "run").path)
    assert np.isnan(found["heldout_loss"][1:-1]).all()
    assert found["heldout_loss"][-1] == table(whole)["heldout_loss"][-1]


def test_a_budget_is_overspent_by_no_more_than_the_last_round_surprises(whole: Path) -> None:
    rounds, devices = table(whole), RunFolder(whole).table("devices.csv")
    compute_s = devices["compute_time_s"].reshape(len(rounds["round"]), -1).max(axis=1)
    tau = rounds["num_local_steps"]
    for total, paid, spent, computing in (
        (TOTAL_J, rounds["energy_j"], rounds["cumulative_energy_j"], rounds["compute_energy_j"]),
        (TOTAL_S, rounds["delay_s"], rounds["cumulative_delay_s"], compute_s),
    ):
        step = computing / (tau + 1)
        foreseen = (paid - tau * step)[:-1] + tau[1:] * step[:-1]
        assert (spent[:-1] + foreseen <= total * (1 + 1e-12)).all()
        assert spent[-1] <= total + max(paid[-1] - foreseen[-1], 0.0) + 1e-9


def test_where_all_rounds_cost_the_same_no_budget_is_overspent(tmp_path: Path) -> None:
    steady = {
        **CELL,
        "channel": {"kind": "uniform", "low": 0.5, "high": 0.5},
        "interference": {"kind": "none"},
    }
    for seed, energy_j in enumerate((20.0, 33.0, 51.0)):
        found = run_experiment(
            adaptive(cell=steady, seed=seed, stop={"energy_j": energy_j}), tmp_path / f"{seed}"
        )
        spent_j = table(found.path)["cumulative_energy_j"]
        assert len(spent_j) > 1
        assert spent_j[-1] <= energy_j
        rounds = table(found.path)
        # one more of the cheapest round would not have fitted
        step_j = rounds["compute_energy_j"][-1] / (rounds["num_local_steps"][-1] + 1)
        cheapest_j = rounds["energy_j"][-1] - (rounds["num_local_steps"][-1] - 1) * step_j
        assert spent_j[-1] + cheapest_j > energy_j


@pytest.mark.parametrize("after", [1, 2, 4])
@pytest.mark.parametrize("how", [StopAfter, AskToStopAfter])
def test_a_run_resumes_to_the_same_bits(whole: Path, tmp_path: Path, after: int, how: Any) -> None:
    with suppress(KeyboardInterrupt):
        run_experiment(adaptive(), tmp_path / "cut", observers=[how(after)])
    assert len(table(tmp_path / "cut")["round"]) == after
    assert results(resume_run(tmp_path / "cut").path) == results(whole)


def test_a_run_that_has_ended_stays_as_it_is(whole: Path, tmp_path: Path) -> None:
    done = run_experiment(adaptive(), tmp_path / "done")
    again = resume_run(done.path)
    assert again.stopped == done.stopped
    assert results(done.path) == results(whole)


def test_other_workers_and_checkpoints_leave_the_same_bits(whole: Path, tmp_path: Path) -> None:
    execution = {"workers": 1, "checkpoint_every": 3}
    found = results(run_experiment(adaptive(execution=execution), tmp_path / "one").path)
    expected = results(whole)
    for name in ("rounds.csv", "devices.csv", "model"):
        assert found[name] == expected[name]


def test_minibatches_and_a_meta_gradient_and_eight_bits_choose_too(tmp_path: Path) -> None:
    cell = {**CELL, "method": "optimal", "bits_per_parameter": 8}
    free = {"num_selected": "auto", "similarity_penalty": 0.0, "variance_penalty": 0.0}
    changes = {"cell": cell, "selection": free, "stop": {"time_s": 60.0}}
    settings = {"rule": "plain", "query_batch_size": 3, "local_steps": "adaptive", "meta_lr": META_LR}
    cut = adaptive(**changes, algorithm=settings)
    expected = run_experiment(cut, tmp_path / "whole")
    rounds = table(expected.path)
    assert (rounds["smoothness"] > 0).all()
    with suppress(KeyboardInterrupt):
        run_experiment(cut, tmp_path / "cut", observers=[StopAfter(1)])
    assert results(resume_run(tmp_path / "cut").path) == results(expected.path)


class OneAfterTheOther:
    """A choice of one's own: 1, 2, 3, ... local steps, and no more than ``most`` of them."""

    def __init__(self, most: int = 3) -> None:
        self.most = most

    def initial_state(self) -> PlannerState:
        return {"num_local_steps": np.array([1])}

    def after(self, heard: StepsHeard, state: PlannerState) -> PlannerState:
        del state
        following = heard.num_local_steps + 1
        return {"num_local_steps": np.array([following if following <= self.most else 0])}


def test_a_choice_of_ones_own_needs_no_cell_and_may_end_the_run(tmp_path: Path) -> None:
    own = {"kind": f"{__name__}:OneAfterTheOther", "most": 4}
    settings = experiment(algorithm={"local_steps": own}, num_rounds=9)
    found = run_experiment(settings, tmp_path / "run")
    rounds = table(found.path)
    assert rounds["num_local_steps"].tolist() == [1, 2, 3, 4]
    assert rounds["next_local_steps"].tolist() == [2, 3, 4, 0]
    assert np.isnan(rounds["smoothness"]).all()
    assert resume_run(found.path).stopped == found.stopped
    assert len(table(found.path)["round"]) == 4


def test_without_a_budget_or_a_cell_it_is_refused(tmp_path: Path) -> None:
    why = "adaptive local steps need a budget, got none. Set stop.time_s or stop.energy_j, over a cell."
    for settings in (adaptive(stop=None), experiment(algorithm={"local_steps": "adaptive"})):
        with pytest.raises(ConfigError) as caught:
            run_experiment(settings, tmp_path / "run")
        assert str(caught.value) == why
        assert not (tmp_path / "run").exists()


def test_estimated_penalties_follow_the_steps_and_resume_to_the_same_bits(tmp_path: Path) -> None:
    own = {"local_steps": {"kind": f"{__name__}:OneAfterTheOther", "most": 4}}
    rule = {"kind": "estimated", "every": 1, "smoothing": 0.5, "num_devices": 4, "num_iterations": 2}
    settings = experiment(algorithm=own, selection={"penalties": rule}, num_rounds=9)
    whole = run_experiment(settings, tmp_path / "whole")
    rounds = table(whole.path)
    assert rounds["num_local_steps"].tolist() == [1, 2, 3, 4]
    assert len(set(rounds["similarity_penalty"].tolist())) == 4
    with suppress(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(2)])
    assert results(resume_run(tmp_path / "cut").path) == results(whole.path)


def test_such_a_run_leaves_no_trace_of_equal_rounds(whole: Path) -> None:
    with pytest.raises(RunError, match="chose its local steps round by round") as caught:
        trace_of_run(whole)
    assert str(caught.value).endswith("Give a run with algorithm.num_local_steps alone.")
