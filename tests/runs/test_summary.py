"""What a run sums up: the data that was really used, and warnings of units."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedwave.data import dataset_from_arrays
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import (
    AskToStopAfter,
    tiny,
)


def test_a_run_on_arrays_does_not_pretend_to_have_used_a_dataset(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = dataset_from_arrays(rng.normal(size=(400, 6)), rng.integers(0, 3, 400), name="mine")
    result = run_experiment(tiny(), tmp_path / "own", dataset=data, observers=[AskToStopAfter(1)])
    recorded = json.loads((result.path / "environment.json").read_text())
    assert recorded["dataset"] == "mine"
    assert recorded["dataset_fingerprint"] == data.fingerprint()
    settings = load_experiment(result.path / "config.toml")
    assert settings.data.dataset.kind == "passed-from-python"
    for call in (
        lambda: run_experiment(settings, tmp_path / "again"),
        lambda: resume_run(result.path),
    ):
        with pytest.raises(Exception, match="passed from Python|passed-from-python") as caught:
            call()
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "again").exists()
    assert resume_run(result.path, dataset=data).stopped is None


def test_warnings_of_units_reach_python_and_the_summary(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cell = {"preset": "umi-3.5ghz", "num_blocks": 2, "fleet": {"max_power_w": 23.0}}
    settings = tiny(cell=cell, num_rounds=1, selection={"num_selected": "auto"})
    said = build_simulation(settings).warnings
    assert any("23" in warning for warning in said)
    result = run_experiment(settings, tmp_path / "run")
    assert result.summary["warnings"] == list(said)
    assert all(warning in caplog.text for warning in said)


def test_grams_of_carbon_follow_from_the_joules_if_asked_for(tmp_path: Path) -> None:
    cell = {"preset": "paper", "num_blocks": 2, "carbon_intensity_g_per_kwh": 720.0}
    settings = tiny(cell=cell, num_rounds=1, selection={"num_selected": "auto"})
    found = run_experiment(settings, tmp_path / "run")
    assert found.summary["cell"]["carbon_g"] == pytest.approx(found.summary["cell"]["energy_j"] * 2e-4)
    assert found._facts()["gCO2"] == found.summary["cell"]["carbon_g"]
    silent = tiny(cell={"preset": "paper", "num_blocks": 2}, num_rounds=1)
    assert "carbon_g" not in run_experiment(silent, tmp_path / "silent").summary["cell"]
