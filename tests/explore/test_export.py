"""What is copied from the page gives its numbers again: the command line and Python are the oracles."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fedwave.allocation import parse_problem
from fedwave.cli.app import app
from fedwave.explore.export import as_problem_file
from tests.explore.asking import Page

VIEWS: dict[str, dict[str, Any]] = {
    "paper": {"num_blocks": 6, "max_power_w": 0.37, "delay_weight": 0.3, "contribution": "exponential"},
    "umi-3.5ghz": {
        "num_blocks": 5,
        "bandwidth_hz": 180e3,
        "max_power_w": 0.123,
        "deadline_s": 7.5,
        "seed": 3,
    },
    "uma-2ghz": {"round_index": 2, "model_bits": 1.25e6, "contribution": "equal"},
    "chen2020": {"energy_weight": 0.02, "num_samples": 3},
    "fedl2021": {"mean_contribution": 0.7},
    "rma-700mhz": {"access": "tdma", "max_uploads": 9, "num_blocks": 7},
}


def shown_by(page: Page, source: str, **moved: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the page sends after its sliders moved, and the numbers of all methods that it shows."""
    view = page.ask("defaults", {"source": source}).json["view"] | moved
    question = {"source": source, "view": view}
    shown = page.ask("methods", question).json
    assert page.ask("cell", question).json["optimal"]["objective"] == shown["optimal"]["objective"]
    return question, shown


def numbers(found: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal to the last bit: all but the time it took."""
    return {name: {**one, "seconds": None} for name, one in found.items()}


def run(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)  # type: ignore[no-any-return]


@pytest.mark.parametrize("source", VIEWS)
def test_toml_gives_the_same_numbers_on_the_command_line(source: str, tmp_path: Path) -> None:
    page = Page()
    question, shown = shown_by(page, source, **VIEWS[source])
    file = tmp_path / "cell.toml"
    file.write_text(page.ask("export", {**question, "kind": "toml"}).json["text"])
    printed = run("explore", str(file), "--json")
    assert numbers(printed["methods"]) == numbers(shown)
    assert printed["view"] == pytest.approx(question["view"])
    # and once more from the file, to the same file
    again = Page(str(file))
    view = again.ask("defaults", {"source": str(file)}).json["view"]
    text = again.ask("export", {"source": str(file), "view": view, "kind": "toml"}).json["text"]
    assert text == file.read_text()


@pytest.mark.parametrize("source", VIEWS)
def test_a_problem_file_gives_the_same_numbers(source: str, tmp_path: Path) -> None:
    page = Page()
    question, shown = shown_by(page, source, **VIEWS[source])
    file = tmp_path / "problem.toml"
    file.write_text(page.ask("export", {**question, "kind": "problem"}).json["text"])
    seed = str(question["view"]["seed"])
    printed = run("allocate", str(file), "--compare", "--json", "--seed", seed)
    assert {name: one["objective"] for name, one in printed.items()} == {
        name: one["objective"] for name, one in shown.items()
    }
    for name, one in shown.items():
        block = np.array(printed[name]["block_of_device"])
        assert np.flatnonzero(block >= 0).tolist() == one["uploads"]["device"]
        assert block[block >= 0].tolist() == one["uploads"]["block"]


@pytest.mark.parametrize("source", ["paper", "umi-3.5ghz", "uma-2ghz", "own"])
def test_python_gives_the_same_numbers(source: str, tmp_path: Path) -> None:
    """Also of a file without a preset, which names a CSV beside it, and whose text is not harmless."""
    moved = VIEWS.get(source, {})
    if source == "own":
        (tmp_path / "fleet.csv").write_text("max_power_w\n" + "0.1\n" * 30)
        own = tmp_path / "own.toml"
        own.write_text(
            'description = """\'); import os; os._exit(7) #"""\nnum_blocks = 3\nbandwidth_hz = 180e3\n'
            'noise_psd_dbm_per_hz = -174\n[channel]\nkind = "log-distance"\n'
            "reference_loss_db = 40\nexponent = 3\n"
            'placement = { kind = "disc", radius_m = 200, min_distance_m = 10 }\n'
            '[fleet]\npath = "fleet.csv"\nmax_frequency_hz = 1e9\ncapacitance = 2e-28\n'
            "cycles_per_sample = 1e7\n"
        )
        source = str(own)
    page = Page(*([source] if source.endswith(".toml") else []))
    question, shown = shown_by(page, source, **moved)
    code = page.ask("export", {**question, "kind": "python"}).json["text"]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path / ".."
    )
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert {name: (float(objective), json.loads(devices)) for name, objective, devices in lines} == {
        name: (one["objective"], one["uploads"]["device"]) for name, one in shown.items()
    }


def test_a_problem_file_holds_the_whole_problem(tmp_path: Path) -> None:
    file = tmp_path / "lossy.toml"
    file.write_text(
        'preset = "umi-3.5ghz"\n[losses]\noutage_snr_db = 3\noutage_margin_db = 1\n'
        "packet_error_waterfall = 0.02\ndeadline_s = 9\n"
    )
    page = Page(str(file))
    source = page.api.workbench.source(str(file))
    problem = page.api.workbench.problem(source, source.first_view(num_devices=30))
    assert problem.min_snr == pytest.approx(10**0.4)
    again = parse_problem(as_problem_file(problem))
    for field in dataclasses.fields(problem):
        assert np.array_equal(getattr(again, field.name), getattr(problem, field.name)), field.name


def test_only_what_was_changed_is_in_the_file() -> None:
    page = Page()
    view = page.ask("defaults", {"source": "paper"}).json["view"]
    text = page.ask("export", {"source": "paper", "view": view, "kind": "toml"}).json["text"]
    assert text.split("[explore]")[0].split("\n\n")[1] == 'preset = "paper"'
