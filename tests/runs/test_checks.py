"""Before a run goes on: settings, tables and checkpoint fit, or it is refused and no file changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fedwave.errors import RunError
from fedwave.runs.checkpoint import Checkpoint
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import (
    AskToStopAfter,
    contents,
    edit,
    files_of,
    results,
    tiny,
)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed = 0", "seed = 1", "seed was 0, is 1"),
        ("meta_lr = 0.02", "meta_lr = 0.2", "algorithm.meta_lr was 0.02, is 0.2"),
        ("num_devices = 12", "num_devices = 16", "partition.num_devices was 12, is 16"),
        ("num_selected = 3", "num_selected = 4", "selection.num_selected was 3, is 4"),
        ('kind = "softmax"', 'kind = "mlp"', "model.kind was 'softmax', is 'mlp'"),
        ("num_steps = 1", "num_steps = 2", "evaluation.num_steps was 1, is 2"),
        ('"float32"', '"bfloat16"', "execution.precision was 'float32', is 'bfloat16'"),
        ("[evaluation]", '[cell]\npreset = "paper"\n\n[evaluation]', "cell.bandwidth_hz was None, is 1.0"),
    ],
)
def test_settings_that_make_the_run_may_not_change(cut: Path, old: str, new: str, said: str) -> None:
    edit(cut / "config.toml", old, new)
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert "config.toml is not what the run was started with: " in str(caught.value)
    assert said in str(caught.value)
    assert "Only name, num_rounds, stop, execution, evaluation.every may change" in str(caught.value)
    assert files_of(cut) == before


def test_many_changes_are_counted(cut: Path) -> None:
    for old, new in (("seed = 0", "seed = 1"), ("num_devices = 12", "num_devices = 16")):
        edit(cut / "config.toml", old, new)
    for old, new in (("meta_lr = 0.02", "meta_lr = 1.0"), ("num_steps = 1", "num_steps = 2")):
        edit(cut / "config.toml", old, new)
    with pytest.raises(RunError, match="and 1 more. Only name"):
        resume_run(cut)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "small"', 'name = "other"'),
        ("num_rounds = 4", "num_rounds = 5"),
        ("workers = 0", "workers = 2"),
        ("checkpoint_every = 1", "checkpoint_every = 3"),
        ("every = 1", "every = 2"),
    ],
)
def test_settings_that_do_not_make_the_run_may_change(cut: Path, old: str, new: str) -> None:
    edit(cut / "config.toml", old, new)
    assert resume_run(cut).stopped is None


def test_more_rounds_are_as_if_they_had_been_asked_for_at_once(cut: Path, tmp_path: Path) -> None:
    edit(cut / "config.toml", "num_rounds = 4", "num_rounds = 6")
    longer = run_experiment(tiny(num_rounds=6), tmp_path / "longer").path
    assert results(resume_run(cut).path) == results(longer)


def test_fewer_rounds_than_were_done_are_refused(cut: Path) -> None:
    edit(cut / "config.toml", "num_rounds = 4", "num_rounds = 1")
    before = files_of(cut)
    with pytest.raises(
        RunError, match="stands before round 2, but the run has 1 rounds. num_rounds may only"
    ):
        resume_run(cut)
    assert files_of(cut) == before


def test_a_changed_fleet_file_is_refused(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("max_power_w\n" + "0.2\n" * 6)
    settings = tiny(
        cell={"preset": "paper", "num_blocks": 2, "fleet": {"path": str(fleet)}},
        selection={"num_selected": 2},
    )
    path = run_experiment(settings, tmp_path / "run", observers=[AskToStopAfter(1)]).path
    fleet.write_text("max_power_w\n" + "0.3\n" * 6)
    with pytest.raises(RunError, match=r"was started with another file cell\.fleet\.path: fingerprint"):
        resume_run(path)
    fleet.unlink()
    with pytest.raises(RunError, match=r"cannot read .*fleet\.csv: No such file"):
        resume_run(path)


def drop_last_line(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:-1])


def cut_last_line(text: str) -> str:
    return text[:-5]


def swap_last_lines(text: str) -> str:
    *before, one, other = text.splitlines(keepends=True)
    return "".join([*before, other, one])


def edit_a_digit(text: str) -> str:
    at = next(place for place in range(len(text) - 1, 0, -1) if text[place].isdigit())
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]


def as_a_spreadsheet(text: str) -> str:
    return "\ufeff" + text.replace(",", ";")


@pytest.mark.parametrize("table", ["rounds.csv", "devices.csv", "heldout.csv"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (drop_last_line, "bytes that the checkpoint counts on)"),
        (cut_last_line, "bytes that the checkpoint counts on)"),
        (as_a_spreadsheet, "bytes were changed; did another program save it?)"),
        (lambda text: "", "is not as the run wrote it (it has 0 of the"),
        (lambda text: text.replace("\n", "\r\n"), "bytes were changed"),
        (swap_last_lines, "bytes were changed"),
        (edit_a_digit, "bytes were changed"),
        (None, "is gone, and the checkpoint cannot rebuild it"),
    ],
)
def test_a_table_that_is_not_as_the_run_wrote_it_is_refused_and_can_be_computed_again(
    tiny_run: Path, cut: Path, table: str, damage: Callable[[str], str] | None, said: str
) -> None:
    file = cut / table
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_text()).encode())
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert said in str(caught.value)
    assert f"fedwave resume {cut} --from-start" in str(caught.value)
    assert files_of(cut) == before
    assert contents(resume_run(cut, from_start=True).path) == contents(tiny_run)


# Checkpoints that are not of this run ---------------------------------------------------------------------


def rewrite_checkpoint(folder: Path, change: Callable[[Checkpoint], Checkpoint]) -> None:
    """Write the checkpoint anew after a change, with a checksum that fits."""
    path = folder / "checkpoint.safetensors"
    path.write_bytes(change(Checkpoint.from_bytes(path.read_bytes())).to_bytes())


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    def changed(saved: Checkpoint) -> Checkpoint:
        tensors = dict(saved.tensors)
        change(tensors)
        return replace(saved, tensors=tensors)

    rewrite_checkpoint(folder, changed)


WEIGHT = "parameters.linear1.weight"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop(WEIGHT), f"it lacks {WEIGHT}"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT].double()}), "as torch.float64 of shape"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT][:1]}), "as torch.float32 of shape"),
        (lambda tensors: tensors[WEIGHT].fill_(float("nan")), "that are not finite"),
        (lambda tensors: tensors.update({"parameters.x": torch.zeros(1)}), "holds parameters.x, which the"),
        (lambda tensors: tensors.update({"stranger": torch.zeros(1)}), "which is no part of a state"),
        (lambda tensors: tensors.update({"ledger.elapsed_s": torch.zeros(1)}), "checkpoint"),
        (lambda tensors: tensors.update({"planner.x": torch.zeros(1, dtype=torch.bfloat16)}), "checkpoint"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    cut: Path, change: Callable[[dict[str, torch.Tensor]], None], said: str
) -> None:
    change_tensors(cut, change)
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert files_of(cut) == before


@pytest.mark.parametrize("next_round", [-1, 99, 5, 10**30, "2", 2.0, None, True, [2]])
def test_a_checkpoint_of_a_round_that_cannot_be_is_refused(cut: Path, next_round: object) -> None:
    rewrite_checkpoint(cut, lambda saved: replace(saved, next_round=next_round))
    before = files_of(cut)
    with pytest.raises(RunError, match=r"num_rounds may only grow|does not say which run and round"):
        resume_run(cut)
    assert files_of(cut) == before


@pytest.mark.parametrize("table", ["rounds.csv", "devices.csv", "heldout.csv"])
def test_a_table_with_other_columns_than_are_written_now_is_refused(cut: Path, table: str) -> None:
    edit(cut / table, "loss", "cost")
    content = (cut / table).read_bytes()
    own = (len(content), hashlib.sha256(content).hexdigest())
    rewrite_checkpoint(cut, lambda saved: replace(saved, tables={**saved.tables, table: own}))
    before = files_of(cut)
    with pytest.raises(RunError, match=rf"{table} has other columns than this version of fedwave writes"):
        resume_run(cut)
    assert files_of(cut) == before


def test_the_checkpoint_of_another_run_is_refused(cut: Path, tmp_path: Path) -> None:
    other = run_experiment(tiny(seed=5), tmp_path / "other", observers=[AskToStopAfter(1)]).path
    (cut / "checkpoint.safetensors").write_bytes((other / "checkpoint.safetensors").read_bytes())
    before = files_of(cut)
    with pytest.raises(RunError, match="belongs to another run. Restore it, or compute"):
        resume_run(cut)
    assert files_of(cut) == before
