"""Parts given as Python objects are settings like any other."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment
from fedwave.experiments.own_parts import with_parts
from fedwave.selection import Uniform


def tiny_net(input_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
    pixels = 1
    for size in input_shape:
        pixels *= size
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, num_outputs))


def test_a_part_is_named_and_the_options_of_the_old_one_go_with_it() -> None:
    experiment = load_experiment("digits/nufm", ["model.channels=[4]", "seed=3"])
    found = with_parts(experiment, model=tiny_net)
    assert found.model.kind == f"{__name__}:tiny_net"
    assert "channels" not in found.model.model_dump(exclude_none=True)
    assert (found.seed, found.name, found.num_rounds) == (3, experiment.name, experiment.num_rounds)
    own = with_parts(experiment, policy=Uniform)
    assert own.selection.policy.kind == f"{Uniform.__module__}:Uniform"
    assert own.model == experiment.model
    assert with_parts(experiment, policy="uniform").selection.policy.kind == "uniform"
    assert with_parts(experiment) is experiment


@pytest.mark.parametrize("part", [lambda shape, outputs: None, tiny_net((2,), 3), 7])
def test_what_a_resumed_run_would_not_find_is_refused_in_one_line(part: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"^model must be a name, or a class or function at the top level"
    ) as caught:
        with_parts(load_experiment("digits/nufm"), model=part)
    assert "\n" not in str(caught.value)
