"""The items are the paper's: its parameters, its schemes; and runs are shared where they are the same."""

from __future__ import annotations

import shlex

import pytest

from fedwave.experiments import load_experiment
from fedwave.reproduce.items import ITEMS, IVES, URAL
from fedwave.reproduce.profile import PAPER, QUICK
from fedwave.runs.provenance import run_key


def values(item: str, parameter: str) -> set[float | None]:
    return {point.value for point in ITEMS[item].points(PAPER) if point.parameter == parameter}


def test_what_is_varied_is_table_iii_of_the_paper() -> None:
    assert values("fig-2", "num_selected") == {20, 30, 40}
    assert values("fig-3", "num_local_steps") == set(range(1, 11))
    assert values("fig-5", "num_blocks") == {1, 5, 10, 20, 30, 40, 50}
    assert values("fig-6", "max_gain") == {0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0}
    for weight in ("energy_weight", "delay_weight"):
        assert values("fig-7", weight) == {0.5, 1.0, 1.5, 2.0, 2.5}


def test_the_settings_of_the_paper_reach_the_runs() -> None:
    for item in ITEMS.values():
        for point in item.points(PAPER):
            run = point.experiment(3)
            assert (run.seed, run.partition.num_devices, run.algorithm.meta_lr) == (3, 100, 0.001)
            is_short = run.algorithm.num_local_steps > 1 or item.name in ("fig-5", "fig-6", "fig-7")
            assert run.num_rounds == (19 if is_short else 50)
            is_late = item.name == "readings" and len(point.overrides) > 3
            assert run.evaluation.every == (19 if is_short else 50 if is_late else 1)
            if run.cell is not None:
                assert (run.data.dataset.kind, run.algorithm.num_local_steps) == ("fashion-mnist", 1)
                assert point.counting != "paper" or run.selection.everyone_computes or point.scheme == IVES
            if point.parameter == "num_blocks":
                assert run.cell is not None
                assert run.cell.num_blocks == point.value
            if point.parameter == "max_gain":
                assert run.cell is not None
                assert run.cell.channel.high == point.value


def test_figure_4_has_the_papers_ives_ours_and_the_optimum() -> None:
    found = {(p.scheme, p.counting): p.experiment(0) for p in ITEMS["fig-4"].points(PAPER)}
    printed, corrected, optimal = (
        found[key].cell for key in ((IVES, "paper"), ("URAL-IVES", "ours"), (URAL, "ours"))
    )
    assert printed is not None
    assert corrected is not None
    assert optimal is not None
    assert printed.method.kind == corrected.method.kind == "ives"
    assert (printed.method.options, corrected.method.options) == ({"keep_negative": True}, {})
    assert optimal.method.kind == "optimal"
    assert found["RU-Greedy", "paper"].selection.everyone_computes
    assert not found["RU-Greedy", "ours"].selection.everyone_computes


def test_runs_are_shared_between_items() -> None:
    keys = {name: {run_key(p.experiment(0)) for p in item.points(PAPER)} for name, item in ITEMS.items()}
    assert keys["table-2"] <= keys["fig-2"]
    assert len(keys["fig-5"] & keys["fig-6"]) == 9
    assert len(keys["fig-5"] & keys["fig-7"]) == 3
    assert len(keys["fig-3"] & keys["fig-2"]) == 6
    assert len(keys["readings"] & keys["table-2"]) == 6


@pytest.mark.parametrize("profile", [PAPER, QUICK], ids=lambda profile: profile.family)
def test_the_command_of_a_point_is_its_run(profile) -> None:
    for item in ITEMS.values():
        for point in item.points(profile):
            words = shlex.split(point.command(7))
            assert words[:2] == ["fedwave", "run"]
            settings = [words[i + 1] for i, word in enumerate(words) if word == "-s"]
            again = load_experiment(words[2], [*settings, f"seed={words[words.index('--seed') + 1]}"])
            assert again == point.experiment(7)
