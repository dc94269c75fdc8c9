"""The skeletons of docs/extending.md run, and each does what its page says: checked by hand."""

from __future__ import annotations

import importlib
import re
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor

from fedwave import load_experiment, testing
from fedwave.allocation import allocate, violations
from fedwave.devices.chunked_devices import ChunkedDevices
from fedwave.experiments.build import build_simulation
from fedwave.learning import Batch, Metric, Model, build_model
from fedwave.runs.folder import RunFolder
from fedwave.selection import Candidates, History
from fedwave.server import problem_of_cell
from fedwave.simulation.state import State
from fedwave.wireless.settings.load import load_cell
from tools.docs.pages import read

# The parts that a newcomer must find, and the dict or slot that takes each.
PARTS = {
    "selection policy": "POLICIES",
    "allocation method": "METHODS",
    "stateful planner": "PLANNERS",
    "channel": "CHANNELS",
    "local rule": "LOCAL_RULES",
    "server step": "SERVER_STEPS",
    "task: loss and metric": "TASKS",
    "model": "MODELS",
    "dataset": "DATASETS",
    "partition": "PARTITIONS",
    "executor": "Simulation.executor",
    "result column": "ROUND_COLUMNS",
    "observer": "run_experiment",
}


def test_the_page_lists_every_kind_of_part():
    rows = re.findall(r"^\| \[([^\]]+)\]\(#[^)]+\) \| (.*) \|$", read("extending.md"), re.MULTILINE)
    assert {name for name, _ in rows} == set(PARTS)
    for name, row in rows:
        assert PARTS[name] in row


def test_the_skeletons_run_and_do_what_they_say(run_page, tmp_path, capsys):
    names = run_page("extending.md")
    printed = capsys.readouterr().out
    check_policy()
    check_method()
    check_planner()
    check_channel(names)
    check_rule()
    check_server_step()
    check_task()
    check_model(build_model("my_model:tanh_net", (1, 4, 4), 3, width=5))
    check_partition()
    check_executor(names)
    check_column(RunFolder(tmp_path / "runs" / "median"))
    stopped = re.search(r"55% are reached after (\d+) rounds", printed)
    assert stopped
    assert len(RunFolder(tmp_path / "runs" / "enough").table()["round"]) == int(stopped[1]) < 50


def test_the_page_on_testing_runs_and_names_every_check(run_page):
    run_page("testing-parts.md")
    rows = re.findall(r"^\| (`check_.*?) \|", read("testing-parts.md"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"check_\w+", row)}
    assert named == {name for name in testing.__all__ if name.startswith("check_")}


def page_file(module: str) -> Any:
    """Return a file of the page as a module."""
    return importlib.import_module(module)


def check_policy() -> None:
    policy = page_file("my_policies").FairContribution(num_selected=2, price=10.0)
    history = History.empty(4)
    candidates = Candidates(
        device_index=np.array([1, 4, 6, 9]),
        num_samples=np.array([5, 5, 5, 5]),
        history=History(
            times_selected=np.array([2, 0, 1, 0]),  # worth 30 - 20, 5, 17 - 10, -1
            last_selected=history.last_selected,
            last_contribution=history.last_contribution,
            last_loss=history.last_loss,
        ),
        contribution=np.array([30.0, 5.0, 17.0, -1.0]),
    )
    rng = np.random.default_rng(0)
    assert_array_equal(policy.ask(candidates, rng=rng), [1, 4, 6, 9])
    assert_array_equal(policy.select(candidates, rng=rng), [1, 6])
    free = page_file("my_policies").FairContribution(num_selected=2, price=0.0)
    assert_array_equal(free.select(candidates, rng=rng), [1, 6])
    dear = page_file("my_policies").FairContribution(num_selected=2, price=100.0)
    assert_array_equal(dear.select(candidates, rng=rng), [4, 9])


