from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedwave.allocation import METHODS
from tests.explore.asking import Page, question
from tests.runs.written_runs import write_run


def test_the_page_starts_with_all_cells(page: Page) -> None:
    start = page.ask("start").json
    assert start["first_source"] == "umi-3.5ghz"
    assert start["first_tab"] == "cell"
    assert "paper" in start["sources"]
    assert start["methods"]["one-block"] == list(METHODS)
    for access, names in start["methods"].items():
        assert names == [name for name in METHODS if access in METHODS[name].accesses]
    assert set(start["methods"]) == {"one-block", "blocks", "shared-band", "tdma"}


def test_a_map_is_sent_once(page: Page) -> None:
    asked = question(page)
    first = page.ask("cell", asked).json
    again = page.ask("cell", {**asked, "map_key": first["map_key"]}).json
    assert first["map"] is not None
    assert again["map"] is None
    moved = {"source": asked["source"], "view": asked["view"] | {"energy_weight": 9.0}}
    other_weight = page.ask("cell", {**moved, "map_key": first["map_key"]}).json
    assert other_weight["map"] is None
    assert other_weight["optimal"]["objective"] < first["optimal"]["objective"]
    for moved_too in ({"seed": 1}, {"contribution": "equal"}, {"mean_contribution": 2.0}, {"round_index": 1}):
        other = {"source": asked["source"], "view": asked["view"] | moved_too}
        assert page.ask("cell", {**other, "map_key": first["map_key"]}).json["map"] is not None, moved_too


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cell", {}, "there is no cell"),
        ("cell", {"source": "/etc/passwd"}, "there is no cell"),
        ("cell", {"source": "../cell.toml"}, "there is no cell"),
        ("cell", {"source": "paper"}, "num_devices"),
        ("cell", {"source": "paper", "view": {"path": "/etc/passwd"}}, "path"),
        ("front", {"ratios": []}, "ratios"),
        ("front", {"ratios": [0]}, "ratios"),
        ("front", {"ratios": ["1"]}, "ratios"),
        ("front", {"ratios": [1] * 41}, "ratios"),
        ("run-round", {"run": 0, "round": 0}, "there is no run 0"),
        ("run-devices", {"run": "0"}, "run must be a whole number"),
        ("run-devices", {"run": True}, "run must be a whole number"),
    ],
)
def test_wrong_questions_get_one_line(page: Page, name: str, content: dict[str, Any], words: str) -> None:
    answer = page.ask(name, content)
    assert answer.status == 422
    assert words in answer.json["error"]
    assert "\n" not in answer.json["error"]


@pytest.mark.parametrize(
    "moved",
    [
        {"num_devices": 100_001},
        {"num_blocks": 1_001},
        {"num_devices": 100_000, "num_blocks": 1_000},
        {"num_devices": 2.5},
        {"seed": -1},
        {"energy_weight": -1.0},
        {"energy_weight": "1"},
        {"delay_weight": 0.0},
        {"bandwidth_hz": 0.0},
        {"bandwidth_hz": 1e999},
        {"model_bits": 1e31},
        {"contribution": "<b>"},
        {"access": "fdma"},
        {"access": "tdma", "work_conserving": True},
        {"access": "blocks", "max_uploads": 0},
        {"channel": {"kind": "file", "path": "/etc/passwd"}},
    ],
)
def test_wrong_settings_are_refused_in_one_line(page: Page, moved: dict[str, Any]) -> None:
    answer = page.ask("cell", question(page, **moved))
    assert answer.status in (400, 422)
    assert len(answer.json["error"]) > 10
    assert "\n" not in answer.json["error"]


def test_methods_and_kinds_must_be_known(page: Page) -> None:
    asked = question(page, "paper")
    assert 'no method "best"' in page.ask("methods", {**asked, "methods": ["best"]}).json["error"]
    assert "list of names" in page.ask("methods", {**asked, "methods": "optimal"}).json["error"]
    assert 'Did you mean "toml"' in page.ask("export", {**asked, "kind": "tom"}).json["error"]


def test_a_source_says_which_accesses_it_cannot_be_shared_by_and_why(page: Page) -> None:
    assert set(page.ask("defaults", {"source": "umi-3.5ghz"}).json["refusals"].values()) == {""}
    paper = page.ask("defaults", {"source": "paper"}).json["refusals"]
    assert paper.pop("one-block") == ""
    for access, why in paper.items():
        assert f'access "{access}" needs blocks that are alike' in why
        assert why == page.ask("cell", question(page, "paper", access=access)).json["error"]


def test_the_curve_over_the_delay_is_of_one_block_each(page: Page) -> None:
    answer = page.ask("curve", question(page, access="tdma"))
    assert answer.status == 422
    assert 'is of one block each, got access "tdma"' in answer.json["error"]
    limited = page.ask("curve", question(page, max_uploads=2))
    assert limited.status == 422
    assert "without a limit on uploads, got max_uploads = 2" in limited.json["error"]
    found = page.ask("methods", {**question(page, max_uploads=8), "methods": ["optimal", "threshold"]}).json
    assert [len(one["uploads"]["device"]) for one in found.values()] == [8, 8]


def test_runs_are_offered_and_shown_when_asked_for(tmp_path: Path) -> None:
    offered = Page(offered=tmp_path / "runs")
    assert (offered.ask("start").json["num_offered"], offered.ask("open-runs").status) == (0, 422)
    (tmp_path / "runs").mkdir()
    assert offered.ask("start").json["num_offered"] == 0
    for seed in (1, 0):
        write_run(tmp_path / "runs" / f"a-{seed}", "A", [0.1 + seed], seed=seed)
    start = offered.ask("start").json
    assert (start["num_runs"], start["num_offered"], start["offered"]) == (0, 2, str(tmp_path / "runs"))
    assert offered.ask("runs").json["runs"] == []
    elsewhere = {"path": "/etc", "folder": "/etc"}
    assert offered.ask("open-runs", elsewhere).json == {"num_runs": 2}  # what else is asked for is not read
    answer = offered.ask("runs").json
    assert [run["seed"] for run in answer["runs"]] == [0, 1]
    assert answer["means"]["groups"] == [{"name": "A", "runs": [0, 1]}]
    assert answer["means"]["curves"]["rounds"]["metric"][0]["mean"] == pytest.approx([0.6])
    again = offered.ask("runs", {"stamp": answer["stamp"]}).json
    assert again == {"stamp": answer["stamp"], "runs": None, "means": None}
    assert Page().ask("open-runs").json == {"num_runs": 0}


def test_a_bad_folder_keeps_its_place_among_the_means(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / f"a-{seed}", "A", [0.3 * seed], seed=seed)
    (tmp_path / "a-1" / "rounds.csv").write_text("round,heldout_accuracy\nnonsense,1\n")
    answer = Page(str(tmp_path)).ask("runs").json
    assert "error" in answer["runs"][1]
    assert answer["means"]["groups"] == [{"name": "A", "runs": [0, 2]}]
    assert answer["means"]["curves"]["rounds"]["metric"][0]["mean"] == pytest.approx([0.3])
