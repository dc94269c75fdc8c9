"""Runs that end early: by an observer's wish or by a kill, with a server and a planner that remember."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from fedwave.experiments import Experiment
from fedwave.runs.compare import read_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import StopRun, resume_run, run_experiment
from tests.runs.small_runs import AskToStopAfter, StopAfter, Watcher, contents, experiment, results

# The server carries a velocity, the planner who has waited longest, the ledger joules: all must be saved.
STATEFUL: dict[str, Any] = {
    "data": {"dataset": {"shape": [6]}},
    "model": {"kind": "softmax"},
    "algorithm": {"server_step": {"kind": "momentum", "momentum": 0.7, "server_lr": 0.5}},
    "selection": {"policy": "round-robin", "num_selected": 2},
    "cell": {"preset": "paper", "num_blocks": 2, "method": "greedy"},
}


def stateful(checkpoint_every: int = 1) -> Experiment:
    return experiment(**STATEFUL, execution={"checkpoint_every": checkpoint_every})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody stopped."""
    return run_experiment(stateful(), tmp_path_factory.mktemp("run") / "whole").path


def test_the_run_has_the_states_that_this_file_is_about(whole: Path) -> None:
    saved = load_file(whole / "checkpoint.safetensors")
    assert float(saved["server_step.linear1.weight"].abs().max()) > 0
    assert saved["planner.history.times_selected"].tolist() == [2] * 6  # six rounds of two, six devices
    assert saved["planner.history.last_selected"].tolist() == [3, 3, 4, 4, 5, 5]
    assert float(saved["ledger.elapsed_s"][0]) > 0


@pytest.mark.parametrize(("rounds", "checkpoint_every"), [(1, 1), (4, 1), (2, 3), (4, 3)])
@pytest.mark.parametrize("stopper", [StopAfter, AskToStopAfter])
def test_a_server_and_a_planner_that_remember_resume_to_the_same_bits(
    whole: Path, tmp_path: Path, stopper: type[StopAfter], rounds: int, checkpoint_every: int
) -> None:
    settings = stateful(checkpoint_every)
    try:
        run_experiment(settings, tmp_path / "cut", observers=[stopper(rounds)])
    except KeyboardInterrupt:
        assert stopper is StopAfter
    watcher = Watcher()
    result = resume_run(tmp_path / "cut", observers=[watcher])
    is_kept = stopper is AskToStopAfter or rounds % checkpoint_every == 0
    first = rounds if is_kept else rounds - rounds % checkpoint_every
    assert (watcher.started_at, watcher.seen) == ([first], list(range(first, 6)))
    assert result.stopped is None
    assert results(result.path) == results(whole)


@pytest.mark.parametrize("method", ["optimal", "greedy"])
@pytest.mark.parametrize("policy", ["top-contribution", "power-of-choice"])
def test_a_policy_that_remembers_reports_resumes_to_the_same_bits(
    tmp_path: Path, policy: str, method: str
) -> None:
    few = {"kind": policy, "num_candidates": 3, "remembers": True, "exploration": 0.3}
    settings = experiment(
        **{**STATEFUL, "selection": {"policy": few}, "cell": {**STATEFUL["cell"], "method": method}}
    )
    whole = run_experiment(settings, tmp_path / "whole").path
    last = load_file(whole / "checkpoint.safetensors")["planner.policy.last_reported"].tolist()
    assert last.count(5) == 3  # of six devices
    assert min(last) >= 0  # one of the three asked is always who waited longest
    for rounds in (1, 4):
        with pytest.raises(KeyboardInterrupt):
            run_experiment(settings, tmp_path / f"cut{rounds}", observers=[StopAfter(rounds)])
        assert results(resume_run(tmp_path / f"cut{rounds}").path) == results(whole)


