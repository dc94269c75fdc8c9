"""Offline files of Weights & Biases hold settings, rounds and summary of a run, each round once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import FailAfter, StopAfter, tiny
from tests.runs.trackers.logged import in_the_table, wandb_history, wandb_items, wandb_records

ON = {"wandb": True}


@pytest.fixture(autouse=True)
def own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No mode from outside, and a folder in which a stray ./wandb would be seen."""
    for name in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_it_holds_settings_every_number_of_every_round_and_the_summary(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    result = run_experiment(tiny(execution=ON, evaluation={"every": 2}), folder)
    records = wandb_records(folder)
    assert wandb_history(records) == in_the_table(folder)
    config = wandb_items(records, "config")
    assert (config["algorithm.inner_lr"], config["data.dataset.shape"]) == (0.02, [6])
    summary = wandb_items(records, "summary")
    assert summary["summary.final.heldout_accuracy"] == result.summary["final"]["heldout_accuracy"]
    assert summary["summary.dataset"] == "synthetic"
    (begun,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert (begun.project, begun.display_name) == ("fedwave", "small, seed 0")
    (end,) = [record.exit for record in records if record.WhichOneof("record_type") == "exit"]
    assert end.exit_code == 0
    assert list((tmp_path / "here").iterdir()) == []
    assert "wandb" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("checkpoint_every", [1, 4])
def test_a_resumed_run_goes_on_with_the_same_one_and_logs_no_round_twice(
    tmp_path: Path, checkpoint_every: int
) -> None:
    folder = tmp_path / "run"
    settings = tiny(execution={**ON, "checkpoint_every": checkpoint_every})
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, folder, observers=[StopAfter(3)])
    resume_run(folder)
    records = wandb_records(folder)
    begun = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert len(begun) == 2
    assert begun[0].run_id == begun[1].run_id
    history, table = wandb_history(records), in_the_table(folder)
    del table["wall_time_s"]  # of rounds that were computed twice, the first time is held
    assert {name: history[name] for name in table} == table
    codes = [record.exit.exit_code for record in records if record.WhichOneof("record_type") == "exit"]
    assert codes == [255, 0]


def test_one_that_is_switched_on_later_has_all_rounds(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run_experiment(tiny(), folder, observers=[StopAfter(2)])
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("wandb = false", "wandb = true"))
    resume_run(folder)
    assert wandb_history(wandb_records(folder)) == in_the_table(folder)


def test_one_that_fails_says_so_and_a_mode_that_is_set_is_kept_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="a bug"):
        run_experiment(tiny(execution=ON), tmp_path / "bad", observers=[FailAfter(1)])
    records = wandb_records(tmp_path / "bad")
    assert [r.exit.exit_code for r in records if r.WhichOneof("record_type") == "exit"] == [1]
    monkeypatch.setenv("WANDB_MODE", "disabled")
    run_experiment(tiny(execution=ON, num_rounds=1), tmp_path / "off")
    assert wandb_records(tmp_path / "off") == []
    monkeypatch.delenv("WANDB_MODE")
    resume_run(tmp_path / "off")
    assert wandb_history(wandb_records(tmp_path / "off")) == in_the_table(tmp_path / "off")


@pytest.mark.parametrize(
    "state",
    [
        {"id": "0123abcd", "num_rounds": 1, "open": "../../elsewhere"},
        {"id": "0123abcd", "num_rounds": -1, "open": None},
        {"id": 7, "num_rounds": 1, "open": None},
    ],
)
def test_a_state_that_was_edited_is_refused_and_nothing_is_removed(
    tmp_path: Path, state: dict[str, object]
) -> None:
    folder = tmp_path / "run"
    run_experiment(tiny(execution=ON, num_rounds=1), folder)
    (tmp_path / "elsewhere").mkdir()
    (folder / "wandb" / "run.json").write_text(json.dumps(state))
    with pytest.raises(
        RunError, match=r"wandb/run\.json is not as the run wrote it, got .* Restore that file\.$"
    ):
        resume_run(folder)
    assert (tmp_path / "elsewhere").is_dir()
    assert len(list((folder / "wandb").glob("offline-run-*"))) == 1
