"""The paper's names: what each stands for, over and under other layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.errors import ConfigError
from fedwave.experiments import Experiment, experiment_from, load_experiment
from fedwave.experiments.schemes import SCHEMES, scheme_of
from fedwave.plots.style import SCHEME_COLOURS


def parts(experiment: Experiment) -> tuple[str, str, str | None]:
    """What a scheme stands for."""
    method = None if experiment.cell is None else experiment.cell.method.kind
    return experiment.algorithm.rule.kind, experiment.selection.policy.kind, method


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_fills_in_its_parts_and_a_later_layer_replaces_them(name: str, tmp_path: Path) -> None:
    scheme = SCHEMES[name]
    cell = [] if scheme.method is None else ["cell.preset=paper"]
    whole = load_experiment(None, [f"scheme={name}", *cell])
    assert parts(whole) == (scheme.rule, scheme.policy, scheme.method)
    assert whole.scheme == name
    file = tmp_path / "own.toml"
    file.write_text(f'scheme = "{name}"\n')
    mixed = load_experiment(file, ["algorithm.rule=first-order", *cell])
    assert parts(mixed) == ("first-order", scheme.policy, scheme.method)
    assert mixed.scheme is None


def test_the_names_of_the_paper_stand_for_what_it_says() -> None:
    # Section VII-B: URAL and its rivals all take the meta-gradient; RU selects at random, NUFM by Eq. (22).
    assert scheme_of("exact", "top-contribution", "optimal") == "ural"
    assert scheme_of("exact", "top-contribution", "ives") == "ural-ives"
    assert scheme_of("exact", "top-contribution", "greedy") == "nufm-greedy"
    assert scheme_of("exact", "uniform", "random") == "ru-random"
    assert scheme_of("plain", "uniform", None) == "fedavg"
    assert scheme_of("exact", "uniform", "fedl-power") is None


@pytest.mark.parametrize("source", ["preset", "file", "resolved"])
@pytest.mark.parametrize("name", ["ru-random", "ural-ives", "nufm-greedy"])
def test_a_scheme_in_a_later_layer_beats_the_parts_of_an_earlier_one(
    source: str, name: str, tmp_path: Path, resolved: Path
) -> None:
    (tmp_path / "own.toml").write_text(
        'extends = "digits/ural"\n[algorithm]\nrule = "plain"\n[selection]\npolicy = "round-robin"\n'
    )
    start = {"preset": "digits/ural", "file": tmp_path / "own.toml", "resolved": resolved}[source]
    chosen = load_experiment(start, [f"scheme={name}"])
    assert chosen.scheme == name
    (tmp_path / "above.toml").write_text(f'extends = "{start}"\nscheme = "{name}"\n')
    above = load_experiment(tmp_path / "above.toml")
    assert above.model_copy(update={"name": chosen.name}) == chosen


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ([], "URAL (optimal)"),
        (["cell.energy_weight=2"], "URAL (optimal)"),
        (["cell.method=value-rate"], "Value-rate"),
        (["scheme=ru-random"], "RU-Random"),
        (["cell.method=chen2020"], "chen2020, from {origin}"),
        (["selection.policy=round-robin", "cell.method=greedy"], "round-robin, greedy, from {origin}"),
        (["cell.method=random", "name=mine"], "mine"),
    ],
)
def test_another_scheme_does_not_keep_the_name(tmp_path: Path, settings: list[str], name: str) -> None:
    assert load_experiment("digits/ural", settings).name == name.format(origin="digits/ural")
    (tmp_path / "own.toml").write_text('extends = "digits/ural"\nname = "my study"\n')
    own = load_experiment(tmp_path / "own.toml", settings).name
    assert own == name.format(origin="my study").replace("URAL (optimal)", "my study")


def test_a_preset_that_gets_a_cell_is_another_scheme() -> None:
    assert load_experiment("digits/nufm", ["cell.preset=paper"]).name == "URAL (optimal)"


def test_a_file_that_is_whole_with_its_overrides_alone_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "half.toml").write_text('extends = "digits/nufm"\nname = "half"\nscheme = "ural"\n')
    assert load_experiment(tmp_path / "half.toml", ["cell.preset=paper"]).name == "half"


def test_a_scheme_is_called_as_its_presets_are() -> None:
    for word, scheme in SCHEMES.items():
        assert load_experiment(f"digits/{word}").name == scheme.title
        assert scheme.title in SCHEME_COLOURS


def test_a_scheme_and_another_part_in_one_layer_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiment("digits/nufm", ["scheme=nufm", "selection.policy=uniform"])
    assert str(caught.value) == (
        'scheme "nufm" stands for selection.policy "top-contribution", got \'uniform\' beside it. '
        "Leave out the scheme or selection.policy."
    )
    with pytest.raises(ConfigError, match=r'stands for cell\.method "ives", got \'optimal\' beside it'):
        experiment_from({"scheme": "ural-ives", "cell": {"preset": "paper", "method": "optimal"}})


def test_a_scheme_beside_the_part_that_it_stands_for_is_fine() -> None:
    chosen = load_experiment("digits/nufm", ["scheme=per-fedavg", "selection.policy=uniform"])
    assert chosen.scheme == "per-fedavg"


def test_a_scheme_with_a_method_needs_a_cell_from_some_layer() -> None:
    with pytest.raises(ConfigError, match="cell needs a preset or a channel of its own, got neither"):
        load_experiment("digits/nufm", ["scheme=ural"])
    assert load_experiment("digits/nufm", ["scheme=ural", "cell.preset=paper"]).scheme == "ural"


@pytest.mark.parametrize("given", ["scheme=3", "scheme=[1]", "scheme.name=nufm"])
def test_a_scheme_is_a_word(given: str) -> None:
    with pytest.raises(ConfigError, match="^There is no scheme .*Choose one of: fedavg"):
        load_experiment("digits/nufm", [given])


def test_a_scheme_leaves_the_options_of_its_own_parts() -> None:
    settings = {"scheme": "ural-ives", "cell": {"preset": "paper", "method": {"keep_negative": True}}}
    cell = experiment_from(settings).cell
    assert cell is not None
    assert (cell.method.kind, cell.method.options) == ("ives", {"keep_negative": True})
    with pytest.raises(ConfigError, match='stands for cell.method "ives", got 3 beside it'):
        experiment_from({"scheme": "ural-ives", "cell": {"preset": "paper", "method": 3}})
