"""The demo's runs are as its settings say, and its words and heading are the ratios of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.demo.same_accuracy import SCHEMES, heading, in_words, plan_demo, small_net
from fedwave.errors import ConfigError
from fedwave.runs.compare import read_run
from fedwave.runs.run import run_experiment
from tests.runs.paid_runs import OURS, THEIRS, paid_runs


def test_a_run_is_as_its_settings_say(tmp_path: Path) -> None:
    changes = ["num_rounds=1", "cell.radio.power_set=measured-x55"]
    planned = plan_demo(tmp_path, seeds=(3,), changes=changes)[0]
    run = read_run(run_experiment(planned.experiment, planned.folder).path)
    assert (run.experiment.name, run.experiment.seed, run.num_rounds) == ("URAL (optimal)", 3, 1)
    assert run.experiment.cell is not None
    assert run.experiment.cell.radio.power_set == "measured-x55"  # what was asked for on the command line
    assert run.experiment.cell.contribution_scale == "normalised"
    assert not run.experiment.cell.normalised  # seconds and joules, not the paper's numbers without units


def test_every_seed_has_every_scheme_seed_by_seed() -> None:
    planned = plan_demo("demo", seeds=(0, 7))
    assert [run.folder.as_posix() for run in planned] == [
        f"demo/digits-{scheme}-seed{seed}" for seed in (0, 7) for scheme in SCHEMES
    ]
    assert {run.experiment.num_rounds for run in planned} == {25}
    assert len(plan_demo("demo")) == 50


def test_a_setting_that_is_none_is_refused_before_any_run() -> None:
    with pytest.raises(ConfigError, match='unknown key "num_round"'):
        plan_demo("demo", changes=["num_round=3"])


def test_the_network_has_the_bits_that_the_weights_were_chosen_for() -> None:
    network = small_net((1, 8, 8), 10)
    assert 32 * sum(parameter.numel() for parameter in network.parameters()) == 167_232


def test_words_say_what_the_same_accuracy_cost_the_others() -> None:
    text = in_words([*paid_runs("URAL", OURS), *paid_runs("Greedy", THEIRS)])
    assert text.splitlines() == [
        "Until 80%, the best that all 8 runs reach, on the same seeds (95 %):",
        "  Greedy: 4.0 × (0.71–22) the seconds, 1.0 × (1.0–1.0) the joules of URAL",
    ]


def test_the_heading_tells_rules_that_know_the_channel_from_blind_ones() -> None:
    seconds = {"URAL": 2.0, "Threshold": 2.0, "Value-rate": 3.0, "Greedy": 5.0, "Random": 9.0}
    runs = [
        run for name, paid in seconds.items() for run in paid_runs(name, {0: (paid, 1.0), 1: (paid, 1.0)})
    ]
    assert heading(runs) == (
        "Rules that know the channel take 1.00 to 1.50 times the seconds of the proven optimum, "
        "blind ones 2.5 to 4.5"
    )
