"""The committed reproduction: verdicts follow from its tables, and its numbers can be made again."""

from __future__ import annotations

import csv
import itertools
import math
import os
import shlex
import shutil

import pytest

from fedwave.experiments import load_experiment
from fedwave.reproduce.items import ITEMS
from fedwave.reproduce.seed_tables import Tables, read_rows, write_rows
from fedwave.reproduce.single_run import single_run
from fedwave.reproduce.studies import study_of
from fedwave.reproduce.verdicts import claim_rows, judge, part_row
from fedwave.runs.kept_runs import KeptRuns
from fedwave.runs.provenance import NUMERICS_VERSION, processor
from tests.reproduce.second_opinion import judged
from tests.reproduce.second_opinion_of_studies import studied
from tests.reproduce.test_studies import fault_rows
from tools.docs.pages import DOCS

FOLDER = DOCS / "reproduction"
needs_results = pytest.mark.skipif(
    not (FOLDER / "claims.csv").exists(), reason="docs/reproduction/ has no results yet"
)


def table(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@needs_results
def test_the_committed_verdicts_follow_from_the_committed_tables() -> None:
    rows, written = claim_rows(judge(Tables.read(FOLDER, ITEMS))), table("claims.csv")
    assert len(rows) == len(written) > 0
    for row, old in zip(rows, written, strict=True):
        for name in ("claim", "part", "decision", "verdict"):
            assert str(row[name]) == old[name]
        for name in ("mean", "half_width", "p_holm", "p_size_holm", "p_small_holm", "p_run"):
            old_value = float(old[name]) if old[name] else math.nan
            assert row[name] == pytest.approx(old_value, rel=1e-9, nan_ok=True)


QUESTIONS = ("half_width", "p", "p_holm", "p_size", "p_size_holm", "p_run", "p_small", "p_small_holm")


def assert_same(rows: list[dict], again: list[dict]) -> None:
    """Rows of parts are what the second opinion has, to the digits that it has."""
    assert [row["part"] for row in rows] == [part["name"] for part in again]
    for row, part in zip(rows, again, strict=True):
        assert row["decision"] == part["decision"], row["part"]
        assert int(row["seeds"]) == len(part["values"])
        assert bool(int(row["is_exact"])) == part["exact"]
        assert float(row["mean"]) == pytest.approx(part["mean"], rel=1e-9, abs=1e-9)
        for name in QUESTIONS:
            value = math.nan if row[name] == "" else float(row[name])
            if not math.isnan(value) and (name == "half_width" or part.get(name) is not None):
                expected = pytest.approx(part[name], rel=1e-6, abs=1e-12)
                assert value == expected, (row["part"], name)
            else:
                assert part.get(name) is None, (row["part"], name)


@needs_results
def test_a_second_implementation_comes_to_the_same_verdicts() -> None:
    written, again = table("claims.csv"), judged(FOLDER)
    assert [row["claim"] for row in written] == [part["claim"] for part in again]
    assert len(again) > 50
    assert_same(written, again)


@needs_results
@pytest.mark.parametrize("item", ["steps", "rates", "robust"])
def test_a_second_implementation_comes_to_the_same_findings(item) -> None:
    if not (FOLDER / item / "comparisons.csv").exists():
        pytest.skip(f"docs/reproduction/ has no complete seed of {item} yet")
    assert_same(table(f"{item}/comparisons.csv"), studied(FOLDER, item))


def test_a_second_implementation_comes_to_the_same_findings_on_faults_and_of_one_seed(tmp_path) -> None:
    for rows in (fault_rows(), [row for row in fault_rows() if not row["seed"]]):
        write_rows(tmp_path / "robust" / "seeds.csv", rows)
        found = [part_row(part) for part in study_of("robust", read_rows(tmp_path / "robust" / "seeds.csv"))]
        assert len(found) == 8
        assert_same(found, studied(tmp_path, "robust"))


@needs_results
def test_a_second_implementation_follows_the_scales_of_u_too(tmp_path) -> None:
    """Claim C8d on made-up runs beside the committed ones, which it makes no less sure."""
    for file in FOLDER.glob("*/*.csv"):
        if file.name in ("seeds.csv", "curves.csv") and file.parent.name != "scales":
            (tmp_path / file.parent.name).mkdir(exist_ok=True)
            shutil.copy(file, tmp_path / file.parent.name)
    rows = []
    for scheme, exponents in (("raw u", (-0.002, 0.0)), ("mean |u| = 10, D = 2", (-0.4, 0.09))):
        for seed, weight in itertools.product(range(5), (0.5, 1.0, 1.5, 2.0, 2.5)):
            energy, time = (weight**one * (1.0 + 0.02 * math.cos(seed + 7 * weight)) for one in exponents)
            labels = {"dataset": "fashion-mnist", "scheme": f"URAL (optimal), {scheme}", "counting": "ours"}
            labels |= {"parameter": "energy_weight", "value": weight, "seed": seed}
            rows.append(labels | {"energy_j": 40.0 * energy, "delay_s": 20.0 * time})
    write_rows(tmp_path / "scales" / "seeds.csv", rows)
    found, again = claim_rows(judge(Tables.read(tmp_path, ITEMS))), judged(tmp_path)
    assert sum(part["claim"] == "C8d" for part in again) == 4
    assert_same(found, again)


@needs_results
def test_the_committed_reports_show_the_committed_verdicts() -> None:
    for name, cell in (("README.md", "| {} | {} |"), ("report.html", '<td>{}</td><td><span class="verdict')):
        text = (
            (FOLDER / name)
            .read_text(encoding="utf-8")
            .replace("\u00a0", " ")
            .replace("&#x27;", "'")
            .replace("\\|", "|")
        )
        for claim, verdict in {row["claim"]: row["verdict"] for row in table("claims.csv")}.items():
            assert cell.format(claim, verdict) in text
        for row in table("claims.csv"):
            assert row["part"] in text
        assert f"numerics version {NUMERICS_VERSION}" in text


@needs_results
@pytest.mark.slow
def test_a_committed_point_is_made_again_to_the_last_digit() -> None:
    if "FEDWAVE_DATA" not in os.environ:
        pytest.skip("FEDWAVE_DATA is not set: no Fashion-MNIST")
    row = next(
        row
        for row in table("table-2/seeds.csv")
        if (row["dataset"], row["scheme"]) == ("fashion-mnist", "FedAvg")  # the cheapest
    )
    words = shlex.split(row["command"])
    settings = [words[i + 1] for i, word in enumerate(words) if word == "-s"]
    result = single_run(load_experiment(words[2], [*settings, f"seed={row['seed']}"]))
    kept = KeptRuns(FOLDER / "runs").find(row["key"], processor=row["processor"])
    assert kept is not None
    # Another kind of processor adds up in another order, and fifty rounds of training carry that further.
    same = kept.made_with["processor"] == processor()
    tolerance = 0.0 if same else 0.02
    for name in ("accuracy", "accuracy_pooled", "loss", "loss_19", "gradient_norm"):
        assert kept.figures[name] == float(row[name])
        assert result.figures[name] == pytest.approx(float(row[name]), rel=tolerance, abs=0.0)
