from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import scipy.optimize

from fedwave.allocation import linear_assignment


def test_it_is_the_assignment_of_scipy():
    rng = np.random.default_rng(0)
    for shape in [(1, 1), (3, 7), (7, 3), (20, 60)]:
        cost = rng.normal(size=shape)
        for ours, theirs in zip(
            linear_assignment._load_alone()(cost), scipy.optimize.linear_sum_assignment(cost), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_the_public_name_is_used_where_the_file_is_elsewhere(monkeypatch):
    monkeypatch.setattr(linear_assignment, "find_spec", lambda name: None)
    assert linear_assignment._load_alone() is None
    monkeypatch.setattr(linear_assignment, "_load_alone", lambda: None)
    monkeypatch.delitem(sys.modules, "scipy.optimize", raising=False)
    assert linear_assignment._load() is importlib.import_module("scipy.optimize").linear_sum_assignment


def test_scipy_optimize_can_be_imported_before_and_after():
    before = (
        "import scipy.optimize, fedwave.allocation.linear_assignment as l; l.linear_sum_assignment([[1.0]])"
    )
    after = (
        "import fedwave.allocation.linear_assignment as l, scipy.optimize as o;"
        "assert o.linear_sum_assignment([[1.0]]) == l.linear_sum_assignment([[1.0]])"
    )
    for code in (before, after):
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
