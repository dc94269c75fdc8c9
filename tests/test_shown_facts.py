"""What stands in a prompt or notebook: a line of facts, or a table in which names stay text."""

from __future__ import annotations

import math

from fedwave import allocate, load_cell
from fedwave.allocation.solution import Allocation
from fedwave.shown_facts import ShownFacts, fact_text, facts_table
from tests.allocation.allocation_problems import small_problem


class Thing(ShownFacts):
    def _facts(self) -> dict[str, object]:
        return {"name": "<b>", "size": 0.123456}


def test_facts_are_a_line_or_a_table_in_which_names_stay_text() -> None:
    assert repr(Thing()) == "<Thing: name <b>, size 0.1235>"
    assert "<b>" not in Thing()._repr_html_()
    assert "&lt;b&gt;" in Thing()._repr_html_()
    assert Thing()._repr_html_() == facts_table({"name": "<b>", "size": 0.123456})
    assert (fact_text(math.nan), fact_text(3), fact_text(12345.6)) == ("–", "3", "1.235e+04")


def test_an_allocation_is_shown_by_its_sums() -> None:
    found = allocate(small_problem())
    assert isinstance(found, Allocation)
    shown = repr(found)
    assert shown.startswith("<Allocation: method optimal, status optimal, uploads ")
    assert f"uploads {found.num_selected} of {len(found.block_of_device)} devices" in shown
    assert f"objective {found.objective:.4g}, gap {found.gap:.2g}, " in shown
    assert len(shown) < 250
    assert f"{found.energy_j:.4g}" in found._repr_html_()
    assert "gap not proven" in repr(allocate(small_problem(), "ives"))


def test_a_cell_is_shown_by_its_sizes() -> None:
    shown = repr(load_cell("umi-3.5ghz", num_devices=7, seed=3))
    assert shown.startswith("<Cell: devices 7, blocks 20, bandwidth of each 360 kHz, ")
    # -174 dBm/Hz over 360 kHz and a noise figure of 5 dB; a phone of power class 3.
    assert "noise in each -113.4 dBm, largest power 23.0 dBm, access one-block, " in shown
    assert shown.endswith("seed 3>")
    paper = load_cell("paper", num_devices=7, seed=3)
    largest = max(paper.fleet.max_power_w)
    assert f"bandwidth of each 1, noise in each 1, largest power {largest:.3g}, " in repr(paper)
    assert "array" not in shown
