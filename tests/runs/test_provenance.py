"""The key of a run, which is known before any data is read, is that of its numbers."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from fedwave.errors import RunError
from fedwave.experiments import load_experiment
from fedwave.runs.provenance import processor, run_key
from fedwave.runs.run import resume_run
from tests.runs.small_runs import (
    files_of,
)


def test_the_key_is_that_of_the_numbers() -> None:
    def key(*settings: str) -> str:
        return run_key(load_experiment("digits/ural", settings))

    assert key("name=other", "execution.workers=3", "evaluation.training_devices=true") == key()
    for setting in (
        "num_rounds=3",
        "seed=1",
        "cell.energy_weight=2",
        "evaluation.every=2",
        "selection.num_selected=3",
        "execution.precision=bfloat16",
        "faults.num_devices=2",
        "model.seed=3",
    ):
        assert key(setting) != key()
    variant = run_key(load_experiment("digits/ural"), "steps", "an arm")
    assert len({key(), variant, run_key(load_experiment("digits/ural"), "steps", "another")}) == 3


def test_another_numerics_version_shares_nothing(monkeypatch) -> None:
    before = run_key(load_experiment("digits/nufm"))
    monkeypatch.setattr("fedwave.runs.provenance.NUMERICS_VERSION", -1)
    assert run_key(load_experiment("digits/nufm")) != before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"versions": {"torch": "1.0"}}, "was started with torch 1.0, now"),
        ({"versions": []}, "was started with torch None, now"),
        ({"torch_device": "cuda:0"}, "was started on cuda:0, now cpu: its bits may differ"),
        ({"processor": "Z80"}, "was started on a processor Z80, now"),
    ],
)
def test_another_version_or_device_is_said(
    cut: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any], said: str
) -> None:
    file = cut / "environment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    resume_run(cut)
    assert said in caplog.text


def test_the_kind_of_processor_tells_two_makes_apart(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    text = (
        "processor: 0\nmodel name\t: Fast One\ncpu family\t: {}\nmodel\t\t: 1\n\nprocessor: 1\nmodel\t: 9\n"
    )
    described.write_text(text.format(25))
    assert processor(described) == "Fast One, family 25, model 1"
    described.write_text(text.format(6))
    assert processor(described) == "Fast One, family 6, model 1"
    assert processor(tmp_path / "absent") == (platform.processor() or platform.machine())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "it holds a list, not a table"),
        ("{}", "does not say what its run was started with"),
        ("{", "cannot read"),
        ("[" * 100_000, "cannot read"),
        ("\x00", "cannot read"),
        ('{"settings": {}}', "is not what the run was started with"),
        ('{"settings": []}', "environment.json has no settings"),
    ],
)
def test_a_damaged_environment_file_is_one_line(cut: Path, content: str, said: str) -> None:
    (cut / "environment.json").write_text(content)
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert said in str(caught.value)
    assert files_of(cut) == before
