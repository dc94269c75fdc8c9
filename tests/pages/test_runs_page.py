"""The page of runs: its numbers are those of the runs, and a real browser draws it."""

from __future__ import annotations

import csv
import html
import io
import re
import shutil
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest

from fedwave.errors import RunError
from fedwave.experiments import load_experiment
from fedwave.pages.page import write_page
from fedwave.pages.runs_page import runs_page
from fedwave.runs.compare import read_run
from fedwave.runs.run import run_experiment
from tests.pages.browser import embedded, open_page
from tests.runs.written_runs import write_battery_run, write_run

SMALL = ["num_rounds=3", "partition.num_devices=16", "model.channels=[4]"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for scheme, seed in (("ural", 0), ("ural", 1), ("ru-random", 0)):
        experiment = load_experiment(f"digits/{scheme}", [*SMALL, "cell.num_blocks=3", f"seed={seed}"])
        made.append(run_experiment(experiment, folder / f"{scheme}{seed}").path)
    return [read_run(path) for path in made]


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_of_runs_opens_in_a_browser(runs, tmp_path, width) -> None:
    path = write_page(tmp_path / "report.html", runs_page(runs))
    seen = open_page(path, tmp_path, width=width)
    assert (seen.wrong, seen.loaded, seen.console) == ([], [], [])
    charts = embedded(path.read_text(encoding="utf-8"))
    assert set(charts) == {"curves", "selection", "phases", "per-device", "terms"}
    assert seen.dom.count('role="img"') == sum(len(one["panels"]) for one in charts.values())


def test_the_page_of_runs_shows_their_numbers(runs) -> None:
    text = runs_page(runs)
    charts = embedded(text)
    ural, random = charts["curves"]["panels"][0]["series"]
    losses = [run.curve("heldout_loss") for run in runs]
    assert ural["mean"] == pytest.approx(((losses[0] + losses[1]) / 2).tolist(), rel=1e-5)
    assert random["mean"] == pytest.approx(losses[2].tolist(), rel=1e-5)
    counts = sum(len(row) for row in runs[2].columns["selected_devices"])
    share = charts["selection"]["panels"][0]["series"][1]["mean"]
    assert sum(share) / 100 * 3 == pytest.approx(counts, rel=1e-4)
    phases = {panel["title"]: panel["series"][1]["mean"][0] for panel in charts["phases"]["panels"]}
    assert phases["upload"] == pytest.approx(runs[2].curve("upload_energy_j").sum(), rel=1e-5)
    per_device = charts["per-device"]["panels"][0]["series"][1]["mean"]
    assert sum(per_device) == pytest.approx(runs[2].last("cumulative_energy_j"), rel=1e-4)
    assert charts["terms"]["panels"][0]["series"][1]["mean"] == pytest.approx(
        runs[2].curve("objective").tolist(), rel=1e-5
    )
    differing = re.findall(r"<td>([\w.]+)</td>", text.split('id="differences"')[1].split("</section>")[0])
    assert {"selection.policy", "cell.method"} <= set(differing)
    assert "algorithm.meta_lr" not in differing


def test_the_page_has_both_tables_beside_the_baseline_and_their_numbers_as_a_file(tmp_path) -> None:
    values = {"a b": [0.2, 0.4], "b": [0.4, 0.6]}
    written = [write_run(tmp_path / name, name, own, over_cell=True) for name, own in values.items()]
    made_at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    text = runs_page(written, baseline="b", target=0.4, made_at=made_at)
    assert "on 01 March 2026, 09:30 UTC." in text
    tables = [html.unescape(one) for one in re.findall(r"<table.*?</table>", text, re.DOTALL)[:2]]
    assert "<td>-20</td>" in tables[0]  # points, in the column of differences
    assert "<td><b>60</b></td>" in tables[0]
    assert "<th>rounds to 40%</th>" in tables[1]
    assert "<td>2.0\u00a0×</td>" in tables[1]  # two rounds, where "b" needs one
    (link,) = re.findall(r'download="comparison.csv" href="data:text/csv;charset=utf-8,([^"]+)"', text)
    first, second = csv.DictReader(io.StringIO(unquote(link)))
    assert float(first["delay_s_to_target_ratio"]) == pytest.approx(2.0)
    assert second["baseline"] == "b"
    again = html.unescape(text.split('id="again"')[1])
    assert f"fedwave report {tmp_path} --baseline b --target 0.4" in again  # the folder of just these runs
    assert f"fedwave run {tmp_path / 'b'}/config.toml --out again/b" in again
    write_run(tmp_path / "c", "c", [0.5])
    some = html.unescape(runs_page(written))
    assert f"fedwave report '{tmp_path / 'a b'}' {tmp_path / 'b'}<" in some
    alone = write_run(tmp_path / "of one" / "run", "d", [0.5])
    assert f"fedwave report '{alone.path}'<" in html.unescape(runs_page([alone]))


def test_a_figure_is_broken_before_its_interval_alone(tmp_path) -> None:
    runs = [
        write_run(tmp_path / f"{name}{seed}", name, [0.2, 0.3 + 0.1 * seed], over_cell=True, seed=seed)
        for name in ("a", "b")
        for seed in range(3)
    ]
    tables = "".join(re.findall(r"<table.*?</table>", html.unescape(runs_page(runs)), re.DOTALL)[:2])
    cells = re.findall(r"<td>(?:<b>)?([^<]*[±–×][^<]*)", tables)
    assert any(re.fullmatch(r"\S+ \(\S+\)", cell.replace("\u00a0", "_")) for cell in cells)
    assert all(cell.count(" ") <= 1 for cell in cells)
    assert not any(re.search("[^\u2060]–|–[^\u2060]", cell) for cell in cells)


def test_runs_without_a_cell_have_no_energy(tmp_path) -> None:
    run = run_experiment(
        load_experiment("digits/nufm", [*SMALL, "selection.num_selected=2"]), tmp_path / "run"
    )
    charts = embedded(runs_page([read_run(run.path)]))
    assert set(charts) == {"curves", "selection"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("device", "gadget", 1), 'it has no column "device"'),
        (lambda text: text.replace("cumulative_energy_j", "joules", 1), 'no column "cumulative_energy_j"'),
        (lambda text: text.replace("round", "turn", 1), 'it has no column "round"'),
        (lambda text: "".join(text.splitlines(keepends=True)[:2]), "says that it was selected"),
        (lambda text: "", "has no rounds yet"),
    ],
)
def test_devices_that_are_not_as_the_run_wrote_them_are_one_line(runs, tmp_path, change, said) -> None:
    shutil.copytree(runs[2].path, tmp_path / "run")
    file = tmp_path / "run" / "devices.csv"
    file.write_text(change(file.read_text()))
    with pytest.raises(RunError, match=said) as caught:
        runs_page([read_run(tmp_path / "run")])
    assert "devices.csv" in str(caught.value)
    file.unlink()
    assert "selection" not in embedded(runs_page([read_run(tmp_path / "run")]))  # it may be left out


