"""The [cell] section: what it fills in, where its files are looked for, and what it refuses."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError, FedwaveError, ProblemError
from fedwave.experiments import experiment_to_toml, load_experiment, preset_names
from fedwave.experiments.build import build_simulation
from fedwave.experiments.federation import most_uploads
from fedwave.runs.run import resume_run, run_experiment
from tests.experiments.cell_tables import CELL_SCHEMES, PAPER_CELL, SMALL, STREET_CELL, cell_of, experiment
from tests.runs.small_runs import StopAfter, contents


@pytest.mark.parametrize("data", ["paper", "digits"])
@pytest.mark.parametrize("scheme", CELL_SCHEMES)
def test_there_is_a_preset_of_each_scheme_over_the_papers_cell(data: str, scheme: str) -> None:
    assert f"{data}/{scheme}" in preset_names()
    settings = load_experiment(f"{data}/{scheme}")
    section = settings.cell
    assert section is not None
    assert (section.method.kind, settings.selection.policy.kind) == CELL_SCHEMES[scheme]
    assert (settings.scheme, settings.algorithm.rule.kind) == (scheme, "exact")
    assert (section.energy_weight, section.delay_weight) == (1.0, 1.0)
    num_blocks = 20 if data == "paper" else 10  # a third of the 30 training devices
    assert (section.num_blocks, section.bandwidth_hz, section.noise_psd_w_per_hz) == (num_blocks, 1.0, 1.0)
    assert section.normalised


def test_a_cell_with_a_preset_alone_is_ural_over_that_cell() -> None:
    settings = experiment({"preset": "paper"})
    assert settings.cell == load_experiment("paper/ural").cell
    assert settings.scheme == "ural"


def test_contributions_are_normalised_where_costs_have_units() -> None:
    street = "cell.preset=umi-3.5ghz"
    cases = [([], "raw"), ([street], "normalised"), ([street, "cell.contribution_scale=raw"], "raw")]
    for overrides, expected in cases:
        assert load_experiment("digits/ural", overrides).cell.contribution_scale == expected  # type: ignore[union-attr]


def test_a_cell_without_preset_and_channel_is_refused() -> None:
    with pytest.raises(ConfigError, match="cell needs a preset or a channel of its own, got neither"):
        experiment({"num_blocks": 3})


@pytest.mark.parametrize("cell", [PAPER_CELL, STREET_CELL, {"preset": "chen2020", "method": "chen2020"}])
def test_the_resolved_cell_holds_every_key_and_reads_back_equal(cell: dict[str, Any], tmp_path: Path) -> None:
    settings = experiment(cell)
    file = tmp_path / "resolved.toml"
    file.write_text(experiment_to_toml(settings))
    assert load_experiment(file) == settings
    recorded = tomllib.loads(file.read_text())["cell"]
    assert {"num_blocks", "bandwidth_hz", "channel", "fleet", "interference", "losses"} <= set(recorded)


def test_one_setting_of_a_preset_can_be_changed_and_the_others_stay() -> None:
    section = load_experiment("digits/ural", ["cell.preset=umi-3.5ghz", "cell.fleet.max_power_w=0.1"]).cell
    assert section is not None
    assert section.fleet.max_power_w == 0.1
    assert section.fleet.max_power_dbm is None
    assert section.bandwidth_hz == 360e3


def test_a_file_that_extends_another_may_replace_its_channel_by_one_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        '[cell]\npreset = "paper"\n[cell.channel]\nkind = "uniform"\nlow = 0.5\nhigh = 2.0\n'
        "[cell.fleet]\nmax_power_w = 1.0\n"
    )
    (tmp_path / "own.toml").write_text(
        'extends = "base.toml"\n[cell.channel]\nkind = "file"\npath = "gains.npy"\n'
        "[cell.fleet]\nmax_power_dbm = 30\n"
    )
    section = load_experiment(tmp_path / "own.toml").cell
    assert section is not None
    assert section.channel.kind == "file"
    assert section.fleet.max_power_w is None


# Files ----------------------------------------------------------------------------------------------------


def gains_of(settings: Any, round_index: int = 0) -> np.ndarray:
    return cell_of(build_simulation(settings)).draw(round_index).channel_gain


@pytest.fixture
def gains(tmp_path: Path) -> np.ndarray:
    """Gains of three rounds, eight training devices and three blocks, in folder study/."""
    values = np.random.default_rng(3).uniform(0.1, 1.0, (3, 8, 3))
    (tmp_path / "study").mkdir()
    np.save(tmp_path / "study" / "gains.npy", values)
    return values


def study_file(tmp_path: Path) -> Path:
    """An experiment file beside its gains, which it names without a folder."""
    file = tmp_path / "study" / "study.toml"
    text = experiment_to_toml(experiment(PAPER_CELL))
    head, _, tail = text.partition("[cell.channel]")
    file.write_text(head + '[cell.channel]\nkind = "file"\npath = "gains.npy"\n\n' + tail[tail.index("[") :])
    return file


def test_a_gains_file_is_found_from_the_experiments_folder_and_after_resuming_elsewhere(
    tmp_path: Path, gains: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
    file = study_file(tmp_path)
    monkeypatch.chdir(tmp_path / "here")
    settings = load_experiment(Path("../study") / file.name)
    for k in range(3):
        assert np.array_equal(gains_of(settings, k), gains[k])
    whole = run_experiment(settings, tmp_path / "whole").path
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(1)])
    monkeypatch.chdir(tmp_path / "there")
    assert contents(resume_run(Path("../cut")).path) == contents(whole)


@pytest.mark.parametrize("way", ["override", "python"])
def test_a_gains_file_named_from_where_the_user_is_survives_resuming_elsewhere(
    tmp_path: Path, gains: np.ndarray, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path / "study")
    if way == "override":
        small = tmp_path / "small.toml"
        small.write_text(experiment_to_toml(experiment()))
        overrides = [
            "cell.preset=paper",
            "cell.num_blocks=3",
            "cell.channel.kind=file",
            "cell.channel.path=gains.npy",
        ]
        settings = load_experiment(small, [*overrides, "scheme=nufm-greedy"])
    else:
        channel = {"kind": "file", "path": "gains.npy"}
        settings = experiment({**PAPER_CELL, "channel": channel}, scheme="nufm-greedy")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "out" / "cut", observers=[StopAfter(1)])
    monkeypatch.chdir(tmp_path)
    resume_run("out/cut")
    assert np.array_equal(gains_of(load_experiment("out/cut/config.toml"), 2), gains[2])


def test_a_fleet_csv_is_found_from_the_experiments_folder(tmp_path: Path) -> None:
    powers = [0.1 * i for i in range(1, 9)]
    (tmp_path / "fleet.csv").write_text("\n".join(["max_power_w", *map(repr, powers)]))
    file = tmp_path / "study.toml"
    file.write_text(experiment_to_toml(experiment(PAPER_CELL)) + '[cell.fleet]\npath = "fleet.csv"\n')
    assert cell_of(build_simulation(load_experiment(file))).fleet.max_power_w.tolist() == powers


# Bad input ------------------------------------------------------------------------------------------------


def refused(cell: dict[str, Any], out: Path, **changes: Any) -> FedwaveError:
    """Return the error, after checking that it is one line and that nothing was written."""
    with pytest.raises(FedwaveError) as caught:
        run_experiment(experiment(cell, **changes), out)
    assert not out.exists()
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("cell", "kind", "message"),
    [
        ({"num_block": 3}, ConfigError, 'unknown key "cell.num_block". Did you mean "num_blocks"?'),
        (
            {"energy_wieght": 3},
            ConfigError,
            'unknown key "cell.energy_wieght". Did you mean "energy_weight"?',
        ),
        (
            {"channel": {"lov": 0.1}},
            ConfigError,
            'unknown key "cell.channel.lov". Did you mean "low"?',
        ),
        ({"losses": {"deadline": 1}}, ConfigError, 'Did you mean "deadline_s"?'),
        ({"scheme": "ural"}, ConfigError, 'unknown key "cell.scheme": it is scheme now. Use that.'),
        (
            {"method": "optimum"},
            ConfigError,
            'cell.method: there is no method "optimum". Did you mean "optimal"?',
        ),
        ({"selection": "nufm"}, ConfigError, 'unknown key "cell.selection": it is selection.policy now.'),
        ({"everyone_computes": True}, ConfigError, "it is selection.everyone_computes now. Use that."),
        ({"method_options": {"relative_gap": 0.1}}, ConfigError, "it is cell.method.<option> now. Use that."),
        ({"method": {"relative_gab": 0.1}}, ConfigError, 'Did you mean "relative_gap"?'),
        ({"method": {"keep_negative": True}}, ConfigError, 'It is an option of ives, not of "optimal"'),
        ({"method": {"kind": "greedy", "x": 1}}, ConfigError, '"greedy" has no options. Leave it out.'),
        ({"preset": "umi-35ghz"}, ConfigError, 'no cell preset "umi-35ghz". Did you mean "umi-3.5ghz"?'),
        ({"num_blocks": 0}, ConfigError, "Without a radio block nobody can upload"),
        ({"num_blocks": 2.5}, ConfigError, "cell.num_blocks must be"),
        ({"energy_weight": -0.5}, ConfigError, "cell.energy_weight must be"),
        ({"delay_weight": float("inf")}, ConfigError, "cell.delay_weight must be"),
        ({"delay_weight": 0.0}, ConfigError, "cell.delay_weight must be > 0 without cell.max_delay_s, got 0"),
        ({"contribution_scale": "big"}, ConfigError, "cell.contribution_scale must be"),
        ({"contribution_constant": 3.0}, ConfigError, 'needs contribution_scale = "constant", got "raw"'),
        (
            {"contribution_scale": "constant", "contribution_constant": float("nan")},
            ConfigError,
            "cell.contribution_constant must be",
        ),
        ({"bits_per_parameter": 4}, ConfigError, "cell.bits_per_parameter must be"),
        ({"model_bits": 0.0}, ConfigError, "cell.model_bits must be"),
        ({"report_bits": -1.0}, ConfigError, "cell.report_bits must be"),
        ({"idle_power_w": -1.0}, ConfigError, "cell.idle_power_w must be"),
        ({"max_delay_s": 0.0}, ConfigError, "cell.max_delay_s must be"),
        ({"losses": {"dropout_probability": 1.5}}, ConfigError, "cell.losses.dropout_probability must be"),
        ({"losses": {"deadline_s": -1}}, ConfigError, "cell.losses.deadline_s must be"),
        ({"bandwidth_hz": 0}, ConfigError, "cell.bandwidth_hz must be"),
        ({"noise_psd_w_per_hz": -174}, ConfigError, "use noise_psd_dbm_per_hz"),
        (
            {"channel": {"kind": "unifrom"}},
            ConfigError,
            'cell.channel: there is no channel "unifrom"',
        ),
        (
            {"preset": None, "channel": {"kind": "uniform", "low": 0, "high": 1}},
            ConfigError,
            "cell.num_blocks, cell.bandwidth_hz, cell.fleet and cell.noise_psd_dbm_per_hz are missing.",
        ),
        ({"fleet": {"max_power_w": 0.0}}, ProblemError, "fleet.max_power_w must be > 0 for every device"),
        ({"fleet": {"max_frequency_hz": 0.0}}, ProblemError, "fleet.max_frequency_hz must be > 0"),
        ({"fleet": {"path": "nowhere.csv"}}, ProblemError, "Cannot read the fleet file"),
        (
            {"channel": {"kind": "file", "path": "nowhere.npy"}},
            ProblemError,
            "Cannot read the gains file",
        ),
    ],
)
def test_a_bad_setting_is_one_clear_line_and_leaves_no_folder(
    tmp_path: Path, cell: dict[str, Any], kind: type[FedwaveError], message: str
) -> None:
    given = {"preset": "paper", **cell}
    if given["preset"] is None:
        del given["preset"]
    error = refused(given, tmp_path / "out")
    assert message in str(error)
    assert isinstance(error, kind)


@pytest.mark.parametrize(
    ("shape", "change", "message"),
    [
        (
            (16, 3),
            None,
            "has shape (16, 3), but the cell has 8 devices and 3 blocks",
        ),  # not the held-out ones
        ((8, 20), None, "has shape (8, 20), but the cell has 8 devices and 3 blocks"),
        ((8, 3), -0.5, "has a negative gain, -0.5 at index (0, 0)"),
        ((8, 3), np.nan, "has nan at index (0, 0). Gains must be finite"),
        ((8, 3), np.inf, "has inf at index (0, 0). Gains must be finite"),
        ((2, 8, 3), None, "holds 2 rounds, but round 2 is asked for. Run fewer rounds"),
    ],
)
def test_a_bad_gains_file_is_refused_before_training(
    tmp_path: Path, shape: tuple[int, ...], change: float | None, message: str
) -> None:
    values = np.full(shape, 0.5)
    if change is not None:
        values[(0,) * len(shape)] = change
    np.save(tmp_path / "gains.npy", values)
    channel = {"kind": "file", "path": str(tmp_path / "gains.npy")}
    error = refused({"preset": "paper", "num_blocks": 3, "channel": channel}, tmp_path / "out")
    assert isinstance(error, ProblemError)
    assert message in str(error)


def test_gains_of_few_rounds_may_start_over(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(0.1, 1.0, (2, 8, 3))
    np.save(tmp_path / "gains.npy", values)
    channel = {"kind": "file", "path": str(tmp_path / "gains.npy"), "beyond_last_round": "cycle"}
    assert np.array_equal(gains_of(experiment({**PAPER_CELL, "channel": channel}), 2), values[0])


def test_a_weight_of_zero_on_delay_goes_with_a_limit(tmp_path: Path) -> None:
    cell = {**PAPER_CELL, "delay_weight": 0.0, "max_delay_s": 40.0}
    for scheme in CELL_SCHEMES:
        settings = experiment(cell, scheme=scheme, num_rounds=1)
        result = run_experiment(settings, tmp_path / scheme)
        assert np.isfinite(result.summary["cell"]["delay_s"])


def test_units_that_look_wrong_are_warned_about() -> None:
    street = build_simulation(experiment({"preset": "umi-3.5ghz", "fleet": {"max_power_w": 23000.0}}))
    assert any("max_power_w" in warning for warning in street.warnings)
    assert build_simulation(experiment(PAPER_CELL)).warnings == ()


def test_a_cell_in_a_section_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cell"):
        load_experiment(None, ["cell=paper"])
    assert "cell" not in SMALL


def test_a_size_of_contributions_that_are_not_normalised_is_refused() -> None:
    with pytest.raises(ConfigError, match='contribution_size = 5 needs contribution_scale = "normalised"'):
        load_experiment("digits/ural", ["cell.contribution_size=5"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"method": "greedy"},
            'cell.method must know cell.access = "tdma", got "greedy". Use one of optimal, threshold, ',
        ),
        (
            {"estimation": {"kind": "log-normal", "error_db": 3.0}},
            'cell.access = "tdma" needs cell.estimation = "exact", got "log-normal"',
        ),
        (
            {
                "access": "one-block",
                "work_conserving": True,
                "estimation": {"kind": "log-normal", "error_db": 3.0},
            },
            'cell.work_conserving needs cell.estimation = "exact", got "log-normal"',
        ),
    ],
)
def test_an_access_that_a_method_does_not_know_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        experiment({"preset": "umi-3.5ghz", "access": "tdma", **changes})
    assert words in str(caught.value)


def test_blocks_that_differ_are_refused_before_the_first_round_is_planned(tmp_path: Path) -> None:
    """The paper's cell draws an interference for each block."""
    settings = experiment({**PAPER_CELL, "method": "optimal", "access": "tdma"})
    with pytest.raises(ProblemError, match="needs blocks that are alike"):
        run_experiment(settings, tmp_path / "run")


@pytest.mark.parametrize(
    ("access", "most"), [("one-block", 3), ("blocks", 3), ("shared-band", 8), ("tdma", 8)]
)
def test_how_many_can_upload(access: str, most: int) -> None:
    section = experiment({"preset": "umi-3.5ghz", "num_blocks": 3, "access": access}).cell
    assert section is not None
    assert most_uploads(section, 8) == most
    if access != "one-block":
        assert most_uploads(section.model_copy(update={"max_uploads": 2}), 8) == 2
