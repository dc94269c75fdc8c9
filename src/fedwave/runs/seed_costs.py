"""What each run over a cell cost, a line for every setting and seed, so that a table can be checked."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from fedwave.runs.compare import FinishedRun, common_metric, group_by_name

COSTS = {"time_s": "cumulative_delay_s", "energy_j": "cumulative_energy_j"}
PHASES = {
    "uploading_j": "upload_energy_j",
    "computing_j": "compute_energy_j",
    "listening_j": "downlink_energy_j",
}

SeedRow = dict[str, float | int | str]


def seed_costs(runs: Sequence[FinishedRun], *, target: float) -> list[SeedRow]:
    """Return a line for each run; what the target took is "" where it was not reached.

    ``other_j`` is what the phases leave: waiting, sleeping, reporting.
    """
    metric = common_metric(runs).name
    rows: list[SeedRow] = []
    for name, group in group_by_name(runs).items():
        for run in group:
            reached = run.cost_of_reaching(target)
            costs = {key: run.last(column) for key, column in COSTS.items()}
            phases = {key: float(run.curve(column).sum()) for key, column in PHASES.items()}
            rows.append(
                {
                    "run": name,
                    "seed": run.experiment.seed,
                    "rounds": run.num_rounds,
                    metric: run.last(f"heldout_{metric}"),
                    "asked": float(run.curve("num_computed").sum()),
                    "uploads": float(run.curve("num_received").sum()),
                    **costs,
                    **phases,
                    "other_j": round(costs["energy_j"] - sum(phases.values()), 9)
                    + 0.0,  # no minus before a zero
                    "target": target,
                    "target_time_s": "" if reached is None else reached.delay_s,
                    "target_energy_j": "" if reached is None else reached.energy_j,
                }
            )
    return rows


def write_seed_costs(rows: Sequence[SeedRow], path: Path) -> Path:
    """Write the lines as a CSV, six digits each."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()})
    path.write_text(text.getvalue(), encoding="utf-8")
    return path
