"""Every setting refuses a value of another type in one line that names it: nothing is converted silently."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest

from fedwave.errors import ConfigError
from fedwave.experiments import Experiment, experiment_from
from fedwave.wireless.settings.distribution import Uniform
from tests.experiments.cell_tables import PAPER_CELL, SMALL
from tests.experiments.schema_walk import Setting, every_setting, with_setting

SETTINGS = every_setting(Experiment)


def checked(settings: dict[str, Any]) -> Experiment:
    """Return the experiment with those parts checked too that are checked when they are created."""
    experiment = experiment_from(settings)
    experiment.model.checked_options("model")
    for name in ("rule", "server_step"):
        getattr(experiment.algorithm, name).checked_options(f"algorithm.{name}")
    return experiment


BASE = {**SMALL, "cell": PAPER_CELL}
SAMPLES: dict[type, list[Any]] = {
    bool: [True, False],
    int: [7],
    float: [2.5],
    str: ["7", "true"],
    list: [[1], [2.5], ["a"], [True], [math.nan], [[1]]],
    dict: [{"a": 1}],
}


def types_of(annotation: Any) -> set[type]:
    """The plain types that a setting may have, as TOML writes them."""
    if get_origin(annotation) is Literal:
        return {type(value) for value in get_args(annotation)}
    if get_origin(annotation) in (list, tuple, Sequence):
        return {list}
    if get_origin(annotation) is dict or annotation is Uniform:
        return {dict}
    if annotation is Path:
        return {str}
    if annotation in SAMPLES:
        return {annotation} | ({int} if annotation is float else set())  # 3 is as good as 3.0
    if annotation is NoneType or not get_args(annotation):
        return set()
    return set().union(*(types_of(inner) for inner in get_args(annotation)))


def wrong_values(setting: Setting) -> list[Any]:
    allowed = types_of(setting.annotation)
    assert allowed, f"{setting.path} has a type that this test does not know"
    wrong = [value for kind, values in SAMPLES.items() if kind not in allowed for value in values]
    if list in allowed:  # of numbers, whole or real
        wrong += [["7"], [True], [math.nan], [math.inf], [[1]]]
    return [*wrong, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_setting_refuses_every_value_of_another_type(setting: Setting) -> None:
    name = "preset" if setting.path == "cell.preset" else re.sub(r"\[.*?\]", "", setting.path)
    is_of_battery = setting.path.startswith("cell.battery.")  # which needs a capacity
    base = with_setting(BASE, "cell.battery.capacity_j", 9.0) if is_of_battery else BASE
    for value in wrong_values(setting):
        with pytest.raises(ConfigError) as caught:
            pytest.fail(f"{value!r} became {checked(with_setting(base, setting.path, value))}")
        assert "\n" not in str(caught.value)
        assert re.search(rf"{re.escape(name)}\b", str(caught.value)), f"{value!r}: {caught.value}"


REACH_MODELS = [
    setting
    for setting in SETTINGS
    if re.match(
        r"(algorithm(?!\.planner)|evaluation|model)\b", setting.path
    )  # planners count in double precision
    and float in types_of(setting.annotation)
]


def test_the_numbers_that_reach_models_are_seen() -> None:
    paths = {re.sub(r"\[.*?\]", "", setting.path) for setting in REACH_MODELS}
    assert paths >= {
        "algorithm.inner_lr",
        "algorithm.meta_lr",
        "algorithm.rule.mu",
        "algorithm.server_step.momentum",
        "algorithm.server_step.server_lr",
        "evaluation.inner_lr",
        "model.weight_std",
    }


@pytest.mark.parametrize("setting", REACH_MODELS, ids=lambda setting: setting.path)
@pytest.mark.parametrize("value", [3.5e38, 1e308, 10**40])
def test_a_number_that_no_model_can_hold_is_refused(setting: Setting, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        experiment_from(with_setting(BASE, setting.path, value))
    name = re.sub(r"\[.*?\]", "", setting.path)
    rule = "must be at most 3.4e38, the largest number of a model"
    lines = [f"{name} {rule}, got {got!r}. Choose a smaller one." for got in (value, float(value))]
    assert str(caught.value) in lines
    experiment_from(with_setting(BASE, setting.path, 3.4e38))


@pytest.mark.parametrize("value", [1e39, -1e39, [1.0, 1e39], {"inner": 1e39}])
@pytest.mark.parametrize("part", ["algorithm.rule", "algorithm.server_step", "algorithm.task", "model"])
def test_an_option_of_ones_own_part_that_no_model_can_hold_is_refused(part: str, value: Any) -> None:
    own: dict[str, Any] = {"kind": "my_lab.parts:Mine", "size": value}
    for key in reversed(part.split(".")):
        own = {key: own}
    with pytest.raises(ConfigError, match=rf"^{part}.size must be at most 3.4e38, .*, got -?1e\+39\. Cho"):
        experiment_from(own)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_misspelt_setting_is_answered_with_the_right_one(setting: Setting) -> None:
    name = re.sub(r"\[.*?\]", "", setting.path)
    last = name.rpartition(".")[2]
    with pytest.raises(ConfigError) as caught:
        checked(with_setting(BASE, setting.path + "q", 1))
    assert f'unknown key "{name}q". Did you mean "{last}' in str(caught.value)
    assert "\n" not in str(caught.value)
