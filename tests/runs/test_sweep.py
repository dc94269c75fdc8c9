"""Many runs into run folders: planned, made, skipped, gone on with."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fedwave.errors import ConfigError, RunError
from fedwave.experiments import load_experiment
from fedwave.runs.batch import Progress
from fedwave.runs.run import run_experiment
from fedwave.runs.sweep import SweepRun, parse_seeds, plan_sweep, run_sweep, split_values

SMALL = ("num_rounds=2", "partition.num_devices=12", "model.kind=softmax", "selection.num_selected=3")


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0-3", (0, 1, 2, 3)), ("7", (7,)), ("0,3,7", (0, 3, 7)), ("0-2, 10,1", (0, 1, 2, 10)), ("4-4", (4,))],
)
def test_seeds_are_numbers_and_spans(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "why"), [("a", "takes numbers"), ("-1", "takes"), ("", "takes"), ("9-0", "Try 0-9")]
)
def test_what_is_no_seed_is_one_line(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^--seeds .*{why}"):
        parse_seeds(text)


def test_a_comma_within_brackets_or_quotes_belongs_to_its_value() -> None:
    assert split_values("1, 2") == ["1", "2"]
    assert split_values('[1,2],{a=1,b=[2,3]},"x,y"') == ["[1,2]", "{a=1,b=[2,3]}", '"x,y"']
    assert split_values("'a]',b") == ["'a]'", "b"]


def test_every_combination_has_every_seed_and_a_folder_of_its_own(tmp_path: Path) -> None:
    runs = plan_sweep(
        "digits/nufm", ["algorithm.meta_lr=0.1,0.2", "model.kind=mlp"], seeds=(3, 4), out=tmp_path
    )
    assert [run.folder.name for run in runs] == [
        f"digits-nufm-meta_lr={rate}-seed{seed}" for seed in (3, 4) for rate in ("0.1", "0.2")
    ]
    assert [run.experiment.seed for run in runs] == [3, 3, 4, 4]
    assert [run.experiment.algorithm.meta_lr for run in runs] == [0.1, 0.2, 0.1, 0.2]
    assert {run.experiment.model.kind for run in runs} == {"mlp"}
    assert runs[0].command == (
        f"fedwave run digits/nufm -s algorithm.meta_lr=0.1 -s model.kind=mlp -s seed=3 -o {runs[0].folder}"
    )
    (alone,) = plan_sweep("digits/nufm", ["seed=5"], out=tmp_path)
    assert (alone.experiment.seed, alone.folder.name) == (5, "digits-nufm-seed5")


def test_fixed_settings_are_taken_whole(tmp_path: Path) -> None:
    (run,) = plan_sweep("digits/nufm", fixed=["name=a,b"], seeds=(0,), out=tmp_path)
    assert run.experiment.name == "a,b"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["num_rounds"], r'^-s takes KEY=VALUE or KEY=A,B,C, got "num_rounds"\.'),
        (["num_rounds=5,,6"], "^-s takes KEY=VALUE"),
        (["num_roundz=5,6"], "num_rounds"),
        (["num_rounds=5,x"], "num_rounds must be a valid integer"),
        (
            [f"num_rounds={','.join(map(str, range(1, 10_003)))}"],
            "^a sweep makes at most 10,000 runs, got 10,002",
        ),
        (["name=a/b,a b"], "^two runs of the sweep would lie in .*: name=a/b seed=0 and name=a b seed=0"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_any_run(tmp_path: Path, words: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        plan_sweep("digits/nufm", words, out=tmp_path)
    assert not list(tmp_path.iterdir())


def numbers(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the rounds, but for how long they took."""
    with (folder / "rounds.csv").open() as file:
        return [{k: v for k, v in row.items() if k != "wall_time_s"} for row in csv.DictReader(file)]


class StopsError(Exception):
    pass


class Kills:
    """Ends a run in the midst, as a kill does."""

    def started(self, *_: object) -> None:
        pass

    def round_done(self, _: object) -> None:
        raise StopsError


def test_what_is_finished_is_left_alone_and_what_was_killed_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    def plan(out: Path) -> list[SweepRun]:
        return plan_sweep("digits/nufm", ["algorithm.meta_lr=0.1,0.2", *SMALL], seeds=(0,), out=out)

    told: list[Progress[SweepRun]] = []
    first, second = plan(tmp_path / "a")
    made = run_sweep([first, second], num_jobs=1, progress=told.append)
    assert made.folders == (first.folder, second.folder)
    assert (made.num_made, made.diverged) == (2, {})
    assert [(now.num_done, now.num_runs) for now in told] == [(0, 2), (1, 2), (2, 2)]
    assert (first.rounds_done, second.rounds_done) == (2, 2)
    assert numbers(first.folder) != numbers(second.folder)

    killed, finished = plan(tmp_path / "b")
    with pytest.raises(StopsError):
        run_experiment(killed.experiment, killed.folder, observers=[Kills()])
    run_experiment(finished.experiment, finished.folder)
    assert (killed.rounds_done, finished.rounds_done) == (1, 2)
    before = (finished.folder / "rounds.csv").stat().st_mtime_ns
    assert run_sweep(plan(tmp_path / "b"), num_jobs=1).num_made == 1
    assert numbers(killed.folder) == numbers(first.folder)
    assert numbers(finished.folder) == numbers(second.folder)
    assert (finished.folder / "rounds.csv").stat().st_mtime_ns == before
    assert run_sweep(plan(tmp_path / "b"), num_jobs=1).num_made == 0


def test_a_folder_that_holds_another_run_is_refused_before_any_begins(tmp_path: Path) -> None:
    other = load_experiment("digits/nufm", [*SMALL, "seed=1", "algorithm.meta_lr=0.3"])
    run_experiment(other, tmp_path / "digits-nufm-seed1")
    runs = plan_sweep("digits/nufm", fixed=SMALL, seeds=(0, 1), out=tmp_path)
    with pytest.raises(RunError, match=r"seed1 holds a run of other settings: algorithm\.meta_lr\. .*-2\.$"):
        run_sweep(runs, num_jobs=1)
    assert not (tmp_path / "digits-nufm-seed0").exists()


def test_a_run_that_diverges_ends_alone(tmp_path: Path) -> None:
    words = ["algorithm.meta_lr=3e38,0.1", *SMALL]
    wild, tame = plan_sweep("digits/nufm", words, seeds=(0,), out=tmp_path)
    made = run_sweep([wild, tame], num_jobs=1)
    assert list(made.diverged) == [wild.folder]
    assert tame.rounds_done == 2


def test_no_jobs_are_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^--jobs must be >= 1, got 0\. Leave it out for one a core\.$"):
        run_sweep([], num_jobs=0)


@pytest.mark.processes
def test_two_processes_make_the_bits_of_one(tmp_path: Path) -> None:
    for jobs in (1, 2):
        run_sweep(
            plan_sweep("digits/nufm", fixed=SMALL, seeds=(0, 1), out=tmp_path / str(jobs)), num_jobs=jobs
        )
    for seed in (0, 1):
        one, two = (numbers(tmp_path / jobs / f"digits-nufm-seed{seed}") for jobs in ("1", "2"))
        assert one == two
