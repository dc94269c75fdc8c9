"""The items are the paper's: its parameters, its schemes; and runs are shared where they are the same."""

from __future__ import annotations

import json
import shlex

import pytest

from fedwave.experiments import load_experiment
from fedwave.reproduce.items import EVERYBODY, ITEMS, IVES, URAL
from fedwave.reproduce.profile import PAPER, QUICK
from fedwave.runs.provenance import run_key
from tools.docs.pages import DOCS


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
            rate = point.value if item.name == "rates" else 0.001
            assert (run.seed, run.partition.num_devices, run.algorithm.meta_lr) == (3, 100, rate)
            is_short = run.algorithm.num_local_steps > 1 or item.name in ("fig-5", "fig-6", "fig-7", "scales")
            assert run.num_rounds == (19 if is_short else 50)
            is_late = item.name == "readings" and len(point.overrides) > 3
            assert run.evaluation.every == (19 if is_short else 50 if is_late else 1 if rate == 0.001 else 5)
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
    assert len(keys["rates"] & keys["table-2"]) == 6
    assert len(keys["robust"] & keys["table-2"]) == 2
    assert len(keys["robust"] & keys["rates"]) == 3
    assert len(keys["scales"] & keys["fig-7"]) == 10


def test_finished_runs_of_before_keep_their_keys() -> None:
    wanted = {point.key(point.experiment(0)) for item in ITEMS.values() for point in item.points(PAPER)}
    lines = (DOCS / "reproduction" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    first = [run for run in map(json.loads, lines) if "--seed 0 " in run["command"]]
    assert len(first) > 200
    assert {run["key"] for run in first} <= wanted


def test_the_seeds_are_those_that_the_items_are_planned_with() -> None:
    assert [ITEMS["fig-2"].seeds(PAPER, dataset) for dataset in PAPER.datasets] == [20, 10, 10, 5]
    found = {name: ITEMS[name].seeds(PAPER, "fashion-mnist") for name in ITEMS}
    assert found == {
        "table-2": 20, "fig-2": 20, "fig-3": 5, "fig-4": 10, "fig-5": 10, "fig-6": 30, "fig-7": 30,
        "readings": 5, "beyond": 5, "steps": 10, "rates": 10, "robust": 10, "scales": 10,
    }  # fmt: skip


def test_devices_at_fault_are_those_of_the_item() -> None:
    found = {(p.parameter, p.scheme): p.experiment(0) for p in ITEMS["robust"].points(PAPER)}
    assert len(found) == 12
    for (kind, scheme), run in found.items():
        is_clean = kind == "none" or (kind, scheme) == ("liars", EVERYBODY)
        assert run.faults.num_devices == (0 if is_clean else 5)
        assert is_clean or run.faults.kind == kind
        assert run.selection.num_selected == (50 if scheme == EVERYBODY else 20)


def test_the_scale_of_u_and_the_samples_reach_the_runs() -> None:
    found = {p.scheme: p.experiment(0).cell for p in ITEMS["scales"].points(PAPER)}
    assert len(found) == 12
    seen = {(c.contribution_scale, c.contribution_size, c.samples_counted) for c in found.values() if c}
    scales = (("raw", 1.0), ("normalised", 1.0), ("normalised", 10.0), ("normalised", 100.0))
    assert seen == {(*scale, count) for scale in scales for count in (None, 2, 5)}


@pytest.mark.parametrize("profile", [PAPER, QUICK], ids=lambda profile: profile.family)
def test_the_command_of_a_point_is_its_run(profile) -> None:
    for item in ITEMS.values():
        for point in item.points(profile):
            words = shlex.split(point.command(7))
            if point.arm:
                quick = ["--quick"] if profile is QUICK else []
                assert words[2:] == ["steps", *quick, "--dataset", point.dataset, "--seeds", "8"]
                continue
            assert words[:2] == ["fedwave", "run"]
            settings = [words[i + 1] for i, word in enumerate(words) if word == "-s"]
            again = load_experiment(words[2], [*settings, f"seed={words[words.index('--seed') + 1]}"])
            assert again == point.experiment(7)
