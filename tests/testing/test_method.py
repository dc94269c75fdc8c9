"""What a broken allocation method is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import Method, Status, allocate
from fedwave.testing import check_method
from tests.testing.broken import complaint


def serving(change: Any) -> Method:
    """Return a method that serves as fedl-power does, and then is changed."""

    def own(problem: Any, *, selected: Any) -> Any:
        return change(problem, allocate(problem, "fedl-power", selected=selected))

    return Method(own, serves_given_devices=True)


def overspends(problem: Any, found: Any) -> Any:
    loud = np.where(found.block_of_device >= 0, 2.0 * problem.max_power_w, 0.0)
    return replace(found, transmit_power_w=loud)


def boasts(problem: Any, found: Any) -> Any:
    return replace(found, objective=found.objective + 1.0)


def too_low_a_bound(problem: Any, found: Any) -> Any:
    return replace(found, upper_bound=found.objective - 1.0)


def changes_the_problem(problem: Any, found: Any) -> Any:
    contribution = problem.contribution
    contribution.flags.writeable = True
    contribution[:] = 0.0
    return found


def has_luck_of_its_own(problem: Any, found: Any) -> Any:
    return replace(found, iterations=int(np.random.default_rng().integers(1 << 60)))


def is_silent(problem: Any, found: Any) -> Any:
    return replace(found, status=Status.INFEASIBLE, reason="")


def returns_nothing(problem: Any, found: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (overspends, r"must keep every limit of the problem, got device \d+ transmits at .*max_power_w"),
        (boasts, r"objective must be U - eta_1 E - eta_2 T = "),
        (too_low_a_bound, r"upper_bound must not lie below the objective"),
        (changes_the_problem, r"solve must leave its inputs alone, got another .*contribution"),
        (has_luck_of_its_own, r"solve must answer alike .* iterations"),
        (is_silent, r"must say why a problem is infeasible, got no reason"),
        (returns_nothing, r"must return an Allocation, got None"),
    ],
)
def test_a_broken_method_is_named_with_what_it_must_do(change: Any, message: str) -> None:
    assert complaint(message, check_method, serving(change))


def test_a_method_that_is_given_devices_keeps_to_them() -> None:
    def own(problem: Any, *, may_upload: Any) -> Any:
        return allocate(problem, "optimal")

    said = complaint("must keep to may_upload = ", check_method, Method(own, serves_given_devices=False))
    assert said.startswith("own ")


def test_a_method_without_faults_passes() -> None:
    check_method(serving(lambda problem, found: found))
    check_method("ives", start=2.0)


def test_a_registered_method_signs_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedwave.allocation import METHODS

    monkeypatch.setitem(METHODS, "mine", METHODS["fedl-power"])
    assert complaint("mine must sign as mine, got fedl-power", check_method, "mine")
