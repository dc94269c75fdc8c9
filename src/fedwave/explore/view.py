"""What the cell tab shows, as settings: from a preset, a file or the page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from fedwave.settings import NonNegativeInt, PositiveInt, Section

MOST_DEVICES = 100_000  # what a page can show and a slider can wait for
MOST_BLOCKS = 1_000

# No cell needs more; products of what is larger would not fit a double.
Quantity = Annotated[float, Field(ge=1e-30, le=1e30)]
Weight = Annotated[float, Field(ge=0.0, le=1e30)]
ContributionKind = Literal["uniform", "exponential", "equal"]


class CellView(Section):
    """Everything that decides the numbers of the cell tab; equal views give equal numbers."""

    num_devices: Annotated[int, Field(ge=1, le=MOST_DEVICES)]
    seed: NonNegativeInt
    round_index: NonNegativeInt = 0
    num_blocks: Annotated[int, Field(ge=1, le=MOST_BLOCKS)]
    bandwidth_hz: Quantity
    max_power_w: Quantity | None  # the largest of the fleet; None: it comes from a file
    deadline_s: Quantity | None = None  # of the whole round
    model_bits: Quantity
    energy_weight: Weight
    delay_weight: Weight
    contribution: ContributionKind = "uniform"
    mean_contribution: Quantity
    num_samples: PositiveInt = 10


ROUND_KEYS = (  # of the [explore] table; all other keys of a view are settings of the cell
    "num_devices",
    "seed",
    "round_index",
    "model_bits",
    "energy_weight",
    "delay_weight",
    "contribution",
    "mean_contribution",
    "num_samples",
)


class ExploreTable(Section):
    """The ``[explore]`` table of a cell file: what a cell does not say. What is left out has a default."""

    num_devices: Annotated[int, Field(ge=1, le=MOST_DEVICES)] | None = None
    seed: NonNegativeInt | None = None
    round_index: NonNegativeInt | None = None
    model_bits: Quantity | None = None
    energy_weight: Weight | None = None
    delay_weight: Weight | None = None
    contribution: ContributionKind | None = None
    mean_contribution: Quantity | None = None
    num_samples: PositiveInt | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The entries that the file has."""
        return self.model_dump(exclude_none=True)
