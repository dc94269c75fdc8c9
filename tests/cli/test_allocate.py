from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from fedwave.allocation import (
    METHODS,
    allocate,
    compare_methods,
    describe,
    describe_front,
    example_problem,
    load_problem,
    objective_terms,
    pareto_front,
)
from fedwave.cli.app import app
from fedwave.errors import ProblemError
from fedwave.wireless.settings.presets import CELL_PRESETS


@pytest.fixture
def problem_file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(example_problem())
    return path


def run(*words):
    result = CliRunner().invoke(app, ["allocate", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_example_prints_a_problem_that_solves(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(run("--example"))
    assert allocate(load_problem(path)).num_selected == 4


def test_tables_show_assignment_terms_and_proof(problem_file):
    text = run(problem_file)
    for part in ("4 of 12 devices", "SINR dB", "delay s", "objective", "Status: optimal", "Proven: no"):
        assert part in text
    problem = load_problem(problem_file)
    found = allocate(problem)
    for term in objective_terms(problem, found):
        row = next(line for line in text.splitlines() if term.name in line)
        assert f"{term.worth:+.5g}" in row
        assert f"{term.value:.4g} {term.unit}".rstrip() in row
    for block, device in found.device_of_block.items():
        cells = [f"{block}", f"{device}", f"{problem.contribution[device]:.4g}"]
        assert any(line.replace("│", " ").split()[:3] == cells for line in text.splitlines())
    assert "Nothing is proven" in run(problem_file, "--method", "ives")


def test_each_upload_has_its_sinr_margin_and_rate(problem_file):
    text = problem_file.read_text()
    problem_file.write_text(text.replace("[limits]", "[limits]\nmin_snr_db = 3.0", 1))
    problem = load_problem(problem_file)
    found = allocate(problem)
    lines = run(problem_file).splitlines()
    assert max(map(len, lines[: 2 + found.num_selected])) <= 80
    headings = "block device u p dBm of max SINR dB margin dB kbit/s delay s energy J"
    assert " ".join(lines[1].split()) == headings
    for block, device in found.device_of_block.items():
        noise_w = problem.interference_w[block] + problem.bandwidth_hz * problem.noise_psd_w_per_hz
        snr = found.transmit_power_w[device] * problem.channel_gain[device] / noise_w
        cells = next(line.split() for line in lines[2:] if line.split()[:2] == [str(block), str(device)])
        assert cells[3] == f"{10 * math.log10(found.transmit_power_w[device] / 1e-3):.1f}"
        assert cells[5] == f"{10 * math.log10(snr):.1f}"
        assert cells[6] == f"{10 * math.log10(snr) - 3.0:.1f}"
        assert float(cells[7]) == pytest.approx(problem.bandwidth_hz * math.log2(1 + snr) / 1e3, rel=1e-3)


@pytest.mark.parametrize("access", ["tdma", "shared-band", "blocks"])
def test_every_upload_has_a_row_with_its_blocks_and_times_whatever_the_access(problem_file, access):
    text = problem_file.read_text()
    blocks = f'access = "{access}"\ninterference_dbm = [-115, -115, -115, -115] #'
    problem_file.write_text(text.replace("interference_dbm =", blocks, 1))
    problem = load_problem(problem_file)
    found = allocate(problem)
    lines = run(problem_file).splitlines()
    assert f"{found.num_selected} of 12 devices on 4 blocks (access {access}, method optimal)" in lines[0]
    headings = "blocks device u p dBm of max SINR dB kbit/s from s to s energy J"
    assert " ".join(lines[1].split()) == headings
    rows = [line.split() for line in lines[2 : 2 + found.num_selected]]
    assert [int(cells[1]) for cells in rows] == found.selected.tolist()
    assert len(rows) == found.num_selected > 3
    start_s = 0.0
    for cells, device in zip(rows, found.selected, strict=True):
        width_hz = 4 * 180e3 if access == "tdma" else found.bandwidth_of_device_hz[device]
        noise_w = width_hz * (10**-19.9 + 10**-14.5 / 180e3)  # -169 dBm/Hz, and -115 dBm on each block
        snr = found.transmit_power_w[device] * problem.channel_gain[device] / noise_w
        time_s = 3_621_184 / (width_hz * math.log2(1 + snr))
        assert float(cells[0]) == pytest.approx(width_hz / 180e3, rel=1e-3)
        assert float(cells[5]) == pytest.approx(10 * math.log10(snr), abs=0.06)
        assert float(cells[7]) == pytest.approx(start_s, rel=1e-3)
        assert float(cells[8]) == pytest.approx(start_s + time_s, rel=1e-3)
        start_s += time_s if access == "tdma" else 0.0


def test_idle_blocks_have_a_row_and_long_lists_say_what_is_left_out(problem_file, monkeypatch):
    monkeypatch.setattr("fedwave.cli.allocate_tables._MAX_ROWS", 2)
    assert "... and 2 more uploads; --json lists them all." in run(problem_file)
    monkeypatch.undo()
    assert "more uploads" not in run(problem_file)
    text = problem_file.read_text()
    problem_file.write_text(text.replace("delay_weight = 0.5", "delay_weight = 500.0"))
    rows = [line.split() for line in run(problem_file).splitlines()[2:6]]
    assert rows == [[str(block), "-"] for block in range(4)]


def test_a_power_in_dbm_is_one_line_on_the_error_stream(problem_file):
    problem_file.write_text(problem_file.read_text().replace("max_power_dbm = 23", "max_power_w = 23"))
    command = [sys.executable, "-m", "fedwave", "allocate", str(problem_file), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("warning: max_power_w reaches 23 W; a phone sends 0.2 W. If that is 23 dBm")
    assert len(done.stderr.splitlines()) == 1
    json.loads(done.stdout)


def test_compare_lists_every_method_within_80_columns(problem_file):
    text = run(problem_file, "--compare")
    for method in METHODS:
        assert f"\n{method} " in text
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_json_is_what_python_returns(problem_file):
    problem = load_problem(problem_file)
    assert json.loads(run(problem_file, "--json")) == describe(problem, allocate(problem))
    compared = {
        name: describe(problem, timed.allocation)
        for name, timed in compare_methods(
            problem, seed=5, options={"optimal": {"relative_gap": 0.1}}
        ).items()
    }
    assert json.loads(run(problem_file, "--compare", "--seed", 5, "--gap", 0.1, "--json")) == compared
    assert compared["ives"]["upper_bound"] is None
    front = describe_front(pareto_front(problem, relative_gap=0.1))
    assert json.loads(run(problem_file, "--pareto", "--gap", 0.1, "--json")) == front


def test_the_front_is_listed_and_drawn(problem_file, tmp_path):
    text = run(problem_file, "--pareto", "--plot", tmp_path / "front.png")
    assert "Optimum for each pair of weights" in text
    for energy_j in pareto_front(load_problem(problem_file)).energy_j:
        assert f" {energy_j:.4g} " in text
    assert (tmp_path / "front.png").stat().st_size > 5_000


def test_plot_is_written(problem_file, tmp_path):
    assert "Picture:" in run(problem_file, "--plot", tmp_path / "problem.pdf")
    assert (tmp_path / "problem.pdf").read_bytes().startswith(b"%PDF")


def test_devices_may_come_from_a_csv(problem_file, tmp_path):
    csv = tmp_path / "devices.csv"
    rows = [f"{u},{g}" for u, g in zip(np.linspace(9, 1, 12), np.full(12, -100), strict=True)]
    csv.write_text("\n".join(["contribution,channel_gain_db", *rows]))
    document = json.loads(run(problem_file, "--devices", csv, "--json"))
    assert [block >= 0 for block in document["block_of_device"]] == [True] * 4 + [False] * 8


def test_infeasible_problems_say_why(problem_file):
    problem_file.write_text(example_problem().replace("max_delay_s = 20.0", "max_delay_s = 0.5"))
    text = " ".join(run(problem_file).split())
    assert "Status: infeasible - device" in text
    assert "cannot finish by 0.5 s even at full power" in text


def test_what_never_ends_is_valid_json(problem_file):
    problem_file.write_text(example_problem().replace("max_frequency_hz = [1.5e9", "max_frequency_hz = [0"))
    document = json.loads(run(problem_file, "--json"), parse_constant=pytest.fail)
    assert document["objective"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), r"No problem file or cell given. Write one with: fedwave allocate --example > problem.toml"),
        (
            ("p.toml", "--method", "optimum"),
            r'--method: there is no method "optimum". Did you mean "optimal"',
        ),
        (("p.toml", "--compare", "--pareto"), r"Give --compare or --pareto, not both"),
        (("p.toml", "--pareto", "-m", "ives"), r"--pareto lists optima, got --method ives. Leave one"),
        (("p.toml", "-m", "ives", "--gap", "0.1"), r"--gap is for the method optimal, got --method ives"),
        (("nowhere.toml",), r"Cannot read the problem file nowhere.toml"),
    ],
)
def test_wrong_words_are_refused_in_one_line(words, message):
    with pytest.raises(ProblemError, match=message) as caught:
        run(*words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_a_cell_preset_is_solved_unless_a_file_is_called_so(preset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *_, last = run(preset, "-n", 6).splitlines()
    assert first.startswith(f"{preset}: 6 devices, round 0, seed 0; contributions uniform")
    assert last.startswith("Proven: no allocation is better than")
    (tmp_path / preset).write_text(example_problem())  # a problem file may have any name
    assert run(preset, "--json") == run(preset, "--json", "-m", "optimal")
    assert preset not in run(preset)


def test_the_same_seed_prints_the_same_draw(problem_file):
    first = json.loads(run(problem_file, "-m", "random", "--seed", 3, "--json"))
    assert first == json.loads(run(problem_file, "-m", "random", "--seed", 3, "--json"))
    assert first != json.loads(run(problem_file, "-m", "random", "--seed", 4, "--json"))


def test_the_offer_that_is_taken_stands_beside_its_size(problem_file):
    text = problem_file.read_text()
    start, end = text.index("interference_dbm"), text.index("[weights]")
    head = f'{text[:start]}interference_dbm = -115\nnum_blocks = 4\naccess = "shared-band"\n\n{text[end:]}'
    offers = f"offer_contribution = {[[5.0, 0.5]] * 12}\noffer_bits = {[[4.5e5, 1e5]] * 12}\n"
    problem_file.write_text(head + offers)
    problem = load_problem(problem_file)
    found = allocate(problem)
    assert set(found.offer_of_device[found.selected]) == {0, 1}  # the case has both
    printed = run(problem_file).splitlines()
    heading = next(line for line in printed if "offer" in line).split()
    assert heading[:5] == ["blocks", "device", "offer", "bits", "u"]
    for i in found.selected:
        row = next(line.split() for line in printed if line.split()[1:2] == [str(i)])
        offer = int(found.offer_of_device[i])
        assert row[2] == str(offer)
        assert float(row[3]) == pytest.approx(3_621_184 if offer == 0 else 4.5e5, rel=1e-3)
        assert float(row[4]) == pytest.approx(problem.contribution[i] if offer == 0 else 5.0, rel=1e-3)
    values = json.loads(run(problem_file, "--json"))
    assert values["offer_of_device"] == found.offer_of_device.tolist()
    sizes = [{-1: 0.0, 0: 3_621_184.0, 1: 4.5e5}[offer] for offer in values["offer_of_device"]]
    assert values["device_upload_bits"] == sizes
    assert list(json.loads(run(problem_file, "--compare", "--json"))) == ["optimal"]
