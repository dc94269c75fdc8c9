"""What may be shown: words of the command line, contributions, and cells that are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.explore.source import CellView, Source
from fedwave.explore.workbench import Workbench, contributions, open_all
from fedwave.wireless.settings.presets import CELL_PRESETS


def changed(view: CellView, **values: object) -> CellView:
    return view.model_copy(update=values)


def test_contributions_have_the_mean_that_was_asked_for() -> None:
    view = Source.preset("paper").first_view(num_devices=20_000, seed=5)
    for kind in ("uniform", "exponential", "equal"):
        drawn = contributions(changed(view, contribution=kind, mean_contribution=3.0))
        assert drawn.shape == (20_000,)
        assert drawn.mean() == pytest.approx(3.0, abs=0.1)
    assert contributions(changed(view, contribution="uniform")).max() < 10.0
    assert np.ptp(contributions(changed(view, contribution="equal"))) == 0.0


def test_a_cell_is_built_anew_only_if_it_changed() -> None:
    source = Source.preset("umi-3.5ghz")
    bench = Workbench.of([source])
    view = source.first_view(num_devices=12, seed=0)
    first = bench.cell(source, view)
    drawn = first.draw(0)
    assert bench.cell(source, changed(view, energy_weight=7.0, model_bits=1e6)) is first
    assert first.draw(0) is drawn
    assert first.draw(1) is not drawn
    assert np.array_equal(first.draw(0).channel_gain, drawn.channel_gain)
    for other in ({"seed": 1}, {"num_blocks": 3}, {"bandwidth_hz": 1e5}, {"max_power_w": 0.1}):
        assert bench.cell(source, changed(view, **other)) is not first


def test_words_of_the_command_line(street_run: Path, tmp_path: Path) -> None:
    sources, runs, first = open_all([])
    assert (list(sources.sources), runs, first) == (list(CELL_PRESETS), [], "umi-3.5ghz")
    file = tmp_path / "cell.toml"
    file.write_text('preset = "paper"\n')
    sources, runs, first = open_all([str(street_run), str(file), "chen2020"])
    assert [run.path for run in runs] == [street_run]
    assert first == str(file)
    assert open_all([str(street_run)])[2] == ""
    with pytest.raises(ConfigError, match='"umi-3.5" is no cell file .* Did you mean "umi-3.5ghz"'):
        open_all(["umi-3.5"])
