"""``fedwave allocate``: one round's allocation of a problem file or cell, as a table, JSON or a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape

from fedwave.cli.allocate_cell import CellRounds, CellWords, print_draws
from fedwave.cli.allocate_tables import print_assignment, print_comparison, print_front, print_objective
from fedwave.cli.cell import cell_beginning
from fedwave.cli.plain import cell_setting_beginning
from fedwave.cli.say import say
from fedwave.errors import ProblemError

if TYPE_CHECKING:
    from fedwave.allocation import AllocationProblem


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
        print_comparison(console, found)
    else:
        print_assignment(console, problem, allocation, has_units=has_units)
        print_objective(console, problem, found[chosen])
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


def _run_pareto(
    console: Console, problem: AllocationProblem, gap: dict[str, Any], as_json: bool, plot: Path | None
) -> None:
    from fedwave.allocation import describe_front, pareto_front

    front = pareto_front(problem, **gap)
    if as_json:
        typer.echo(json.dumps(describe_front(front), indent=2, allow_nan=False))
    else:
        print_front(console, front)
    if plot is not None:
        from fedwave.plots.allocation import plot_pareto, save

        save(plot_pareto(front), plot)
        _say_picture(console, plot, as_json)


def _say_picture(console: Console, plot: Path, as_json: bool) -> None:
    if not as_json:
        console.print(f"Picture: {escape(str(plot))}")
