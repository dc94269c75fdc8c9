"""Whether a run folder is whole before a run goes on in it: the checkpoint fits, and no row is missing."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import torch

from fedwave.errors import RunError
from fedwave.runs.tables import DEVICES, HELDOUT, ROUNDS, round_of
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


def require_whole_tables(folder: Path, next_round: int, simulation: Simulation) -> None:
    """Raise if a table lacks rows of rounds that the checkpoint contains, or is not as the run wrote it."""
    if next_round == 0:
        return
    headers = table_headers(
        simulation.task.metric,
        over_cell=simulation.federation.world.counts_costs,
        num_local_steps=simulation.local.num_local_steps,
    )
    rounds = _rows(folder / ROUNDS, headers[ROUNDS], next_round)
    _require_rows(folder, ROUNDS, rounds, dict.fromkeys(range(next_round), 1))
    devices = _rows(folder / DEVICES, headers[DEVICES], next_round)
    _require_rows(folder, DEVICES, devices, dict.fromkeys(range(next_round), len(simulation.train)))
    column = headers[ROUNDS].index("heldout_loss")
    evaluated = [int(row[0]) for row in rounds if row[column]]
    if evaluated:
        heldout = _rows(folder / HELDOUT, headers[HELDOUT], next_round)
        _require_rows(folder, HELDOUT, heldout, dict.fromkeys(evaluated, len(simulation.heldout)))


def _rows(path: Path, header: list[str], next_round: int) -> list[list[str]]:
    """Return a table's rows of the rounds before ``next_round``, after checking their form."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            first, *lines = file.readlines() or [""]
    except FileNotFoundError:
        raise RunError(f"{path} is gone, {_rebuild(path.parent)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read {path}: {error}; {_rebuild(path.parent)}") from error
    if first != ",".join(header) + "\n":
        raise RunError(
            f"{path} is not as the run wrote it (it begins with {first.strip()[:60]!r}; did another "
            f"program save it?), {_rebuild(path.parent)}"
        )
    # What is cut off at its end, or belongs to later rounds, is cut off on resume.
    before = [line for line in lines if line.endswith("\n") and round_of(line) < next_round]
    try:
        rows = list(csv.reader(before))
    except csv.Error as error:
        raise RunError(f"cannot read {path}: {error}; {_rebuild(path.parent)}") from error
    for row in rows:
        if len(row) != len(header) or round_of(row[0]) < 0:
            raise RunError(
                f"{path} is not as the run wrote it (a row has {len(row)} of {len(header)} values and begins "
                f"with {','.join(row)[:40]!r}), {_rebuild(path.parent)}"
            )
    return rows


def _require_rows(folder: Path, name: str, rows: list[list[str]], expected: dict[int, int]) -> None:
    found = Counter(int(row[0]) for row in rows)
    for k, count in expected.items():
        if found[k] != count:
            raise RunError(
                f"{folder / name} has {found[k]} of {count} rows of round {k}, which the "
                f"checkpoint contains, {_rebuild(folder)}"
            )


def _rebuild(folder: Path) -> str:
    return (
        "and the checkpoint cannot rebuild it. Restore it, or compute the run again to the same tables with: "
        f"fedwave resume {folder} --from-start"
    )


def _unfit(folder: Path, what: str) -> RunError:
    return RunError(
        f"the checkpoint of {folder} does not fit its settings: it {what}. Restore it, or compute the run "
        f"again with: fedwave resume {folder} --from-start"
    )