def check_method() -> None:
    """No constraint is broken, nothing is better than the optimum, and power is the share asked for."""
    assert page_file("my_methods").loud.serves_given_devices
    for seed in range(10):
        cell = load_cell("paper", num_devices=8, seed=seed, overrides={"num_blocks": 3})
        worth = np.random.default_rng(seed).uniform(-1, 10, 8)
        problem = problem_of_cell(cell, worth)
        found = allocate(problem, "my_methods:loud", selected=[1, 4, 6], share=0.25)
        assert not violations(problem, found)
        assert found.objective <= allocate(problem).objective + 1e-9
        assert_array_equal(found.selected, [1, 4, 6])
        assert_allclose(found.transmit_power_w[[1, 4, 6]], 0.25 * problem.max_power_w[[1, 4, 6]])


def check_planner() -> None:
    settings = ["algorithm.planner=my_planner:BatteryPlanner"]
    simulation = build_simulation(load_experiment("digits/ural", settings))
    planner, state = simulation.federation.planner, simulation.initial_state()
    with closing(simulation.open_devices()) as devices:
        reports = devices.report(0, state.parameters, np.arange(30), max_models=30)
        channel = simulation.federation.world.channel(0)
        full = planner.plan(0, np.arange(30), reports, channel, state.planner)
        # One of those that upload has half of what that will cost it: it is left out, and nobody else.
        who, needs_j = full.selected[0], full.account.energy_j
        left_j = np.where(np.arange(30) == who, 0.5 * needs_j, 5.0)
        poor = planner.plan(0, np.arange(30), reports, channel, {**state.planner, "battery_j": left_j})
        assert_array_equal(poor.selected, full.selected[1:])
        state, record = simulation.run_round(state, devices)
    assert_allclose(
        needs_j, record.device_columns["compute_energy_j"] + record.device_columns["upload_energy_j"]
    )
    phases = ("downlink", "compute", "report", "upload", "idle")
    spent_j = sum(record.device_columns[f"{phase}_energy_j"] for phase in phases)
    assert_allclose(state.planner["battery_j"], np.minimum(5.0 - spent_j + 1.0, 5.0), rtol=1e-12)
    # A checkpoint carries it without knowing of it.
    again = State.from_tensors(state.next_round, state.to_tensors())
    assert_array_equal(again.planner["battery_j"], state.planner["battery_j"])
    empty = {**state.planner, "battery_j": np.where(np.arange(30) == 7, -0.1, 1.0)}
    assert_array_equal(planner.ask(1, empty), np.delete(np.arange(30), 7))


def check_channel(names: dict[str, Any]) -> None:
    cell = names["cell"]
    assert type(cell.channel).__name__ == "OnOffChannel"
    gains = np.array([cell.draw(k).channel_gain for k in range(200)])
    assert set(np.unique(gains)) == {0.1, 1.0}
    assert np.mean(gains == 1.0) == pytest.approx(0.5, abs=0.04)  # 2400 tosses: 4 standard errors
    assert_array_equal(cell.draw(3).channel_gain, gains[3])


def check_rule() -> None:
    """On f = |x|^2 / 2 with alpha = 0.5 the meta-gradient is x / 4; a step is at most beta long."""

    def loss(parameters: dict[str, Tensor], batch: Batch) -> Tensor:
        del batch
        return 0.5 * parameters["x"].square().sum(1)

    rule = page_file("my_rule").ClippedMetaDescent(inner_lr=0.5, meta_lr=0.1)
    start = torch.tensor([[8.0, 0.0], [0.0, 2.0]])  # meta-gradients (2, 0) and (0, 0.5)
    step = rule.step(loss, {"x": start}, None, None, start={"x": start})  # type: ignore[arg-type]
    torch.testing.assert_close(step.parameters["x"], torch.tensor([[7.9, 0.0], [0.0, 1.95]]))
    torch.testing.assert_close(step.gradient_norm, torch.tensor([2.0, 0.5]))
    torch.testing.assert_close(step.loss, torch.tensor([8.0, 0.5]))  # after adaptation: |x / 2|^2 / 2


