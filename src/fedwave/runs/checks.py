"""Whether checkpoint and tables fit the simulation that goes on with them."""

from __future__ import annotations

from pathlib import Path

import torch

from fedwave.errors import RunError
from fedwave.runs.folder import RunFolder
from fedwave.runs.tables import DEVICES, header_of
from fedwave.simulation.column import PLANNERS_OWN
from fedwave.simulation.columns import table_headers
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State


def require_fitting_state(folder: Path, state: State, simulation: Simulation) -> None:
    """Raise if a checkpoint is not one that this simulation could have written."""
    if not 0 <= state.next_round <= simulation.num_rounds:
        raise RunError(
            f"the checkpoint of {folder} stands before round {state.next_round}, but the run has "
            f"{simulation.num_rounds} rounds. num_rounds may only grow; put it back."
        )
    expected, found = simulation.fresh_state().to_tensors(), state.to_tensors()
    # The ledger begins with the first round, so a fresh state has none.
    expected = {name: value for name, value in expected.items() if not name.startswith("ledger.")}
    parts = {name: value for name, value in found.items() if not name.startswith("ledger.")}
    missing, extra = sorted(set(expected) - set(parts)), sorted(set(parts) - set(expected))
    if missing or extra:
        what = f"lacks {missing[0]}" if missing else f"holds {extra[0]}, which the run does not have"
        raise _unfit(folder, what)
    for name, value in expected.items():
        got = parts[name]
        if got.shape != value.shape or got.dtype != value.dtype:
            raise _unfit(
                folder,
                f"holds {name} as {got.dtype} of shape {tuple(got.shape)}, not {value.dtype} of "
                f"{tuple(value.shape)}",
            )
        is_model = name.startswith(("parameters.", "server_step."))
        if is_model and got.is_floating_point() and not bool(torch.isfinite(got).all()):
            raise _unfit(folder, f"holds values in {name} that are not finite")
    counts = simulation.federation.world.counts_costs
    if state.next_round and (state.ledger is not None) != counts:
        raise _unfit(
            folder, "lacks the energy account" if counts else "holds an energy account, without a cell"
        )
    if state.ledger is not None and len(state.ledger.device_energy_j) != len(simulation.train):
        raise _unfit(folder, f"holds the energy of {len(state.ledger.device_energy_j)} devices")


def require_fitting_tables(folder: RunFolder, simulation: Simulation) -> None:
    """Raise if a table that the checkpoint counts on has other columns than this simulation writes."""
    headers = table_headers(
        simulation.task.metric,
        traits=simulation.federation.traits,
        num_local_steps=simulation.local.num_local_steps,
    )
    for name in folder.counted_tables:
        path = folder.path / name
        header = found = header_of(path)
        if name == DEVICES:  # a planner's own columns come last, and are its own affair
            found = [one for one in header if not one.startswith(PLANNERS_OWN.format(own=""))]
        if found != headers[name]:
            raise RunError(
                f"{path} has other columns than this version of fedwave writes (it begins with "
                f"{','.join(header)[:60]!r}). Resume it with the version that began it, or "
                f"compute the run again with: fedwave resume {folder.path} --from-start"
            )


def _unfit(folder: Path, what: str) -> RunError:
    return RunError(
        f"the checkpoint of {folder} does not fit its settings: it {what}. Restore it, or compute the run "
        f"again with: fedwave resume {folder} --from-start"
    )
