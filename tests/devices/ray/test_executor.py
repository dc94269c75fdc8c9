"""Devices on a real cluster of two nodes: the bits of threads, whoever dies; models stay where they are."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from fedwave.devices.ray import tasks
from fedwave.errors import DivergenceError, ModelError, ProblemError, RunError
from fedwave.learning.models import UserModel
from tests.devices.pools import EVERYONE, assert_equal_models, assert_equal_reports, devices_of, first_model
from tests.devices.ray.clusters import (
    Deadly,
    assert_same,
    by_threads,
    devices_on,
    evaluated,
    nodes,
    outcome,
    work_of,
    worker_processes,
)

pytestmark = pytest.mark.processes
USER_NET = "tests.learning.models.user_modules:small_user_net"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with nodes(2, 2) as two:
        yield two


@pytest.mark.parametrize("kind", ["cnn", "mlp", USER_NET])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_bits_are_those_of_threads_for_any_number_of_workers(
    cluster: Any, kind: str, workers: int
) -> None:
    local, evaluation = work_of(kind)
    assert len(local.chunks(EVERYONE)) >= 3
    assert max(map(len, local.chunks(EVERYONE))) >= 2
    theta = first_model(local)
    with devices_on(cluster, local, evaluation, workers=workers) as devices:
        assert devices._executor._cluster.width() == workers
        assert_same(outcome(devices, theta), by_threads(local, evaluation, theta))


def test_some_devices_in_an_order_of_their_own_and_none_but_them(cluster: Any) -> None:
    local, evaluation = work_of()
    theta, who, wanted = first_model(local), np.array([1, 2, 5, 6]), np.array([6, 1])
    with devices_on(cluster, local, evaluation) as devices, devices_of(local, evaluation) as threads:
        assert_equal_reports(
            devices.report(4, theta, who, max_models=2), threads.report(4, theta, who, max_models=2)
        )
        assert_equal_models(list(devices.collect(wanted)), list(threads.collect(wanted)))
        with pytest.raises(ProblemError, match="only devices that computed in this round can upload, got de"):
            list(devices.collect(np.array([0])))
        assert list(devices.collect(np.zeros(0, dtype=np.int64))) == []


def test_a_round_with_steps_of_its_own_has_the_bits_of_threads(cluster: Any) -> None:
    local, evaluation = work_of(measures_curvature=True)
    theta, wanted = first_model(local), np.array([6, 1])
    with devices_on(cluster, local, evaluation) as devices, devices_of(local, evaluation) as threads:
        for steps in (3, 1):
            told = {"max_models": 1, "num_local_steps": steps}  # one model is computed again
            assert_equal_reports(
                devices.report(4, theta, EVERYONE, **told), threads.report(4, theta, EVERYONE, **told)
            )
            assert_equal_models(list(devices.collect(wanted)), list(threads.collect(wanted)))


def test_models_stay_on_the_node_that_made_them_until_they_are_chosen(cluster: Any) -> None:
    import ray
    from ray.experimental import get_object_locations

    # One device a chunk, and a model so small that Ray would send a task's result along with its answer.
    local, evaluation = work_of("mlp")
    local = replace(local, chunk_samples=1)
    theta = first_model(local)
    assert sum(value.numel() for value in theta.values()) * 4 < 100_000
    with devices_on(cluster, local, evaluation) as devices:
        here = ray.get_runtime_context().get_node_id()
        for round_index in range(20):  # until both nodes had their share
            devices.report(round_index, theta, EVERYONE, max_models=7)
            kept = {position: devices._kept.get(position) for position in EVERYONE.tolist()}
            before = {p: set(get_object_locations([ref])[ref]["node_ids"]) for p, ref in kept.items()}
            away = [p for p, places in before.items() if here not in places]
            if 2 <= len(away) < len(kept):
                break
        else:
            raise AssertionError("only one node computes")
        assert all(len(places) == 1 for places in before.values())
        chosen, left = away[0], away[1:]
        assert len(list(devices.collect(np.array([chosen])))) == 1
        after = {p: set(get_object_locations([ref])[ref]["node_ids"]) for p, ref in kept.items()}
        assert here in after[chosen]
        assert all(after[p] == before[p] for p in left)
        # The dataset is in the object store of each node, which holds an object once.
        work = devices._executor._place.work
        assert len(get_object_locations([work])[work]["node_ids"]) == 2


def test_no_more_models_are_kept_than_may_be_asked_for(cluster: Any) -> None:
    local, evaluation = work_of()
    local = replace(local, chunk_samples=1)
    theta = first_model(local)
    with devices_on(cluster, local, evaluation) as devices, devices_of(local, evaluation) as threads:
        reports = devices.report(0, theta, EVERYONE, max_models=2)
        best = np.argsort(-reports.contribution)[:2].tolist()
        assert [p for p in EVERYONE.tolist() if devices._kept.get(p) is not None] == sorted(best)
        threads.report(0, theta, EVERYONE, max_models=2)
        assert_equal_models(list(devices.collect(EVERYONE)), list(threads.collect(EVERYONE)))


@pytest.mark.parametrize("deaths", [1, 3])
def test_a_worker_killed_in_the_middle_of_a_round_costs_no_bit(
    cluster: Any, deaths: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    local, evaluation = work_of()
    theta = first_model(local)
    expected = by_threads(local, evaluation, theta)
    deadly = Deadly(str(tmp_path))
    with devices_on(
        cluster, replace(local, task=deadly), replace(evaluation, task=deadly), workers=2
    ) as devices:
        for number in range(deaths):
            (tmp_path / f"death-{number}").touch()
        with caplog.at_level(logging.WARNING, logger="fedwave"):
            reports = devices.report(2, theta, EVERYONE, max_models=3)
        assert list(tmp_path.iterdir()) == []  # all of them died
        assert "a worker was lost (WorkerCrashedError): its devices are computed again." in caplog.messages
        (tmp_path / "death-in-phase-two").touch()
        models = list(devices.collect(EVERYONE))
        (tmp_path / "death-in-evaluation").touch()
        heldout = evaluated(devices.evaluate(theta))
        assert list(tmp_path.iterdir()) == []
        training = evaluated(devices.evaluate(theta, on_training=True))
    assert_same((reports, models, (heldout, training)), expected)


def test_workers_killed_between_the_phases_cost_no_bit(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    local, evaluation = work_of()
    theta = first_model(local)
    expected = by_threads(local, evaluation, theta)
    with devices_on(cluster, local, evaluation) as devices:
        for _ in range(10):  # a model may be fetched before Ray has noticed that its owner is dead
            reports = devices.report(2, theta, EVERYONE, max_models=7)
            victims = worker_processes()
            assert victims
            for process in victims:
                process.send_signal(signal.SIGKILL)
            psutil.wait_procs(victims, timeout=10.0)
            models = list(devices.collect(EVERYONE))
            assert_equal_reports(reports, expected[0])
            assert_equal_models(models, expected[1])
            if any(message.startswith("a local model was lost (") for message in caplog.messages):
                return
    raise AssertionError("no model was ever lost")


def test_a_task_that_always_kills_its_worker_ends_the_run_in_one_line(cluster: Any, tmp_path: Path) -> None:
    local, evaluation = work_of()
    deadly = replace(local, task=Deadly(str(tmp_path)))
    with devices_on(cluster, deadly, evaluation, workers=1) as devices:
        for number in range(40):
            (tmp_path / f"death-{number}").touch()
        with pytest.raises(RunError, match=r"the same devices were lost 5 times .*cpus_per_task"):
            devices.report(0, first_model(local), EVERYONE, max_models=1)
    assert 30 <= len(list(tmp_path.iterdir())) <= 35


def test_a_module_of_the_users_travels_to_workers_that_have_not_its_file(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far_layers.py").write_text(
        "from torch import nn\n"
        "class Scaled(nn.Linear):\n"
        "    def forward(self, inputs):\n"
        "        return 0.5 * super().forward(inputs)\n"
    )
    (tmp_path / "far_net.py").write_text(
        "import torch\nfrom torch import nn\nfrom far_layers import Scaled\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width, num_outputs):\n"
        "        super().__init__()\n"
        "        self.register_buffer('noise', torch.randn(width))\n"
        "        self.first, self.last = Scaled(width, 6), nn.Linear(6, num_outputs)\n"
        "    def forward(self, images):\n"
        "        return self.last(torch.tanh(self.first(images.flatten(1) + self.noise)))\n"
        "def net(input_shape, num_outputs):\n"
        "    return Net(input_shape[1] * input_shape[2], num_outputs)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        local, evaluation = work_of("far_net:net")
        for file in ("far_net.py", "far_layers.py"):
            (tmp_path / file).unlink()
        theta = first_model(local)
        with devices_on(cluster, local, evaluation, workers=2) as devices:
            assert_same(outcome(devices, theta), by_threads(local, evaluation, theta))
    finally:
        for name in ("far_net", "far_layers"):
            sys.modules.pop(name, None)


def test_what_a_worker_raises_is_the_error_that_threads_raise(cluster: Any) -> None:
    local, evaluation = work_of()
    broken = {name: value * torch.nan for name, value in first_model(local).items()}
    with (
        devices_on(cluster, local, evaluation) as devices,
        pytest.raises(DivergenceError, match=r"^the loss is not finite in round 6 on device (5|11), got nan"),
    ):
        devices.report(6, broken, np.array([0, 4]), max_models=1)


def fails_elsewhere(home: int = os.getpid()) -> torch.nn.Module:
    """A factory that works only in the process of the test."""
    if os.getpid() != home:
        raise OSError("no such sensor here")
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))


def test_a_module_that_cannot_be_built_on_a_worker_is_said_before_the_first_round(cluster: Any) -> None:
    local, evaluation = work_of()
    model = UserModel(fails_elsewhere, (1, 8, 8), 3)
    with (
        pytest.raises(ModelError, match=r"fails_elsewhere failed to build: OSError: no such sensor here"),
        devices_on(cluster, replace(local, model=model), replace(evaluation, model=model)),
    ):
        pass


def test_workers_with_other_versions_are_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    local, evaluation = work_of()
    own = tasks.versions()
    monkeypatch.setattr(tasks, "versions", lambda: {**own, "torch": "1.0"})
    with (
        pytest.raises(RunError, match=rf"computes with torch {own['torch'][:4]}\S*, the run with 1\.0: "),
        devices_on(cluster, local, evaluation),
    ):
        pass


def test_other_processors_are_said_once(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    local, evaluation = work_of()
    monkeypatch.setattr(tasks, "processor", lambda: "ABACUS")
    with devices_on(cluster, local, evaluation) as devices:
        devices.report(0, first_model(local), EVERYONE, max_models=1)
    said = [message for message in caplog.messages if "differ in their processors (ABACUS, " in message]
    assert len(said) == 1
