"""``fedwave allocate``: one round's allocation of a problem file or cell, as a table, JSON or a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedwave.cli.allocate_cell import CellRounds, CellWords, print_draws
from fedwave.cli.cell import cell_beginning
from fedwave.cli.plain import cell_setting_beginning
from fedwave.cli.say import say
from fedwave.errors import ProblemError

if TYPE_CHECKING:
    from fedwave.allocation import Allocation, AllocationProblem, ParetoFront, TimedAllocation

_MAX_ROWS = 60  # of the assignment table; --json has them all


def allocate_command(
    problem_file: Path = typer.Argument(
        None,
        metavar="PROBLEM.toml or CELL",
        help="A problem file (see --example), or a radio cell: a .toml file or a preset of `fedwave cell`.",
        autocompletion=cell_beginning,
    ),
    method: str = typer.Option(
        None,
        "--method",
        "-m",
        help="One of those above, or your own as package.module:Name. Default: optimal. With --compare, the "
        "one that --plot draws; your own is compared too.",
    ),
    devices: Path = typer.Option(
        None,
        help="CSV, one row per device, header named as in [devices]; replaces values of the file. Of a cell: "
        "its column contribution.",
    ),
    compare: bool = typer.Option(False, "--compare", help="All methods side by side."),
    pareto: bool = typer.Option(
        False, "--pareto", help="Sweep energy_weight / delay_weight and list the optimum of each."
    ),
    gap: float = typer.Option(None, help="Relative gap to prove, for the method optimal. Default: 1e-6."),
    seed: int = typer.Option(0, min=0, help="Seed of the methods that draw at random, and of a cell."),
    settings: list[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KEY=VALUE",
        autocompletion=cell_setting_beginning,
        help="Cell: override a setting, e.g. -s num_blocks=5.",
        show_default=False,
    ),
    num_devices: int = typer.Option(
        None, "--num-devices", "-n", min=1, help="Cell: devices. Default: as many as its files have, or 100."
    ),
    round_index: int = typer.Option(None, "--round", min=0, help="Cell: the round to solve. Default: 0."),
    draws: int = typer.Option(
        None,
        min=1,
        help="Cell: solve so many draws of places, fading, fleet and contributions, and compare by paired "
        "differences.",
    ),
    model_bits: float = typer.Option(
        None, min=1.0, help="Cell: size S of an upload in bits. Default: as in `fedwave cell`."
    ),
    save_problem: Path = typer.Option(
        None, help="Write the problem that is solved, all numbers in it, to this .toml file."
    ),
    plot: Path = typer.Option(
        None, help="Write a picture (.png, .pdf or .svg) of the assignment, or of the front with --pareto."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
    example: bool = typer.Option(False, "--example", help="Print a commented problem file and exit."),
) -> None:
    """Choose who uploads, on which block, at what power and CPU frequency, for one round.

    The method *optimal* proves its answer; *threshold* and *value-rate* are simple rules that come close in
    most cells; *ives* is Alg. 2 of the paper, *ives-multistart* the same from ten starts; *greedy*, *random*,
    *proportional-fair*, *chen2020*, *fedl-power* and *equal-split* are baselines.

    A round of a radio cell is the one that `fedwave explore` shows first: contributions are drawn from the
    seed, weights are those that `fedwave cell` advises, unless the cell's [explore] table says otherwise.

    Examples:

    `fedwave allocate --example > problem.toml`

    `fedwave allocate problem.toml --compare`

    `fedwave allocate umi-3.5ghz -n 30 --round 3 --save-problem problem.toml`

    `fedwave allocate my_cell.toml --draws 100 --compare`
    """
    from fedwave.allocation import compare_methods, describe, example_problem, load_problem
    from fedwave.allocation.comparison import methods_for
    from fedwave.allocation.problem_file import problem_to_toml
    from fedwave.files import replace_file

    if example:
        typer.echo(example_problem(), nl=False)
        return
    _check_words(problem_file, method, compare=compare, pareto=pareto, gap=gap)
    if draws is not None and (pareto or plot is not None):
        raise ProblemError("--draws compares methods: --pareto and --plot have no use. Leave them out.")
    console = Console(highlight=False)
    own_gap = {} if gap is None else {"relative_gap": gap}
    words = CellWords(settings, num_devices, seed, round_index, draws, model_bits)
    has_units = True
    if _is_cell(problem_file):
        rounds = CellRounds.open(str(problem_file), words, devices)
        problem, has_units = rounds.problem(), not rounds.source.config.normalised
        if not as_json:
            say(rounds.heading())
    else:
        words.require_none(problem_file)
        problem = load_problem(problem_file, devices_csv=devices)
    if save_problem is not None:
        replace_file(save_problem, [problem_to_toml(problem).encode()])
        if not as_json:
            console.print(f"Problem file: {escape(str(save_problem))}")
    if draws is not None:
        every = methods_for(problem) if compare else []
        own = [*every, *([] if method is None else [method])]
        print_draws(
            console,
            rounds.compare(own or ["optimal"], draws, {"optimal": own_gap} if own_gap else None),
            as_json=as_json,
        )
        return
    if pareto:
        _run_pareto(console, problem, own_gap, as_json, plot)
        return
    chosen = method or "optimal"
    found = compare_methods(
        problem,
        [*methods_for(problem), chosen] if compare else [chosen],
        seed=seed,
        options={"optimal": own_gap} if own_gap else None,
    )
    allocation = found[chosen].allocation
    if as_json:
        every = {name: describe(problem, one.allocation) for name, one in found.items()}
        typer.echo(json.dumps(every if compare else every[chosen], indent=2, allow_nan=False))
    elif compare:
        _print_comparison(console, found)
    else:
        _print_assignment(console, problem, allocation, has_units=has_units)
        _print_objective(console, problem, found[chosen])
    if plot is not None:
        from fedwave.plots.allocation import plot_allocation, save

        save(plot_allocation(problem, allocation), plot)
        _say_picture(console, plot, as_json)


def _is_cell(name: Path) -> bool:
    from fedwave.allocation.problem_file import is_radio_cell
    from fedwave.wireless.settings.presets import CELL_PRESETS

    return (str(name) in CELL_PRESETS and not name.exists()) or is_radio_cell(name)


def _check_words(
    problem_file: Path | None, method: str | None, *, compare: bool, pareto: bool, gap: float | None
) -> None:
    """Refuse words that name no problem file or method, or that would have no effect."""
    from fedwave.allocation import METHOD

    if problem_file is None:
        raise ProblemError(
            "No problem file or cell given. Write one with: fedwave allocate --example > problem.toml; "
            "`fedwave cell` lists cells."
        )
    if method is not None:
        METHOD.find(method, key="--method")
    if compare and pareto:
        raise ProblemError("Give --compare or --pareto, not both.")
    if pareto and method not in (None, "optimal"):
        raise ProblemError(f"--pareto lists optima, got --method {method}. Leave one of them out.")
    if gap is not None and not (compare or method in (None, "optimal")):
        raise ProblemError(f"--gap is for the method optimal, got --method {method}. Leave one of them out.")


def _print_assignment(
    console: Console, problem: AllocationProblem, found: Allocation, *, has_units: bool
) -> None:
    from fedwave.allocation import account
    from fedwave.cli.console import print_tables
    from fedwave.units import watt_to_dbm

    table = Table(
        title=f"{found.num_selected} of {problem.num_devices} devices on {problem.num_blocks} blocks"
        f" ({_access_words(problem)}method {found.method})",
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    entry = account(problem, found)
    power, rate = found.transmit_power_w, entry.rate_bps
    if has_units:  # as radio engineers read them
        power, rate = watt_to_dbm(power), rate / 1e3
    width_hz = found.bandwidth_of_device_hz
    times = ["delay s"] if width_hz is None else ["from s", "until s"]
    headings = ["block" if width_hz is None else "blocks", "device", "u"]
    headings += ["power dBm" if has_units else "power", "of max", "SINR dB"]
    taken, offer = problem.taking(found.offer_of_device), found.offer_of_device
    if problem.has_own_bits:
        headings[2:2] = [*(["offer"] if offer is not None else []), "bits"]
    headings += [
        *(["margin dB"] if entry.required_sinr > 0 else []),
        "kbit/s" if has_units else "rate",
        *times,
        "energy J",
    ]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    uploads: list[tuple[str, int]] = [(str(block), i) for block, i in found.device_of_block.items()]
    if width_hz is not None:  # several may hold a part of a block, or the same blocks in turn
        uploads = [(f"{width_hz[i] / problem.bandwidth_hz:.4g}", int(i)) for i in found.selected]
    elif problem.num_blocks <= _MAX_ROWS:  # those that stand idle, too
        uploads = [(str(m), found.device_of_block.get(m, -1)) for m in range(problem.num_blocks)]
    for held, i in uploads[:_MAX_ROWS]:
        if i < 0:
            table.add_row(held, "-")
            continue
        link = [f"{entry.sinr_db[i]:.1f}", f"{entry.margin_db[i]:.1f}", f"{rate[i]:.4g}"]
        if entry.required_sinr == 0:
            del link[1]
        seconds = [entry.upload_delay_s[i]]
        if width_hz is not None:
            seconds = [entry.upload_start_s[i], entry.upload_end_s[i]]
        size = [] if offer is None else [str(offer[i])]
        if taken.device_bits is not None:
            size.append(f"{taken.device_bits[i]:.4g}")
        table.add_row(
            held,
            str(i),
            *size,
            f"{taken.contribution[i]:.4g}",
            f"{power[i]:.1f}" if has_units else f"{power[i]:.4g}",
            f"{found.transmit_power_w[i] / problem.max_power_w[i]:.0%}",
            *link,
            *(f"{value:.4g}" for value in seconds),
            f"{entry.upload_energy_j[i]:.4g}",
        )
    print_tables(console, table)
    if found.num_selected > _MAX_ROWS:
        console.print(f"... and {found.num_selected - _MAX_ROWS} more uploads; --json lists them all.")


def _access_words(problem: AllocationProblem) -> str:
    """Return what a title says of another access than one block each."""
    return "" if problem.access == "one-block" else f"access {problem.access}, "


def _print_objective(console: Console, problem: AllocationProblem, timed: TimedAllocation) -> None:
    from fedwave.allocation import objective_terms

    found = timed.allocation
    table = Table(
        title="Objective of (P): contribution - energy - delay",
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
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


def _print_comparison(console: Console, found: Mapping[str, TimedAllocation]) -> None:
    from fedwave.cli.console import print_tables

    table = Table(title="All methods on this problem", title_justify="left", box=None, padding=(0, 1, 0, 0))
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


def _run_pareto(
    console: Console, problem: AllocationProblem, gap: dict[str, Any], as_json: bool, plot: Path | None
) -> None:
    from fedwave.allocation import describe_front, pareto_front

    front = pareto_front(problem, **gap)
    if as_json:
        typer.echo(json.dumps(describe_front(front), indent=2, allow_nan=False))
    else:
        _print_front(console, front)
    if plot is not None:
        from fedwave.plots.allocation import plot_pareto, save

        save(plot_pareto(front), plot)
        _say_picture(console, plot, as_json)


def _print_front(console: Console, front: ParetoFront) -> None:
    table = Table(
        title="Optimum for each pair of weights", title_justify="left", box=None, padding=(0, 1, 0, 0)
    )
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


def _say_picture(console: Console, plot: Path, as_json: bool) -> None:
    if not as_json:
        console.print(f"Picture: {escape(str(plot))}")
