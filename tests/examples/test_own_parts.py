"""The parts in examples/own_parts, as a new user tries them: a file, settings that name it, and a command."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from fedwave import load_experiment, read_run, run_experiment, testing
from fedwave.errors import ConfigError
from fedwave.selection import Candidates, History, RoundResult
from tests.cli.in_process import Command
from tests.runs.small_runs import StopAfter, contents

SOURCE = Path(__file__).parents[2] / "examples" / "own_parts"
SETTINGS = sorted(path.stem for path in SOURCE.glob("*.toml"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files, in which we are."""
    for path in (*SOURCE.glob("*.py"), *SOURCE.glob("*.toml")):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    for name in SETTINGS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.fixture
def fedwave(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys, folder)


def test_every_file_has_settings_that_name_it() -> None:
    assert {path.stem for path in SOURCE.glob("*.py")} == set(SETTINGS)
    for name in SETTINGS:
        assert f'kind = "{name}:' in (SOURCE / f"{name}.toml").read_text()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_part_of_ones_own_runs_and_resumes_to_the_same_bits(
    name: str, fedwave: Command, folder: Path
) -> None:
    changes = ["num_rounds=3"] if name == "texts" else ["num_rounds=3", "model=softmax"]  # quicker
    words = [word for change in changes for word in ("-s", change)]
    done = fedwave("run", f"{name}.toml", "--quiet", "--out", "whole", *words)
    assert done.code == 0, done.stderr
    with pytest.raises(KeyboardInterrupt):
        run_experiment(load_experiment(f"{name}.toml", changes), "cut", observers=[StopAfter(1)])
    assert fedwave("resume", "cut", "--quiet").code == 0
    assert contents(folder / "cut") == contents(folder / "whole")


def test_a_run_on_batteries_that_is_killed_goes_on_from_what_is_left(fedwave: Command, folder: Path) -> None:
    settings = ["battery.toml", "--quiet", "-s", "num_rounds=6", "-s", "model=softmax"]
    command = [sys.executable, "-m", "fedwave", "run", *settings, "--out", "killed"]
    process = subprocess.Popen(command, cwd=folder)
    rows = folder / "killed" / "rounds.csv"
    while process.poll() is None and not (rows.exists() and rows.read_text().count("\n") > 2):
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert fedwave("resume", "killed", "--quiet").code == 0
    assert fedwave("run", *settings, "--out", "whole").code == 0
    assert contents(folder / "killed") == contents(folder / "whole")
    computed = read_run(folder / "whole").curve("num_computed")
    assert computed[0] == 30 > computed.min() > 0  # some rest


def test_fedprox_with_its_mu_needs_no_file(fedwave: Command, folder: Path) -> None:
    steps = ["algorithm.rule=fedprox", "algorithm.num_local_steps=2", "model=softmax", "num_rounds=1"]
    losses = []
    for mu in ("1.0", "0.0"):
        words = [word for change in (*steps, f"algorithm.rule.mu={mu}") for word in ("-s", change)]
        assert fedwave("run", "digits/nufm", "--quiet", *words, "--out", mu).code == 0
        losses.append(read_run(folder / mu).curve("heldout_loss")[-1])
    assert losses[0] != losses[1]


def test_they_keep_the_contracts_of_their_kinds(folder: Path) -> None:
    testing.check_planner("battery:BatteryPlanner", capacity_j=2.0, harvest_j=0.1)
    testing.check_planner("battery:BatteryPlanner", capacity_j=0.5)  # nobody ever computes
    testing.check_policy("oort:Oort", preferred_duration_s=0.5)
    testing.check_rule("clipped:ClippedProx", mu=0.5, max_norm=0.3)
    testing.check_model("texts:TextNet", input_shape=(8,), num_tokens=22, width=3)
    testing.check_dataset("texts:load_texts", num_texts=50)
    testing.check_channel("walking:WalkingChannel", speed_m=5.0)
    testing.check_dataset("moons:two_moons", noise=0.3)


# And what they compute, by hand ----------------------------------------------------------------------------


def test_the_text_classifier_learns(folder: Path) -> None:
    result = run_experiment(load_experiment("texts.toml"), "texts")
    assert result.summary["final"]["heldout_accuracy"] > 0.95


def test_no_upload_takes_more_than_its_battery_has(folder: Path) -> None:
    scarce = load_experiment(
        "battery.toml",
        ["num_rounds=3", "algorithm.planner.capacity_j=1.0", "algorithm.planner.reserve_j=0.1"],
    )
    plenty = load_experiment("battery.toml", ["num_rounds=3", "algorithm.planner.capacity_j=1000.0"])
    spent_j = [
        np.nanmax(run_experiment(one, out).devices["upload_energy_j"])
        for one, out in ((scarce, "scarce"), (plenty, "plenty"))
    ]
    assert spent_j[0] <= 1.0 + 1e-6 < spent_j[1]
    with pytest.raises(ConfigError, match="a battery is drained over a radio cell, got none"):
        run_experiment(load_experiment("digits/nufm", ["algorithm.planner=battery:BatteryPlanner"]), "none")


