"""The ``[cell]`` section: the radio cell of ``fedwave cell``, and how the uploads over it are decided."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from fedwave.allocation import METHODS
from fedwave.errors import ConfigError
from fedwave.server.aims import ScaleKind
from fedwave.settings import FiniteFloat, NonNegativeFloat, Part, PositiveFloat, PositiveInt
from fedwave.wireless.settings.battery import BatteryConfig
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.settings.load import is_cell_file, with_preset


class MethodPart(Part):
    """Which allocation method."""

    of: ClassVar[str] = "fedwave.allocation:METHOD"

    kind: str = "optimal"


class EstimationPart(Part):
    """What the planner knows of the gains."""

    of: ClassVar[str] = "fedwave.server:ESTIMATION"

    kind: str = "exact"


class CellSection(CellConfig):
    """A radio cell to train over. The preset's keys are filled in: a resolved section has them all."""

    place: ClassVar[str] = "cell"

    preset: str | None = Field(
        None, description="A cell to start from: `fedwave cell` lists them; or a cell file, `cell.toml`."
    )
    method: MethodPart = Field(
        MethodPart(),
        description="Allocation: "
        + ", ".join(METHODS)
        + '; with options { kind = "ives", keep_negative = true }.',
    )
    estimation: EstimationPart = Field(
        EstimationPart(),
        description="What the planner knows of the gains: exact, log-normal or complex-gaussian, e.g. "
        '{ kind = "log-normal", error_db = 3.0, quantile = 0.1 }; uploads meet the true ones.',
    )
    energy_weight: NonNegativeFloat = Field(1.0, description="eta_1, worth of a joule [1/J].")
    delay_weight: NonNegativeFloat = Field(1.0, description="eta_2, worth of a second [1/s].")
    contribution_scale: ScaleKind = Field(
        "normalised",
        description="normalised to mean |u| = contribution_size; raw u (default in a unitless cell); or u "
        "plus a constant.",
    )
    contribution_constant: FiniteFloat = Field(
        0.0, description="The footnote's constant, for scale constant."
    )
    contribution_size: PositiveFloat = Field(1.0, description="Mean |u|, for scale normalised.")
    samples_counted: PositiveInt | None = Field(
        None, description="D_i of (23), (24): samples that a local step's work counts; default all it has."
    )
    max_delay_s: PositiveFloat | None = Field(None, description="Hard limit on the upload's delay.")
    max_energy_j: PositiveFloat | None = Field(None, description="Hard limit on each upload's energy.")
    bits_per_parameter: Literal[32, 16, 8] = Field(32, description="Of an upload; 16 and 8 round it.")
    model_bits: PositiveFloat | None = Field(
        None, description="S; default parameters times bits_per_parameter (a normalised cell: 1 at 32 bits)."
    )
    report_bits: NonNegativeFloat = Field(
        0.0, description="Size of a contribution report; 0 as in the paper."
    )

    battery: BatteryConfig | None = Field(
        None, description="What the devices live on; absent: they never run out."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if "preset" not in given and "channel" not in given:
            raise ConfigError(
                "cell needs a preset or a channel of its own, got neither. For example: cell.preset=paper, "
                "or a scheme that needs no cell."
            )
        filled = with_preset(given, cls)
        # Joules and seconds meet a u of thousands in a cell with units: unscaled, costs would decide nothing.
        if filled.get("normalised"):
            filled = {"contribution_scale": "raw", **filled}
        # A file may change or go, and its keys are all here; a preset's name says more than they do.
        keeps_name = "preset" in given and not is_cell_file(given["preset"])
        return {**filled, "preset": given["preset"]} if keeps_name else filled

    def _check_method(self) -> None:
        """Refuse what nothing is proven for, or nobody plays, where blocks are shared in another way."""
        if self.work_conserving and self.estimation.kind != "exact":
            raise ConfigError(
                f'cell.work_conserving needs cell.estimation = "exact", got "{self.estimation.kind}". Who '
                "would end last is not known with other gains."
            )
        if self.access == "one-block":
            return
        known = METHODS.get(self.method.kind)
        if known is not None and self.access not in known.accesses:
            able = ", ".join(name for name, method in METHODS.items() if self.access in method.accesses)
            raise ConfigError(
                f'cell.method must know cell.access = "{self.access}", got "{self.method.kind}". Use one of '
                f"{able}."
            )
        if self.estimation.kind != "exact":
            raise ConfigError(
                f'cell.access = "{self.access}" needs cell.estimation = "exact", got '
                f'"{self.estimation.kind}". Use one-block for gains that are not known.'
            )

    @model_validator(mode="after")
    def _check_combinations(self) -> CellSection:
        if self.delay_weight == 0 and self.energy_weight > 0 and self.max_delay_s is None:
            raise ConfigError(
                "cell.delay_weight must be > 0 without cell.max_delay_s, got 0. The slowest upload is "
                "then the cheapest, so no best delay exists; set one of the two."
            )
        self._check_method()
        if self.contribution_constant != 0 and self.contribution_scale != "constant":
            raise ConfigError(
                f"cell.contribution_constant = {self.contribution_constant:g} needs contribution_scale = "
                f'"constant", got "{self.contribution_scale}". Set the scale, or leave out the constant.'
            )
        if self.contribution_size != 1 and self.contribution_scale != "normalised":
            raise ConfigError(
                f"cell.contribution_size = {self.contribution_size:g} needs contribution_scale = "
                f'"normalised", got "{self.contribution_scale}". Set the scale, or leave out the size.'
            )
        return self
