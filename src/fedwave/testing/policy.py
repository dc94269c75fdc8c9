"""The contract of selection policies: sorted devices out of the candidates, by rng and state alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fedwave.selection import POLICY, Candidates, DrawsCandidates, History, KeepsState, SelectionPolicy
from fedwave.server import PolicyPlanner, PolicyRunner
from fedwave.testing.contract import Contract, create, require_devices, require_state
from fedwave.testing.planner import NUM_SAMPLES, check_rounds, small_cell_planner

LARGEST_INDEX = 60  # candidates are some of the devices 0 to 59
MEMBERS = ("num_selected", "needs_reports", "ask", "select")


def check_policy(part: Any, /, **options: Any) -> None:
    """Raise unless a policy keeps its contract: one device, fewer than it may select, equal scores, gaps, …

    It is called with ``num_selected`` and its options.
    """
    contract = Contract.of(part)
    for seed, (everybody, num_selected) in enumerate(crowds()):
        policy = create(POLICY, part, options, num_selected=num_selected)
        _check_properties(contract, policy, num_selected)
        _check_choice(contract, policy, _with_first_state(contract, policy, everybody), seed)

    def runner() -> PolicyRunner:
        return PolicyRunner(create(POLICY, part, options, num_selected=3), NUM_SAMPLES, seed=0)

    check_rounds(contract, lambda: PolicyPlanner(runner()), over="ideal")
    check_rounds(contract, lambda: small_cell_planner(runner(), "fedl-power"), over="cell")


def crowds() -> Iterator[tuple[Candidates, int]]:
    """Yield candidates and a number to select: one and many, with gaps, with equal scores, with a past."""
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 25):
        for num_selected in (1, 3, 30):
            for values in (
                rng.integers(-3, 4, count).astype(np.float64),
                np.zeros(count),
                rng.normal(size=count),
            ):
                last = rng.integers(-1, 5, count)
                history = History(
                    times_selected=np.where(last >= 0, rng.integers(1, 5, count), 0),
                    last_selected=last,
                    last_contribution=np.where(last >= 0, values, np.nan),
                    last_loss=np.where(last >= 0, np.abs(values), np.nan),
                )
                everybody = Candidates(
                    device_index=np.sort(rng.choice(LARGEST_INDEX, count, replace=False)),
                    num_samples=rng.integers(1, 50, count),
                    history=history,
                    contribution=values,
                    loss=np.abs(values[::-1]),
                    round_index=5,
                )
                yield everybody, num_selected


def _check_properties(contract: Contract, policy: SelectionPolicy, num_selected: int) -> None:
    missing = [name for name in MEMBERS if not hasattr(policy, name)]
    contract.require(not missing, f" must have {', '.join(MEMBERS)}", f"none of {missing}", "Add them.")
    got: object = policy.num_selected
    fix = "Keep the number that it is called with."
    contract.require(got == num_selected, f".num_selected must be {num_selected}", got, fix)
    needs: object = policy.needs_reports
    contract.require(isinstance(needs, bool), ".needs_reports must be True or False", needs, "Say which.")


def _with_first_state(contract: Contract, policy: SelectionPolicy, everybody: Candidates) -> Candidates:
    if not isinstance(policy, KeepsState):
        return everybody
    state = contract.answer("initial_state", policy.initial_state, LARGEST_INDEX)
    require_state(contract, "initial_state", state)
    return replace(everybody, state=state)


def _check_choice(contract: Contract, policy: SelectionPolicy, everybody: Candidates, seed: int) -> None:
    unheard = replace(everybody, contribution=None, loss=None)
    asked = contract.answer("ask", policy.ask, unheard, seed=seed)
    require_devices(contract, "ask", asked, everybody.device_index)
    if isinstance(policy, DrawsCandidates) and policy.num_candidates is not None:
        fix = "All models are kept until it has chosen: name the largest number."
        fits = len(asked) <= policy.num_candidates
        contract.require(
            fits, f".ask must ask at most num_candidates = {policy.num_candidates}", len(asked), fix
        )
    for who in (asked, asked[1::2], asked[:0]):  # some of those that were asked may not report
        reporting = everybody.among(who)
        selected = contract.answer("select", policy.select, reporting, seed=seed)
        require_devices(contract, "select", selected, who)
        fix = "Take min(self.num_selected, len(candidates))."
        most = f".select must choose at most num_selected = {policy.num_selected}"
        contract.require(len(selected) <= policy.num_selected, most, len(selected), fix)
        if not policy.needs_reports:
            assert reporting.contribution is not None
            assert reporting.loss is not None
            other = replace(
                reporting, contribution=-reporting.contribution, loss=reporting.loss + np.arange(len(who))
            )
            again = policy.select(other, rng=np.random.default_rng(seed))
            contract.same(selected, again, ".select with needs_reports = False must not look at reports")
