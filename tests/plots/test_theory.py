from __future__ import annotations

import math

from fedwave.plots.draw_chart import draw_chart
from fedwave.plots.theory import LOOKS, theory_chart
from tests.runs.test_theory_rows import snapshot


def test_each_panel_shows_its_figures_by_round() -> None:
    first = snapshot(
        round=0,
        norm_max=9.0,
        similarity_corrected=6.0,
        below_corrected=0.25,
        seen=0.5,
        promised_corrected=-8.0,
    )
    second = snapshot(round=7, norm_max=4.0, below_corrected=1.0, correlation=-0.1, promised_used=math.nan)
    chart = theory_chart([first, second])
    sizes, falls, shares, gains = ({one.name: one for one in panel.series} for panel in chart.panels)
    assert sizes["largest gradient norm"].x == (0.0, 7.0)
    assert sizes["largest gradient norm"].mean == (9.0, 4.0)
    assert sizes["corrected"].mean == (6.0, 0.0)
    assert falls["corrected"].mean == (-8.0, 0.0)
    assert falls["seen"].mean == (0.5, 0.0)
    assert shares["corrected"].mean == (25.0, 100.0)
    assert gains["norm and gain"].mean == (0.0, -0.1)
    assert [panel.has_log_y for panel in chart.panels] == [True, False, False, False]
    assert [panel.mark_y for panel in chart.panels] == [None, 0.0, None, 0.0]
    assert draw_chart(chart).figure is not None


def test_a_word_has_one_colour_and_every_word_its_own() -> None:
    chart = theory_chart([snapshot()])
    for panel in chart.panels:
        assert all(one.colour == LOOKS[one.name]["colour"] for one in panel.series)
    assert len({look["colour"] for look in LOOKS.values()}) == len(LOOKS) == len(chart.names)
