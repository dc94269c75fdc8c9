"""Rows of per-seed values: paired by seed, and read back as they were written."""

from __future__ import annotations

import math

import pytest

from fedwave.errors import RunError
from fedwave.reproduce.seed_tables import Tables, paired, read_rows, write_rows


def test_only_seeds_that_all_have_are_paired() -> None:
    assert paired({0: 1.0, 1: 2.0, 2: math.nan}, {1: 5.0, 2: 6.0, 3: 7.0}) == {1: (2.0, 5.0)}
    assert paired() == {}


def test_rows_come_back_by_type_and_to_the_bit(tmp_path) -> None:
    rows = [
        {
            "dataset": "digits",
            "scheme": "1",
            "seed": 3,
            "value": 0.1 + 0.2,
            "loss": math.nan,
            "key": "a,b",
        }
    ]
    write_rows(tmp_path / "deep" / "seeds.csv", rows)
    (row,) = read_rows(tmp_path / "deep" / "seeds.csv")
    assert math.isnan(row.pop("loss"))
    assert row == {"dataset": "digits", "scheme": "1", "seed": 3, "value": 0.1 + 0.2, "key": "a,b"}
    assert [type(row[name]) for name in ("scheme", "seed", "value")] == [str, int, float]


def test_tables_are_asked_by_labels() -> None:
    rows = [
        {"dataset": dataset, "scheme": scheme, "parameter": "p", "value": value, "seed": seed, "loss": loss}
        for dataset, scheme, value, seed, loss in (
            ("b", "NUFM", 2.0, 0, 1.0), ("b", "NUFM", 2.0, 1, 2.0), ("b", "FedAvg", 2.0, 0, 3.0),
            ("a", "NUFM", 1.0, 0, 4.0),
        )
    ]  # fmt: skip
    tables = Tables({"fig-2": rows})
    assert tables.by_seed("fig-2", "loss", dataset="b", scheme="NUFM") == {0: 1.0, 1: 2.0}
    assert tables.by_seed("fig-3", "loss") == {}
    assert tables.datasets("fig-2") == ["b", "a"]
    assert tables.values("fig-2") == tables.values("fig-2", "p") == [1.0, 2.0]
    assert tables.values("fig-2", "q") == []


def test_a_damaged_table_is_one_line_with_its_place_and_a_way_out(tmp_path) -> None:
    path = tmp_path / "seeds.csv"
    for text, message in (
        ("dataset,seed\nx,0\ny\n", r"seeds\.csv has 1 values in line 3, but 2 columns"),
        ("dataset,seed\nx,one\n", r"cannot read .*seeds\.csv: .*one.* Make it again with: fedwave reproduce"),
    ):
        path.write_text(text)
        with pytest.raises(RunError, match=message):
            read_rows(path)
    assert read_rows(tmp_path / "none.csv") == []


def test_a_column_that_only_some_rows_have_is_empty_in_the_others(tmp_path) -> None:
    write_rows(tmp_path / "t.csv", [{"seed": 0, "loss": 1.0}, {"seed": 1, "loss": 2.0, "update_norm": 3.0}])
    first, second = read_rows(tmp_path / "t.csv")
    assert math.isnan(first.pop("update_norm"))
    assert (first, second) == ({"seed": 0, "loss": 1.0}, {"seed": 1, "loss": 2.0, "update_norm": 3.0})
