"""The tables of public names in docs/api.md: each with the first line of its docstring.

The site's reference is generated from the same rows (docs/site_hook.py), so that a name in the table has its
whole docstring there.
"""

from __future__ import annotations

from importlib import import_module

import fedwave
from tools.docs.pages import escape

# Every name of ``fedwave.__all__`` once, by what it is for.
GROUPS: dict[str, tuple[str, ...]] = {
    "Experiments and runs": (
        "load_experiment",
        "experiment_from",
        "Experiment",
        "run_experiment",
        "resume_run",
        "StopRun",
    ),
    "Results": ("read_run", "final_table", "cost_table", "plot_runs", "draw_runs"),
    "Data": ("load_dataset", "dataset_from_arrays", "user_split", "read_split"),
    "Radio cell and allocation": (
        "load_cell",
        "problem_of_cell",
        "AllocationProblem",
        "allocate",
        "allocate_many",
        "compare_methods",
        "pareto_front",
        "total_cost",
        "violations",
    ),
    "Learning": ("meta_gradient", "contribution"),
    # What the functions above return; not imported by name.
    "What they return": (
        "fedwave.runs.run.RunResult",
        "fedwave.runs.compare.FinishedRun",
        "fedwave.runs.compare.Cost",
        "fedwave.allocation.solution.Allocation",
        "fedwave.wireless.cell.Cell",
        "fedwave.data.dataset.Dataset",
    ),
}


def api_tables() -> str:
    """Return one table for each group of names."""
    lines = []
    for title, names in GROUPS.items():
        lines += [f"## {title}", "", "| name | |", "|---|---|"]
        lines += [f"| `{name}` | {escape(_first_line(name))} |" for name in names]
        lines.append("")
    return "\n".join(lines)


def _first_line(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module) if module else fedwave, attribute)
    return (found.__doc__ or "").splitlines()[0].replace("``", "`")
