"""Settings files: presets, inheritance, overrides, and one clear line for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.errors import ConfigError
from fedwave.experiments import experiment_from, experiment_to_toml, load_experiment, preset_names
from fedwave.experiments.load import MOVED


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_its_resolved_form_reads_back_equal(name: str, tmp_path: Path) -> None:
    experiment = load_experiment(name)
    file = tmp_path / "resolved.toml"
    file.write_text(experiment_to_toml(experiment))
    assert load_experiment(file) == experiment


def test_a_preset_that_extends_another_keeps_what_it_does_not_change() -> None:
    base, other = load_experiment("paper/nufm"), load_experiment("paper/per-fedavg")
    assert other.selection.policy.kind == "uniform"
    assert base.selection.policy.kind == "top-contribution"
    assert other.partition == base.partition
    assert other.selection.num_selected == base.selection.num_selected == 20


def test_a_file_may_extend_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("num_rounds = 7\n[selection]\nnum_selected = 3\n")
    (tmp_path / "own.toml").write_text('extends = "base.toml"\n[algorithm]\nmeta_lr = 0.5\n')
    experiment = load_experiment(tmp_path / "own.toml", ["seed=9", "name=my run"])
    assert (experiment.num_rounds, experiment.seed, experiment.name) == (7, 9, "my run")
    assert (experiment.selection.num_selected, experiment.algorithm.meta_lr) == (3, 0.5)


def test_of_a_chain_of_files_the_last_that_says_something_is_heard(tmp_path: Path) -> None:
    folder = tmp_path / "deeper"
    folder.mkdir()
    (folder / "a.toml").write_text('extends = "digits/nufm"\nname = "a"\nseed = 1\nnum_rounds = 11\n')
    (folder / "b.toml").write_text('extends = "a.toml"\nname = "b"\nseed = 2\n')
    (tmp_path / "c.toml").write_text('extends = "deeper/b.toml"\nname = "c"\n')
    experiment = load_experiment(tmp_path / "c.toml")
    assert (experiment.name, experiment.seed, experiment.num_rounds) == ("c", 2, 11)
    assert experiment.model.options["channels"] == [32, 64]  # of the preset at the end of the chain


def test_overrides_take_toml_values_and_bare_words() -> None:
    experiment = load_experiment(
        None, ["model.channels=[8, 16]", "data.dataset=digits", "data.standardise='none'", "num_rounds=2"]
    )
    assert experiment.model.options == {"channels": [8, 16]}
    assert experiment.data.dataset.kind == "digits"
    assert experiment.data.standardise == "none"
    assert experiment.num_rounds == 2


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["selection.num_selcted=3"], 'unknown key "selection.num_selcted". Did you mean "num_selected"?'),
        (["algoritm.meta_lr=3"], 'unknown key "algoritm". Did you mean "algorithm"?'),
        (
            ["num_rounds=five"],
            "num_rounds must be a valid integer, got 'five'. Change it in the file or with",
        ),
        (["num_rounds=2.5"], "num_rounds must be a valid integer, got 2.5"),
        (["num_rounds=true"], "num_rounds must be a valid integer, got True"),
        (["num_rounds=0"], "num_rounds must be greater than or equal to 1, got 0"),
        (["algorithm.inner_lr=-1"], "algorithm.inner_lr must be greater than or equal to 0, got -1"),
        (["algorithm.meta_lr=nan"], "algorithm.meta_lr must be"),
        (
            ["partition.heldout_fraction=1.5"],
            "partition.heldout_fraction must be less than 1, got 1.5",
        ),
        (["scheme=nufmm"], 'There is no scheme "nufmm". Did you mean "nufm"?'),
        (
            ["selection.policy=best"],
            'selection.policy: there is no selection policy "best". Choose one of: uniform, ',
        ),
        (["data.dataset=digitz"], 'data.dataset: there is no dataset "digitz". Did you mean "digits"?'),
        (["partition.kind=papers"], 'partition: there is no partition "papers". Did you mean "paper"?'),
        (["selection.policy.x=1"], 'unknown key "selection.policy.x". Choose one of: num_candidates'),
        (["data=3"], "data must be a table, got 3"),
        (["seed"], '-s takes KEY=VALUE, got "seed"'),
        (["seed.x=1", "seed.x.y=2"], '"x" both as a value and as a table'),
        (["num_rounds=0", "seed=-1"], "(1 more problem after this one.)"),
        (["extends=paper/nufm"], 'unknown key "extends"'),
    ],
)
def test_a_bad_setting_is_one_line_that_says_what_got_and_fix(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiment("digits/nufm", overrides)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_key_of_old_is_answered_with_its_new_name(old: str, new: str) -> None:
    with pytest.raises(ConfigError, match=f'^unknown key "{old}": it is {new} now. Use that.$'):
        load_experiment("digits/ural", [f"{old}=nufm"])
    if new != "scheme":  # a setting that is there
        section, key = new.split(".")[:2]
        assert key in type(getattr(load_experiment("digits/ural"), section)).model_fields


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match='Did you mean "paper/nufm"'):
        load_experiment("paper/nufn")


def test_files_that_are_missing_broken_or_circular_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*absent\.toml"):
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


# Files that settings name -----------------------------------------------------------------------------------

PATHS = [
    ("data.dataset.path", "data.dataset.kind=arrays"),
    ("partition.path", "partition.kind=given"),
    ("model.path", "model.kind=cnn"),
    ("cell.channel.path", "cell.channel.kind=file"),
    ("cell.fleet.path", "cell.preset=paper"),
]


def at(experiment: object, path: str) -> str:
    *sections, key = path.split(".")
    for name in sections:
        experiment = getattr(experiment, name)
    return str(getattr(experiment, key))


@pytest.mark.parametrize(("path", "choice"), PATHS)
def test_a_file_is_found_from_the_file_that_names_it_or_else_from_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, choice: str
) -> None:
    for folder in ("study/base", "user"):
        (tmp_path / folder).mkdir(parents=True)
    chosen, _, kind = choice.partition("=")
    base = f'extends = "digits/ural"\n{chosen} = "{kind}"\n{path} = "things/it"\n'
    (tmp_path / "study" / "base" / "base.toml").write_text(base)
    (tmp_path / "study" / "own.toml").write_text('extends = "base/base.toml"\n')
    monkeypatch.chdir(tmp_path / "user")
    named = load_experiment("../study/own.toml")
    assert Path(at(named, path)).resolve() == tmp_path / "study" / "base" / "things" / "it"
    overridden = load_experiment("../study/own.toml", [f"{path}=it"])
    assert at(overridden, path) == str(tmp_path / "user" / "it")
    settings = overridden.model_dump(exclude_none=True)
    *sections, key = path.split(".")
    table = settings
    for section in sections:
        table = table[section]
    table[key] = "it"
    assert at(experiment_from(settings), path) == str(tmp_path / "user" / "it")
    assert table[key] == "it"  # the caller's settings are left alone
    # A resolved experiment, as in a run folder, can be read from anywhere.
    (tmp_path / "resolved.toml").write_text(experiment_to_toml(overridden))
    assert load_experiment(tmp_path / "resolved.toml") == overridden
