"""The paper's names for combinations of parts: one word stands for a local rule, a policy and a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedwave.errors import ConfigError, did_you_mean, shown
from fedwave.settings.layers import as_table


@dataclass(frozen=True)
class Scheme:
    """What a scheme's name stands for. Without a radio cell there is no method."""

    title: str  # what tables and pictures call it
    rule: str  # algorithm.rule
    policy: str  # selection.policy
    method: str | None = None  # cell.method; None: any

    def parts(self) -> dict[tuple[str, str], str]:
        """Return the settings that the name stands for, by section and key."""
        found = {("algorithm", "rule"): self.rule, ("selection", "policy"): self.policy}
        return found if self.method is None else {**found, ("cell", "method"): self.method}


SCHEMES: dict[str, Scheme] = {
    "fedavg": Scheme("FedAvg", "plain", "uniform"),
    "per-fedavg": Scheme("Per-FedAvg", "exact", "uniform"),
    "nufm": Scheme("NUFM", "exact", "top-contribution"),
    "ural": Scheme(
        "URAL (optimal)", "exact", "top-contribution", "optimal"
    ),  # Alg. 3, solved to a proven optimum
    "ural-ives": Scheme("URAL (IVES)", "exact", "top-contribution", "ives"),  # Alg. 3 as printed
    "threshold": Scheme(
        "Threshold", "exact", "top-contribution", "threshold"
    ),  # simple rules that know the channel
    "value-rate": Scheme("Value-rate", "exact", "top-contribution", "value-rate"),
    "proportional-fair": Scheme("Proportional fair", "exact", "top-contribution", "proportional-fair"),
    "nufm-greedy": Scheme("NUFM-Greedy", "exact", "top-contribution", "greedy"),
    "nufm-random": Scheme("NUFM-Random", "exact", "top-contribution", "random"),
    "ru-greedy": Scheme("RU-Greedy", "exact", "uniform", "greedy"),
    "ru-random": Scheme("RU-Random", "exact", "uniform", "random"),
}


def expand_scheme(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layer of settings with ``scheme`` replaced by the parts that it stands for."""
    settings = {key: dict(value) if isinstance(value, dict) else value for key, value in layer.items()}
    if "scheme" not in settings:
        return settings
    name = settings.pop("scheme")
    if not isinstance(name, str) or name not in SCHEMES:
        raise ConfigError(f'There is no scheme "{name}". {did_you_mean(str(name), SCHEMES)}')
    for (section, key), value in SCHEMES[name].parts().items():
        table = settings.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{section} must be a table, got {table!r}. Write [{section}] and its keys.")
        given = as_table(table.get(key, value))
        if not isinstance(given, dict) or given.get("kind", value) != value:
            raise ConfigError(
                f'scheme "{name}" stands for {section}.{key} "{value}", got {shown(table[key])} beside it. '
                f"Leave out the scheme or {section}.{key}."
            )
        table[key] = {"kind": value, **given} if key in table else value
    return settings


def scheme_of(rule: str, policy: str, method: str | None) -> str | None:
    """Return the name that these parts make, if they make one."""
    made = Scheme("", rule, policy, method).parts()
    return next((name for name, scheme in SCHEMES.items() if scheme.parts() == made), None)
