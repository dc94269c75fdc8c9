"""scipy's ``linear_sum_assignment``, loaded without the rest of ``scipy.optimize``.

That package takes longer to import than all of ours, for one compiled function. Its file is loaded by itself
where it is found; where scipy keeps it elsewhere, the public name is imported as usual.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path

from fedwave.units import FloatArray, IntArray

Assign = Callable[[FloatArray], tuple[IntArray, IntArray]]


def _load() -> Assign:
    found = None
    if "scipy.optimize" not in sys.modules:
        found = _load_alone()
    if found is None:
        from scipy.optimize import linear_sum_assignment

        found = linear_sum_assignment
    return found


def _load_alone() -> Assign | None:
    """Return the function from its own file, or None if it is not where we know it."""
    scipy = find_spec("scipy")
    if scipy is None or not scipy.submodule_search_locations:
        return None
    folder = Path(next(iter(scipy.submodule_search_locations))) / "optimize"
    spec = PathFinder.find_spec("_lsap", [str(folder)])
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    found: Assign | None = getattr(module, "linear_sum_assignment", None)
    return found


linear_sum_assignment = _load()
