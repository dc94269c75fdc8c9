"""The contract of planners: pure, sorted answers, and a state of arrays that carries all memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from fedwave.errors import shown
from fedwave.selection import TopContribution
from fedwave.server import (
    PLANNER,
    CellPlanner,
    Outcome,
    Plan,
    Planner,
    PolicyPlanner,
    PolicyRunner,
    RadioTerms,
    Reports,
    RoundAims,
    RoundCosts,
    Work,
)
from fedwave.testing.contract import (
    Contract,
    create,
    require_devices,
    require_state,
    through_a_checkpoint,
)
from fedwave.units import IntArray
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw

NUM_DEVICES, NUM_BLOCKS, NUM_ROUNDS = 9, 4, 4
NUM_SAMPLES: IntArray = np.resize(np.array([4, 8]), NUM_DEVICES)
_RNG = np.random.default_rng(5)
# Gains and limits as in Table III, with a gain for each block.
CHANNEL = ChannelDraw(_RNG.uniform(0.1, 1.0, (NUM_DEVICES, NUM_BLOCKS)), _RNG.uniform(0.0, 0.8, NUM_BLOCKS))
FLEET = Fleet(
    max_power_w=_RNG.uniform(0.1, 1.0, NUM_DEVICES),
    max_frequency_hz=_RNG.uniform(0.1, 2.0, NUM_DEVICES),
    capacitance=_RNG.uniform(0.0, 1.0, NUM_DEVICES),
    cycles_per_sample=_RNG.uniform(0.0, 0.25, NUM_DEVICES),
)
# What a planner may reach of others.
MEMBERS = ("initial_state", "ask", "plan", "after", "with_devices", "max_models", "num_blocks", "describe")


def check_planner(part: Any, /, *, over: Literal["cell", "ideal"] = "cell", **options: Any) -> None:
    """Raise unless a planner keeps its contract, over a small cell whose rounds cost joules, or without one.

    The part is called with ``planner``, the one that the settings would describe, if it names it.
    """
    contract = Contract.of(part)
    policy = PolicyRunner(TopContribution(3), NUM_SAMPLES, seed=0)
    inner: Planner = PolicyPlanner(policy) if over == "ideal" else small_cell_planner(policy)
    check_rounds(contract, lambda: create(PLANNER, part, options, planner=inner), over=over)


def small_cell_planner(runner: PolicyRunner, method: str = "optimal") -> CellPlanner:
    """Return a planner for the cell of these checks."""
    return CellPlanner(
        runner=runner,
        fleet=FLEET,
        terms=RadioTerms(num_blocks=NUM_BLOCKS, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0),
        aims=RoundAims(energy_weight=1.0, delay_weight=1.0),
        work=Work(model_bits=1.0, num_local_steps=2, num_samples=runner.num_samples),
        method=method,
    )


def check_rounds(contract: Contract, make: Callable[[], Planner], *, over: Literal["cell", "ideal"]) -> None:
    """Play some rounds: all report, some, nobody; and go on with a planner that has only the saved state."""
    planner = make()
    missing = [name for name in MEMBERS if not hasattr(planner, name)]
    fix = "Derive it from fedwave.server.PlannerDefaults or PlannerAround, which have the others."
    contract.require(not missing, f" must have {', '.join(MEMBERS)}", f"none of {missing}", fix)
    _check_properties(contract, planner)
    channel = CHANNEL if over == "cell" else None
    state = contract.answer("initial_state", planner.initial_state)
    require_state(contract, "initial_state", state)
    for k in range(NUM_ROUNDS):
        asked = contract.answer("ask", planner.ask, k, state)
        require_devices(contract, "ask", asked, range(NUM_DEVICES))
        resumed = make().ask(k, through_a_checkpoint(state))
        contract.same(asked, resumed, ".ask must rest on the state alone, so that a run can be resumed")
        for who in (asked[:0], asked[::2], asked):  # the last of them goes on
            reports = _reports(k, who)
            plan = contract.answer("plan", planner.plan, k, asked, reports, channel, state)
            _check_plan(contract, plan, who, over)
            outcome = _outcome(plan, k, over)
            after = contract.answer("after", planner.after, k, reports, plan, outcome, state)
            require_state(contract, "after", after, like=state)
        state = after


def _check_properties(contract: Contract, planner: Planner) -> None:
    most: object = planner.max_models
    is_count = isinstance(most, int) and not isinstance(most, bool) and most >= 1
    contract.require(is_count, ".max_models must be a whole number >= 1", most, "Use PlannerDefaults' own.")
    blocks: object = planner.num_blocks
    is_known = blocks is None or (isinstance(blocks, int) and not isinstance(blocks, bool) and blocks >= 1)
    fix = "Use that of PlannerDefaults or PlannerAround."
    contract.require(is_known, ".num_blocks must be a whole number >= 1, or None without a cell", blocks, fix)
    told = contract.call("describe", planner.describe)
    try:
        json.dumps(dict(told))
    except (TypeError, ValueError) as error:
        contract.require(False, ".describe must return what JSON takes", str(error), "Use plain numbers.")
    some = np.arange(0, NUM_DEVICES, 2)
    around = contract.call("with_devices", planner.with_devices, present=some, num_samples=NUM_SAMPLES)
    fix = "Return a planner, e.g. self."
    contract.require(hasattr(around, "plan"), ".with_devices must return a planner", shown(around), fix)


def _check_plan(contract: Contract, plan: Plan, reported: IntArray, over: str) -> None:
    contract.require(isinstance(plan, Plan), ".plan must return a Plan", plan, "Use fedwave.server.Plan.")
    require_devices(contract, "plan", plan.selected, reported)
    if over == "ideal":
        return
    fix = "Let a planner over a cell allocate: allocate(problem, ...)."
    allocation = plan.allocation
    contract.require(allocation is not None, ".plan must allocate the radio of a cell", None, fix)
    assert allocation is not None
    fix = "Select exactly the devices that have a block."
    on_block = np.flatnonzero(allocation.block_of_device >= 0)
    what = f".plan must give a block to those that it selects, {plan.selected.tolist()}"
    contract.require(np.array_equal(on_block, plan.selected), what, on_block.tolist(), fix)
    blocks = allocation.block_of_device[on_block].tolist()
    contract.require(len(set(blocks)) == len(blocks), ".plan must give each block to one device", blocks, fix)
    power_w = allocation.transmit_power_w
    fits = ((power_w >= 0) & (power_w <= FLEET.max_power_w * (1 + 1e-9))).all()
    contract.require(fits, ".plan must keep within max_power_w", power_w, "Lower the power.")


def _reports(round_index: int, who: IntArray) -> Reports:
    """Return what these devices report: contributions that change from round to round, some of them equal."""
    worth = np.roll([30.0, -4.0, 80.0, 55.0, 10.0, 80.0, 2.0, 41.0, 60.0], 2 * round_index)[who]
    return Reports(
        device_index=who,
        contribution=worth,
        loss=100.0 - worth,
        num_samples=NUM_SAMPLES[who],
        gradient_norms=np.ones((len(who), 2)),
    )


def _outcome(plan: Plan, round_index: int, over: str) -> Outcome:
    """Return what becomes of a plan: in odd rounds the first upload is lost; a cell counts the costs."""
    lost = round_index % 2
    fate: IntArray = np.full(len(plan.selected), int(UploadFate.ARRIVED), dtype=np.int64)
    fate[:lost] = int(UploadFate.OUTAGE)
    if over == "ideal":
        return Outcome(plan.selected[lost:], fate)
    spent = np.random.default_rng(round_index).uniform(0.0, 1.0, (6, NUM_DEVICES))
    costs = RoundCosts(
        compute_energy_j=spent[0],
        compute_time_s=spent[1],
        report_energy_j=spent[2],
        report_time_s=spent[3],
        upload_energy_j=spent[4],
        upload_time_s=spent[5],
        idle_energy_j=np.zeros(NUM_DEVICES),
        idle_time_s=np.zeros(NUM_DEVICES),
        delay_s=float(spent[1::2].sum(axis=0).max()),
    )
    return Outcome(plan.selected[lost:], fate, costs)
