"""Deadlines and circuit power of each device's own beyond the solver: files, words, evaluation, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from fedwave.allocation import (
    Status,
    allocate,
    allocate_many,
    describe,
    evaluate,
    load_problem,
    parse_problem,
    violations,
)
from fedwave.allocation.problem_file import problem_tables
from fedwave.errors import ProblemError
from fedwave.explore.delay_curve import delay_curve
from fedwave.plots.allocation import plot_allocation
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_problems import small_problem

OWN_S = np.array([4.0, np.inf, 2.5])
OWN_W = np.array([0.0, 0.2, 0.1])
PROBLEM = small_problem(max_delay_s=OWN_S, radio=RadioPower(amplifier_efficiency=0.5, circuit_power_w=OWN_W))


def test_a_problem_file_holds_them_and_gives_them_back() -> None:
    tables = problem_tables(PROBLEM)
    assert tables["devices"]["max_delay_s"] == OWN_S.tolist()
    assert tables["devices"]["circuit_power_w"] == OWN_W.tolist()
    assert "max_delay_s" not in tables["limits"]
    assert "circuit_power_w" not in tables["radio"]
    back = parse_problem(tomli_w.dumps(tables))
    np.testing.assert_array_equal(np.asarray(back.max_delay_s), OWN_S)
    np.testing.assert_array_equal(np.asarray(back.radio.circuit_power_w), OWN_W)
    assert allocate(back).objective == allocate(PROBLEM).objective
    one = problem_tables(replace(PROBLEM, max_delay_s=2.0, radio=RadioPower(circuit_power_w=0.1)))
    assert (one["limits"]["max_delay_s"], one["radio"]["circuit_power_w"]) == (2.0, 0.1)
    assert not {"max_delay_s", "circuit_power_w"} & set(one["devices"])


def test_a_table_of_devices_may_have_them_as_columns(tmp_path: Path) -> None:
    tables = problem_tables(replace(PROBLEM, max_delay_s=None, radio=RadioPower()))
    (tmp_path / "problem.toml").write_text(tomli_w.dumps(tables))
    (tmp_path / "devices.csv").write_text("max_delay_s,circuit_power_w\n4,0\n9,0.2\n2.5,0.1\n")
    found = load_problem(tmp_path / "problem.toml", devices_csv=tmp_path / "devices.csv")
    assert np.asarray(found.max_delay_s).tolist() == [4.0, 9.0, 2.5]
    assert np.asarray(found.radio.circuit_power_w).tolist() == OWN_W.tolist()


def test_stacked_problems_pictures_and_json_take_them() -> None:
    found = allocate(PROBLEM)
    gains = np.array([PROBLEM.channel_gain, 2.0 * PROBLEM.channel_gain])
    assert allocate_many(PROBLEM, stacked={"channel_gain": gains})[0].objective == found.objective
    assert describe(PROBLEM, found)["objective"] == found.objective
    plot_allocation(PROBLEM, found).clear()
    curve = delay_curve(PROBLEM, found)
    assert curve is not None
    assert curve.objective.max() == pytest.approx(found.objective)


def test_an_upload_past_its_own_deadline_is_named_and_broken_off_there() -> None:
    plan = allocate(small_problem())
    device = int(plan.selected[0])
    own_s = np.full(3, np.inf)
    own_s[device] = 0.5 * plan.upload_delay_s
    circuit_w = np.array([1.0, 2.0, 4.0])
    truth = small_problem(max_delay_s=own_s, radio=RadioPower(circuit_power_w=circuit_w))
    (line,) = violations(truth, plan)
    assert line.startswith(f"device {device} uploads for ")
    assert line.endswith(f"above {own_s[device]:g} (max_delay_s)")
    met = evaluate(plan, truth)
    assert met.lost.tolist() == [device]
    assert met.account.upload_delay_s[device] == own_s[device]
    drain_w = plan.transmit_power_w[device] + circuit_w[device]
    assert met.account.upload_energy_j[device] == pytest.approx(drain_w * own_s[device], rel=1e-12)


def test_who_cannot_meet_its_own_deadline_is_named_with_it() -> None:
    found = allocate(small_problem(max_delay_s=np.array([1e-3, 1e-2, 1e-3])))
    assert found.status is Status.INFEASIBLE
    assert found.reason.startswith("device 1 cannot finish by 0.01 s even at full power (it needs ")
    assert found.reason.endswith("and no other device can")


def test_what_cannot_be_is_refused_in_one_line() -> None:
    with pytest.raises(ProblemError, match=r"max_delay_s must have shape \(3,\), got \(2,\)"):
        small_problem(max_delay_s=np.array([1.0, 2.0]))
    with pytest.raises(ProblemError, match=r"max_delay_s must be > 0, got 0 at index 1"):
        small_problem(max_delay_s=np.array([1.0, 0.0, 2.0]))
    with pytest.raises(ProblemError, match=r"max_delay_s must be finite, got nan at index 2"):
        small_problem(max_delay_s=np.array([1.0, 1.0, np.nan]))
    with pytest.raises(ProblemError, match=r"radio.circuit_power_w must have shape \(3,\), got \(2,\)"):
        small_problem(radio=RadioPower(circuit_power_w=np.array([1.0, 2.0])))
    for wrong in (np.array([1.0, -2.0]), np.array([np.inf, 1.0]), np.array([np.nan])):
        with pytest.raises(ProblemError, match="circuit_power_w must be >= 0, got"):
            RadioPower(circuit_power_w=wrong)
    with pytest.raises(ProblemError, match="delay_weight must be > 0 when there is no max_delay_s"):
        small_problem(delay_weight=0.0, max_delay_s=np.array([1.0, np.inf, 2.0]))
    for own in ({"max_delay_s": np.ones(3)}, {"radio": RadioPower(circuit_power_w=np.ones(3))}):
        with pytest.raises(ProblemError, match="needs one .* for all, got one for each device"):
            small_problem(access="tdma", interference_w=np.zeros(2), **own)


def test_radios_of_many_devices_are_compared_by_their_values() -> None:
    one, same = (RadioPower(circuit_power_w=np.array([0.1, 0.2])) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != RadioPower(circuit_power_w=np.array([0.1, 0.3]))
    assert one != RadioPower(circuit_power_w=0.1)
    assert one != "radio"
    assert RadioPower(amplifier_efficiency=0.5) != RadioPower()
    assert one.of(np.array([1])).circuit_power_w == 0.2
    assert RadioPower(circuit_power_w=0.3).of(np.array([1])).circuit_power_w == 0.3
    assert (RadioPower().has_circuit, one.has_circuit) == (False, True)