def test_the_page_has_grams_of_carbon_where_a_run_says_what_joules_are_worth(tmp_path) -> None:
    grey = write_run(tmp_path / "b", "b", [0.1, 0.2, 0.3], over_cell=True)
    green = write_run(tmp_path / "a", "a", [0.1, 0.2, 0.3], over_cell=True, carbon_intensity_g_per_kwh=360.0)
    assert "gCO2" not in runs_page([grey])
    final = runs_page([green]).split("</table>")[0]
    assert "gCO2" in final
    assert "<td>0.03</td>" in final


def test_batteries_have_a_section_with_lifetimes_charges_and_prices(tmp_path) -> None:
    charge = [[5.0, 4.0, 3.0, 2.0], [4.0, 3.0, 2.0, 1.0], [3.0, 0.5, 1.0, 0.0]]
    price = [[0.0] * 4, [1.0] * 4, [2.0] * 4]
    made = [
        write_battery_run(tmp_path / "a", "a", charge, price=price),
        write_battery_run(tmp_path / "b", "b", [[5.0] * 4] * 3),
    ]
    for run in made:  # other sections look for what a real run has
        table = run.path / "devices.csv"
        head, *rows = table.read_text().splitlines()
        table.write_text("\n".join([f"{head},cumulative_energy_j", *(f"{row},1.0" for row in rows)]) + "\n")
    text = runs_page(made)
    section = text.split('id="batteries"')[1].split("</section>")[0]
    cells = re.findall(r"<td>([^<]*)</td>", section)
    assert cells[:8] == ["a", "0", "after 2 rounds, 1 h, at 20 %", "after 3 rounds, 1.5 h, at 30 %", "3", "3",
                         "0.5", "3"]  # fmt: skip
    assert cells[8:] == ["b", "0", "never", "never", "0", "0", "0.0", "3"]
    panels = embedded(text)["batteries"]["panels"]
    assert [one["mean"] for one in panels[2]["series"]] == [[0, 1, 3], [0, 0, 0]]
    assert [one["mean"] for one in panels[3]["series"]] == [[0, 1, 2]]
    assert 'id="batteries"' not in runs_page([write_run(tmp_path / "none", "none", [0.5])])
