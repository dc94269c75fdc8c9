"""The tables that compare runs, as calls in Python, and the progress bar; what the command line prints."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

import fedwave
from fedwave.experiments import experiment_from
from fedwave.runs.progress import ProgressBar, spans
from fedwave.runs.report import cost_table, final_table, print_tables
from fedwave.runs.run import run_experiment
from fedwave.simulation.records import RoundRecord
from tests.experiments.cell_tables import PAPER_CELL, experiment
from tests.runs.written_runs import write_run

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
        "dataset": "digits",
        "seeds": "3",
        "rounds": "2/3",
        "held-out loss": "2 ± 0",
        "held-out accuracy": "30 ± 25 %",  # 4.30265 * 10 / sqrt(3) = 24.8
        "train loss": "2.3 ± 1.4",  # of 3, 2 and 2: 4.30265 * 0.57735 / sqrt(3) = 1.434
        "wall time": "1.2 s",  # half a second a round: 1.5, 1 and 1
    }
    assert second["run"] == "[b]"  # not taken for a colour
    assert second["held-out accuracy"] == "50 %"


def test_over_a_cell_the_final_table_counts_uploads_seconds_and_joules(tmp_path: Path) -> None:
    (row,) = cells(final_table([write_run(tmp_path / "a", "a", [0.1, 0.2, 0.3], over_cell=True)]))
    assert (row["uploads"], row["seconds"], row["joules"]) == ("15", "30", "300")
    assert "train loss" not in row


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
            "seconds": "30 ± 127",
            "joules": "300 ± 1,271",
            "reached by": "2 of 2 seeds",
        },
        {"run": "b", "rounds to 40%": "-", "seconds": "-", "joules": "-", "reached by": "0 of 1 seed"},
    ]
    assert "rounds to 20%" in cells(cost_table(runs))[0]  # the best that all reach


def test_an_error_is_shown_as_a_number_and_not_in_percent(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / n, n, [3.0, v], metric=ERROR) for n, v in (("a", 1.234), ("b", 0.5))]
    first, second = cells(final_table(runs))
    assert (first["held-out mean absolute error"], second["held-out mean absolute error"]) == ("1.234", "0.5")
    assert first["dataset"] == "sinusoids"
    first, second = cells(cost_table(runs))
    assert first["rounds to 1.3"] == second["rounds to 1.3"] == "2"


def test_a_run_that_was_never_evaluated_shows_a_dash(tmp_path: Path) -> None:
    (row,) = cells(final_table([write_run(tmp_path / "a", "a", [math.nan])]))
    assert row["held-out accuracy"] == "-"


def test_tables_are_printed_one_below_the_other_and_nothing_is_cut(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a rather long name of a run " * 2, [0.5], over_cell=True)
    file = io.StringIO()
    print_tables(Console(file=file, width=40), final_table([run]), cost_table([run]))
    lines = file.getvalue().splitlines()
    assert len(lines) == 5
    assert lines[2] == ""
    assert "wall time" in lines[0]
    assert "rounds to 50%" in lines[3]


def test_the_package_offers_the_calls_that_the_command_line_makes() -> None:
    assert fedwave.final_table is final_table
    assert fedwave.cost_table is cost_table
    assert {"run_experiment", "resume_run", "read_run", "plot_runs", "load_experiment"} <= set(
        fedwave.__all__
    )


# The progress bar -------------------------------------------------------------------------------------------


def shown(settings: fedwave.Experiment, folder: Path) -> str:
    """What a run with a progress bar prints on a terminal."""
    file = io.StringIO()
    console = Console(file=file, width=200, force_terminal=True, color_system=None)
    with ProgressBar(console) as bar:
        run_experiment(settings, folder, observers=[bar])
    return file.getvalue()


def test_the_bar_shows_rounds_loss_metric_and_cost(tmp_path: Path) -> None:
    text = shown(experiment(PAPER_CELL, num_rounds=2, name="[mine]"), tmp_path / "run")
    last = next(line for line in reversed(text.splitlines()) if "2/2" in line)
    row = fedwave.read_run(tmp_path / "run")
    assert "[mine]" in last
    assert f"loss {row.last('train_loss'):.3f}" in last
    assert f"accuracy {row.last('heldout_accuracy'):.1%}" in last
    assert f"{row.last('cumulative_delay_s'):.4g} s" in last


def test_the_bar_shows_an_error_as_a_number(tmp_path: Path) -> None:
    settings = experiment_from(
        {
            "num_rounds": 1,
            "data": {"dataset": "sinusoids", "num_devices": 4},
            "partition": {"kind": "given"},
            "model": {"kind": "mlp", "hidden": [4]},
        }
    )
    text = shown(settings, tmp_path / "run")
    assert f"mean absolute error {fedwave.read_run(tmp_path / 'run').last(f'heldout_{ERROR}'):.4g}" in text


def test_the_bar_and_the_log_say_what_the_user_should_know(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cell = {**PAPER_CELL, "losses": {"dropout_probability": 1.0}}
    text = shown(
        experiment(cell, num_rounds=1, scheme="ru-random", selection={"num_selected": 5}), tmp_path / "run"
    )
    assert "selection.num_selected is 5, but the cell has 3 blocks" in caplog.text
    assert "but the cell has 3 blocks" in (tmp_path / "run" / "summary.json").read_text()
    assert "round 0: no upload arrived, the model stays as it is" in text


def test_an_error_in_the_settings_stands_alone(tmp_path: Path) -> None:
    file = io.StringIO()
    with (
        pytest.raises(fedwave.errors.FedwaveError),
        ProgressBar(Console(file=file, force_terminal=True)) as bar,
    ):
        run_experiment(experiment(selection={"num_selected": 99}), tmp_path / "run", observers=[bar])
    assert file.getvalue() == ""


# What is repeated is said once ------------------------------------------------------------------------------


def test_a_note_of_many_rounds_is_said_when_it_begins_and_summed_up_at_the_end(tmp_path: Path) -> None:
    cell = {**PAPER_CELL, "losses": {"dropout_probability": 1.0}}
    text = shown(experiment(cell, num_rounds=5), tmp_path / "run")
    lines = [line.split("\x1b[2K")[-1] for line in text.splitlines() if "no upload arrived" in line]
    note = "no upload arrived, the model stays as it is"
    assert lines == [f"round 0: {note}", f"5 rounds, 0–4: {note}"]


def test_notes_that_come_and_go_are_still_two_lines() -> None:
    file = io.StringIO()
    with ProgressBar(Console(file=file, width=200)) as bar:
        for k in range(20):
            quiet = k in (3, 5, 6, 7, 11)
            note = f"device {k} needs {k / 7:.3g} W" if quiet else ""
            bar._say_note(record_with(k, num_received=0 if quiet else 2, note=note))
    assert file.getvalue().splitlines() == [
        "round 3: device 3 needs 0.429 W",
        "5 rounds, 3, 5–7, 11: device … needs … W",
    ]


def test_a_note_of_a_round_with_uploads_is_left_to_the_table() -> None:
    file = io.StringIO()
    with ProgressBar(Console(file=file, width=200)) as bar:
        bar._say_note(record_with(0, num_received=2, note="one device cannot meet its limit"))
    assert file.getvalue() == ""


@pytest.mark.parametrize(
    ("rounds", "text"),
    [
        ([4], "4"),
        ([4, 5], "4–5"),
        ([1, 3, 5, 7, 9, 11, 13, 15], "1, 3, 5, 7, 9, 11, …"),
        (list(range(31, 51)), "31–50"),
        ([0, 2, 3, 4, 9], "0, 2–4, 9"),
    ],
)
def test_rounds_are_written_as_stretches(rounds: list[int], text: str) -> None:
    assert spans(rounds) == text


def record_with(k: int, **columns: object) -> RoundRecord:
    return RoundRecord(
        round_index=k, columns=dict(columns), device_ids=np.arange(0), device_columns={}, heldout=None
    )
