"""How many devices upload: as set, or as the network and the method suggest."""

from __future__ import annotations

from typing import Any

import pytest

from fedwave.errors import ConfigError
from fedwave.experiments import experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.simulation.simulation import Simulation


def simulation(
    num_selected: Any = "auto",
    *,
    num_devices: int = 60,
    cell: dict[str, Any] | None = None,
    algorithm: dict[str, Any] | None = None,
    **selection: Any,
) -> Simulation:
    settings: dict[str, Any] = {
        "data": {"dataset": {"kind": "synthetic", "num_samples": 4000, "shape": [4]}},
        "partition": {"num_devices": num_devices},  # half of them train
        "model": {"kind": "softmax"},
        "algorithm": algorithm or {},
        "selection": {"num_selected": num_selected, **selection},
    }
    if cell is not None:
        settings["cell"] = {"preset": "paper", "num_blocks": 7, **cell}
    return build_simulation(experiment_from(settings))


def num_selected(sim: Simulation) -> int:
    runner = sim.federation.planner.runner  # type: ignore[attr-defined]
    return int(runner.policy.num_selected)


def test_without_a_cell_it_is_20_or_everybody_where_there_are_fewer() -> None:
    assert num_selected(simulation()) == 20
    assert num_selected(simulation(num_devices=30)) == 15
    assert num_selected(simulation(3)) == 3


@pytest.mark.parametrize("cell", [None, {}])
@pytest.mark.parametrize("wanted", [31, 100])
def test_more_than_there_are_is_refused_with_and_without_a_cell(
    wanted: int, cell: dict[str, Any] | None
) -> None:
    with pytest.raises(ConfigError, match=rf"training devices \(30\), got {wanted}"):
        simulation(wanted, cell=cell)


@pytest.mark.parametrize(
    ("method", "policy", "expected"),
    [
        ("optimal", "top-contribution", 30),  # problem (P) decides
        ("ives", "top-contribution", 30),
        ("optimal", "uniform", 7),  # the draw is made first: one device a block
        ("greedy", "top-contribution", 7),
        ("greedy", "round-robin", 7),
        ("optimal", "power-of-choice", 7),
    ],
)
def test_over_a_cell_auto_is_one_a_block_unless_problem_p_decides(
    method: str, policy: str, expected: int
) -> None:
    sim = simulation(cell={"method": method}, policy=policy)
    assert num_selected(sim) == expected
    assert not any("num_selected" in warning for warning in sim.warnings)


def test_auto_is_everybody_where_blocks_are_more_than_devices() -> None:
    assert num_selected(simulation(cell={"method": "greedy", "num_blocks": 50})) == 30


@pytest.mark.parametrize(
    ("method", "wanted", "expected", "is_warned"),
    [
        ("greedy", 5, 5, False),
        ("greedy", 7, 7, False),
        ("greedy", 8, 7, True),
        ("optimal", 8, 8, False),  # it chooses among eight
        ("optimal", 5, 5, False),
    ],
)
def test_over_a_cell_a_number_holds_up_to_the_blocks_that_a_serving_method_has(
    method: str, wanted: int, expected: int, is_warned: bool
) -> None:
    sim = simulation(wanted, cell={"method": method})
    assert num_selected(sim) == expected
    told = "selection.num_selected is 8, but the cell has 7 blocks: 7 devices upload at most."
    assert (told in sim.warnings) is is_warned


def test_the_options_of_a_policy_and_everyone_computes_reach_it() -> None:
    sim = simulation(4, policy={"kind": "power-of-choice", "num_candidates": 9}, everyone_computes=True)
    runner = sim.federation.planner.runner  # type: ignore[attr-defined]
    assert runner.policy.num_candidates == 9
    assert runner.everyone_computes is True
    assert sim.federation.planner.max_models == 9


@pytest.mark.parametrize("method", ["optimal", "threshold"])
def test_where_problem_p_decides_it_decides_among_those_that_are_asked(method: str) -> None:
    few = {"kind": "top-contribution", "num_candidates": 12, "remembers": True}
    sim = simulation(cell={"method": method}, policy=few)
    assert num_selected(sim) == 12
    planner = sim.federation.planner
    assert len(planner.ask(0, planner.initial_state())) == 12
    many = {"kind": "top-contribution", "num_candidates": 99}
    assert num_selected(simulation(cell={"method": method}, policy=many)) == 30


def test_a_serving_method_needs_as_many_candidates_as_blocks() -> None:
    few = {"kind": "top-contribution", "num_candidates": 6}
    with pytest.raises(
        ConfigError, match=r"num_candidates must be a whole number >= num_selected = 7, got 6"
    ):
        simulation(cell={"method": "greedy"}, policy=few)


@pytest.mark.parametrize(
    ("wanted", "cell", "most"),
    [
        (4, None, 4),
        ("auto", {"method": "optimal"}, 7),  # one a block, whoever is proposed
        ("auto", {"method": "optimal", "num_blocks": 50}, 30),
        (5, {"method": "optimal"}, 5),
        (8, {"method": "greedy"}, 7),
    ],
)
def test_a_step_that_would_trim_all_uploads_of_every_round_is_refused(
    wanted: Any, cell: dict[str, Any] | None, most: int
) -> None:
    def trimming(num_trimmed: int, **algorithm: Any) -> dict[str, Any]:
        return {"server_step": {"kind": "trimmed-mean", "num_trimmed": num_trimmed}, **algorithm}

    fits = (most - 1) // 2
    assert simulation(wanted, cell=cell, algorithm=trimming(fits)).federation.server_step is not None
    with pytest.raises(ConfigError, match=f"needs {2 * fits + 3} uploads in a round, got at most {most}"):
        simulation(wanted, cell=cell, algorithm=trimming(fits + 1))
    with pytest.raises(ConfigError, match=f"got at most {most}"):
        simulation(wanted, cell=cell, algorithm=trimming(fits + 1, planner="sample-weights"))
    # A planner of one's own may let more devices upload than the settings say.
    own = "tests.experiments.learning_setting_cases:own_planner"
    simulation(wanted, cell=cell, algorithm=trimming(fits + 1, planner={"kind": own, "patience": 3}))


def test_what_the_planner_knows_is_no_option_of_a_step() -> None:
    step = {"kind": "trimmed-mean", "max_models": 9}
    with pytest.raises(ConfigError, match=r"max_models.* It is filled in for every such part. Leave it out"):
        simulation(algorithm={"server_step": step})
