"""Every method by its name, and one call for all of them: ``allocate(problem, method="optimal")``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Any

import numpy as np

from fedwave.allocation.access.checks import ACCESSES
from fedwave.allocation.baselines.chen2020 import allocate_chen2020
from fedwave.allocation.baselines.equal_split import allocate_equal_split
from fedwave.allocation.baselines.fedl_power import allocate_fedl_power
from fedwave.allocation.baselines.greedy import allocate_greedy
from fedwave.allocation.baselines.ives import allocate_ives
from fedwave.allocation.baselines.many_starts import allocate_ives_multistart, allocate_threshold
from fedwave.allocation.baselines.proportional_fair import allocate_proportional_fair
from fedwave.allocation.baselines.random import allocate_random
from fedwave.allocation.baselines.value_rate import allocate_value_rate
from fedwave.allocation.constraints import violations
from fedwave.allocation.optimal.solve import allocate_optimal
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status, account, build_allocation
from fedwave.errors import ProblemError, require_type, shown
from fedwave.parts import PartKind, signature_of
from fedwave.units import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Method:
    """A way to solve (P): a function, and what it can do.

    ``allocate`` calls ``solve(problem, ...)`` with the rest by keyword. A method that serves given devices
    takes ``selected``, their sorted indices, at most one per block. A method that chooses takes
    ``may_upload``, a mask of those to choose among, or None for all. ``rng`` is passed on if the function
    names it, and is asked for if it has no default there; so is ``mean_rate_bps``, the devices' mean rates in
    earlier rounds. All other parameters are the method's options.
    A method that does not plan for risks is handed the problem without them, and what it plans then meets
    them: ``allocate`` counts what arrives, and the status is LOST if something does not.
    """

    solve: Callable[..., Allocation]
    serves_given_devices: bool  # True: serves exactly the devices it is given; False: chooses among them
    plans_for_risks: bool = True  # outage, packet errors and the round's deadline are no surprise to it
    keeps_total_energy: bool = False  # knows a limit on computing and upload together; others are refused it
    accesses: tuple[str, ...] = ("one-block",)  # the ways to share the blocks that it knows
    takes_offers: bool = False  # chooses among several offers (u, S) of a device, and knows sizes of its own

    def __post_init__(self) -> None:
        known = signature_of(self.solve).parameters
        needed = "selected" if self.serves_given_devices else "may_upload"
        if needed not in known and not any(one.kind is Parameter.VAR_KEYWORD for one in known.values()):
            raise ProblemError(
                f"A method with serves_given_devices={self.serves_given_devices} must take {needed}, got a "
                f"function of ({', '.join(known)}). Add {needed} to its parameters."
            )

    @property
    def needs_rng(self) -> bool:
        """Return whether it draws at random and has no generator of its own."""
        rng = signature_of(self.solve).parameters.get("rng")
        return rng is not None and rng.default is Parameter.empty

    @property
    def looks_back(self) -> bool:
        """Return whether it wants to know the rates of earlier rounds."""
        return "mean_rate_bps" in signature_of(self.solve).parameters


METHODS: dict[str, Method] = {
    "optimal": Method(
        allocate_optimal,
        serves_given_devices=False,
        keeps_total_energy=True,
        accesses=ACCESSES,
        takes_offers=True,
    ),
    "threshold": Method(allocate_threshold, serves_given_devices=False, accesses=ACCESSES),
    "value-rate": Method(allocate_value_rate, serves_given_devices=False, accesses=ACCESSES),
    "proportional-fair": Method(allocate_proportional_fair, serves_given_devices=False, accesses=ACCESSES),
    "ives": Method(allocate_ives, serves_given_devices=False),
    "ives-multistart": Method(allocate_ives_multistart, serves_given_devices=False),
    "greedy": Method(allocate_greedy, serves_given_devices=True, plans_for_risks=False),
    "random": Method(allocate_random, serves_given_devices=True, plans_for_risks=False),
    "chen2020": Method(allocate_chen2020, serves_given_devices=False),
    "fedl-power": Method(
        allocate_fedl_power,
        serves_given_devices=True,
        plans_for_risks=False,
        accesses=("one-block", "tdma"),
    ),
    "equal-split": Method(allocate_equal_split, serves_given_devices=True, accesses=ACCESSES),
}
"""All methods by name. Add one: ``METHODS["mine"] = Method(my_function, serves_given_devices=True)``."""


_LIMITED = ("one-block", "blocks")  # accesses in which at most M devices upload


def _method(entry: Any) -> Method:
    if not isinstance(entry, Method):
        raise ProblemError(
            f"a method must be a Method, got {shown(entry)} ({type(entry).__name__}). "
            "Write Method(function, serves_given_devices=...)."
        )
    return entry


METHOD = PartKind(
    "method",
    METHODS,
    fills_in=("selected", "may_upload", "rng", "mean_rate_bps"),  # by ``allocate``
    function_of=lambda entry: _method(entry).solve,
    num_positional=1,  # the problem
    error=ProblemError,
)


def allocate(
    problem: AllocationProblem,
    method: str = "optimal",
    *,
    rng: np.random.Generator | None = None,
    selected: IntArray | Sequence[int] | None = None,
    mean_rate_bps: FloatArray | None = None,
    **options: Any,
) -> Allocation:
    """Return the allocation of problem (P) by a method of ``METHODS`` or ``package.module:name``.

    ``selected`` names the devices concerned. A method that serves given devices (greedy, random, fedl-power)
    serves exactly these, by default the M largest contributions, Eq. (22); others choose among them. ``rng``
    is for the methods that draw, ``mean_rate_bps`` (what each device had in earlier rounds) for those that
    look back; others ignore them. ``options`` are those of
    ``method_options(method)``.
    """
    require_type(
        problem,
        AllocationProblem,
        name="problem",
        fix="Make one with AllocationProblem(...) or load_problem(file).",
    )
    entry = find_method(method)
    if problem.max_total_energy_j is not None and not entry.keeps_total_energy:
        raise ProblemError(
            f'max_total_energy_j is not known to method "{method}", got a limit. Use "optimal", or '
            "max_energy_j for the upload alone."
        )
    METHOD.require_options(method, options, near=("rng", "selected", "mean_rate_bps"))
    if problem.access not in entry.accesses:
        able = ", ".join(name for name, known in METHODS.items() if problem.access in known.accesses)
        raise ProblemError(
            f'method "{method}" must know the access of the problem, got "{problem.access}". '
            f"Use one of {able}."
        )
    if problem.has_own_bits and not entry.takes_offers:
        name = "device_bits" if problem.device_bits is not None else "offer_bits"
        raise ProblemError(
            f'method "{method}" must know uploads of different sizes, got {name}. Use "optimal", or one '
            "model_bits for all."
        )
    if entry.serves_given_devices:
        options["selected"] = devices_to_serve(problem, selected)
    else:
        options["may_upload"] = upload_mask(problem, selected)
    known = signature_of(entry.solve).parameters
    if "rng" in known:
        if rng is None and entry.needs_rng:
            raise ProblemError(
                f'method "{method}" draws at random and needs rng=, got None. '
                "Give numpy.random.default_rng(seed)."
            )
        options["rng"] = rng
    if entry.looks_back:
        options["mean_rate_bps"] = mean_rate_bps
    if entry.plans_for_risks or not problem.has_risks:
        return entry.solve(problem, **options)
    return _meeting_risks(problem, entry.solve(problem.without_risks, **options))


def find_method(name: str) -> Method:
    """Return the method of a name in ``METHODS``, or that of a ``package.module:name``."""
    return _method(METHOD.find(name))


def method_options(name: str) -> tuple[str, ...]:
    """Return the names of a method's own options, such as ``relative_gap`` of the method "optimal"."""
    return METHOD.options(name)


