"""Every setting refuses a value of another type in one line that names it: nothing is converted silently."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest

from fedwave.errors import ConfigError, FedwaveError
from fedwave.experiments import Experiment, experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.wireless.distribution import Uniform
from tests.experiments.cell_tables import PAPER_CELL, SMALL, experiment
from tests.experiments.schema_walk import Setting, every_setting, with_setting

SETTINGS = every_setting(Experiment)
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
    if get_origin(annotation) in (list, tuple):
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
    allowed = types_of(setting.field.annotation)
    assert allowed, f"{setting.path} has a type that this test does not know"
    wrong = [value for kind, values in SAMPLES.items() if kind not in allowed for value in values]
    if list in allowed:  # of numbers, whole or real
        wrong += [["7"], [True], [math.nan], [math.inf], [[1]], [-1]]
    return [*wrong, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_setting_refuses_every_value_of_another_type(setting: Setting) -> None:
    name = "preset" if setting.path == "cell.preset" else re.sub(r"\[.*?\]", "", setting.path)
    for value in wrong_values(setting):
        with pytest.raises(ConfigError) as caught:
            pytest.fail(f"{value!r} became {experiment_from(with_setting(BASE, setting.path, value))}")
        assert "\n" not in str(caught.value)
        assert re.search(rf"{re.escape(name)}\b", str(caught.value)), f"{value!r}: {caught.value}"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_misspelt_setting_is_answered_with_the_right_one(setting: Setting) -> None:
    name = re.sub(r"\[.*?\]", "", setting.path)
    last = name.rpartition(".")[2]
    with pytest.raises(ConfigError) as caught:
        experiment_from(with_setting(BASE, setting.path + "q", 1))
    assert f'unknown key "{name}q". Did you mean "{last}' in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"algorithm": {"server_step": "momentum"}}, "algorithm.server_step_options.momentum"),
        ({"algorithm": {"server_step": "momentum"}}, "algorithm.server_step_options.server_lr"),
        ({"selection": {"policy": "power-of-choice"}}, "selection.options.num_candidates"),
        ({"cell": PAPER_CELL}, "cell.method_options.relative_gap"),
        ({"cell": PAPER_CELL}, "cell.method_options.max_matchings"),
        ({"cell": {**PAPER_CELL, "method": "ives"}}, "cell.method_options.start"),
        ({"cell": {**PAPER_CELL, "method": "ives"}}, "cell.method_options.max_iterations"),
        ({"cell": {**PAPER_CELL, "method": "chen2020"}}, "cell.method_options.waterfall_threshold"),
    ],
)
@pytest.mark.parametrize("value", [True, "7", [1], {"a": 1}, math.nan, math.inf])
def test_an_option_of_a_part_refuses_every_value_of_another_type(
    changes: dict[str, Any], option: str, value: Any
) -> None:
    settings = with_setting({"selection": {"num_selected": 3}, **changes}, option, value)
    with pytest.raises(FedwaveError) as caught:
        build_simulation(experiment(**settings))
    assert "\n" not in str(caught.value)
    assert re.match(rf'{re.escape(option)} of "[\w-]+" must be ', str(caught.value))


@pytest.mark.parametrize("value", [1, 0.0, "true"])
def test_a_switch_of_a_method_is_true_or_false(value: Any) -> None:
    with pytest.raises(
        FedwaveError, match=r'^cell\.method_options\.keep_negative of "ives" must be a valid bool'
    ):
        build_simulation(
            experiment({**PAPER_CELL, "method": "ives", "method_options": {"keep_negative": value}})
        )
