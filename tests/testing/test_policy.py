"""What a broken policy is told: one line that names it, what it must do, and the fix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.selection import TopContribution, Uniform
from fedwave.testing import check_policy
from tests.testing.broken import complaint


@dataclass(frozen=True)
class Chosen(TopContribution):
    """Selects as it likes; a test breaks one thing at a time."""

    def select(self, candidates: Any, *, rng: Any) -> Any:
        return candidates.device_index[self.positions(candidates, rng)]

    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.arange(min(self.num_selected, len(candidates)))


class Unsorted(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.argsort(-candidates.contribution, kind="stable")[: self.num_selected]


class Repeated(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.zeros(min(2, len(candidates)), dtype=int)


class TooMany(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.arange(len(candidates))


class Positions(Chosen):
    def select(self, candidates: Any, *, rng: Any) -> Any:
        return np.arange(min(self.num_selected, len(candidates)))  # not the devices' indices


class Reals(Chosen):
    def select(self, candidates: Any, *, rng: Any) -> Any:
        return candidates.device_index[: self.num_selected].astype(float)


class Mutates(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        candidates.contribution[:] = 0.0
        return super().positions(candidates, rng)


class OwnLuck(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        count = min(self.num_selected, len(candidates))
        return np.sort(np.random.default_rng().choice(len(candidates), count, replace=False))


class NeedsSomebody(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.flatnonzero(candidates.contribution >= candidates.contribution.max())[: self.num_selected]


@dataclass(frozen=True)
class Peeks(Chosen):
    needs_reports: bool = False

    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.flatnonzero(candidates.contribution > 0)[: self.num_selected]


class AsksStrangers(Chosen):
    def ask(self, candidates: Any, *, rng: Any) -> Any:
        return np.arange(61)


class Shy(Uniform):
    num_candidates = 0


@dataclass(frozen=True)
class Remembers(Uniform):
    """Keeps a round count in the object, which no checkpoint holds."""

    rounds: list[int] = field(default_factory=list)

    def ask(self, candidates: Any, *, rng: Any) -> Any:
        self.rounds.append(1)
        return candidates.device_index[: 1 + len(self.rounds) % 2]


class Forgets(Chosen):
    """Its state changes its shape."""

    def initial_state(self, num_devices: int) -> Any:
        return {"seen": np.zeros(num_devices)}

    def after(self, result: Any) -> Any:
        return {"seen": result.selected}


class Pickled(Chosen):
    def initial_state(self, num_devices: int) -> Any:
        return {"seen": np.array([{}] * num_devices)}

    def after(self, result: Any) -> Any:
        return result.state


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Unsorted, r"Unsorted\.select must return sorted, distinct devices, got \[.*\]\. Return candidates"),
        (Repeated, r"select must return sorted, distinct devices"),
        (TooMany, r"select must choose at most num_selected = 1, got 2\. Take min"),
        (Positions, r"select must choose among \[.*\], got \["),
        (Reals, r"select must return a 1-D array of device indices, got array"),
        (Mutates, r"select must leave its inputs alone, got another .*contribution.* Work on a copy"),
        (OwnLuck, r"select must answer alike to the same inputs and the same rng"),
        (NeedsSomebody, r"select must answer whatever its contract allows, got ValueError: zero-size"),
        (Peeks, r"select with needs_reports = False must not look at reports"),
        (AsksStrangers, r"ask must choose among"),
        (Shy, r"ask must ask at most num_candidates = 0, got 1\."),
        (Remembers, r"ask must answer alike"),
        (Forgets, r"after must answer whatever .* names, shapes and types of initial_state"),
        (Pickled, r"initial_state must return an array of numbers as seen"),
        (lambda num_selected: Uniform(num_selected + 1), r"num_selected must be 1, got 2"),
        (lambda: Uniform(1), r"num_selected must be 3, got 1"),
        (lambda num_selected: object(), r"must have num_selected, needs_reports, ask, select, got none of"),
        (lambda num_selected: Uniform(num_selected, needs_reports=None), r"must be True or False, got None"),
        (lambda num_selected: 1 / 0, r"must be made of its options and what it is offered, got ZeroDivision"),
    ],
)
def test_a_broken_policy_is_named_with_what_it_must_do(policy: Any, message: str) -> None:
    assert complaint(message, check_policy, policy)


def test_a_policy_without_faults_passes_by_class_function_and_name() -> None:
    check_policy(Chosen)
    check_policy(lambda num_selected: Chosen(num_selected))
    check_policy("tests.testing.test_policy:Chosen")
    check_policy("power-of-choice", num_candidates=30)
    with pytest.raises(ConfigError, match="has no option 'price'"):
        check_policy(Chosen, price=1.0)
    with pytest.raises(ConfigError, match='no selection policy "unifrom". Did you mean "uniform"'):
        check_policy("unifrom")
