"""The tables of public names in docs/api.md: each with the first line of its docstring.

The site's reference is generated from the same rows (docs/site_hook.py), so that a name in the table has its
whole docstring there.
"""

from __future__ import annotations

from importlib import import_module

import fedwave
import fedwave.testing
import fedwave.theory
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
    "Results": (
        "read_run",
        "read_runs",
        "compare_runs",
        "final_table",
        "cost_table",
        "plot_runs",
        "draw_runs",
    ),
    "Data": ("load_dataset", "dataset_from_arrays", "user_split", "read_split"),
    "Radio cell and allocation": (
        "load_cell",
        "problem_of_cell",
        "account",
        "AllocationProblem",
        "allocate",
        "allocate_many",
        "compare_methods",
        "compare_over_draws",
        "pareto_front",
        "total_cost",
        "violations",
        "evaluate",
    ),
    "Learning": ("meta_gradient", "contribution"),
    # ``from fedwave import theory``: see docs/theory.md.
    "The paper's analysis": (
        *(f"fedwave.theory.{name}" for name in fedwave.theory.__all__),
        "fedwave.theory.estimates.Effort",
        "fedwave.theory.estimates.LocalEstimates",
        "fedwave.theory.estimates.estimate_constants",
        "fedwave.theory.estimates.noise_from_two_batches",
        "fedwave.runs.theory_rows.Snapshot",
        "fedwave.runs.theory_snapshots.take_snapshots",
    ),
    # ``from fedwave.testing import check_policy``: see docs/testing-parts.md.
    "Checks of your own parts": tuple(f"fedwave.testing.{name}" for name in fedwave.testing.__all__),
    # From here on not imported by name: what the functions above return, what a part must have, what travels.
    "What they return": (
        "fedwave.runs.run.RunResult",
        "fedwave.runs.compare.FinishedRun",
        "fedwave.runs.compare.Cost",
        "fedwave.server.draws.DrawComparison",
        "fedwave.allocation.solution.Allocation",
        "fedwave.allocation.solution.DeviceCosts",
        "fedwave.allocation.evaluation.Evaluation",
        "fedwave.wireless.cell.Cell",
        "fedwave.data.dataset.Dataset",
    ),
    "What a part of your own must have": (
        "fedwave.selection.policy.SelectionPolicy",
        "fedwave.selection.policy.KeepsState",
        "fedwave.allocation.methods.Method",
        "fedwave.server.planner.Planner",
        "fedwave.server.planner.PlannerDefaults",
        "fedwave.server.planner.PlannerAround",
        "fedwave.learning.rules.base.LocalRule",
        "fedwave.learning.server_steps.base.ServerStep",
        "fedwave.learning.tasks.base.Task",
        "fedwave.learning.models.base.Model",
        "fedwave.wireless.channels.base.Channel",
        "fedwave.simulation.world.World",
        "fedwave.devices.chunked_devices.ChunkExecutor",
    ),
    "What a server handles": (
        "fedwave.server.reports.Reports",
        "fedwave.server.plan.Plan",
        "fedwave.server.outcome.Outcome",
        "fedwave.server.outcome.RoundCosts",
        "fedwave.wireless.terms.RadioTerms",
        "fedwave.server.aims.RoundAims",
        "fedwave.server.aims.Work",
        "fedwave.server.policy_planner.PolicyPlanner",
        "fedwave.server.cell_planner.CellPlanner",
        "fedwave.server.policy_runner.PolicyRunner",
        "fedwave.server.audit.ContributionAudit",
        "fedwave.selection.candidates.Candidates",
        "fedwave.selection.candidates.RoundResult",
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
