"""Adaptive local steps: estimates, costs and the choice after a round, each by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError, ProblemError
from fedwave.server import AdaptiveSteps, BatteryReport, Outcome, Plan, Reports, RoundCosts, StepsHeard
from fedwave.server.steps_bound import Budget, Landscape
from tests.server.test_steps_bound import plain_bound

TAU = 3


def costs(**changes: Any) -> RoundCosts:
    """Three devices: 8 and 4 s of computing for 4 gradients, 2 J in all; the round is 30 s and 12 J."""
    zero = np.zeros(3)
    usual: dict[str, Any] = {
        "compute_energy_j": np.array([1.25, 0.75, 0.0]),
        "compute_time_s": np.array([8.0, 4.0, 0.0]),
        "upload_energy_j": np.array([5.0, 5.0, 0.0]),
        **dict.fromkeys(
            ("report_energy_j", "report_time_s", "upload_time_s", "idle_energy_j", "idle_time_s"), zero
        ),
        "delay_s": 30.0,
    }
    return RoundCosts(**{**usual, **changes})


def heard(*, received: tuple[int, ...] = (0, 2), weights: Any = None, **outcome: Any) -> StepsHeard:
    who = np.array([0, 2, 3])  # device 1 was not asked
    return StepsHeard(
        num_local_steps=TAU,
        reports=Reports(
            device_index=who,
            contribution=np.zeros(3),
            loss=np.zeros(3),
            num_samples=np.array([5, 5, 5]),
            gradient_norms=np.ones((3, TAU)),
            loss_lipschitz=np.array([1.0, 3.0, 100.0]),
            smoothness=np.array([4.0, 8.0, 100.0]),
            num_gradients=TAU + 1,
        ),
        plan=Plan(selected=np.array([0, 2]), weights=weights),
        outcome=Outcome(np.array(received, dtype=np.int64), np.zeros(2, dtype=np.int64), costs(), **outcome),
        gradient_divergence=np.array([2.0, 6.0])[: len(received)],
    )


def adaptive(**changes: Any) -> AdaptiveSteps:
    usual = {"num_local_steps": 1, "step_size": 0.01, "budget_j": 500.0, "phi": 0.025}
    return AdaptiveSteps(**{**usual, **changes})


def value(state: Any, name: str) -> float:
    return float(state[name][0])


def test_estimates_are_means_over_those_that_arrived() -> None:
    state = adaptive().after(heard(), adaptive().initial_state())
    assert value(state, "loss_lipschitz") == 2.0
    assert value(state, "smoothness") == 6.0
    assert value(state, "gradient_divergence") == 4.0


def test_estimates_weigh_as_the_models_do() -> None:
    state = adaptive().after(heard(weights=np.array([1.0, 3.0])), adaptive().initial_state())
    assert value(state, "loss_lipschitz") == 2.5
    assert value(state, "smoothness") == 7.0
    assert value(state, "gradient_divergence") == 5.0


def test_smoothing_keeps_a_share_of_what_was_known() -> None:
    steps = adaptive(smoothing=0.75)
    first = steps.after(heard(), steps.initial_state())
    assert value(first, "smoothness") == 6.0  # nothing was known before
    second = steps.after(heard(weights=np.array([1.0, 3.0])), first)
    assert value(second, "smoothness") == 0.75 * 6.0 + 0.25 * 7.0


# of a gradient 8/4 s and 2/4 J; of the rest 30 - 3 * 2 s and 12 - 3 * 0.5 J, the gradient more among it
SECONDS = {"step": 2.0, "fixed": 24.0}
JOULES = {"step": 0.5, "fixed": 10.5}


@pytest.mark.parametrize("phi", [1e-6, 0.025, 2.0])
@pytest.mark.parametrize(
    "budgets", [{"budget_j": 500.0}, {"budget_s": 900.0}, {"budget_j": 500.0, "budget_s": 600.0}]
)
def test_the_choice_is_the_least_bound_of_all_in_the_window(phi: float, budgets: dict[str, float]) -> None:
    steps = adaptive(**{"budget_j": None, **budgets}, phi=phi)
    state = steps.after(heard(), steps.initial_state())
    land = Landscape(loss_lipschitz=2.0, smoothness=6.0, gradient_divergence=4.0, step_size=0.01)
    known = [
        Budget(total=total, **(JOULES if name == "budget_j" else SECONDS)) for name, total in budgets.items()
    ]
    plain = [plain_bound(tau, land, known, phi) for tau in range(1, 10 * TAU + 1)]
    tau = int(state["num_local_steps"][0])
    assert tau == 1 + int(np.argmin(plain))
    assert value(state, "control_bound") == pytest.approx(plain[tau - 1], rel=1e-9)
    h = 4.0 / 6.0 * (1.06**tau - 1) - 0.04 * tau
    assert value(state, "drift_bound") == pytest.approx(h, rel=1e-9)


def agreed() -> StepsHeard:
    """A round whose devices agree: nothing drifts, so that ever more steps are ever better."""
    return replace(heard(), gradient_divergence=np.zeros(2))


def test_the_window_grows_by_a_factor_and_ends_at_the_most_steps() -> None:
    for growth, max_steps, expected in ((2, 100, 6), (10, 100, 30), (10, 17, 17), (1, 100, 3)):
        steps = adaptive(growth=growth, max_steps=max_steps)
        assert steps.after(agreed(), steps.initial_state())["num_local_steps"].tolist() == [expected]


def test_steps_are_lowered_to_what_is_left_and_the_run_ends_before_it_overspends() -> None:
    # 12 J are spent, 10.5 + 0.5 tau more are to come
    for total, expected in ((27.4, 9), (27.0, 9), (26.99, 8), (23.0, 1), (22.99, 0), (13.0, 0)):
        steps = adaptive(budget_j=total)
        state = steps.after(agreed(), steps.initial_state())
        assert state["num_local_steps"].tolist() == [expected], total
        assert value(state, "spent_j") == 12.0
        assert np.isnan(value(state, "control_bound")) == (expected == 0)


def test_what_is_spent_adds_up_and_pauses_count_with_batteries() -> None:
    steps = adaptive(budget_s=900.0)
    battery = BatteryReport(
        charge_j=np.ones(3), capacity_j=np.ones(3), is_awake=np.ones(3, dtype=bool), harvested_j=np.zeros(3),
        clock_s=70.0,
    )  # fmt: skip
    first = steps.after(heard(battery=battery), steps.initial_state())
    assert value(first, "spent_s") == 70.0
    second = steps.after(heard(battery=replace(battery, clock_s=95.0)), first)
    assert value(second, "spent_s") == 95.0
    assert value(second, "spent_j") == 24.0


def test_a_round_without_uploads_tells_costs_alone() -> None:
    steps = adaptive()
    nothing = steps.after(heard(received=()), steps.initial_state())
    assert nothing["num_local_steps"].tolist() == [TAU]
    assert np.isnan(value(nothing, "smoothness"))
    known = steps.after(heard(), steps.initial_state())
    after = steps.after(heard(received=()), known)
    for name in ("loss_lipschitz", "smoothness", "gradient_divergence"):
        assert value(after, name) == value(known, name)
    assert value(after, "spent_j") == 24.0


def test_models_that_do_not_move_are_taken_for_smooth() -> None:
    still = heard()
    reports = replace(still.reports, loss_lipschitz=np.zeros(3), smoothness=np.zeros(3))
    steps = adaptive()
    state = steps.after(replace(still, reports=reports), steps.initial_state())
    assert state["num_local_steps"].tolist() == [30]  # no rise, whatever the drift


def test_states_keep_names_shapes_and_types() -> None:
    first = adaptive().initial_state()
    after = adaptive().after(heard(), first)
    assert {name: (v.shape, v.dtype) for name, v in first.items()} == {
        name: (v.shape, v.dtype) for name, v in after.items()
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"budget_j": None},
            "adaptive local steps need a budget, got none. Set stop.time_s or stop.energy_j, over a cell.",
        ),
        (
            {"phi": 0.0},
            "adaptive local steps need phi > 0, growth >= 1, max_steps >= 1 and 0 <= smoothing < 1, got 0, "
            "10, 100 and 0. Change what is not.",
        ),
        ({"growth": 0}, "growth >= 1"),
        ({"max_steps": 0}, "max_steps >= 1"),
        ({"smoothing": 1.0}, "smoothing < 1"),
        ({"smoothing": -0.1}, "smoothing < 1"),
        (
            {"num_local_steps": 101},
            "algorithm.num_local_steps, tau of the first round, must be within max_steps = 100, got 101. "
            "Raise max_steps.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        adaptive(**changes)
    assert message in str(caught.value)


def test_what_is_not_measured_or_counted_is_said() -> None:
    steps, full = adaptive(), heard()
    first = steps.initial_state()
    unmeasured = replace(full, reports=replace(full.reports, smoothness=None))
    with pytest.raises(ProblemError, match="need every device's loss_lipschitz and smoothness, got none"):
        steps.after(unmeasured, first)
    free = replace(full, outcome=replace(full.outcome, costs=None))
    with pytest.raises(ProblemError, match="need to hear what a round cost, got nothing"):
        steps.after(free, first)
    with pytest.raises(ProblemError, match="need to hear what computing cost, got nothing"):
        steps.after(replace(full, reports=replace(full.reports, num_gradients=None)), first)
