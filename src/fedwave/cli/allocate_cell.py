"""``fedwave allocate CELL``: rounds of a radio cell as the explorer shows them, or many draws of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from fedwave.errors import ProblemError

if TYPE_CHECKING:
    from fedwave.allocation import AllocationProblem
    from fedwave.explore.source import CellView, Source
    from fedwave.server.draws import DrawComparison, Figure


@dataclass(frozen=True)
class CellWords:
    """What the command line says of a radio cell; None or nothing: as the cell's file or a default says."""

    settings: Sequence[str]  # KEY=VALUE
    num_devices: int | None
    seed: int
    round_index: int | None
    draws: int | None
    model_bits: float | None

    def require_none(self, problem_file: Path) -> None:
        """Raise if something is said of a cell where a problem file is given."""
        said = {
            "--set": list(self.settings) or None,
            "--num-devices": self.num_devices,
            "--round": self.round_index,
            "--draws": self.draws,
            "--model-bits": self.model_bits,
        }
        for option, value in said.items():
            if value is not None:
                raise ProblemError(
                    f"{option} is for a radio cell, got the problem file {problem_file}, which has all its "
                    "numbers. Leave it out, or give a cell."
                )


@dataclass(frozen=True, eq=False)
class CellRounds:
    """A cell's settings, and what the explorer would show of it first."""

    source: Source
    view: CellView
    contribution: Any  # a kind, or a number for each device

    @classmethod
    def open(cls, name: str, words: CellWords, devices_csv: Path | None) -> CellRounds:
        """Return the rounds of a preset or cell file, changed as the words say."""
        from fedwave.csv_table import read_columns
        from fedwave.explore.source import Source
        from fedwave.settings import parse_overrides

        source = Source.file(Path(name)) if name.endswith(".toml") else Source.preset(name)
        said = {"model_bits": words.model_bits, "round_index": words.round_index}
        start = source.start | {key: value for key, value in said.items() if value is not None}
        source = replace(source, table=source.changed(parse_overrides(words.settings)), start=start)
        view = source.first_view(num_devices=words.num_devices, seed=words.seed)
        if devices_csv is None:
            return cls(source, view, view.contribution)
        own = read_columns(
            devices_csv,
            known=("contribution",),
            required=("contribution",),
            num_devices=view.num_devices,
            what="device",
        )
        return cls(source, view, own["contribution"])

    @property
    def given(self) -> dict[str, Any]:
        """What makes problems of the cell's rounds, beside the cell."""
        names = ("num_devices", "seed", "round_index", "mean_contribution", "num_samples")
        view = {name: getattr(self.view, name) for name in (*names, "model_bits")}
        weights = {name: getattr(self.view, name) for name in ("energy_weight", "delay_weight")}
        return {**view, **weights, "contribution": self.contribution}

    def problem(self) -> AllocationProblem:
        """Return problem (P) of the round."""
        from fedwave.server.draws import problems_over_draws

        return next(problems_over_draws(self.source.config, draws=1, **self.given))

    def compare(self, methods: Sequence[str] | None, draws: int, options: Any) -> DrawComparison:
        """Return the methods over so many draws."""
        from fedwave.server.draws import compare_over_draws

        return compare_over_draws(self.source.config, methods, draws=draws, options=options, **self.given)

    def heading(self) -> str:
        """Return in one line which round it is, and what it is worth."""
        view, is_drawn = self.view, isinstance(self.contribution, str)
        worth = f"{self.contribution}, mean {view.mean_contribution:g}" if is_drawn else "as given"
        return (
            f"{self.source.name}: {view.num_devices} devices, round {view.round_index}, seed {view.seed}; "
            f"contributions {worth}; S = {view.model_bits:.4g} bit, energy_weight = {view.energy_weight:g}, "
            f"delay_weight = {view.delay_weight:g}"
        )


def print_draws(console: Console, found: DrawComparison, *, as_json: bool) -> None:
    """Print the means over draws and the paired differences to the baseline, with 95 % intervals."""
    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import text_table

    if as_json:
        about = {"draws": found.num_draws, "baseline": found.baseline, "methods": found.rows()}
        typer.echo(json.dumps(about, indent=2, allow_nan=False))
        return
    by = found.baseline
    figures: tuple[Figure, ...] = ("objective", "energy_j", "delay_s")
    means = f"Means of {found.num_draws} draws with 95 % intervals"
    if len(found.methods) == 1:
        table = text_table("method", "objective", "energy J", "delay s")
        table.add_row(by, *(str(found.mean(by, one)) for one in figures))
        print_tables(console, table)
        console.print(f"{means}. Compare methods with --compare.")
        return
    table = text_table("method", "objective", f"− {by}", f"J − {by}", f"s − {by}")
    for method in found.methods:
        is_baseline = method == by
        table.add_row(
            method,
            str(found.mean(method)),
            *("" if is_baseline else _signed(str(found.difference(method, one))) for one in figures),
        )
    print_tables(console, table)
    console.print(f"{means}; differences to {by} are paired.")
    for method in found.methods:
        count = found.difference(method).count
        if count < found.num_draws:
            console.print(f"{method}: {found.num_draws - count} draws without an allocation are left out.")


def _signed(text: str) -> str:
    return "0" if text == "0 ± 0" else text if text.startswith("-") else f"+{text}"
