"""All that the next round needs, as tensors by name: a part may remember what it likes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from fedwave.errors import RunError
from fedwave.learning import Parameters
from fedwave.server import PlannerState
from fedwave.simulation.ledger import Ledger
from fedwave.simulation.penalties import PenaltyState
from fedwave.simulation.power import Charge

PARTS = ("parameters", "server_step", "planner", "ledger", "charge", "penalties", "local_steps")


@dataclass(frozen=True, eq=False)
class State:
    """The state between two rounds. Every random draw is a function of the seed and the round."""

    next_round: int
    parameters: Parameters  # theta, the global model
    server_step: Parameters = field(default_factory=dict)  # e.g. a momentum
    planner: PlannerState = field(default_factory=dict)  # what the server remembers of its devices
    ledger: Ledger | None = None  # None where nothing is counted
    charge: Charge | None = None  # of the batteries; None where nobody lives on one
    penalties: PenaltyState | None = None  # of the contributions; None where they never change
    local_steps: PlannerState = field(default_factory=dict)  # of who chooses tau; empty where nobody does

    def to_tensors(self) -> dict[str, Tensor]:
        """Return every part's tensors, each name preceded by its part's: ``parameters.conv1.weight``."""
        parts: dict[str, Mapping[str, Tensor]] = {
            "parameters": self.parameters,
            "server_step": self.server_step,
            "planner": {
                name: torch.tensor(array) for name, array in self.planner.items()
            },  # no shared memory
            "ledger": _to_tensors(self.ledger),
            "charge": _to_tensors(self.charge),
            "penalties": _to_tensors(self.penalties),
            "local_steps": {name: torch.tensor(array) for name, array in self.local_steps.items()},
        }
        return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}

    @classmethod
    def from_tensors(cls, next_round: int, tensors: Mapping[str, Tensor]) -> State:
        """Return the state that ``to_tensors`` gave away."""
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
        for name in sorted(tensors):  # the order of a sum decides its last bits
            part, _, rest = name.partition(".")
            if part not in parts:
                raise RunError(
                    f'the checkpoint holds "{name}", which is no part of a state ({", ".join(PARTS)}). '
                    "It was written by another version of fedwave; use that one."
                )
            parts[part][rest] = tensors[name]
        ledger, charge = _to_arrays(parts["ledger"]), _to_arrays(parts["charge"])
        penalties = _to_arrays(parts["penalties"])
        return cls(
            next_round,
            parts["parameters"],
            parts["server_step"],
            _to_arrays(parts["planner"]),
            Ledger.from_arrays(ledger) if ledger else None,
            Charge.from_arrays(charge) if charge else None,
            PenaltyState.from_arrays(penalties) if penalties else None,
            _to_arrays(parts["local_steps"]),
        )

    def to(self, device: torch.device) -> State:
        """Return the state with its tensors on a torch device."""
        return replace(
            self,
            parameters={name: value.to(device) for name, value in self.parameters.items()},
            server_step={name: value.to(device) for name, value in self.server_step.items()},
        )


def _to_tensors(part: Ledger | Charge | PenaltyState | None) -> dict[str, Tensor]:
    if part is None:
        return {}
    return {name: torch.tensor(array) for name, array in part.to_arrays().items()}


def _to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    try:
        return {name: value.numpy() for name, value in tensors.items()}
    except TypeError as error:  # a type that numpy does not have, such as bfloat16
        raise RunError(f"the checkpoint holds values that no run writes ({error}). Restore it.") from error
