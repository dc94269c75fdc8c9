"""The tables that compare runs, as calls in Python: what the command line prints."""

from __future__ import annotations

import io
import math
from pathlib import Path

from rich.console import Console
from rich.table import Table

import fedwave
from fedwave.cli.console import print_tables
from fedwave.cli.run_tables import cost_table, final_table, lifetime_table
from tests.runs.written_runs import write_battery_run, write_run

ERROR = "mean_absolute_error"


def cells(table: Table) -> list[dict[str, str]]:
    """A table as one dict a row."""
    columns = {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}
    return [{name: column[row] for name, column in columns.items()} for row in range(table.row_count)]


def test_the_final_table_has_a_row_for_each_setting_with_intervals_over_its_seeds(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a0", "a", [0.1, 0.20, math.nan], seed=0),
        write_run(tmp_path / "a1", "a", [0.1, 0.30], seed=1),
        write_run(tmp_path / "a2", "a", [0.1, 0.40], seed=2),
        write_run(tmp_path / "b0", "[b]", [0.5]),
    ]
    first, second = cells(final_table(runs))
    assert first == {
        "run": "a",
        "seeds": "3",
        "rounds": "2/3",
        "accuracy [%]": "30 ± 25",  # 4.30265 * 10 / sqrt(3) = 24.8
        "Δ points": "",
        "loss": "2 ± 0",
        "Δ loss": "",
    }
    assert second["run"] == "[b]"  # not taken for a colour
    assert (second["accuracy [%]"], second["Δ points"]) == ("50", "30†")  # seed 0 alone is in both
    (alone,) = cells(final_table(runs[:3]))
    assert alone["dataset"] == "digits"
    assert "Δ points" not in alone
    assert [row["Δ points"] for row in cells(final_table(runs, baseline="[b]"))] == ["-30†", ""]


def test_over_a_cell_the_final_table_counts_uploads_seconds_and_joules(tmp_path: Path) -> None:
    (row,) = cells(final_table([write_run(tmp_path / "a", "a", [0.1, 0.2, 0.3], over_cell=True)]))
    assert (row["uploads"], row["seconds"], row["joules"]) == ("15", "30", "300")


def test_grams_of_carbon_stand_beside_joules_where_a_run_says_what_a_kilowatt_hour_is_worth(
    tmp_path: Path,
) -> None:
    # 360 g a kilowatt-hour are 0.1 mg a joule: 300 J are 30 mg, the 200 J of two rounds 20 mg.
    green = write_run(tmp_path / "a", "a", [0.1, 0.2, 0.3], over_cell=True, carbon_intensity_g_per_kwh=360.0)
    grey = write_run(tmp_path / "b", "b", [0.1, 0.2, 0.3], over_cell=True)
    first, second = cells(final_table([green, grey]))
    assert (first["gCO2"], second["gCO2"]) == ("0.03", "-")
    first, second = cells(cost_table([green, grey], target=0.2))
    assert (first["joules"], first["gCO2"], second["gCO2"]) == ("200", "0.02", "-")
    for table in (final_table([grey]), cost_table([grey])):
        assert "gCO2" not in cells(table)[0]


def test_the_cost_table_shows_what_each_setting_paid_for_a_target(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a1", "a", [0.2, 0.4], over_cell=True, seed=1),
        write_run(tmp_path / "a2", "a", [0.3, 0.3, 0.3, 0.6], over_cell=True, seed=2),
        write_run(tmp_path / "b1", "b", [0.1, 0.2], over_cell=True),
    ]
    table = cost_table(runs, target=0.4)
    assert cells(table) == [
        {  # rounds 2 and 4: 3 with 12.706 * 1.41421 / sqrt(2)
            "run": "a",
            "rounds to 40%": "3 ± 13",
            "seconds": "30 (20–40)",
            "joules": "300 (200–400)",
            "reached by": "2 of 2",
        },
        {"run": "b", "rounds to 40%": "-", "seconds": "-", "joules": "-", "reached by": "0 of 1"},
    ]
    assert "rounds to 20%" in cells(cost_table(runs))[0]  # the best that all reach


def test_an_error_is_shown_as_a_number_and_not_in_percent(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / n, n, [3.0, v], metric=ERROR) for n, v in (("a", 1.234), ("b", 0.5))]
    first, second = cells(final_table(runs))
    assert (first["mean absolute error"], second["mean absolute error"]) == ("1.234", "0.5")
    assert second["Δ mean absolute error"] == "-0.734"
    first, second = cells(cost_table(runs))
    assert first["rounds to 1.3"] == second["rounds to 1.3"] == "2"


def test_a_run_that_was_never_evaluated_shows_a_dash(tmp_path: Path) -> None:
    (row,) = cells(final_table([write_run(tmp_path / "a", "a", [math.nan])]))
    assert row["accuracy [%]"] == "-"


def test_tables_are_printed_one_below_the_other_and_nothing_is_cut(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a rather long name of a run " * 2, [0.5], over_cell=True)
    file = io.StringIO()
    print_tables(Console(file=file, width=40), final_table([run]), cost_table([run]))
    lines = file.getvalue().splitlines()
    assert len(lines) == 5
    assert lines[2] == ""
    assert "joules" in lines[0]
    assert "rounds to 50%" in lines[3]


def test_the_package_offers_the_calls_that_the_command_line_makes() -> None:
    assert fedwave.final_table is final_table
    assert fedwave.cost_table is cost_table
    assert {"run_experiment", "resume_run", "read_run", "plot_runs", "load_experiment"} <= set(
        fedwave.__all__
    )


def test_lifetimes_are_told_in_hours_with_what_was_learnt_until_then(tmp_path: Path) -> None:
    charge = [[5.0, 4.0, 3.0, 2.0], [4.0, 3.0, 2.0, 1.0], [3.0, 0.5, 1.0, 0.0]]
    lasting = [[5.0] * 4] * 3
    runs = [
        write_battery_run(tmp_path / "a0", "a", charge),
        write_battery_run(tmp_path / "a1", "a", lasting, seed=1),
        write_battery_run(tmp_path / "b", "b", lasting),
        write_run(tmp_path / "none", "none", [0.1], over_cell=True),
    ]
    table = lifetime_table(runs)
    assert table is not None
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    assert columns[0] == ["a", "b"]  # who has no battery has no row
    assert columns[1] == ["1 in 1 of 2", "never"]
    assert columns[2] == ["20 %", ""]
    assert columns[3] == ["1.5 in 1 of 2", "never"]
    assert columns[4] == ["30 %", ""]
    assert columns[5][1] == columns[6][1] == columns[7][1] == "0"
    assert columns[5][0] == "2 ± 19"  # three and none: 12.706 * 1.5
    assert columns[7][0] == "0.2 ± 3.2"  # one device for half an hour in one of two seeds: 12.706 * 0.25
    assert columns[8] == ["3 ± 0", "3"]
    assert lifetime_table(runs[3:]) is None
