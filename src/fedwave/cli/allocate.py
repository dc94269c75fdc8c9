"""``fedwave allocate``: one round's allocation of a cell, as a table, JSON or a picture."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedwave.allocation import (
    METHODS,
    Allocation,
    AllocationProblem,
    ParetoFront,
    account,
    allocate,
    pareto_front,
)
from fedwave.allocation.cell_file import example_cell, load_cell
from fedwave.errors import ProblemError, did_you_mean
from fedwave.rng import Stream, generator

_MAX_ROWS = 60  # of the assignment table; --json has them all


def allocate_command(
    cell: Path = typer.Argument(
        None,
        metavar="[CELL.toml]",
        help="The cell: radio, blocks, weights, limits and devices. See --example.",
    ),
    method: str = typer.Option("optimal", "--method", "-m", help=f"One of: {', '.join(METHODS)}."),
    devices: Path = typer.Option(
        None, help="CSV, one row per device, header named as in [devices]; replaces values of the cell."
    ),
    compare: bool = typer.Option(False, "--compare", help="All methods side by side."),
    pareto: bool = typer.Option(
        False, "--pareto", help="Sweep energy_weight / delay_weight and list the optimum of each."
    ),
    gap: float = typer.Option(1e-6, help="Relative gap to prove, for the method optimal."),
    seed: int = typer.Option(0, min=0, help="Seed of the methods that draw at random."),
    plot: Path = typer.Option(
        None, help="Write a picture (.png, .pdf or .svg) of the assignment, or of the front with --pareto."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
    example: bool = typer.Option(False, "--example", help="Print a commented example cell and exit."),
) -> None:
    """Choose who uploads, on which block, at what power and CPU frequency, for one round.

    The method *optimal* proves its answer; *ives* is Alg. 2 of the paper; *greedy*, *random*, *chen2020*
    and *fedl* are baselines.

    Try: `fedwave allocate --example > cell.toml`, then `fedwave allocate cell.toml --compare`.
    """
    if example:
        typer.echo(example_cell(), nl=False)
        return
    if cell is None:
        raise ProblemError("No cell given. Write one with: fedwave allocate --example > cell.toml")
    if method not in METHODS:
        raise ProblemError(f'--method is not known, got "{method}". {did_you_mean(method, METHODS)}')
    if compare and pareto:
        raise ProblemError("Give --compare or --pareto, not both.")
    problem = load_cell(cell, devices_csv=devices)
    console = Console(highlight=False)
    if pareto:
        _run_pareto(console, problem, gap, as_json, plot)
        return
    names = list(METHODS) if compare else [method]
    found, times = _solve(problem, names, gap, seed)
    chosen = found[method if method in found else names[0]]
    if as_json:
        document = (
            {name: describe(problem, one) for name, one in found.items()}
            if compare
            else describe(problem, chosen)
        )
        typer.echo(json.dumps(document, indent=2))
    else:
        if compare:
            _print_comparison(console, found, times)
        else:
            _print_assignment(console, problem, chosen)
            _print_objective(console, problem, chosen, times[method])
    if plot is not None:
        from fedwave.plots.allocation import plot_allocation, save

        save(plot_allocation(problem, chosen), plot)
        _say_picture(console, plot, as_json)


def describe(problem: AllocationProblem, found: Allocation) -> dict[str, Any]:
    """Return an allocation as plain JSON values; infinite numbers become null."""
    entry = account(problem, found)
    return {
        "method": found.method,
        "status": found.status.value,
        "reason": found.reason,
        "objective": _finite(found.objective),
        "upper_bound": _finite(found.upper_bound),
        "gap": _finite(found.gap),
        "contribution": found.contribution,
        "energy_j": _finite(found.energy_j),
        "compute_delay_s": _finite(found.compute_delay_s),
        "upload_delay_s": _finite(found.upload_delay_s),
        "iterations": found.iterations,
        "block_of_device": found.block_of_device.tolist(),
        "transmit_power_w": found.transmit_power_w.tolist(),
        "cpu_frequency_hz": found.cpu_frequency_hz.tolist(),
        "device_upload_energy_j": entry.upload_energy_j.tolist(),
        "device_compute_energy_j": entry.compute_energy_j.tolist(),
        "trace": found.trace.tolist(),
    }


def _solve(
    problem: AllocationProblem, names: list[str], gap: float, seed: int
) -> tuple[dict[str, Allocation], dict[str, float]]:
    found, times = {}, {}
    for name in names:
        options: dict[str, Any] = {"relative_gap": gap} if name == "optimal" else {}
        start = time.perf_counter()
        found[name] = allocate(problem, name, rng=generator(seed, Stream.ALLOCATION), **options)
        times[name] = time.perf_counter() - start
    return found, times


def _print_assignment(console: Console, problem: AllocationProblem, found: Allocation) -> None:
    table = Table(
        title=f"{found.num_selected} of {problem.num_devices} devices on {problem.num_blocks} blocks"
        f" (method {found.method})",
        title_justify="left",
    )
    for heading in ("block", "device", "contribution", "power [W]", "of max", "delay [s]", "energy [J]"):
        table.add_column(escape(heading), justify="right")
    entry = account(problem, found)
    device_of_block = {int(found.block_of_device[i]): int(i) for i in found.selected}
    blocks = sorted(device_of_block) if problem.num_blocks > _MAX_ROWS else range(problem.num_blocks)
    for block in list(blocks)[:_MAX_ROWS]:
        i = device_of_block.get(block)
        if i is None:
            table.add_row(str(block), "-", *[""] * 5)
            continue
        table.add_row(
            str(block),
            str(i),
            f"{problem.contribution[i]:.4g}",
            f"{found.transmit_power_w[i]:.4g}",
            f"{found.transmit_power_w[i] / problem.max_power_w[i]:.0%}",
            f"{entry.upload_delay_s[i]:.4g}",
            f"{entry.upload_energy_j[i]:.4g}",
        )
    console.print(table)
    if len(device_of_block) > _MAX_ROWS:
        console.print(f"... and {len(device_of_block) - _MAX_ROWS} more blocks; --json lists them all.")


def _print_objective(console: Console, problem: AllocationProblem, found: Allocation, seconds: float) -> None:
    entry = account(problem, found)
    eta_1, eta_2 = problem.energy_weight, problem.delay_weight
    compute_j, upload_j = float(entry.compute_energy_j.sum()), float(entry.upload_energy_j.sum())
    table = Table(title="Objective of (P): contribution - energy - delay", title_justify="left")
    for heading in ("term", "value", "weight", "worth"):
        table.add_column(heading, justify="left" if heading == "term" else "right")
    rows = (
        ("contribution of the selected", f"{found.contribution:.5g}", "", found.contribution),
        (
            f"energy, computing ({problem.num_devices} devices)",
            f"{compute_j:.4g} J",
            eta_1,
            -eta_1 * compute_j,
        ),
        (f"energy, upload ({found.num_selected} devices)", f"{upload_j:.4g} J", eta_1, -eta_1 * upload_j),
        ("delay, computing", f"{found.compute_delay_s:.4g} s", eta_2, _worth(eta_2, found.compute_delay_s)),
        ("delay, upload", f"{found.upload_delay_s:.4g} s", eta_2, _worth(eta_2, found.upload_delay_s)),
    )
    for term, value, weight, worth in rows:
        table.add_row(term, value, f"{weight:.4g}" if weight != "" else "", f"{worth:+.5g}")
    table.add_section()
    table.add_row("objective", "", "", f"{found.objective:+.7g}", style="bold")
    console.print(table)
    console.print(f"Status: {found.status.value}{escape(f' - {found.reason}' if found.reason else '')}")
    if found.upper_bound < math.inf:
        console.print(
            f"Proven: no allocation is better than {found.upper_bound:.7g} (gap {found.gap:.1e}), "
            f"{found.iterations} matchings, {1e3 * seconds:.1f} ms"
        )
    else:
        console.print(f"Nothing is proven by this method; {1e3 * seconds:.1f} ms")


def _print_comparison(console: Console, found: dict[str, Allocation], times: dict[str, float]) -> None:
    table = Table(title="All methods on this cell", title_justify="left", box=None, padding=(0, 1, 0, 0))
    headings = ("objective", "contrib.", "energy J", "compute s", "upload s", "uploads", "ms", "status")
    for heading in ("method", *headings):
        is_text = heading in ("method", "status")
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=True)
    best = max(one.objective for one in found.values())
    for name, one in found.items():
        table.add_row(
            name,
            f"{one.objective:.5g}",
            f"{one.contribution:.4g}",
            f"{one.energy_j:.4g}",
            f"{one.compute_delay_s:.4g}",
            f"{one.upload_delay_s:.4g}",
            str(one.num_selected),
            f"{1e3 * times[name]:.1f}",
            one.status.value,
            style="bold" if one.objective == best else None,
        )
    console.print(table)
    for name, one in found.items():
        if one.reason:
            console.print(f"{name}: {escape(one.reason)}")
    proven = found["optimal"]
    console.print(f"Proven: no allocation is better than {proven.upper_bound:.7g} (gap {proven.gap:.1e})")


def _run_pareto(
    console: Console, problem: AllocationProblem, gap: float, as_json: bool, plot: Path | None
) -> None:
    front = pareto_front(problem, relative_gap=gap)
    if as_json:
        names = ("energy_weight", "delay_weight", "energy_j", "delay_s", "contribution", "num_selected")
        typer.echo(json.dumps({name: getattr(front, name).tolist() for name in names}, indent=2))
    else:
        _print_front(console, front)
    if plot is not None:
        from fedwave.plots.allocation import plot_pareto, save

        save(plot_pareto(front), plot)
        _say_picture(console, plot, as_json)


def _print_front(console: Console, front: ParetoFront) -> None:
    table = Table(title="Optimum for each pair of weights", title_justify="left")
    for heading in ("energy weight", "delay weight", "energy [J]", "delay [s]", "contribution", "uploads"):
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


def _say_picture(console: Console, plot: Path, as_json: bool) -> None:
    if not as_json:
        console.print(f"Picture: {escape(str(plot))}")


def _worth(weight: float, value: float) -> float:
    return -weight * value if weight else 0.0


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
