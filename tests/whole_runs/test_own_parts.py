"""A part of the user's own, of any kind, is a file beside the settings that name it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import ConfigError, DataError, FedwaveError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.explore.run_view import RunView
from fedwave.metric import Metric
from fedwave.runs.compare import read_run
from fedwave.runs.run import resume_run, run_experiment
from fedwave.selection import POLICIES, Uniform

MODULE = """
from dataclasses import dataclass
import numpy as np
from torch import nn
from fedwave.allocation import Method, allocate
from fedwave.data import dataset_from_arrays, user_split
from fedwave.learning.rules import PlainDescent
from fedwave.learning.server_steps import ServerMomentum
from fedwave.learning.tasks import Classification
from fedwave.selection import Uniform

calls = []

def policy(num_selected, *, luck: float = 0.5):
    calls.append(("policy", luck))
    return Uniform(num_selected)

def _frugal(problem, *, selected, share: float = 1.0):
    calls.append(("method", share))
    return allocate(problem, "fedl-power", selected=selected)

frugal = Method(_frugal, serves_given_devices=True)

@dataclass(frozen=True)
class Proximal(PlainDescent):
    mu: float = 0.0
    def __post_init__(self):
        calls.append(("rule", self.mu))

@dataclass(frozen=True)
class Step(ServerMomentum):
    def __post_init__(self):
        calls.append(("server_step", self.momentum))

@dataclass(frozen=True)
class Task(Classification):
    smoothing: float = 0.0
    def __post_init__(self):
        calls.append(("task", self.smoothing))

def planner(planner, *, patience: int = 1):
    calls.append(("planner", patience))
    return planner