def candidates(policy: Any, num_devices: int, **changes: Any) -> Candidates:
    return Candidates(
        device_index=np.arange(num_devices),
        num_samples=np.full(num_devices, 10),
        history=History.empty(num_devices),
        **{"state": policy.initial_state(num_devices), **changes},
    )


def test_oort_remembers_losses_and_durations_of_what_arrives(folder: Path) -> None:
    policy = importlib.import_module("oort").Oort(num_selected=2)
    reported = candidates(policy, 4, loss=np.array([1.0, 2.0, 3.0, 4.0]))
    result = RoundResult(
        round_index=3,
        reported=reported,
        selected=np.array([1, 2]),
        received=np.array([2]),
        busy_time_s=np.array([9.0, 9.0, 0.5, 9.0]),
    )
    after = policy.after(result)
    assert_array_equal(after["utility"], [0.0, 0.0, 30.0, 0.0])  # 10 samples times a loss of 3
    assert_array_equal(after["duration_s"], [0.0, 0.0, 0.5, 0.0])
    assert_array_equal(after["last_round"], [-1, -1, 3, -1])
    assert_array_equal(reported.state["last_round"], [-1, -1, -1, -1])


def test_oort_explores_first_and_exploits_later(folder: Path) -> None:
    oort = importlib.import_module("oort").Oort
    policy = oort(num_selected=4, exploration=0.5, exploration_decay=0.5, min_exploration=0.25)
    known = np.arange(20) < 10
    state = {
        "utility": np.where(np.arange(20) < 4, 100.0, 1.0) * known,
        "duration_s": np.zeros(20),
        "last_round": np.where(known, 0, -1),
    }
    for round_index, num_new in ((0, 2), (1, 1), (9, 1)):
        for seed in range(5):
            asked = policy.ask(
                candidates(policy, 20, state=state, round_index=round_index), rng=np.random.default_rng(seed)
            )
            assert np.sum(asked >= 10) == num_new
            assert np.sum(asked < 4) == 4 - num_new  # the others are below the cut-off


def test_oort_counts_staleness_for_and_slowness_against_a_device(folder: Path) -> None:
    policy = importlib.import_module("oort").Oort(num_selected=1, preferred_duration_s=2.0)
    state = {
        "utility": np.array([1.0, 1.0, 1.0]),
        "duration_s": np.array([1.0, 4.0, 2.0]),  # the second takes twice too long
        "last_round": np.array([9, 9, 1]),  # the third was not heard for long
    }
    utility = policy._utility(candidates(policy, 3, state=state, round_index=9), np.arange(3))
    bonus = np.sqrt(0.1 * np.log(10) / np.array([10, 10, 2]))
    assert_allclose(utility, (1.0 + bonus) * [1.0, 0.25, 1.0], rtol=1e-12)


def test_a_clipped_step_is_no_longer_than_its_norm(folder: Path) -> None:
    """f = 0, so that only the pull mu (x - start) is left: 5 and 0.5 long, with mu = 0.5."""
    rule = importlib.import_module("clipped").ClippedProx(meta_lr=0.1, mu=0.5, max_norm=1.0)
    own, start = torch.tensor([[6.0, 8.0], [1.0, 0.0]]), torch.zeros(2, 2)

    def loss(parameters: Any, batch: Any) -> Any:
        return 0.0 * parameters["x"].sum(1)

    done = rule.step(loss, {"x": own}, None, None, start={"x": start})
    torch.testing.assert_close(done.gradient_norm, torch.tensor([5.0, 0.5]))
    torch.testing.assert_close(done.parameters["x"], torch.tensor([[5.94, 7.92], [0.95, 0.0]]))


def test_walking_devices_come_near_and_go_away(folder: Path) -> None:
    channel = importlib.import_module("walking").WalkingChannel(
        num_devices=50, num_blocks=2, seed=0, speed_m=10.0
    )
    distance_m = np.array([channel.distance_m(k) for k in range(40)])
    assert distance_m.min() >= 20.0
    assert distance_m.max() <= np.hypot(200.0, 20.0)
    assert (np.abs(np.diff(distance_m, axis=0)) <= 10.0).mean() > 0.95  # but at the end of the street
    assert_allclose(channel.distance_m(40), distance_m[0])  # 40 rounds are once along the street
    mean = np.mean([channel.gain(0, rng=np.random.default_rng(k)) for k in range(4000)], axis=0)
    assert_allclose(mean[:, 0], 1e-4 * distance_m[0] ** -3.5, rtol=0.08)  # 5 standard errors
