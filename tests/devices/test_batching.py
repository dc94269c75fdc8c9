"""Which way a user's module runs, and that a run keeps to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fedwave.devices import batching
from fedwave.devices.batching import choose_batching
from fedwave.errors import ModelError
from fedwave.experiments import load_experiment
from fedwave.learning import build_model
from fedwave.learning.models import UserModel
from fedwave.runs.run import resume_run, run_experiment
from tests.devices.pools import NUM_DEVICES, local_work
from tests.runs.small_runs import StopAfter

MODULES = "tests.learning.models.user_modules"
NET = f"{MODULES}:small_user_net"


@pytest.mark.parametrize(("loop_seconds", "chunk"), [(0.69, 1), (0.71, 24), (5.0, 24)])
def test_a_loop_is_taken_only_if_it_is_clearly_faster(
    loop_seconds: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = local_work(NET)
    seen: list[tuple[bool, list[int]]] = []

    def seconds(_: object, chunks: list[np.ndarray], *, is_loop: bool) -> float:
        seen.append((is_loop, [len(one) for one in chunks]))
        return loop_seconds if is_loop else 1.0

    monkeypatch.setattr(batching, "_measured", {})
    monkeypatch.setattr(batching, "_seconds", seconds)
    assert choose_batching(work, one_by_one=1) == chunk
    assert isinstance(work.model, UserModel)
    assert work.model.is_vectorised == (chunk == 24)
    first = len(work.chunks(np.arange(NUM_DEVICES))[0])
    assert seen == [(True, [1] * first), (False, [first])]  # the same devices both ways
    assert choose_batching(local_work(NET), one_by_one=1) == chunk  # remembered: equal runs have equal bits
    assert len(seen) == 2


def test_both_ways_are_really_tried_and_timed() -> None:
    work = local_work(NET)
    chunk = work.chunks(np.arange(NUM_DEVICES))[0]
    assert batching._seconds(work, [chunk], is_loop=True) > 0
    assert isinstance(work.model, UserModel)
    assert not work.model.is_vectorised
    assert batching._seconds(work, [chunk], is_loop=False) > 0
    assert work.model.is_vectorised


def test_models_of_ours_and_modules_that_cannot_be_mapped_are_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "_seconds", None)
    assert choose_batching(local_work("mlp"), one_by_one=1) == 24
    assert choose_batching(local_work(f"{MODULES}:DataDependentNet"), one_by_one=1) == 1


@pytest.mark.parametrize("name", ["small_user_net", "TiedNet", "RandomFeatures"])
def test_both_ways_give_the_same_local_models_but_for_rounding(name: str) -> None:
    work = local_work(f"{MODULES}:{name}")
    assert isinstance(work.model, UserModel)
    start = work.model.initial_parameters(np.random.default_rng(0))
    everyone = np.arange(NUM_DEVICES)
    mapped = work.compute(0, start, everyone)
    work.model.use_loop()
    for device in everyone.tolist():
        alone = work.compute(0, start, np.array([device]))
        for key, value in alone.parameters.items():
            torch.testing.assert_close(value[0], mapped.parameters[key][device], rtol=1e-4, atol=1e-6)


def test_a_setting_that_has_no_effect_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        build_model("mlp", (4,), 2, batching="loop")
    assert str(caught.value) == (
        'execution.batching is for a module of your own, got "loop" with model.kind mlp. Leave it at "auto".'
    )


@pytest.mark.parametrize("way", ["vmap", "loop"])
def test_a_resumed_run_takes_the_way_that_was_measured_at_its_start(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = {"vmap": 1.0, "loop": 0.1}
    monkeypatch.setattr(batching, "_measured", {})
    monkeypatch.setattr(batching, "_seconds", lambda *_, is_loop: faster[way] if is_loop else 0.5)
    experiment = load_experiment(
        "digits/nufm",
        [f"model.kind={NET}", "num_rounds=4", "partition.num_devices=12", "selection.num_selected=3"],
    )
    whole = run_experiment(experiment, tmp_path / "whole").path
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment, tmp_path / "cut", observers=[StopAfter(2)])
    monkeypatch.setattr(batching, "_seconds", None)  # nothing is measured again
    resume_run(tmp_path / "cut")
    assert f'batching = "{way}"' in (tmp_path / "cut" / "config.toml").read_text()
    for name in ("model.safetensors", "devices.csv"):
        assert (tmp_path / "cut" / name).read_bytes() == (whole / name).read_bytes(), name
