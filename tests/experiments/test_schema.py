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
    for value in wrong_values(setting):
        with pytest.raises(ConfigError) as caught:
            pytest.fail(f"{value!r} became {checked(with_setting(BASE, setting.path, value))}")
        assert "\n" not in str(caught.value)
        assert re.search(rf"{re.escape(name)}\b", str(caught.value)), f"{value!r}: {caught.value}"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_misspelt_setting_is_answered_with_the_right_one(setting: Setting) -> None:
    name = re.sub(r"\[.*?\]", "", setting.path)
    last = name.rpartition(".")[2]
    with pytest.raises(ConfigError) as caught:
        checked(with_setting(BASE, setting.path + "q", 1))
    assert f'unknown key "{name}q". Did you mean "{last}' in str(caught.value)
    assert "\n" not in str(caught.value)
