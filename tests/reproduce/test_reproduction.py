"""A part of the quick reproduction, from the command to the verdicts: resumed, shared, for any jobs."""

from __future__ import annotations

import csv
import math
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment
from fedwave.reproduce import profile as profiles
from fedwave.reproduce.items import ITEMS
from fedwave.reproduce.profile import QUICK
from fedwave.reproduce.reproduction import ReproductionRequest, item_costs, reproduce
from fedwave.reproduce.seed_tables import Tables
from fedwave.reproduce.steps import ARMS
from fedwave.reproduce.verdicts import CLAIMS, claim_rows, judge
from fedwave.reproduce.wanted_runs import wanted_runs
from fedwave.runs.folder import RunFolder
from fedwave.runs.kept_runs import KeptRuns
from fedwave.runs.run import run_experiment
from tests.pages.browser import open_page

PART = ("table-2", "fig-2", "fig-4", "readings")  # all of them: -m slow
SMALL = {
    "num_rounds": 19, "num_selected": (2, 4), "num_local_steps": (1, 2), "num_blocks": (1, 3),
    "usual_num_blocks": 3,
    "max_gains": (0.5, 1.0), "weights": (1.0, 2.0), "similarity_penalties": (5.0,), "other_seeds": 2,
    "num_training": 6, "num_faulty": 2, "settings": ("partition.num_devices=12", "model.channels=[2]"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _small():
    """Fewer points than even the quick profile has; everything else is as users get it."""
    with pytest.MonkeyPatch.context() as patch:
        small = profiles.Profile(**{**vars(QUICK), **SMALL})
        patch.setattr("fedwave.reproduce.reproduction.QUICK", small)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Some items of the small reproduction, two seeds."""
    folder = tmp_path_factory.mktemp("whole")
    reproduce(ReproductionRequest(items=PART, is_quick=True, num_jobs=1), folder)
    return folder


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def require_files(folder: Path, items) -> None:
    for item in items:
        files = {path.name for path in (folder / item).iterdir()}
        assert {"seeds.csv", "configs.toml"} <= files
        assert ("curves.csv" in files) == (item in ("fig-2", "fig-4", "beyond", "steps", "rates", "robust"))
        pictures = {name for name in files if name.endswith(".png")}
        assert {name.replace(".png", ".csv") for name in pictures} <= files
        assert pictures or item == "table-2"
        assert ("comparisons.csv" in files) == (item in ("steps", "rates", "robust"))
    for item in ("table-2", "readings"):
        assert (folder / item / "readings.csv").exists()
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert pictures
    assert all((folder / picture).exists() for picture in pictures)


def require_verdicts(folder: Path, claims: set[str]) -> None:
    """The verdicts in claims.csv are those that follow from the tables beside it."""
    rows = claim_rows(judge(Tables.read(folder, ITEMS)))
    assert {row["claim"] for row in rows} == claims
    written = table(folder / "claims.csv")
    shown = ("claim", "part", "decision", "verdict")
    assert [[row[name] for name in shown] for row in written] == [
        [row[name] for name in shown] for row in rows
    ]
    for name in ("mean", "p_holm", "p_size_holm", "p_small_holm", "p_run"):
        numbers = [float(row[name]) if row[name] else math.nan for row in written]
        assert numbers == pytest.approx([row[name] for row in rows], rel=0.0, abs=0.0, nan_ok=True)


def test_every_item_leaves_its_files(whole) -> None:
    require_files(whole, PART)
    assert not (whole / "fig-7").exists()


def test_verdicts_follow_from_the_files(whole) -> None:
    require_verdicts(whole, {"C1a", "C1b", "C2a", "C2b", "C3a", "C3b", "C5a", "C5b", "C5c", "C9a", "C9b"})


@pytest.mark.slow
def test_all_items_together(tmp_path) -> None:
    reproduce(ReproductionRequest(is_quick=True), tmp_path)
    require_files(tmp_path, ITEMS)
    require_verdicts(tmp_path, {claim.name for claim in CLAIMS})
    seen = open_page(tmp_path / "report.html", tmp_path)
    assert (seen.wrong, seen.loaded, seen.console) == ([], [], [])


def test_a_run_alone_gives_the_number_in_the_table_to_the_last_digit(whole, tmp_path) -> None:
    for item, scheme in (("fig-4", "RU-Greedy"), ("table-2", "NUFM")):
        row = next(r for r in table(whole / item / "seeds.csv") if r["scheme"] == scheme and r["seed"] == "1")
        words = shlex.split(row["command"])
        settings = [words[i + 1] for i, word in enumerate(words) if word == "-s"]
        run = run_experiment(load_experiment(words[2], [*settings, f"seed={row['seed']}"]), tmp_path / item)
        columns = RunFolder(run.path).table()
        assert float(row["accuracy"]) == columns["heldout_accuracy"][-1]
        assert float(row["loss_19"]) == columns["heldout_loss"][18]
        if item == "fig-4":
            assert float(row["energy_j"]) == columns["energy_j"].mean()


def test_the_curves_are_the_plotted_numbers(whole) -> None:
    curves = [r for r in table(whole / "fig-2" / "curves.csv") if r["scheme"] == "NUFM" and r["value"] == "2"]
    plotted = [
        r for r in table(whole / "fig-2" / "fig-2.csv") if r["series"] == "NUFM" and "= 2" in r["panel"]
    ]
    assert len(curves) == 2
    for row in plotted:
        losses = [float(curve[f"loss_{int(float(row['x']))}"]) for curve in curves]
        assert float(row["mean"]) == pytest.approx(sum(losses) / 2, rel=1e-12)


def test_the_configs_are_in_full(whole) -> None:
    configs = tomllib.loads((whole / "fig-4" / "configs.toml").read_text(encoding="utf-8"))["run"]
    assert len(configs) == 9
    for config in configs:
        assert config["seeds"] == [0, 1]
        words = shlex.split(config["command"].replace("SEED", "0"))
        settings = [words[i + 1] for i, word in enumerate(words) if word == "-s"]
        resolved = load_experiment(words[2], settings).model_dump(mode="json", exclude_none=True)
        assert config["settings"] == {k: v for k, v in resolved.items() if k not in ("seed", "execution")}


def test_the_report_opens_and_says_what_the_files_say(whole, tmp_path) -> None:
    seen = open_page(whole / "report.html", tmp_path)
    assert (seen.wrong, seen.loaded, seen.console) == ([], [], [])
    text = (whole / "report.html").read_text(encoding="utf-8")
    shown = re.findall(r'<td>(C\d\w?)</td><td><span class="verdict \w+">([\w ;]+)</span>', text)
    verdicts = {row["claim"]: row["verdict"] for row in table(whole / "claims.csv")}
    assert [(claim, verdict) for claim, verdict in shown if verdict != "not run"] == list(verdicts.items())


def test_a_stopped_reproduction_goes_on_where_it_was(tmp_path) -> None:
    request = ReproductionRequest(items=["fig-4"], is_quick=True, num_seeds=1, num_jobs=1)

    def stop(now) -> None:
        if now.num_done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(request, tmp_path, progress=stop)
    assert len(list((tmp_path / "runs").glob("*.json"))) == 4
    told = []
    reproduce(request, tmp_path, progress=told.append)
    assert [now.num_done for now in told] == list(range(6))
    assert told[-1].num_runs == 5
    assert told[0].seconds_left > 0
    before = (tmp_path / "fig-4" / "seeds.csv").read_bytes()
    told.clear()
    reproduce(request, tmp_path, progress=told.append)
    assert told == []  # nothing is missing
    assert (tmp_path / "fig-4" / "seeds.csv").read_bytes() == before


@pytest.mark.processes
def test_two_reproductions_in_one_folder_at_once_lose_nothing(tmp_path) -> None:
    words = [sys.executable, "-m", "fedwave", "reproduce", "--quick", "--seeds", "1", "-j", "1", "-o", "."]
    both = [
        subprocess.Popen([*words, item], cwd=tmp_path, stdout=subprocess.DEVNULL)
        for item in ("fig-4", "beyond")
    ]
    assert [process.wait(timeout=500) for process in both] == [0, 0]
    store = KeptRuns(tmp_path / "runs")
    wanted = [run for item in ("fig-4", "beyond") for run in wanted_runs(ITEMS[item], QUICK, num_seeds=1)]
    assert all(run.found(store) for run in wanted)
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == len({run.key for run in wanted})
    report = (tmp_path / "README.md").read_text()  # of the last, who knows of both
    assert "fig-4" in report
    assert all((tmp_path / item / "seeds.csv").exists() for item in ("fig-4", "beyond"))


@pytest.mark.processes
def test_two_processes_make_the_same_numbers(whole, tmp_path) -> None:
    reproduce(
        ReproductionRequest(items=["fig-4", "table-2"], is_quick=True, num_seeds=1, num_jobs=2), tmp_path
    )
    for item in ("fig-4", "table-2"):
        mine = table(tmp_path / item / "seeds.csv")
        theirs = [row for row in table(whole / item / "seeds.csv") if row["seed"] == "0"]
        for row in (*mine, *theirs):
            row["cpu_time_s"] = ""
        assert mine == theirs
    # Asking for one seed is not to have made too few.
    half, all_of_them = ((path / "README.md").read_text(encoding="utf-8") for path in (tmp_path, whole))
    assert half.count("Seeds: digits 1.\n") == 2
    # One n_k of Figure 2 and the first row of the readings are Table II's runs: shown, but no whole seed.
    for item in ("fig-2", "readings"):
        said = half[half.index(f"## {ITEMS[item].title}") :]
        assert said.split("\n")[2].startswith("Seeds: digits 0 of 1. **Not all runs were made")
    assert half.count("Not all runs") == 2
    assert all_of_them.count("Seeds: digits 2.\n") + all_of_them.count("Seeds: digits 2. ") == len(PART)
    assert "Not all runs" not in all_of_them


def test_a_report_alone_runs_nothing_and_says_what_is_missing(whole, tmp_path) -> None:
    (tmp_path / "runs.jsonl").write_bytes((whole / "runs.jsonl").read_bytes())
    words = ["reproduce", "--quick", "-q", "--report-only", "--seeds", "3", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "runs.jsonl").read_bytes() == (whole / "runs.jsonl").read_bytes()
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert text.count("Seeds: digits 2 of 3. **Not all runs were made; a seed counts once") == len(PART)
    assert "No seed is complete yet. Run: `fedwave reproduce steps --quick`." in text
    assert table(tmp_path / "fig-4" / "seeds.csv") == table(whole / "fig-4" / "seeds.csv")


def test_what_it_costs_is_said_without_running_it(whole, tmp_path) -> None:
    request = ReproductionRequest(items=["table-2", "fig-2"], is_quick=True, num_jobs=2)
    new = item_costs(request, tmp_path)
    assert [(cost.item, cost.num_runs, cost.num_missing) for cost in new] == [
        ("table-2", 6, 6),
        ("fig-2", 12, 6),
    ]
    assert all(cost.minutes > 0 for cost in new)
    assert [(cost.num_missing, cost.minutes) for cost in item_costs(request, whole)] == [(0, 0.0), (0, 0.0)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"items": ["fig-9"]}, r'there is no item "fig-9" to reproduce\. Did you mean'),
        ({"num_seeds": 0}, r"--seeds must be 1 to 1000, got 0"),
        ({"num_jobs": 0}, r"--jobs must be >= 1, got 0"),
        ({"datasets": ["mnist"]}, r'no item is run on the dataset "mnist"\.'),
    ],
)
def test_a_wrong_request_is_one_line(given, message) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ReproductionRequest(**given)
    assert "\n" not in str(caught.value)


def test_the_command_lists_costs_and_prints_verdicts(whole) -> None:
    listed = CliRunner().invoke(app, ["reproduce", *PART, "--quick", "--list", "--out", str(whole)])
    assert listed.exit_code == 0, listed.output
    assert re.findall(r"^([\w-]+) .* 0 +0\.0 *$", listed.output, re.MULTILINE) == [*PART, "all"]
    done = CliRunner().invoke(
        app, ["reproduce", "fig-4", "--quick", "-q", "--jobs", "1", "--out", str(whole)]
    )
    assert done.exit_code == 0, done.output
    verdicts = re.findall(
        r"^(C\d\w?) +(\d+ of \d+ hold|not testable as printed|not run)[; ]", done.output, re.MULTILINE
    )
    assert len(verdicts) == len(CLAIMS)
    assert f"Report: {whole / 'report.html'}" in done.output


def test_arms_follow_their_leaders_also_after_a_stop(tmp_path) -> None:
    request = ReproductionRequest(items=["steps"], is_quick=True, num_seeds=1, num_jobs=1)

    def stop(now) -> None:
        if now.num_done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(request, tmp_path, progress=stop)
    told = []
    reproduce(request, tmp_path, progress=told.append)
    assert told[-1].num_runs == 7
    curves = table(tmp_path / "steps" / "curves.csv")
    norms = {row["scheme"]: row["round_19"] for row in curves if row["curve"] == "update_norm"}
    assert float(norms["herding at NUFM's norms"]) == pytest.approx(float(norms["NUFM"]), rel=1e-5)
    assert {row["curve"] for row in curves} >= {"training_loss", "gain_correlation", "mean_cosine"}
    seeds = table(tmp_path / "steps" / "seeds.csv")
    assert [row["scheme"] for row in seeds] == list(ARMS)
    pictures = {path.name for path in (tmp_path / "steps").glob("*.png")}
    assert pictures == {"step-leads.png", "step-arms.png", "step-lengths.png"}
    assert {row["decision"] for row in table(tmp_path / "steps" / "comparisons.csv")} == {"open"}  # one seed


def test_rates_and_faults_leave_tables(tmp_path) -> None:
    reproduce(
        ReproductionRequest(items=["rates", "robust"], is_quick=True, num_seeds=1, num_jobs=1), tmp_path
    )
    rates = table(tmp_path / "rates" / "seeds.csv")
    assert len(rates) == 2 * 4
    assert all(row["training_loss"] for row in rates if row["rounds_played"] == "19")
    robust = {(row["parameter"], row["scheme"]): row for row in table(tmp_path / "robust" / "seeds.csv")}
    assert float(robust["liars", "NUFM"]["faulty_chosen"]) == 1.0
    assert robust["liars", "Per-FedAvg"]["accuracy"] == robust["none", "Per-FedAvg"]["accuracy"]
