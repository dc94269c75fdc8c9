from __future__ import annotations

import math
from dataclasses import fields

from fedwave.runs.theory_rows import CONSTANTS, SAYINGS, Snapshot, theory_header, theory_rows, verdict


def snapshot(**given: float) -> Snapshot:
    values = {field.name: 0.0 for field in fields(Snapshot)} | {"round": 4} | given
    return Snapshot(**values)  # type: ignore[arg-type]


def test_every_figure_of_a_snapshot_has_its_place() -> None:
    shown = [name for _, names in (*CONSTANTS, *SAYINGS) for name in names]
    assert sorted([*shown, "round"]) == sorted(field.name for field in fields(Snapshot))


def test_cells_are_numbers_shares_and_dashes() -> None:
    two = [
        snapshot(similarity_printed=1234.5, similarity_corrected=0.12345, similarity_used=1.0),
        snapshot(round=8, below_printed=1.0, below_corrected=0.5, promised_printed=math.nan, seen=-2.0),
    ]
    assert theory_header(two) == ["before round", "4", "8"]
    rows = {row[0].split(":")[0]: row[1:] for row in theory_rows(two, SAYINGS)}
    assert rows["λ1 printed / corrected / used"] == ["1,234 / 0.123 / 1", "0 / 0 / 0"]
    assert rows["share below the turning point"][1] == "100 % / 50 % / 0 %"
    assert rows["fall of F promised by Theorem 1"][1] == "– / 0"
    assert rows["fall of F seen"] == ["0", "-2"]


def test_the_verdict_counts_models() -> None:
    some = [snapshot(below_corrected=1.0, promised_corrected=-3.0), snapshot(below_corrected=0.9)]
    assert verdict(some) == (
        "At 1 of 2 models the corrected penalties put every device below the turning point, where a smaller "
        "gradient counts more; at 1 Theorem 1 promises less than nothing."
    )
