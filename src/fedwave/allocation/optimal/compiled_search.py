"""The search of search.py as a compiled library, for tables of some thousand pairs: same steps, same answer.

It is taken where there is a C compiler (see native_library.py), and the pairs are worth straight lines in e
or send faster for their circuit's sake or to meet a deadline of their own. Packet errors, a round's deadline,
devices that share a favourite SNR and larger tables are searched in Python.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.allocation.optimal import search_check
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Status
from fedwave.allocation.uploads.assignment import matching_of
from fedwave.allocation.uploads.pairs import PairTable
from fedwave.allocation.uploads.snr_range import snr_floor
from fedwave.allocation.uploads.upload_plan import UploadPlan
from fedwave.native_library import Source, library

MOST_PAIRS = 4_000  # beyond, which of equal pairs numpy keeps for a matching cannot be foretold
SEARCH = Source(
    name="search",
    file=Path(__file__).with_name("search.c"),
    check=search_check,
    what="the search's compiled steps",
    without="Python alone is slower, to the same bits",
    links=("-lm",),
)
_Array = np.ndarray[Any, Any]
_STATUS = (Status.OPTIMAL, Status.GAP_REACHED, Status.LIMIT)


def compiled_plan(
    problem: AllocationProblem,
    table: PairTable | None,
    *,
    relative_gap: float,
    compute_cost: float,
    max_matchings: int,
) -> UploadPlan | None:
    """Return what ``BranchAndBound(problem, table).run`` would, or None where Python has to search."""
    if table is None or not _is_known(problem, table):
        return None
    found = library(SEARCH)
    if found is None:
        return None
    given, kept = _given(problem, table)  # the arrays must live as long as their addresses are in use
    given.relative_gap, given.compute_cost = relative_gap, compute_cost
    given.max_matchings = max_matchings
    answer = search_check.Answer()
    column, trace = np.empty(table.block.size, dtype=np.int64), np.empty(search_check.ROOM_TRACE)
    status = found.fedwave_search(
        ctypes.addressof(given), ctypes.addressof(answer), column.ctypes.data, trace.ctypes.data, trace.size
    )
    del kept
    if status < 0:
        return None
    row = np.flatnonzero(column >= 0)
    matching, snr, value = None, answer.snr, answer.value
    if row.size:
        matching = matching_of(table, row, column[row], energy_factor=1.0, smallest_cap=0.0)
    return UploadPlan(
        table=table,
        matching=matching,
        snr=snr,
        value=value,
        upper_bound=max(answer.upper_bound, value),
        status=_STATUS[status],
        num_matchings=answer.matchings,
        trace=tuple(trace[: answer.traced].tolist()),
    )


def _is_known(problem: AllocationProblem, table: PairTable) -> bool:
    """Return whether the compiled search knows such pairs."""
    is_plain = problem.max_round_delay_s is None and problem.waterfall == 0.0
    return is_plain and 0 < table.unit_cost.size <= MOST_PAIRS and not _has_equal_favourites(table)


def _has_equal_favourites(table: PairTable) -> bool:
    """Return whether two devices have one favourite SNR: numpy then adds them up in an order of its own."""
    if table.faster is None:
        return False
    can = table.snr_cap > 0.0
    favourite = table.faster.favourite[can]
    order = np.argsort(favourite)
    favourite, device = favourite[order], np.broadcast_to(table.device, can.shape)[can][order]
    return bool(((favourite[1:] == favourite[:-1]) & (device[1:] != device[:-1])).any())


def _given(problem: AllocationProblem, table: PairTable) -> tuple[search_check.Problem, list[_Array]]:
    """Return the table in the library's terms, and the arrays that it points into."""
    kept: list[_Array] = []

    def address(array: _Array) -> int:
        kept.append(np.ascontiguousarray(array))
        return int(kept[-1].ctypes.data)

    given = search_check.Problem()
    given.blocks, given.width = table.unit_cost.shape
    given.devices = given.width
    given.is_shared, given.barred = table.is_shared, table.num_barred
    given.contribution = address(table.contribution)
    given.unit_cost, given.snr_cap = address(table.unit_cost), address(table.snr_cap)
    if not table.is_shared:
        every, local = np.unique(table.device, return_inverse=True)
        given.devices, given.device = every.size, address(local.reshape(table.device.shape))
    faster = table.faster
    if faster is not None:
        given.favourite, given.worth = address(faster.favourite), address(faster.worth)
        circuit = faster.circuit_cost
        given.has_one_circuit = not isinstance(circuit, np.ndarray)
        given.circuit_cost = address(np.broadcast_to(circuit, table.unit_cost.shape))
        given.has_kinks = problem.has_own_deadlines
        cap = table.snr_cap
        favourite = np.minimum(faster.favourite, cap)
        given.least_favourite = float(favourite.min(where=cap > 0, initial=float(cap.max(initial=0.0))))
    given.delay_weight, given.nat_delay_s = problem.delay_weight, problem.nat_delay_s
    given.floor, given.largest_contribution = snr_floor(problem), table.largest_contribution
    return given, kept
