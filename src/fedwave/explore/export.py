"""What is on the screen as text that gives the same numbers again: TOML, Python, a problem file."""

from __future__ import annotations

import pprint
from typing import Any

import tomli_w

from fedwave.allocation import AllocationProblem
from fedwave.allocation.problem_file import problem_to_toml
from fedwave.explore.source import ROUND_KEYS, CellView, Source

_DRAWS = {
    "uniform": "np.random.default_rng({seed}).uniform(0.0, 2.0 * {mean!r}, {n})",
    "exponential": "np.random.default_rng({seed}).exponential({mean!r}, {n})",
    "equal": "np.full({n}, {mean!r})",
}


def as_toml(source: Source, view: CellView) -> str:
    """Return a cell file with an ``[explore]`` table: ``fedwave explore`` shows it and prints its numbers."""
    table = _plain(source.changed(source.overrides(view)))
    own = {key: value for key, value in table.items() if key != "description"}
    own["explore"] = {key: getattr(view, key) for key in ROUND_KEYS}
    head = (
        "# Show this again:    fedwave explore this.toml\n"
        "# Print its numbers:  fedwave explore this.toml --json\n\n"
    )
    return head + tomli_w.dumps(own)


def as_python(source: Source, view: CellView) -> str:
    """Return a program that prints every method's objective."""
    draw = _DRAWS[view.contribution].format(seed=view.seed, mean=view.mean_contribution, n=view.num_devices)
    return f"""import numpy as np

from fedwave import compare_methods, problem_of_cell
{_cell_code(source, view)}
problem = problem_of_cell(
    cell,
    contribution={draw},
    round_index={view.round_index},
    num_samples={view.num_samples},
    model_bits={view.model_bits!r},
    energy_weight={view.energy_weight!r},
    delay_weight={view.delay_weight!r},
)
for name, timed in compare_methods(problem, seed={view.seed}).items():
    print(name, repr(timed.allocation.objective), timed.allocation.selected.tolist())
"""


def _cell_code(source: Source, view: CellView) -> str:
    table = _plain(source.changed(source.overrides(view)))
    preset = table.pop("preset", None)
    shown = pprint.pformat(table, width=96, sort_dicts=False)
    size = f"num_devices={view.num_devices}, seed={view.seed}"
    if preset is not None:
        changed = f", overrides={shown}" if table else ""
        return f"from fedwave import load_cell\n\ncell = load_cell({preset!r}, {size}{changed})"
    return (
        "from fedwave.wireless.cell import Cell\nfrom fedwave.wireless.settings.config import CellConfig\n\n"
        f"settings = {shown}\ncell = Cell.build(CellConfig.model_validate(settings), {size})"
    )


def as_problem_file(problem: AllocationProblem) -> str:
    """Return the problem with every number in it, as ``fedwave allocate`` reads it."""
    return problem_to_toml(problem)


def _plain(value: Any) -> Any:
    """Return nested values without None, arrays as lists: what TOML can hold."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None}
    return value.tolist() if hasattr(value, "tolist") else value
