"""``fedwave longterm``: a run beside the bound that no planner beats within budgets, and beside others."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from fedwave.cli.run import need_torch
from fedwave.cli.sweep import DATA_DIR

if TYPE_CHECKING:
    from fedwave.longterm.comparison import LongTermComparison


def longterm(
    path: Path = typer.Argument(
        ..., metavar="RUN_DIR", help="Folder of a run over a cell in which everybody computed in every round."
    ),
    budget: float | None = typer.Option(
        None,
        "--budget",
        "-b",
        metavar="JOULES",
        help="Joules of each device and round, on average. Default: budget_j of the run's planner, else the "
        "run's own joules in equal shares.",
    ),
    planner: list[str] = typer.Option(
        [],
        "--planner",
        "-p",
        help="Replay this one: myopic, until-spent, capped-rounds, eafl, constant-prices (the bound's own), "
        "drift-plus-penalty, drift-plus-penalty-all (asks everybody), or ocean. Default: all but ocean.",
    ),
    v: list[float] = typer.Option(
        [], "--v", help="Knob of drift-plus-penalty, several times for several. Default: three that fit."
    ),
    steps: int = typer.Option(60, "--steps", min=1, help="Steps of the prices that lower the bound."),
    plot: Path = typer.Option(Path("longterm.png"), "--plot", help="Picture to write."),
    csv_out: Path | None = typer.Option(None, "--csv", help="Write a row for each planner to this file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table; no picture."),
    data_dir: Path | None = DATA_DIR,
) -> None:
    """Hold a run against the bound over all its rounds, and against other planners on the same trace.

    Utility is U - eta_1 E - eta_2 T of a round. Read it together with the overdraw: what the device that
    spends most takes beyond its budget. Only planners that overdraw can be above the bound.

    Examples:

    `fedwave longterm runs/my-run`

    `fedwave longterm runs/my-run --budget 0.3 --v 1 --v 3`

    `fedwave longterm runs/my-run -p myopic -p ocean --json`
    """
    need_torch("Replaying a run")
    from fedwave.longterm.comparison import DEFAULT, compare_long_term

    console = Console(highlight=False)
    with Console(stderr=True).status("reading the run") as status:
        found = compare_long_term(
            path,
            budget_j=budget,
            planners=planner or DEFAULT,
            v=v,
            num_steps=steps,
            data_dir=data_dir,
            progress=status.update,
        )
    rows = found.rows()
    if csv_out is not None:
        lines = [",".join(rows[0]), *(",".join(_written(value) for value in row.values()) for row in rows)]
        csv_out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(_plain(found), indent=2))
        return
    from fedwave.cli.console import print_tables

    console.print(
        f"{found.num_rounds} rounds, {found.num_devices} devices, {found.budget_j:.4g} J a round for each"
    )
    print_tables(console, _table(found))
    from fedwave.plots.longterm import plot_long_term

    typer.echo(f"Picture: {plot_long_term(found, plot)}")


def _plain(found: LongTermComparison) -> dict[str, object]:
    rows = [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in row.items()
        }
        for row in found.rows()
    ]
    return {
        "budget_j": found.budget_j,
        "num_rounds": found.num_rounds,
        "num_devices": found.num_devices,
        "bound": found.bound.value,
        "bound_prices_per_j": found.bound.prices.tolist(),
        "planners": rows[1:],
    }


def _written(value: float | str | None) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def _table(found: LongTermComparison) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    headings = ("planner", "utility", "of the bound", "thirstiest device", "overdraw", "uploads", "asked")
    for heading in headings:
        table.add_column(heading, no_wrap=True, justify="left" if heading == "planner" else "right")
    table.add_row("bound of all that keep to it", f"{found.bound.value:.4g}", "100 %", "", "", "", "")
    for one in found.candidates:
        share = found.share(one)
        table.add_row(
            one.name if one.v is None else f"{one.name}, V = {one.v:g}",
            f"{one.replay.mean_utility:.4g}",
            "-" if math.isnan(share) else f"{100.0 * share:.1f} %",
            f"{one.replay.worst_energy_j:.4g} J",
            f"{one.overdraw_j:+.3g} J",
            f"{one.replay.num_received.mean():.1f}",
            f"{one.replay.num_asked.mean():.1f}",
        )
    return table
