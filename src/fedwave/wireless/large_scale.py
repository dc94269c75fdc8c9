"""What a device's place costs: distance, line of sight, path loss and shadowing. Fixed for a whole run."""

from __future__ import annotations

from dataclasses import dataclass, field

from fedwave.units import BoolArray, FloatArray, db_to_linear


@dataclass(frozen=True, eq=False, kw_only=True)
class LargeScale:
    """One value per device; the gain is 10^((antennas - path loss - shadowing) / 10)."""

    position_m: FloatArray  # (n, 2)
    distance_m: FloatArray  # (n,), on the ground
    is_line_of_sight: BoolArray | None  # None: the model does not distinguish
    path_loss_db: FloatArray  # median, without shadowing
    shadowing_db: FloatArray  # positive: more loss
    antenna_gain_db: float
    gain: FloatArray = field(init=False)  # linear

    def __post_init__(self) -> None:
        gain = db_to_linear(self.antenna_gain_db - self.path_loss_db - self.shadowing_db)
        object.__setattr__(self, "gain", gain)
