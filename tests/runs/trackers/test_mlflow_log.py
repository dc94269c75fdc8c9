"""MLflow's store holds settings, rounds and summary of a run, each round once; read with its own client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import FailAfter, StopAfter, tiny
from tests.runs.trackers.logged import History, in_the_table, mlflow_runs

ON = {"mlflow": True}


@pytest.fixture(autouse=True)
def own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No address from outside, and a folder in which a stray ./mlruns would be seen."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def rounds(history: History) -> History:
    return {name: values for name, values in history.items() if not name.startswith("summary.")}


def test_it_holds_settings_every_number_of_every_round_and_the_summary(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = tiny(execution=ON, evaluation={"every": 2})
    result = run_experiment(settings, folder)
    ((run, history),) = mlflow_runs(folder)
    assert rounds(history) == in_the_table(folder)
    assert [step for step, _ in history["heldout_loss"]] == [1, 3]  # nothing where nothing was measured
    assert run.data.params["algorithm.inner_lr"] == "0.02"
    assert run.data.params["data.dataset.shape"] == "[6]"
    assert run.data.params["num_rounds"] == "4"
    final = result.summary["final"]
    assert history["summary.final.heldout_accuracy"] == [(3, final["heldout_accuracy"])]
    assert run.data.tags["summary.dataset"] == "synthetic"
    assert (run.info.run_name, run.info.status) == ("small, seed 0", "FINISHED")
    assert list((tmp_path / "here").iterdir()) == []


def test_a_resumed_run_goes_on_with_the_same_one_and_logs_no_round_twice(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = tiny(execution={**ON, "checkpoint_every": 4})
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, folder, observers=[StopAfter(3)])
    ((before, _),) = mlflow_runs(folder)
    assert before.info.status == "KILLED"
    resume_run(folder)
    ((after, history),) = mlflow_runs(folder)
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "FINISHED")
    table = in_the_table(folder)
    del table["wall_time_s"]  # of rounds that were computed twice, the first time is held
    assert {name: history[name] for name in table} == table
    assert [step for step, _ in history["wall_time_s"]] == [0, 1, 2, 3]
    resume_run(folder)  # it is finished
    ((again, same),) = mlflow_runs(folder)
    assert same == history
    assert again.info.status == "FINISHED"


def test_one_that_is_switched_on_later_or_moves_to_another_store_has_all_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run_experiment(tiny(), folder, observers=[StopAfter(2)])
    config = folder / "config.toml"
    assert not (folder / "mlflow").exists()
    config.write_text(config.read_text().replace("mlflow = false", "mlflow = true"))
    with pytest.raises(KeyboardInterrupt):
        resume_run(folder, observers=[StopAfter(1)])
    ((_, history),) = mlflow_runs(folder)
    assert [step for step, _ in history["train_loss"]] == [0, 1]  # it was stopped before it heard of round 2
    uri = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    resume_run(folder)
    ((_, history),) = mlflow_runs(folder, uri=uri)
    assert rounds(history) == in_the_table(folder)
    assert [step for step, _ in history["round"]] == [0, 1, 2, 3]
    assert len(mlflow_runs(folder)[0][1]["round"]) == 2  # the other store is left as it was
    assert uri not in (folder / "mlflow" / "run.json").read_text()  # it may hold a password


def test_several_runs_share_a_store_that_is_named_and_one_that_fails_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"sqlite:///{tmp_path / 'all.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    run_experiment(tiny(execution=ON, num_rounds=1), tmp_path / "good")
    with pytest.raises(ValueError, match="a bug"):
        run_experiment(tiny(execution=ON), tmp_path / "bad", observers=[FailAfter(1)])
    found = mlflow_runs(tmp_path, uri=uri)
    assert sorted(run.info.status for run, _ in found) == ["FAILED", "FINISHED"]
    assert not (tmp_path / "good" / "mlflow" / "mlflow.db").exists()


def test_what_mlflow_cannot_do_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run_experiment(tiny(execution=ON, num_rounds=1), folder)
    state = json.loads((folder / "mlflow" / "run.json").read_text())
    (folder / "mlflow" / "run.json").write_text(json.dumps({**state, "run_id": "f" * 32}))
    with pytest.raises(
        RunError, match=r"^MLflow cannot log to mlflow/mlflow.db: .*ffff.* then resume the run\.$"
    ):
        resume_run(folder)
