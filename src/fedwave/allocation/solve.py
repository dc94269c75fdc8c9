"""One call for every method: ``allocate(problem, method="optimal")``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedwave.allocation.chen2020 import allocate_chen2020
from fedwave.allocation.fedl import allocate_fedl
from fedwave.allocation.greedy import allocate_greedy
from fedwave.allocation.ives import allocate_ives
from fedwave.allocation.optimal import allocate_optimal
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.random_allocation import allocate_random
from fedwave.allocation.selection_rule import upload_mask
from fedwave.allocation.solution import Allocation
from fedwave.errors import ProblemError, did_you_mean
from fedwave.units import IntArray

METHODS: dict[str, Callable[..., Allocation]] = {
    "optimal": allocate_optimal,
    "ives": allocate_ives,
    "greedy": allocate_greedy,
    "random": allocate_random,
    "chen2020": allocate_chen2020,
    "fedl": allocate_fedl,
}

FIGURE_4: dict[str, dict[str, Any]] = {
    "URAL": {"method": "ives"},
    "NUFM-Greedy": {"method": "greedy", "selection": "contribution"},
    "NUFM-Random": {"method": "random", "selection": "contribution"},
    "RU-Greedy": {"method": "greedy", "selection": "uniform"},
    "RU-Random": {"method": "random", "selection": "uniform"},
}
"""The methods compared in Fig. 4, as arguments of ``allocate``."""


def allocate(
    problem: AllocationProblem,
    method: str = "optimal",
    *,
    rng: np.random.Generator | None = None,
    selected: IntArray | Sequence[int] | None = None,
    **options: Any,
) -> Allocation:
    """Return the allocation of problem (P) by the named method of ``METHODS``.

    ``selected`` names the devices concerned: greedy, random and fedl serve all of them, the others choose
    among them. ``rng`` is used by the methods that draw and ignored by those that do not. Further options
    are those of the method's own function.
    """
    if method not in METHODS:
        raise ProblemError(f"method is not known, got {method!r}. {did_you_mean(str(method), METHODS)}")
    solver = METHODS[method]
    known = inspect.signature(solver).parameters
    for name in options:
        if name not in known:
            usable = [option for option in known if option not in ("problem", "may_upload")]
            raise ProblemError(f'method "{method}" has no option {name!r}. {did_you_mean(name, usable)}')
    if "rng" in known:
        options["rng"] = rng
    if "selected" in known:
        options["selected"] = selected
    elif selected is not None:
        options["may_upload"] = upload_mask(problem, selected)
    return solver(problem, **options)
