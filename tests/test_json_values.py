from __future__ import annotations

import json

import numpy as np

from fedwave.json_values import json_value


def test_what_is_not_finite_becomes_none_however_deep():
    value = {"a": [1.5, float("nan")], "b": {"c": (float("inf"), -np.inf)}, "d": np.float64("nan")}
    assert json_value(value) == {"a": [1.5, None], "b": {"c": [None, None]}, "d": None}


def test_arrays_become_lists_and_everything_else_stays():
    table = json_value(
        {"a": np.array([[1.0, np.inf]]), "b": np.arange(2), "c": np.bool_(True), "d": np.int64(3)}
    )
    assert table == {"a": [[1.0, None]], "b": [0, 1], "c": True, "d": 3}
    assert json.loads(json.dumps(table, allow_nan=False)) == table
    for value in ("text", None, True, 7, 0.1):
        assert json_value(value) is value
