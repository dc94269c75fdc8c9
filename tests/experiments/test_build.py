"""From settings to a simulation: what is chosen where nothing is said, and what is refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from fedwave.data import dataset_from_arrays
from fedwave.errors import ConfigError, FedwaveError, MissingExtraError
from fedwave.experiments import experiment_from
from fedwave.experiments.build import build_executor, build_simulation, choose_device
from fedwave.experiments.schema import ExecutionSection
from fedwave.server import PolicyPlanner
from tests.experiments.built import Built
from tests.experiments.cell_tables import PAPER_CELL, SMALL, experiment, planner_of

IID = {"partition": {"kind": "iid", "num_devices": 60}}


def num_selected(**changes: Any) -> int:
    planner = build_simulation(experiment(**changes)).federation.planner
    assert type(planner) is PolicyPlanner
    return planner.runner.policy.num_selected


def test_without_a_cell_twenty_devices_upload_or_all_where_there_are_fewer() -> None:
    assert num_selected(**IID) == 20  # n_k of the paper, out of 30
    assert num_selected() == 8
    assert num_selected(selection={"num_selected": 8}) == 8
    with pytest.raises(ConfigError, match=r"number of training devices \(8\), got 9"):
        num_selected(selection={"num_selected": 9})


@pytest.mark.parametrize(
    ("method", "policy", "wanted", "expected"),
    [
        ("optimal", "top-contribution", "auto", 8),  # problem (P) decides among all
        ("ives", "top-contribution", "auto", 8),
        ("optimal", "uniform", "auto", 3),  # as many as blocks
        ("greedy", "top-contribution", "auto", 3),
        ("fedl-power", "uniform", "auto", 3),
        ("optimal", "top-contribution", 5, 5),  # the method chooses among five
        ("greedy", "top-contribution", 2, 2),
        ("greedy", "top-contribution", 3, 3),
        ("random", "uniform", 5, 3),  # with a warning
    ],
)
def test_over_a_cell_the_method_and_its_blocks_say_how_many(
    method: str, policy: str, wanted: int | str, expected: int
) -> None:
    cell = {**PAPER_CELL, "method": method}
    sim = build_simulation(experiment(cell, selection={"policy": policy, "num_selected": wanted}))
    assert planner_of(sim).runner.policy.num_selected == expected
    if (wanted, expected) == (5, 3):
        (warning,) = sim.warnings
        assert warning == "selection.num_selected is 5, but the cell has 3 blocks: 3 devices upload at most."
    else:
        assert sim.warnings == ()


def test_more_blocks_than_devices_serve_all_devices() -> None:
    cell = {**PAPER_CELL, "num_blocks": 12, "method": "greedy"}
    assert planner_of(build_simulation(experiment(cell))).runner.policy.num_selected == 8
    with pytest.raises(ConfigError, match=r"number of training devices \(8\), got 9"):
        build_simulation(experiment(cell, selection={"num_selected": 9}))


@pytest.mark.parametrize(
    ("shape", "chunk_samples"),
    [([28, 28], 100_000 // 784), ([6], 1024), ([100, 100], 16), ([10, 10], 1000)],
)
def test_a_chunk_holds_some_hundred_thousand_values(
    shape: list[int], chunk_samples: int, tmp_path: Any
) -> None:
    data = {"dataset": {**SMALL["data"]["dataset"], "shape": shape}}
    assert Built({**SMALL, "data": data}, tmp_path).local.chunk_samples == chunk_samples


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"rule": "exakt"}, 'algorithm.rule: there is no local rule "exakt". Did you mean "exact"?'),
        (
            {"server_step": "means"},
            'algorithm.server_step: there is no server step "means". Did you mean "mean"?',
        ),
        (
            {"task": "regresion"},
            'algorithm.task: there is no task "regresion". Did you mean "regression"?',
        ),
    ],
)
def test_an_unknown_part_is_answered_with_the_nearest(algorithm: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_simulation(experiment(algorithm=algorithm))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("dataset", "task", "name"),
    [
        ("synthetic", "auto", "Classification"),
        ("synthetic", "classification", "Classification"),
        ("sinusoids", "auto", "Regression"),
        ("sinusoids", "regression", "Regression"),
        ("sinusoids", "classification", None),
        ("synthetic", "regression", None),
    ],
)
def test_the_task_is_what_the_data_is_for(dataset: str, task: str, name: str | None) -> None:
    changes: dict[str, Any] = {"data": {"dataset": dataset}, "algorithm": {"task": task}}
    if dataset == "sinusoids":
        changes["partition"] = {"kind": "given"}
    if name is None:
        with pytest.raises(ConfigError, match=rf'algorithm\.task = "{task}" does not fit dataset {dataset}'):
            build_simulation(experiment(**changes))
    else:
        assert type(build_simulation(experiment(**changes)).task).__name__ == name


def test_inputs_that_standardising_swamps_are_warned_about_unless_they_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    data = dataset_from_arrays(1e-5 * rng.normal(size=(400, 6)), np.arange(400) % 4)
    for standardise, expected in (("pixel", 1), ("none", 0)):
        settings = experiment_from({**SMALL, "data": {"dataset": "digits", "standardise": standardise}})
        assert len(build_simulation(settings, dataset=data).warnings) == expected


def test_a_device_of_torch_is_found_or_refused_in_one_line() -> None:
    assert choose_device(ExecutionSection(device="cpu")) == torch.device("cpu")
    assert choose_device(ExecutionSection()).type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device(ExecutionSection(engine="ray")).type == "cpu"
    for name in ("cuda:99", "toaster", ""):
        with pytest.raises(FedwaveError) as caught:
            choose_device(ExecutionSection(device=name))
        assert str(caught.value).startswith(f'execution.device: torch cannot use "{name}" (')
        assert "\n" not in str(caught.value)


def test_a_gpu_is_refused_where_a_cluster_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty", lambda *_, **__: None)  # as if there were a GPU
    assert choose_device(ExecutionSection(device="cuda")) == torch.device("cuda")
    with pytest.raises(FedwaveError, match='engine ray computes on CPUs, got "cuda". Use "cpu", or engine'):
        choose_device(ExecutionSection(device="cuda", engine="ray"))


def test_without_ray_the_executor_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'engine "ray" needs ray, .*pip install "fedwave\[ray\]"'):
        build_executor(ExecutionSection(engine="ray"), torch.device("cpu"))


@pytest.mark.parametrize("address", ["ray://10.0.0.1:10001", "10.0.0.1", "10.0.0.1:port", "host:99999", ":1"])
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(
        ConfigError, match="execution.address: it must be HOST:PORT as .ray start --head. pri"
    ):
        experiment_from({"execution": {"engine": "ray", "address": address}})


@pytest.mark.parametrize("address", ["auto", "10.0.0.1:6379", "head.lab:6379", "[::1]:6379"])
def test_an_address_of_a_cluster_is_taken(address: str) -> None:
    assert experiment_from({"execution": {"engine": "ray", "address": address}}).execution.address == address