def check_server_step() -> None:
    """Two steps of Adam by hand: the mean change is 0.2, then -0.4."""
    adam = page_file("my_step").ServerAdam(server_lr=0.1, beta_1=0.5, beta_2=0.75, adaptivity=1.0)
    theta = {"x": torch.tensor([1.0])}
    state = adam.initial_state(theta)
    theta, state = adam.step(
        theta, iter([{"x": torch.tensor([1.1])}, {"x": torch.tensor([1.3])}]), None, state
    )
    first, second = 0.5 * 0.2, 0.25 * 0.2**2
    after = 1.0 + 0.1 * first / (second**0.5 + 1.0)
    assert float(theta["x"]) == pytest.approx(after, rel=1e-6)
    theta, _ = adam.step(theta, iter([{"x": theta["x"] - 0.4}]), None, state)
    first, second = 0.5 * first + 0.5 * -0.4, 0.75 * second + 0.25 * 0.4**2
    assert float(theta["x"]) == pytest.approx(after + 0.1 * first / (second**0.5 + 1.0), rel=1e-6)


def check_task() -> None:
    task = page_file("my_task").HuberRegression()
    batch = Batch(
        inputs=torch.zeros(1, 3, 1),
        targets=torch.tensor([[[0.0], [0.0], [0.0]]]),
        weights=torch.tensor([[0.5, 0.5, 0.0]]),  # the last is padding
    )
    outputs = torch.tensor([[[0.5], [-3.0], [100.0]]])
    # 0.5^2 / 2 = 0.125 inside, 3 - 0.5 = 2.5 beyond 1
    torch.testing.assert_close(task.loss(outputs, batch), torch.tensor([0.5 * 0.125 + 0.5 * 2.5]))
    torch.testing.assert_close(task.scores(outputs, batch), torch.tensor([[0.5, 3.0, 100.0]]))
    assert task.metric == Metric("mean_absolute_error", higher_is_better=False, is_share=False)


def check_model(model: Model) -> None:
    """Stacked outputs are those of the plain module, device by device, and a state dict comes back."""
    own = [model.initial_parameters(np.random.default_rng(seed)) for seed in (0, 1)]
    stacked = {name: torch.stack([one[name] for one in own]) for name in own[0]}
    inputs = torch.randn(2, 6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    outputs = model.outputs(stacked, inputs)
    for device in (0, 1):
        module = model.to_module(own[device])
        torch.testing.assert_close(outputs[device], module(inputs[device]))
        torch.testing.assert_close(dict(module.state_dict()), model.to_state_dict(own[device]))
        torch.testing.assert_close(model.from_state_dict(model.to_state_dict(own[device])), own[device])
    assert page_file("my_model").tanh_net((1, 2, 2), 3).width == 16


def check_partition() -> None:
    counts = page_file("my_partition").one_class_counts(
        np.full(10, 100), 20, rng=np.random.default_rng(0), samples_per_device=6
    )
    assert counts.shape == (20, 10)
    assert_array_equal(np.sort(counts, axis=1)[:, :-1], 0)
    assert_array_equal(counts.max(axis=1), 6)


def check_executor(names: dict[str, Any]) -> None:
    """The executor reports, uploads and evaluates what the threads do."""
    simulation, serial = names["simulation"], names["serial"].open_devices()
    threads = simulation.open_devices()
    assert isinstance(threads, ChunkedDevices)
    parameters = simulation.initial_state().parameters
    some = np.array([2, 3, 11, 29])
    try:
        expected = threads.report(4, parameters, some, max_models=4)
        got = serial.report(4, parameters, some, max_models=4)
        assert_array_equal(got.device_index, some)
        for name in ("contribution", "loss", "num_samples", "gradient_norms"):
            assert_allclose(getattr(got, name), getattr(expected, name), rtol=1e-4)
        wanted = np.array([29, 3])
        for ours, theirs in zip(serial.collect(wanted), threads.collect(wanted), strict=True):
            torch.testing.assert_close(ours, theirs)
        assert_allclose(serial.evaluate(parameters).loss, threads.evaluate(parameters).loss, rtol=1e-4)
        assert_allclose(serial.evaluate(parameters).metric, threads.evaluate(parameters).metric)
    finally:
        threads.close()


def check_column(folder: RunFolder) -> None:
    rounds, devices = folder.table(), folder.table("devices.csv")
    for k in (0, 1):
        expected = np.median(devices["contribution"][devices["round"] == k])
        assert rounds["contribution_median"][k] == expected