def net(input_shape, num_classes, *, width: int = 4):
    calls.append(("model", width))
    size = int(np.prod(input_shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(size, width), nn.Tanh(), nn.Linear(width, num_classes))

def data(seed, *, noise: float = 0.1):
    calls.append(("dataset", noise))
    labels = np.arange(240) % 3
    drawn = np.random.default_rng(seed).normal(size=(240, 4))
    return dataset_from_arrays(labels[:, None] + noise * drawn, labels)

def counts(num_classes, *, num_devices: int = 6):
    calls.append(("partition", num_devices))
    return np.full((num_devices, num_classes), 4)

def split(labels, *, size: int = 12):
    return user_split(np.arange(len(labels)) // size)

class Channel:
    large_scale = ergodic_k_factor = None
    has_own_rounds = False
    warnings = ()
    def __init__(self, num_devices, loud: float = 1.0):
        calls.append(("channel", loud))
        self.gains = np.full(num_devices, loud)
    def gain(self, round_index, *, rng):
        return self.gains.copy()

class Interference:
    def __init__(self, *, level_w: float = 0.0):
        calls.append(("interference", level_w))
        self.level_w = level_w
    def draw_w(self, *, num_blocks, noise_w, rng):
        return np.full(num_blocks, self.level_w)

class Ring:
    def __init__(self, *, radius_m: float):
        calls.append(("placement", radius_m))
        self.radius_m = radius_m
    def positions_m(self, num_devices, *, rng):
        return np.full((num_devices, 2), self.radius_m)

class Still:
    def __init__(self, *, share: float = 1.0):
        calls.append(("fading", share))
        self.share = share
    def faded(self, large_scale, *, num_blocks, rng):
        return self.share * large_scale.gain
"""
OWN = """
num_rounds = 2
data.dataset = { kind = "my_parts:data", noise = 0.2 }
partition = { kind = "my_parts:counts", num_devices = 8, shots = 2 }
model = { kind = "my_parts:net", width = 5 }
algorithm.task = { kind = "my_parts:Task", smoothing = 0.1 }
algorithm.rule = { kind = "my_parts:Proximal", mu = 0.01 }
algorithm.server_step = { kind = "my_parts:Step", momentum = 0.5 }
algorithm.planner = { kind = "my_parts:planner", patience = 3 }
selection.policy = { kind = "my_parts:policy", luck = 0.7 }
cell.preset = "paper"
cell.num_blocks = 3
cell.method = { kind = "my_parts:frugal", share = 0.5 }
cell.interference = { kind = "my_parts:Interference", level_w = 0.3 }
"""
TOLD = {
    "dataset": 0.2,
    "partition": 8,
    "model": 5,
    "task": 0.1,
    "rule": 0.01,
    "server_step": 0.5,
    "planner": 3,
    "policy": 0.7,
    "method": 0.5,
    "interference": 0.3,
}
CHANNEL = 'cell.channel = { kind = "my_parts:Channel", loud = 0.4 }\n'
PLACED = """
[cell.channel]
kind = "log-distance"
reference_loss_db = 0.0
exponent = 2.0
placement = { kind = "my_parts:Ring", radius_m = 3.0 }
fading = { kind = "my_parts:Still", share = 0.25 }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the user's module, which can be imported from there."""
    (tmp_path / "my_parts.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("my_parts", None)


def with_rounds(run: Path, num_rounds: int) -> Path:
    """Return a run's folder after asking for this many rounds in its settings."""
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(re.sub("num_rounds = .*", f"num_rounds = {num_rounds}", text))
    return run


@pytest.mark.parametrize(
    ("cell", "more"),
    [(CHANNEL, {"channel": 0.4}), (PLACED, {"placement": 3.0, "fading": 0.25})],
    ids=["channel", "placement"],
)
def test_every_kind_of_part_may_be_the_users_own(folder: Path, cell: str, more: dict[str, float]) -> None:
    (folder / "own.toml").write_text(OWN + cell)
    experiment = load_experiment("own.toml")
    assert "my_parts" not in sys.modules  # nothing is needed to read settings
    result = run_experiment(experiment, "run")
    told = dict(sys.modules["my_parts"].calls)
    assert told == {**TOLD, **more}
    assert result.summary["server_step"] == "my_parts:Step"
    # The run goes on from its folder, and is read where nobody has the module.
    resume_run(with_rounds(folder / "run", 3))
    sys.modules.pop("my_parts")
    (folder / "my_parts.py").unlink()
    assert read_run(folder / "run").experiment.selection.policy.kind == "my_parts:policy"
    for words in (["compare", "run"], ["report", "run"]):
        assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    assert RunView.open(folder / "run").curves()["num_rounds"] == 3
    with pytest.raises(FedwaveError, match='cannot import "my_parts"'):
        resume_run(with_rounds(folder / "run", 4))


def test_a_metric_of_ones_own_is_read_back_without_its_task(folder: Path) -> None:
    (folder / "my_parts.py").write_text(
        "from fedwave.learning.tasks import Classification, Metric\n"
        "class Errors(Classification):\n"
        "    metric = Metric('wrong', higher_is_better=False, is_share=True)\n"
        "    def scores(self, outputs, batch):\n"
        "        return 1.0 - super().scores(outputs, batch)\n"
    )
    settings = ["num_rounds=2", "selection.num_selected=3"]
    run_experiment(load_experiment("digits/nufm", [*settings, "algorithm.task=my_parts:Errors"]), "own")
    run_experiment(load_experiment("digits/nufm", settings), "ours")
    sys.modules.pop("my_parts")
    (folder / "my_parts.py").unlink()
    own, ours = read_run(folder / "own"), read_run(folder / "ours")
    assert own.metric == Metric("wrong", higher_is_better=False, is_share=True)
    assert_allclose(own.heldout_metric, 1.0 - ours.heldout_metric)  # the same models, judged otherwise
    assert own.cost_of_reaching(1.0) is not None
    assert own.cost_of_reaching(0.0) is None
    printed = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["compare", "own"], catch_exceptions=False).stdout
    assert "wrong" in printed.splitlines()[0].split()


def test_a_policy_that_was_added_in_python_is_read_where_it_was_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["num_rounds=1", "selection.num_selected=3", "selection.policy=fair"]
    with monkeypatch.context() as added:
        added.setitem(POLICIES, "fair", Uniform)
        run_experiment(load_experiment("digits/nufm", settings), "run")
    assert read_run(folder / "run").experiment.selection.policy.kind == "fair"
    assert CliRunner().invoke(app, ["compare", "run"], catch_exceptions=False).exit_code == 0
    with pytest.raises(ConfigError, match='"fair"'):  # to go on with it, it is needed
        resume_run(folder / "run")


def test_a_method_of_ones_own_is_compared_beside_ours(folder: Path) -> None:
    from fedwave.allocation import METHODS, example_problem

    (folder / "problem.toml").write_text(example_problem())
    words = ["allocate", "problem.toml", "--compare", "--json"]
    ours = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    words += ["--method", "my_parts:frugal"]
    found = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert list(ours) == list(METHODS)
    assert list(found) == [*METHODS, "my_parts:frugal"]
    assert found["my_parts:frugal"]["objective"] == found["fedl-power"]["objective"]


def test_a_partition_may_name_the_samples_themselves(folder: Path) -> None:
    (folder / "own.toml").write_text(OWN + CHANNEL)
    sim = build_simulation(load_experiment("own.toml", ['partition={ kind = "my_parts:split", size = 24 }']))
    assert [*sim.train.num_samples, *sim.heldout.num_samples] == [24] * 10


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("selection.policy.lukc=1", 'unknown key "selection.policy.lukc". Did you mean "luck"?'),
        ("selection.policy.luck=high", "selection.policy.luck must be a valid number, got 'high'"),
        ("selection.policy.num_selected=3", "It is filled in for every such part"),
        ("selection.policy.kind=my_parts:absent", '"my_parts" has no "absent"'),
        ("cell.method.share=true", "cell.method.share must be a valid number, got True"),
        ("cell.method.kind=my_parts:_frugal", "a method must be a Method, got"),
        ("algorithm.rule.mew=1", 'unknown key "algorithm.rule.mew". Choose one of: mu.'),
        ("algorithm.rule.meta_lr=1", "It is filled in"),
        ("algorithm.planner.patience=0.5", "algorithm.planner.patience must be a valid integer"),
        ("model.width=wide", "model.width must be a valid integer, got 'wide'"),
        ("model.depth=3", 'unknown key "model.depth". '),
        ("data.dataset.noise=[1]", "data.dataset.noise must be a valid number"),
        ("data.split=test", "has no published split"),
        ("data.dataset.kind=my_parts:Ring", "data.dataset.radius_m is missing"),
        ("partition.num_devices=1.5", "partition.num_devices must be a valid integer"),
        ("cell.channel.lowd=3", 'unknown key "cell.channel.lowd". Did you mean "loud"?'),
        ("cell.interference.level_w=loud", "cell.interference.level_w must be a valid number"),
    ],
)
def test_a_wrong_option_is_one_line_before_anything_is_written(
    folder: Path, override: str, message: str
) -> None:
    (folder / "own.toml").write_text(OWN + CHANNEL)
    with pytest.raises(FedwaveError) as caught:
        run_experiment(load_experiment("own.toml", [override]), "run")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (folder / "run").exists()


def test_what_is_no_dataset_or_no_counts_is_refused(folder: Path) -> None:
    with (folder / "my_parts.py").open("a") as file:
        file.write("def nothing(): pass\n")
    (folder / "own.toml").write_text(OWN + CHANNEL)
    with pytest.raises(DataError, match="my_parts:nothing must return a Dataset, got None"):
        build_simulation(load_experiment("own.toml", ["data.dataset.kind=my_parts:nothing"]))
    with pytest.raises(DataError, match=r"must return counts of shape \(devices, 3\) or a split, got None"):
        build_simulation(load_experiment("own.toml", ["partition.kind=my_parts:nothing"]))
    with pytest.raises(ConfigError, match='there is no selection policy "nothing"'):
        load_experiment("own.toml", ["selection.policy.kind=nothing"])
