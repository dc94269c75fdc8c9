"""The ``[cell]`` section: the radio cell of ``fedwave cell``, and how the uploads over it are decided."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedwave.allocation import METHODS
from fedwave.errors import ConfigError, did_you_mean
from fedwave.simulation.cell_scheduler import SCHEMES
from fedwave.simulation.contribution_scale import ScaleKind
from fedwave.wireless.config import CellConfig
from fedwave.wireless.load import resolve_cell_table

FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class CellSection(BaseModel):
    """Scheduling over a cell. Every other key is one of the cell's own: ``preset``, ``num_blocks``, ...

    The cell's keys are completed from the preset and checked here: a resolved experiment holds them all.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    scheme: str | None = Field(
        None, description="Fills in method and selection: " + ", ".join(SCHEMES) + "; default ural."
    )
    method: str | None = Field(None, description="Allocation: " + ", ".join(METHODS) + ".")
    selection: Literal["nufm", "uniform"] | None = Field(
        None, description="nufm ranks contributions; uniform draws devices before they compute."
    )
    energy_weight: NonNegativeFloat = Field(1.0, description="eta_1, worth of a joule [1/J].")
    delay_weight: NonNegativeFloat = Field(1.0, description="eta_2, worth of a second [1/s].")
    contribution_scale: ScaleKind = Field(
        "raw", description="raw u; u plus contribution_constant; or normalised to mean |u| = 1."
    )
    contribution_constant: FiniteFloat = Field(
        0.0, description="The footnote's constant, for scale constant."
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
    idle_power_w: NonNegativeFloat = Field(0.0, description="Power of a waiting device; 0 as in the paper.")
    everyone_computes: bool = Field(
        False, description="With uniform selection, count all devices' computing, as Eq. (30) is printed."
    )

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        own = {key: value for key, value in given.items() if key in cls.model_fields}
        radio = {key: value for key, value in given.items() if key not in cls.model_fields}
        known = [*cls.model_fields, "preset", *CellConfig.model_fields]
        for key in radio:
            if key not in known:
                raise ConfigError(f'unknown key "cell.{key}". {did_you_mean(key, known)}')
        if "channel" not in radio:
            radio.setdefault("preset", "paper")
        # Files that a setting names from where the user is are found again from anywhere.
        config = resolve_cell_table(radio, base_dir=Path.cwd())
        resolved = config.model_dump(mode="json", exclude_none=True)
        if "preset" in radio:
            resolved["preset"] = radio["preset"]
        scheme = own.get("scheme", "ural")
        if scheme not in SCHEMES:
            raise ConfigError(
                f'cell.scheme must be known, got "{scheme}". {did_you_mean(str(scheme), SCHEMES)}'
            )
        method, selection = SCHEMES[scheme]
        given_both = (own.get("method"), own.get("selection"))
        if "scheme" in own and None not in given_both and given_both != (method, selection):
            raise ConfigError(
                f'cell.scheme "{scheme}" stands for method "{method}" and selection "{selection}", got '
                f'"{given_both[0]}" and "{given_both[1]}". Give the scheme, or the other two.'
            )
        own = {"method": method, "selection": selection, **own}
        # A resolved section names the scheme that its two parts make, if they make one.
        made = {parts: name for name, parts in SCHEMES.items()}
        own["scheme"] = made.get((own["method"], own["selection"]))
        if own["method"] not in METHODS:
            raise ConfigError(
                f'cell.method must be an allocation method, got "{own["method"]}". '
                + did_you_mean(str(own["method"]), METHODS)
            )
        return {**own, **resolved}

    @model_validator(mode="after")
    def _check_combinations(self) -> CellSection:
        if self.delay_weight == 0 and self.energy_weight > 0 and self.max_delay_s is None:
            raise ConfigError(
                "cell.delay_weight must be > 0 without cell.max_delay_s, got 0. The slowest upload is "
                "then the cheapest, so no best delay exists; set one of the two."
            )
        if self.contribution_constant != 0 and self.contribution_scale != "constant":
            raise ConfigError(
                f"cell.contribution_constant = {self.contribution_constant:g} needs contribution_scale = "
                f'"constant", got "{self.contribution_scale}". Set the scale, or leave out the constant.'
            )
        return self

    @property
    def radio(self) -> CellConfig:
        """The cell itself."""
        keys = {key: value for key, value in (self.model_extra or {}).items() if key != "preset"}
        return resolve_cell_table(keys)
