"""The tables of ``fedwave allocate``: who uploads how, what the objective is of, methods side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from fedwave.allocation import Allocation, AllocationProblem, ParetoFront, TimedAllocation

_MAX_ROWS = 60  # of the assignment table; --json has them all


def print_assignment(
    console: Console, problem: AllocationProblem, found: Allocation, *, has_units: bool
) -> None:
    """Print a row for each upload, and for blocks that stand idle."""
    from fedwave.cli.console import print_tables

    access = "" if problem.access == "one-block" else f"access {problem.access}, "
    table = _table(
        f"{found.num_selected} of {problem.num_devices} devices on {problem.num_blocks} blocks"
        f" ({access}method {found.method})"
    )
    columns, width_hz = _columns(problem, found, has_units=has_units), found.bandwidth_of_device_hz
    for heading in ("block" if width_hz is None else "blocks", *columns):
        table.add_column(heading, justify="right", no_wrap=True)
    uploads: list[tuple[str, int]] = [(str(block), i) for block, i in found.device_of_block.items()]
    if width_hz is not None:  # several may hold a part of a block, or the same blocks in turn
        uploads = [(f"{width_hz[i] / problem.bandwidth_hz:.4g}", int(i)) for i in found.selected]
    elif problem.num_blocks <= _MAX_ROWS:  # those that stand idle, too
        uploads = [(str(m), found.device_of_block.get(m, -1)) for m in range(problem.num_blocks)]
    for held, i in uploads[:_MAX_ROWS]:
        table.add_row(held, *(["-"] if i < 0 else [text(i) for text in columns.values()]))
    print_tables(console, table)
    if found.num_selected > _MAX_ROWS:
        console.print(f"... and {found.num_selected - _MAX_ROWS} more uploads; --json lists them all.")


def _columns(
    problem: AllocationProblem, found: Allocation, *, has_units: bool
) -> dict[str, Callable[[int], str]]:
    """Return what is told of a device that uploads: by heading the text of its cell."""
    from fedwave.allocation import account
    from fedwave.units import watt_to_dbm

    entry, power_w = account(problem, found), found.transmit_power_w
    taken, offer = problem.taking(found.offer_of_device), found.offer_of_device
    columns: dict[str, Callable[[int], str]] = {"device": str}
    if offer is not None:
        columns["offer"] = lambda i: str(offer[i])
    if (bits := taken.device_bits) is not None:
        columns["bits"] = lambda i: f"{bits[i]:.4g}"
    columns["u"] = lambda i: f"{taken.contribution[i]:.3g}"
    if has_units:  # as radio engineers read them
        columns["p dBm"] = lambda i: f"{watt_to_dbm(power_w[i]):.1f}"
    else:
        columns["power"] = lambda i: f"{power_w[i]:.4g}"
    columns["of max"] = lambda i: f"{power_w[i] / problem.max_power_w[i]:.0%}"
    columns["SINR dB"] = lambda i: f"{entry.sinr_db[i]:.1f}"
    if entry.required_sinr > 0:
        columns["margin dB"] = lambda i: f"{entry.margin_db[i]:.1f}"
    if has_units:
        columns["kbit/s"] = lambda i: _whole(entry.rate_bps[i] / 1e3)
    else:
        columns["rate"] = lambda i: f"{entry.rate_bps[i]:.4g}"
    if found.bandwidth_of_device_hz is None:
        columns["delay s"] = lambda i: f"{entry.upload_delay_s[i]:.4g}"
    else:
        columns["from s"] = lambda i: f"{entry.upload_start_s[i]:.4g}"
        columns["to s"] = lambda i: f"{entry.upload_end_s[i]:.4g}"
    columns["energy J"] = lambda i: f"{entry.upload_energy_j[i]:.4g}"
    return columns


def print_objective(console: Console, problem: AllocationProblem, timed: TimedAllocation) -> None:
    """Print the terms of the objective, and what is proven."""
    from fedwave.allocation import objective_terms

    found = timed.allocation
    table = _table("Objective of (P): contribution - energy - delay")
    for heading in ("term", "value", "weight", "worth"):
        table.add_column(heading, justify="left" if heading == "term" else "right")
    for term in objective_terms(problem, found):
        value, weight = f"{term.value:.5g}", ""
        if term.unit:
            value, weight = f"{term.value:.4g} {term.unit}", f"{term.weight:.4g}"
        table.add_row(term.name, value, weight, f"{term.worth:+.5g}")
    table.add_section()
    table.add_row("objective", "", "", f"{found.objective:+.7g}", style="bold")
    console.print(table)
    console.print(f"Status: {found.status.value}{escape(f' - {found.reason}' if found.reason else '')}")
    if found.upper_bound < math.inf:
        console.print(
            f"Proven: no allocation is better than {found.upper_bound:.7g} (gap {found.gap:.1e}), "
            f"{found.iterations} matchings, {1e3 * timed.seconds:.1f} ms"
        )
    else:
        console.print(f"Nothing is proven by this method; {1e3 * timed.seconds:.1f} ms")


def print_comparison(console: Console, found: Mapping[str, TimedAllocation]) -> None:
    """Print a row for each method."""
    from fedwave.cli.console import print_tables

    table = _table("All methods on this problem")
    headings = ("objective", "U", "energy J", "CPU s", "upload s", "sent", "ms", "status")
    for heading in ("method", *headings):
        is_text = heading in ("method", "status")
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=True)
    best = max(timed.allocation.objective for timed in found.values())
    for name, timed in found.items():
        one = timed.allocation
        table.add_row(
            name,
            f"{one.objective:.5g}",
            f"{one.contribution:.4g}",
            f"{one.energy_j:.4g}",
            f"{one.compute_delay_s:.4g}",
            f"{one.upload_delay_s:.4g}",
            str(one.num_selected),
            f"{1e3 * timed.seconds:.1f}",
            one.status.value,
            style="bold" if one.objective == best else None,
        )
    print_tables(console, table)
    for name, timed in found.items():
        if timed.allocation.reason:
            console.print(f"{name}: {escape(timed.allocation.reason)}")
    proven = found["optimal"].allocation
    console.print(f"Proven: no allocation is better than {proven.upper_bound:.7g} (gap {proven.gap:.1e})")


def print_front(console: Console, front: ParetoFront) -> None:
    """Print a row for each pair of weights."""
    table = _table("Optimum for each pair of weights")
    for heading in ("energy weight", "delay weight", "energy J", "delay s", "U", "sent"):
        table.add_column(escape(heading), justify="right")
    rows = zip(
        front.energy_weight,
        front.delay_weight,
        front.energy_j,
        front.delay_s,
        front.contribution,
        front.num_selected,
        strict=True,
    )
    for *numbers, count in rows:
        table.add_row(*(f"{number:.4g}" for number in numbers), str(count))
    console.print(table)


def _whole(number: float) -> str:
    """Return a number with four digits, or all of a large one: no powers of ten where a column is narrow."""
    return f"{number:.0f}" if 1e3 <= number < 1e8 else f"{number:.4g}"


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