def test_a_run_killed_with_sigkill_at_odd_moments_resumes_to_the_same_bits(tmp_path: Path) -> None:
    settings = experiment(**STATEFUL, num_rounds=60, evaluation={"every": 20})
    whole, out = run_experiment(settings, tmp_path / "whole").path, tmp_path / "killed"
    begin = "from fedwave import load_experiment, resume_run, run_experiment; import sys\n"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    table = out / "rounds.csv"
    for start, wanted_rows, extra in (
        ("run_experiment(load_experiment(sys.argv[1] + '/config.toml'), sys.argv[2])", 1, 0.0),
        ("resume_run(sys.argv[2])", 20, 0.004),
    ):
        command = [sys.executable, "-c", begin + start, str(whole), str(out)]
        process = subprocess.Popen(command, env=environment)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if table.exists() and table.read_text().count("\n") > wanted_rows:
                break
            time.sleep(0.001)
        time.sleep(extra)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL  # it had not come to its end
    assert contents(resume_run(out).path) == contents(whole)


@pytest.mark.parametrize("checkpoint_every", [1, 3])
def test_a_run_that_an_observer_ends_is_whole_so_far(
    whole: Path, tmp_path: Path, checkpoint_every: int
) -> None:
    other = Watcher()
    observers = [AskToStopAfter(4), other]
    result = run_experiment(stateful(checkpoint_every), tmp_path / "cut", observers=observers)
    assert result.stopped == "good enough"
    assert other.seen == [0, 1, 2, 3]  # observers after the one that asked see the round too
    assert result.summary["num_rounds"] == 4
    assert RunFolder(result.path).read_json("summary.json") == result.summary
    saved = RunFolder(result.path).load_checkpoint()
    assert saved is not None
    assert saved.next_round == 4
    model = load_file(result.path / "model.safetensors")
    assert model["linear1.weight"].T.tolist() == saved.parameters["linear1.weight"].tolist()
    cut, full = read_run(result.path), read_run(whole)
    assert cut.num_rounds == 4
    assert cut.curve("heldout_loss").tolist() == full.curve("heldout_loss")[:4].tolist()
    assert result.summary["cell"]["energy_j"] == full.curve("cumulative_energy_j")[3]


def test_a_run_may_be_ended_again_and_again(whole: Path, tmp_path: Path) -> None:
    result = run_experiment(stateful(), tmp_path / "cut", observers=[AskToStopAfter(1)])
    while result.stopped:
        result = resume_run(result.path, observers=[AskToStopAfter(2)])
    assert results(result.path) == results(whole)


def test_a_wish_to_stop_after_the_last_round_leaves_a_finished_run(whole: Path, tmp_path: Path) -> None:
    result = run_experiment(stateful(), tmp_path / "run", observers=[AskToStopAfter(6)])
    assert result.stopped is None
    assert results(result.path) == results(whole)


def test_a_wish_without_a_reason_is_called_one(tmp_path: Path) -> None:
    class Stop(Watcher):
        def round_done(self, record: object) -> None:
            raise StopRun

    result = run_experiment(stateful(), tmp_path / "run", observers=[Stop()])
    assert result.stopped == "an observer stopped it"
    assert result.summary["num_rounds"] == 1


def test_a_run_ended_before_its_first_evaluation_has_a_summary_without_one(tmp_path: Path) -> None:
    settings = experiment(**STATEFUL, evaluation={"every": 5})
    result = run_experiment(settings, tmp_path / "run", observers=[AskToStopAfter(2)])
    assert set(result.summary["final"]) == {"train_loss"}
    assert result.summary["best_heldout_accuracy"] is None


@pytest.mark.parametrize(
    "changes",
    [
        {"access": "tdma"},
        {"access": "shared-band", "max_uploads": 4},
        {"access": "blocks", "work_conserving": True},
        {"access": "shared-band", "method": "proportional-fair"},  # which remembers rates
    ],
)
def test_every_access_resumes_to_the_same_bits(tmp_path: Path, changes: dict[str, Any]) -> None:
    weights = {"contribution_scale": "constant", "contribution_constant": 100.0}  # all are worth uploading
    cell = {"preset": "umi-3.5ghz", "num_blocks": 3, "method": "optimal", **weights, **changes}
    settings = experiment(**{**STATEFUL, "cell": cell, "selection": {"policy": "top-contribution"}})
    whole = run_experiment(settings, tmp_path / "whole").path
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(2)])
    assert results(resume_run(tmp_path / "cut").path) == results(whole)
    assert read_run(whole).devices["bandwidth_hz"].max() > 0.0
