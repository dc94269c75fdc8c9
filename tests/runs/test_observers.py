"""The progress bar: what it shows of a run, and what is repeated is said once."""

from __future__ import annotations

import contextlib
import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import fedwave
from fedwave.experiments import experiment_from
from fedwave.runs import observers
from fedwave.runs.observers import ProgressBar, spans
from fedwave.runs.run import run_experiment
from fedwave.simulation.records import RoundRecord
from tests.experiments.cell_tables import PAPER_CELL, experiment
from tests.runs.small_runs import StopAfter

ERROR = "mean_absolute_error"


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
            "data": {"dataset": {"kind": "sinusoids", "num_devices": 4}},
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


# Where there is no terminal --------------------------------------------------------------------------------


def logged(folder: Path, num_rounds: int, *others: object) -> list[str]:
    """Return what a run writes to a log, up to the round of each line."""
    file = io.StringIO()
    with contextlib.suppress(KeyboardInterrupt), ProgressBar(Console(file=file, width=200)) as bar:
        run_experiment(experiment(num_rounds=num_rounds), folder, observers=[bar, *others])  # type: ignore[list-item]
    lines = file.getvalue().splitlines()
    assert all("  loss " in line for line in lines)
    return [line.split("  ")[0] for line in lines]


@pytest.mark.parametrize(
    ("num_rounds", "lines"), [(1, ["round 1 of 1"]), (5, ["round 1 of 5", "round 5 of 5"])]
)
def test_a_log_says_the_first_and_the_last_round_of_a_short_run(
    num_rounds: int, lines: list[str], tmp_path: Path
) -> None:
    assert logged(tmp_path / "run", num_rounds) == lines


def test_a_log_says_how_far_a_run_came_that_was_ended_early(tmp_path: Path) -> None:
    assert logged(tmp_path / "run", 5, StopAfter(3)) == ["round 1 of 5", "round 3 of 5"]


def test_a_log_says_rounds_between_where_they_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, observers.SECONDS_BETWEEN_LINES / 3)
    monkeypatch.setattr(observers.time, "monotonic", lambda: next(clock))
    lines = logged(tmp_path / "run", 8)
    assert lines == ["round 1 of 8", "round 4 of 8", "round 7 of 8", "round 8 of 8"]


def test_the_lines_of_a_log_are_not_on_a_terminal(tmp_path: Path) -> None:
    assert "round 1 of 2" not in shown(experiment(num_rounds=2), tmp_path / "run")


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
