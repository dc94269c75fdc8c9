"""Settings files: presets, inheritance, overrides, and one clear line for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.errors import ConfigError
from fedwave.experiments import experiment_to_toml, load_experiment, preset_names
from fedwave.experiments.schema import ALGORITHMS


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_its_resolved_form_reads_back_equal(name: str, tmp_path: Path) -> None:
    experiment = load_experiment(name)
    file = tmp_path / "resolved.toml"
    file.write_text(experiment_to_toml(experiment))
    assert load_experiment(file) == experiment


def test_a_preset_that_extends_another_keeps_what_it_does_not_change() -> None:
    base, other = load_experiment("paper/nufm"), load_experiment("paper/per-fedavg")
    assert other.algorithm.selection == "uniform"
    assert base.algorithm.selection == "top-contribution"
    assert other.partition == base.partition
    assert other.algorithm.num_selected == base.algorithm.num_selected == 20


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_algorithm_fills_in_its_parts_and_a_part_can_be_replaced(name: str) -> None:
    whole = load_experiment(None, [f"algorithm.name={name}"])
    assert (whole.algorithm.gradient, whole.algorithm.selection) == ALGORITHMS[name]
    mixed = load_experiment(None, [f"algorithm.name={name}", "algorithm.gradient=first-order"])
    assert (mixed.algorithm.gradient, mixed.algorithm.selection) == ("first-order", ALGORITHMS[name][1])


def test_a_file_may_extend_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("num_rounds = 7\n[algorithm]\nnum_selected = 3\n")
    (tmp_path / "own.toml").write_text('extends = "base.toml"\n[algorithm]\nmeta_lr = 0.5\n')
    experiment = load_experiment(tmp_path / "own.toml", ["seed=9", "name=my run"])
    assert (experiment.num_rounds, experiment.seed, experiment.name) == (7, 9, "my run")
    assert (experiment.algorithm.num_selected, experiment.algorithm.meta_lr) == (3, 0.5)


def test_overrides_take_toml_values_and_bare_words() -> None:
    experiment = load_experiment(
        None, ["model.channels=[8, 16]", "model.kind=mlp", "data.standardise='none'", "num_rounds=2"]
    )
    assert experiment.model.channels == [8, 16]
    assert experiment.model.kind == "mlp"
    assert experiment.data.standardise == "none"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["algorithm.num_selcted=3"], 'unknown key "algorithm.num_selcted". Did you mean "num_selected"?'),
        (["algoritm.num_selected=3"], 'unknown key "algoritm". Did you mean "algorithm"?'),
        (["num_rounds=five"], "num_rounds: input should be a valid integer, got 'five'"),
        (["num_rounds=2.5"], "num_rounds: input should be a valid integer"),
        (["num_rounds=true"], "num_rounds: input should be a valid integer, got True"),
        (["num_rounds=0"], "num_rounds: input should be greater than or equal to 1, got 0"),
        (["algorithm.inner_lr=-1"], "algorithm.inner_lr: input should be greater than or equal to 0, got -1"),
        (["algorithm.meta_lr=nan"], "algorithm.meta_lr: input should be"),
        (
            ["partition.heldout_fraction=1.5"],
            "partition.heldout_fraction: input should be less than 1, got 1.5",
        ),
        (["algorithm.name=nufmm"], "algorithm.name: input should be 'fedavg', 'per-fedavg' or 'nufm'"),
        (["data=3"], "data: input should be a valid dictionary"),
        (["seed"], '-s takes KEY=VALUE, got "seed"'),
        (["seed.x=1", "seed.x.y=2"], '"x" both as a value and as a table'),
        (["num_rounds=0", "seed=-1"], "(1 more problem after this one.)"),
    ],
)
def test_a_bad_setting_is_one_line_that_says_what_got_and_fix(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiment("digits/nufm", overrides)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match='Did you mean "paper/nufm"'):
        load_experiment("paper/nufn")


def test_files_that_are_missing_broken_or_circular_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read .*absent.toml"):
        load_experiment(tmp_path / "absent.toml")
    (tmp_path / "broken.toml").write_text("a = = 1")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load_experiment(tmp_path / "broken.toml")
    (tmp_path / "a.toml").write_text('extends = "b.toml"')
    (tmp_path / "b.toml").write_text('extends = "a.toml"')
    with pytest.raises(ConfigError, match="extends goes in a circle"):
        load_experiment(tmp_path / "a.toml")
    (tmp_path / "n.toml").write_text("extends = 3")
    with pytest.raises(ConfigError, match="extends must be a preset name"):
        load_experiment(tmp_path / "n.toml")
