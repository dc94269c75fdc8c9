"""The key of a run, which is known before any data is read, is that of its numbers."""

from __future__ import annotations

from fedwave.experiments import load_experiment
from fedwave.runs.provenance import run_key


def test_the_key_is_that_of_the_numbers() -> None:
    def key(*settings: str) -> str:
        return run_key(load_experiment("digits/ural", settings))

    assert key("name=other", "execution.workers=3") == key()
    for setting in (
        "num_rounds=3",
        "seed=1",
        "cell.energy_weight=2",
        "evaluation.every=2",
        "selection.num_selected=3",
        "execution.precision=bfloat16",
    ):
        assert key(setting) != key()


def test_another_numerics_version_shares_nothing(monkeypatch) -> None:
    before = run_key(load_experiment("digits/nufm"))
    monkeypatch.setattr("fedwave.runs.provenance.NUMERICS_VERSION", -1)
    assert run_key(load_experiment("digits/nufm")) != before
