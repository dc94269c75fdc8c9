"""The settings of batteries and of budgets that end a run, and where each is to be seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedwave.server import AdaptiveSteps
from tests.experiments.built import Built
from tests.experiments.setting_cases import SettingCase, case

CELL: dict[str, Any] = {"preset": "paper", "num_blocks": 3, "method": "greedy"}
BATTERY: dict[str, Any] = {"capacity_j": 10.0, "interval_s": 60.0}


def battery_case(path: str, value: Any, name: str, expected: Any, **changes: Any) -> SettingCase:
    """A setting that the batteries of the eight devices are to be told; ``name`` is where it is seen."""

    def look(built: Built) -> Any:
        assert built.sim.federation.power is not None
        found = getattr(built.sim.federation.power.batteries, name)
        return found if np.isscalar(found) else sorted({*found.tolist()})

    cell = {**CELL, "battery": {**BATTERY, **changes}}
    return case(f"cell.battery.{path}", value, look, expected, cell=cell)


def battery_range_cases(name: str, value: float, seen: str, expected: float) -> list[SettingCase]:
    """Ranges whose ends meet: all devices have that value."""
    below, above = {"low": 0.5 * value, "high": value}, {"low": value, "high": 1.5 * value}
    return [
        battery_case(f"{name}[range].low", value, seen, [expected], **{name: below}),
        battery_case(f"{name}[range].high", value, seen, [expected], **{name: above}),
    ]


def harvest_case(path: str, value: Any, expected_j: float, **harvest: Any) -> SettingCase:
    """What the first device takes in until noon."""

    def look(built: Built) -> Any:
        assert built.sim.federation.power is not None
        energy_j = built.sim.federation.power.batteries.harvest.energy_j(0.0, 43_200.0)
        return round(float(energy_j[0]), 6)

    changes = {"harvest": harvest} if harvest else {}
    cell = {**CELL, "battery": {**BATTERY, **changes}}
    return case(f"cell.battery.harvest{path}", value, look, round(expected_j, 6), cell=cell)


def stop_case(name: str, value: float) -> SettingCase:
    cell = {**CELL, "battery": BATTERY}
    return case(f"stop.{name}", value, lambda built: getattr(built.sim.stop, name), value, cell=cell, stop={})


# Half a sine from 6 to 18 o'clock holds 2/pi of its length; until noon, half of that.
MORNING_S = 21_600.0 * 2.0 / math.pi
DAY: dict[str, Any] = {"kind": "day", "peak_w": 1.0}


def planner_option_case(kind: str, option: str, value: Any) -> SettingCase:
    """An option of a long-term planner, over a cell that the certified solver plans."""

    def look(built: Built) -> Any:
        return getattr(built.sim.federation.planner, option)

    cell = {**CELL, "method": "optimal"}
    return case(f"algorithm.planner[{kind}].{option}", value, look, value, cell=cell)


def local_steps_case(option: str, value: Any) -> SettingCase:
    """An option of adaptive local steps, under a budget of joules."""

    def look(built: Built) -> Any:
        return getattr(built.sim.federation.local_steps, option)

    place = f"algorithm.local_steps[adaptive].{option}"
    return case(place, value, look, value, cell=CELL, stop={"energy_j": 9.0})


def who_chooses_steps(built: Built) -> Any:
    """Whether somebody does, and what it was told of the run."""
    found = built.sim.federation.local_steps
    if not isinstance(found, AdaptiveSteps):
        return None
    told = found.num_local_steps, found.step_size, found.budget_s, found.budget_j
    return *told, built.sim.local.measures_curvature


BATTERY_CASES = [
    case(
        "algorithm.local_steps",
        "adaptive",
        who_chooses_steps,
        (3, 0.02, 7.0, 9.0, True),
        cell=CELL,
        stop={"energy_j": 9.0, "time_s": 7.0},
        algorithm={"num_local_steps": 3, "meta_lr": 0.02},
    ),
    local_steps_case("phi", 0.025),
    local_steps_case("growth", 2),
    local_steps_case("max_steps", 20),
    local_steps_case("smoothing", 0.5),
    planner_option_case("drift-plus-penalty", "budget_j", 0.25),
    planner_option_case("drift-plus-penalty", "v", 3.0),
    planner_option_case("drift-plus-penalty", "by", "battery"),
    planner_option_case("drift-plus-penalty", "asks", "all"),
    planner_option_case("drift-plus-penalty", "frame", 4),
    planner_option_case("drift-plus-penalty", "growth", 0.5),
    planner_option_case("constant-prices", "price", 2.0),
    planner_option_case("capped-rounds", "budget_j", 0.25),
    planner_option_case("capped-rounds", "saves", True),
    planner_option_case("until-spent", "total_j", 7.0),
    planner_option_case("eafl", "total_j", 7.0),
    planner_option_case("eafl", "by", "battery"),
    planner_option_case("eafl", "num_asked", 2),
    planner_option_case("eafl", "f", 0.5),
    planner_option_case("eafl", "utility", "contribution"),
    planner_option_case("eafl", "exploration", 0.5),
    planner_option_case("eafl", "decay", 0.9),
    planner_option_case("eafl", "min_exploration", 0.1),
    planner_option_case("eafl", "pace_percent", 50.0),
    planner_option_case("eafl", "pace_step", 10.0),
    planner_option_case("eafl", "pace_rounds", 5),
    battery_case("capacity_j", 7.0, "capacity_j", [7.0]),
    *battery_range_cases("capacity_j", 7.0, "capacity_j", 7.0),
    battery_case("initial_charge", 0.5, "initial_charge_j", [5.0]),
    *battery_range_cases("initial_charge", 0.5, "initial_charge_j", 5.0),
    battery_case("draw_w", 0.25, "draw_w", [0.25]),
    *battery_range_cases("draw_w", 0.25, "draw_w", 0.25),
    battery_case("min_charge", 0.25, "min_charge_j", [2.5]),
    battery_case("interval_s", 90.0, "interval_s", 90.0),
    harvest_case("[none].kind", "none", 0.0, kind="constant", power_w=1.0),
    harvest_case("[constant].kind", "constant", 0.5 * 43_200.0),
    harvest_case("[constant].power_w", 2.0, 86_400.0),
    harvest_case(
        "[constant].power_w[range].low", 2.0, 86_400.0, kind="constant", power_w={"low": 1.0, "high": 2.0}
    ),
    harvest_case(
        "[constant].power_w[range].high", 2.0, 86_400.0, kind="constant", power_w={"low": 2.0, "high": 3.0}
    ),
    harvest_case("[day].kind", "day", 0.5 * MORNING_S),
    harvest_case("[day].peak_w", 3.0, 3.0 * MORNING_S),
    *(
        harvest_case(f"[day].peak_w[range].{end}", 3.0, 3.0 * MORNING_S, kind="day", peak_w=ends)
        for end, ends in (("low", {"low": 1.0, "high": 3.0}), ("high", {"low": 3.0, "high": 4.0}))
    ),
    # Up from midnight to midnight or to noon: half of a lobe of 24 hours by noon, a whole one of 12.
    harvest_case("[day].sunrise_h", 0.0, 43_200.0 * 2.0 / math.pi, **DAY, sunset_h=24.0),
    harvest_case("[day].sunset_h", 12.0, 43_200.0 * 2.0 / math.pi, **DAY, sunrise_h=0.0),
    harvest_case("[day].start_h", 6.0, 2.0 * MORNING_S, **DAY),
    harvest_case("[trace].kind", "trace", 86_400.0),
    harvest_case("[trace].path", "more_harvest.csv", 5.0 * 43_200.0),
    stop_case("energy_j", 5.0),
    stop_case("time_s", 70.0),
    stop_case("accuracy", 0.5),
    stop_case("dead_share", 0.25),
]
