from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fedwave import load_cell, problem_of_cell
from fedwave.allocation import allocate, total_cost
from tests.explore.asking import Page


@pytest.fixture(scope="module")
def page() -> Page:
    return Page()


def question(page: Page, source: str = "umi-3.5ghz", **moved: Any) -> dict[str, Any]:
    view = page.ask("defaults", {"source": source}).json["view"]
    return {"source": source, "view": view | moved}


def test_the_page_starts_with_all_cells(page: Page) -> None:
    start = page.ask("start").json
    assert start["first_source"] == "umi-3.5ghz"
    assert start["first_tab"] == "cell"
    assert "paper" in start["sources"]
    assert start["methods"] == ["optimal", "ives", "greedy", "random", "chen2020", "fedl"]


def test_the_answer_is_the_allocation_of_the_cell(page: Page) -> None:
    asked = question(page, seed=2, num_blocks=6)
    view, shown = asked["view"], page.ask("cell", asked).json
    cell = load_cell("umi-3.5ghz", num_devices=30, seed=2, overrides={"num_blocks": 6})
    problem = problem_of_cell(
        cell,
        np.random.default_rng(2).uniform(0, 2, 30),
        model_bits=view["model_bits"],
        energy_weight=view["energy_weight"],
        delay_weight=view["delay_weight"],
    )
    best = allocate(problem)
    found, uploads = shown["optimal"], shown["optimal"]["uploads"]
    assert found["objective"] == best.objective
    assert uploads["device"] == best.selected.tolist()
    assert uploads["power_w"] == best.transmit_power_w[best.selected].tolist()
    assert sum(term["worth"] for term in found["terms"]) == pytest.approx(
        total_cost(problem, best), rel=1e-12
    )
    for k, (device, block) in enumerate(zip(uploads["device"], uploads["block"], strict=True)):
        heard = uploads["power_w"][k] * cell.draw(0).channel_gain[device, block]
        sinr = heard / (cell.draw(0).interference_w[block] + cell.noise_w)
        assert uploads["sinr_db"][k] == pytest.approx(10 * np.log10(sinr), abs=1e-9)
        assert uploads["energy_j"][k] == pytest.approx(
            uploads["delay_s"][k] * (uploads["power_w"][k] / 0.3 + 0.37), rel=1e-9
        )
    place, drawn = cell.large_scale, shown["map"]
    assert place is not None
    assert place.is_line_of_sight is not None
    np.testing.assert_allclose(np.transpose(drawn["position_m"]), place.position_m, atol=0.051)
    assert drawn["is_line_of_sight"] == place.is_line_of_sight.astype(int).tolist()
    np.testing.assert_allclose(drawn["shadowing_db"], place.shadowing_db, atol=0.051)
    assert drawn["noise_w"] == (cell.draw(0).interference_w + cell.noise_w).tolist()


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


def test_a_cell_without_places_has_a_map_without_places(page: Page) -> None:
    drawn = page.ask("cell", question(page, "paper")).json["map"]
    gain = load_cell("paper", num_devices=30, seed=0).draw(0).channel_gain
    assert drawn["position_m"] is None
    np.testing.assert_allclose(drawn["gain_db"], 10 * np.log10(gain), atol=0.0051)


def test_the_front_holds_the_present_weights(page: Page) -> None:
    asked = question(page, "paper")
    front = page.ask("front", {**asked, "ratios": [0.1, 1, 10]}).json
    found = page.ask("cell", asked).json["optimal"]
    assert front["energy_j"][1] == pytest.approx(found["energy_j"], rel=1e-9)
    assert front["delay_s"][1] == pytest.approx(found["delay_s"], rel=1e-9)
    assert front["energy_j"][0] >= front["energy_j"][2]


def test_the_curve_ends_where_the_optimum_is(page: Page) -> None:
    asked = question(page, "paper", seed=1)
    curve = page.ask("curve", asked).json
    found = page.ask("methods", asked).json
    assert curve["optimum"]["objective"] == found["optimal"]["objective"]
    assert max(curve["objective"]) == pytest.approx(found["optimal"]["objective"], abs=1e-6)
    assert curve["upper_bound"] == found["optimal"]["upper_bound"]
    assert len(curve["bound"]) == len(curve["delay_s"]) - 1


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
    assert "not known" in page.ask("methods", {**asked, "methods": ["best"]}).json["error"]
    assert "list of names" in page.ask("methods", {**asked, "methods": "optimal"}).json["error"]
    assert 'Did you mean "toml"' in page.ask("export", {**asked, "kind": "tom"}).json["error"]


def test_nobody_uploading_is_an_answer(page: Page) -> None:
    asked = question(page, "paper", delay_weight=1e6)
    found = page.ask("cell", asked)
    assert found.json["optimal"]["num_selected"] == 0
    assert found.json["optimal"]["uploads"]["device"] == []
    assert page.ask("curve", asked).status == 200


def test_answers_are_plain_json(page: Page) -> None:
    """Numbers that JSON does not have, as an endless delay, must not break the page."""
    asked = question(page, "umi-3.5ghz", deadline_s=0.001)
    for name in ("cell", "methods", "curve"):
        answer = page.ask(name, asked)
        assert answer.status == 200
        json.loads(answer.body, parse_constant=pytest.fail)
