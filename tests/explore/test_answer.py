"""What the page is told is what Python computes: map, allocation, curve and front."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedwave import load_cell, problem_of_cell
from fedwave.allocation import allocate, total_cost
from tests.explore.asking import Page, question

UNIT_W = (10**2.3 - 1) * 1e-3 / 0.3 / 450  # of TR 38.840: 450 of them between 0 and 23 dBm at 30 %


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
        heard = uploads["power_w"][k] * cell.draw(0).channel_gain[device]  # blocks are alike
        sinr = heard / (cell.draw(0).interference_w[block] + cell.noise_w)
        assert uploads["sinr_db"][k] == pytest.approx(10 * np.log10(sinr), abs=1e-9)
        assert uploads["energy_j"][k] == pytest.approx(
            uploads["delay_s"][k] * ((uploads["power_w"][k] - 1e-3) / 0.3 + 250 * UNIT_W), rel=1e-9
        )
    place, drawn = cell.large_scale, shown["map"]
    assert place is not None
    assert place.is_line_of_sight is not None
    np.testing.assert_allclose(np.transpose(drawn["position_m"]), place.position_m, atol=0.051)
    assert drawn["is_line_of_sight"] == place.is_line_of_sight.astype(int).tolist()
    np.testing.assert_allclose(drawn["shadowing_db"], place.shadowing_db, atol=0.051)
    assert drawn["noise_w"] == (cell.draw(0).interference_w + cell.noise_w).tolist()


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


@pytest.mark.parametrize("access", ["one-block", "blocks", "shared-band", "tdma"])
def test_the_picture_of_the_band_is_the_allocation(page: Page, access: str) -> None:
    asked = question(page, seed=2, num_blocks=6, access=access)
    view = asked["view"]
    cell = load_cell("umi-3.5ghz", num_devices=30, seed=2, overrides={"num_blocks": 6, "access": access})
    problem = problem_of_cell(
        cell,
        np.random.default_rng(2).uniform(0, 2, 30),
        **{name: view[name] for name in ("model_bits", "energy_weight", "delay_weight")},
    )
    best, shown = allocate(problem), page.ask("cell", asked).json["optimal"]
    uploads, drawn = shown["uploads"], shown["schedule"]
    assert shown["objective"] == best.objective
    assert uploads["device"] == drawn["device"] == best.selected.tolist()
    first, width = np.array(drawn["first"]), np.array(drawn["width"])
    np.testing.assert_allclose(uploads["block"], first)
    np.testing.assert_allclose(uploads["width"], width)
    np.testing.assert_allclose(uploads["start_s"], drawn["start_s"])
    held_s = np.array(drawn["end_s"]) - np.array(drawn["start_s"])
    np.testing.assert_allclose(held_s, uploads["delay_s"])
    assert max(drawn["end_s"]) == pytest.approx(best.upload_delay_s)
    sent = 10 ** (np.array(uploads["sinr_db"]) / 10)
    rate = width * problem.bandwidth_hz * problem.rate.spectral_efficiency(sent)
    np.testing.assert_allclose(held_s * rate, view["model_bits"], rtol=1e-9)
    if access == "tdma":
        assert set(width) == {6.0}
        np.testing.assert_allclose(drawn["start_s"][1:], drawn["end_s"][:-1])
    elif access == "shared-band":
        np.testing.assert_allclose(first[1:], (first + width)[:-1])
        assert (first + width)[-1] <= 6 * (1 + 1e-9)
    else:
        taken = [int(b) + k for b, w in zip(first, width, strict=True) for k in range(round(w))]
        assert sorted(taken) == list(range(6))


def test_blocks_that_fall_free_go_on_in_the_picture(page: Page) -> None:
    asked = question(page, access="blocks")  # its uploads do not all end together
    handed = {**asked, "view": asked["view"] | {"work_conserving": True}}
    for name in ("optimal", "threshold"):
        before = page.ask("methods", asked).json[name]
        after = page.ask("methods", handed).json[name]
        assert after["objective"] == before["objective"]
        assert len(after["schedule"]["device"]) > len(before["schedule"]["device"])
        assert max(after["schedule"]["end_s"]) <= max(before["schedule"]["end_s"]) * (1 + 1e-12)
    told = page.ask("cell", handed).json["optimal"]["schedule"]
    assert told == page.ask("methods", {**handed, "methods": ["optimal"]}).json["optimal"]["schedule"]


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