def devices_to_serve(problem: AllocationProblem, selected: IntArray | Sequence[int] | None) -> IntArray:
    """Return the sorted devices to serve: those given, by default the M largest contributions, Eq. (22).

    Where M limits nobody, all are served, or as many as ``max_uploads`` says. Ties go by index.
    """
    if selected is None:
        return np.sort(np.argsort(-problem.contribution, kind="stable")[: problem.most_uploads])
    chosen = check_selected(problem, selected)
    if chosen.size > problem.num_blocks and problem.access in _LIMITED:
        raise ProblemError(
            f"selected must not exceed the {problem.num_blocks} blocks, got {chosen.size} devices. "
            "One block carries one device."
        )
    return chosen


def upload_mask(problem: AllocationProblem, selected: IntArray | Sequence[int] | None) -> BoolArray | None:
    """Return a mask of the given devices, or None if all may upload."""
    if selected is None:
        return None
    mask = np.zeros(problem.num_devices, dtype=bool)
    mask[check_selected(problem, selected)] = True
    return mask


def check_selected(problem: AllocationProblem, selected: IntArray | Sequence[int]) -> IntArray:
    """Return the given device indices, sorted, or raise if one is repeated or out of range."""
    array = np.asarray(selected)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ProblemError(
            f"selected must be a list of device indices, got {array.dtype} of shape {array.shape}. "
            "From a mask, use numpy.flatnonzero(mask)."
        )
    chosen = np.unique(array.astype(np.int64))
    if chosen.size < array.size:
        raise ProblemError("selected must name each device once, got repeated indices. Use numpy.unique.")
    if chosen[0] < 0 or chosen[-1] >= problem.num_devices:
        wrong = int(chosen[0] if chosen[0] < 0 else chosen[-1])
        raise ProblemError(f"selected must lie in 0..{problem.num_devices - 1}, got {wrong}.")
    return chosen


def _meeting_risks(problem: AllocationProblem, planned: Allocation) -> Allocation:
    """Return what an allocation planned as if nothing could be lost is worth where uploads may be lost."""
    device, width = planned.selected, planned.bandwidth_of_device_hz
    met = build_allocation(
        problem,
        method=planned.method,
        device=device,
        block=planned.block_of_device[device],
        power_w=planned.transmit_power_w[device],
        cpu_frequency_hz=planned.cpu_frequency_hz,
        status=planned.status,
        reason=planned.reason,
        iterations=planned.iterations,
        bandwidth_hz=None if width is None else width[device],
    )
    # Without risks everything is worth at least as much, so a bound on that holds here, too.
    met = replace(met, upper_bound=max(planned.upper_bound, met.objective), trace=planned.trace)
    broken = violations(problem, met) if met.status is Status.FEASIBLE else ()
    if not broken:
        return met
    num_lost = int(np.count_nonzero(account(problem, met).success_probability[device] == 0.0))
    reason = f"{num_lost} of {met.num_selected} uploads are lost: {broken[0]}"
    return replace(met, status=Status.LOST, reason=reason)
