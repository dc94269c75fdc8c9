"""A later layer beats an earlier one: preset, file, what extends it, override. Nothing is lost silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.errors import ConfigError
from fedwave.experiments import Experiment, experiment_to_toml, load_experiment
from fedwave.runs.provenance import flatten


def parts(experiment: Experiment) -> tuple[str, str, str | None]:
    """What a scheme stands for."""
    method = None if experiment.cell is None else experiment.cell.method.kind
    return experiment.algorithm.rule.kind, experiment.selection.policy.kind, method


def test_an_override_beats_a_preset() -> None:
    chosen = load_experiment("digits/ural", ["cell.method=fedl-power", "selection.policy=uniform"])
    assert parts(chosen) == ("exact", "uniform", "fedl-power")
    assert chosen.cell is not None
    base = load_experiment("digits/ural").cell
    assert base is not None
    assert chosen.cell == base.model_copy(update={"method": chosen.cell.method})


# The preset of a cell ---------------------------------------------------------------------------------------


def test_another_preset_goes_underneath_what_a_file_says_of_the_cell() -> None:
    section = load_experiment("digits/ural", ["cell.preset=umi-3.5ghz"]).cell
    assert section is not None
    assert (section.num_blocks, section.bandwidth_hz) == (10, 360e3)  # digits/ural gives the 10 blocks


@pytest.mark.parametrize(
    ("source", "preset"),
    [
        ("digits/ural", "umi-3.5ghz"),  # the two spell their noise differently
        ("digits/ural", "chen2020"),
        ("umi/ural", "paper"),
        ("umi/ural", "chen2020"),
        ("umi/ural", "uma-2ghz"),
    ],
)
@pytest.mark.parametrize("more", [[], ["cell.num_blocks=4"]])
def test_another_preset_of_which_nothing_would_be_left_is_refused(
    tmp_path: Path, source: str, preset: str, more: list[str]
) -> None:
    (tmp_path / "config.toml").write_text(experiment_to_toml(load_experiment(source)))
    with pytest.raises(ConfigError) as caught:
        load_experiment(tmp_path / "config.toml", [f"cell.preset={preset}", *more])
    assert f'cell.preset = "{preset}" would change nothing' in str(caught.value)


def test_the_preset_that_a_resolved_file_has_already_may_be_named_again(resolved: Path) -> None:
    assert load_experiment(resolved, ["cell.preset=paper"]) == load_experiment(resolved)


# Options that belong to a kind ------------------------------------------------------------------------------


def flat(experiment: Experiment) -> dict[str, object]:
    return flatten(experiment.model_dump(mode="json", exclude_none=True))


IVES = '[cell]\npreset = "paper"\nmethod = { kind = "ives", keep_negative = true }\n'
MOMENTUM = '[algorithm]\nserver_step = { kind = "momentum", momentum = 0.5 }\n'
CHOICE = '[selection]\npolicy = { kind = "power-of-choice", num_candidates = 40 }\n'


@pytest.mark.parametrize(
    ("below", "choice", "gone"),
    [
        ('[model]\nkind = "cnn"\nchannels = [8]\n', "model.kind=mlp", "model.channels"),
        ('[model]\nkind = "mlp"\nhidden = [8]\n', "model=softmax", "model.hidden"),
        ("[partition]\nclasses_per_device = 3\n", "partition.kind=iid", "partition.classes_per_device"),
        (
            '[partition]\nkind = "dirichlet"\nconcentration = 0.1\n',
            "partition.kind=iid",
            "partition.concentration",
        ),
        ('[partition]\nkind = "given"\npath = "x"\n', "partition.kind=paper", "partition.path"),
        (
            '[data]\ndataset = { kind = "synthetic", num_samples = 9 }\n',
            "data.dataset=digits",
            "data.dataset.num_samples",
        ),
        (CHOICE, "selection.policy=round-robin", "selection.policy.num_candidates"),
        (CHOICE, "selection.policy.kind=my_lab:Mine", "selection.policy.num_candidates"),
        (MOMENTUM, "algorithm.server_step=mean", "algorithm.server_step.momentum"),
        (IVES, "cell.method=optimal", "cell.method.keep_negative"),
        (IVES, "scheme=ural", "cell.method.keep_negative"),
        ('[cell]\npreset = "fedl2021"\n', "cell.channel.fading=none", "cell.channel.fading.per_block"),
        ('[cell]\npreset = "umi-3.5ghz"\n', "cell.interference=none", "cell.interference.rise_db.high"),
        (
            '[cell]\npreset = "umi-3.5ghz"\n',
            'cell.channel={ kind = "uniform", low = 0.1, high = 1 }',
            "cell.channel.placement.kind",
        ),
    ],
)
def test_options_of_a_part_that_a_later_layer_replaced_go_with_it(
    tmp_path: Path, below: str, choice: str, gone: str
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(below)
    assert gone in flat(load_experiment(file))
    chosen = load_experiment(file, [choice])
    assert gone not in flat(chosen)
    (tmp_path / "resolved.toml").write_text(experiment_to_toml(load_experiment(file)))
    assert load_experiment(tmp_path / "resolved.toml", [choice]) == chosen


def test_what_both_kinds_have_stays_in_the_table_of_a_partition_or_model() -> None:
    base = ["partition.num_devices=40", "partition.shots=2", "model.weight_std=0.3", "model.channels=[8]"]
    chosen = load_experiment("digits/nufm", [*base])
    assert chosen.partition.options["num_devices"] == 40
    (other,) = (load_experiment("digits/nufm", [*base, "partition.kind=iid", "model.kind=mlp"]),)
    assert (other.partition.options["num_devices"], other.partition.shots) == (40, 2)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["partition.concentration=0.1"], 'It is an option of dirichlet, not of "paper". Leave it out.'),
        (["partition.kind=iid", "partition.concentration=0.1"], "partition.concentration"),
        (["data.dataset.num_samples=9"], 'data.dataset.num_samples". It is an option of synthetic, not of'),
        (["data.dataset.path=x"], "It is an option of arrays and image-folder"),
        (["data.num_samples=9"], "it is data.dataset.num_samples now"),
        (
            ["selection.policy=uniform", "selection.policy.num_candidates=40"],
            "of top-contribution and power-of-choice, not of",
        ),
        (["selection.policy.num_selected=40"], "It is filled in for every such part. Leave it out."),
        (["cell.preset=paper", "cell.method.keep_negative=true"], 'option of ives, not of "optimal"'),
        (["cell.preset=umi-3.5ghz", "cell.channel.building_height_m=9.0"], "belongs to scenario rma"),
        (
            ["cell.preset=chen2020", "cell.channel.fading.ergodic=true"],
            'cell.channel.fading.ergodic". It is an option of delay-line, not of "none"',
        ),
    ],
)
def test_an_option_of_another_part_in_the_same_layer_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiment("digits/nufm", overrides)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("algorithm.server_step.momentum=0.5", 'option of momentum, not of "mean". Leave it out.'),
        ("algorithm.rule.method=exact", 'unknown key "algorithm.rule.method". '),
        ("algorithm.rule.inner_lr=1", "It is filled in"),
        ("algorithm.rule.has_query_hessian=true", '"exact" has no options'),
        ("algorithm.task.x=1", 'unknown key "algorithm.task.x". "classification" has no options'),
        ("model.hidden=[8]", 'unknown key "model.hidden". It is an option of mlp, not of "cnn"'),
        ("model.channels=[]", "model.channels must have at least 1 item"),
        ("algorithm.planner.x=1", 'unknown key "algorithm.planner.x". "auto" has no options'),
    ],
)
def test_options_of_what_is_learnt_are_checked_before_anything_is_computed(
    override: str, message: str
) -> None:
    from fedwave.experiments.build import build_simulation

    with pytest.raises(ConfigError) as caught:
        build_simulation(load_experiment("digits/nufm", [override]))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("below", "overrides", "expected"),
    [
        (IVES, ["cell.method=optimal", "cell.method.relative_gap=0.1"], {"relative_gap": 0.1}),
        (IVES, ["cell.method.max_iterations=7"], {"keep_negative": True, "max_iterations": 7}),
        (IVES, ["cell.method=ives"], {"keep_negative": True}),
        # Naming what is the default already is no other choice.
        ('[cell]\npreset = "paper"\nmethod.relative_gap = 0.1\n', ["scheme=ural"], {"relative_gap": 0.1}),
        ('[cell]\npreset = "paper"\n', ["cell.method.relative_gap=0.1"], {"relative_gap": 0.1}),
    ],
)
def test_options_stay_with_their_part(
    tmp_path: Path, below: str, overrides: list[str], expected: dict[str, object]
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(below)
    cell = load_experiment(file, overrides).cell
    assert cell is not None
    assert cell.method.options == expected
