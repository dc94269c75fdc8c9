"""Snapshots of the theory as rows of theory.csv and of text: what each figure is called, how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from fedwave.csv_table import read_table
from fedwave.errors import RunError
from fedwave.files import replace_file

THEORY = "theory.csv"

# Each row: what it is, and the fields of a snapshot that it shows, separated by slashes.
CONSTANTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(
        (f"{what}, largest / median", (name, f"{name}_median"))
        for what, name in (
            ("L: smoothness of a device's loss", "smoothness"),
            ("ζ: norm of its gradient", "gradient_bound"),
            ("ρ: change of its Hessian along a step", "hessian_lipschitz"),
            ("σ_G: noise of a sample's gradient", "gradient_noise"),
            ("σ_H: noise of a sample's Hessian", "hessian_noise"),
            ("γ_G: distance of two gradients", "gradient_dissimilarity"),
            ("γ_H: distance of two Hessians", "hessian_dissimilarity"),
        )
    ),
    ("cost: gradients and Hessian products of a sample", ("num_gradients", "num_products")),
    ("cost: seconds on one core", ("seconds",)),
    ("L_F: smoothness of F", ("meta_smoothness",)),
    ("β over the largest that Corollary 1 allows", ("rate_over_limit",)),
    ("Γ by Lemma 3 / largest distance of two meta-gradients", ("meta_dissimilarity", "largest_distance")),
)
SAYINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("λ1 printed / corrected / used", ("similarity_printed", "similarity_corrected", "similarity_used")),
    ("λ2 by Eq. (20) / used", ("variance", "variance_used")),
    ("gradient norms: least / median / largest", ("norm_min", "norm_median", "norm_max")),
    (
        "share below the turning point: printed / corrected / used",
        ("below_printed", "below_corrected", "below_used"),
    ),
    ("share with u > 0 by the true ‖∇F − ∇F_i‖, no noise", ("within_30_degrees",)),
    ("fall of F promised by Theorem 1: printed / corrected", ("promised_printed", "promised_corrected")),
    ("fall of F by Corollary 1 with the penalties used", ("promised_used",)),
    ("fall of F seen", ("seen",)),
    ("‖∇F‖", ("global_norm",)),
    ("correlation of ‖g_i‖ with the gain g_i·∇F", ("correlation",)),
)
SHARES = ("below_printed", "below_corrected", "below_used", "within_30_degrees")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One row of theory.csv. Constants are local, the largest over the devices measured; NaN: not defined."""

    round: int
    smoothness: float  # L
    smoothness_median: float  # over the same devices, or pairs of them; so the other medians
    gradient_bound: float  # zeta
    gradient_bound_median: float
    hessian_lipschitz: float  # rho
    hessian_lipschitz_median: float
    gradient_noise: float  # sigma_G
    gradient_noise_median: float
    hessian_noise: float  # sigma_H
    hessian_noise_median: float
    gradient_dissimilarity: float  # gamma_G
    gradient_dissimilarity_median: float
    hessian_dissimilarity: float  # gamma_H
    hessian_dissimilarity_median: float
    num_gradients: float  # of one sample, that the constants took
    num_products: float  # of one sample's Hessian with a vector, likewise
    seconds: float  # likewise
    meta_smoothness: float  # L_F
    rate_over_limit: float  # beta over the largest for which Corollary 1 speaks
    meta_dissimilarity: float  # Gamma
    largest_distance: float  # of two meta-gradients: the least that Gamma could be
    similarity_printed: float  # lambda_1 by Eq. (19)
    similarity_corrected: float
    similarity_used: float
    variance: float  # lambda_2 by Eq. (20)
    variance_used: float
    norm_min: float  # of the devices' meta-gradients
    norm_median: float
    norm_max: float
    below_printed: float  # shares of devices below the turning point
    below_corrected: float
    below_used: float
    within_30_degrees: (
        float  # share of devices whose u_i > 0 with the true ||grad F - grad F_i|| and no noise
    )
    global_norm: float  # of grad F, the mean of the meta-gradients
    correlation: float  # of ||g_i|| with the first-order gain g_i . grad F
    promised_printed: float  # fall of F by Theorem 1; NaN if there are several local steps or nobody uploads
    promised_corrected: float
    promised_used: float  # by Corollary 1 with the penalties that are used
    seen: float  # fall of F, over all training devices


def write_snapshots(path: Path, snapshots: Sequence[Snapshot]) -> Path:
    """Write theory.csv into a folder, a row for each snapshot, to the last bit; return where it is."""
    names = [field.name for field in fields(Snapshot)]
    lines = [",".join(names)]
    lines += [",".join(repr(getattr(one, name)) for name in names) for one in snapshots]
    replace_file(path / THEORY, ["\n".join([*lines, ""]).encode()])
    return path / THEORY


def read_snapshots(path: Path) -> list[Snapshot]:
    """Return the snapshots of a folder; none if it has no theory.csv."""
    if not (path / THEORY).exists():
        return []
    fix = "Make it again with: fedwave theory"
    table = read_table(path / THEORY, what="table of the theory", error=RunError, fix=fix)
    names = [field.name for field in fields(Snapshot)]
    try:
        columns = {name: [float(cell) for cell in table.column(name)] for name in names}
    except ValueError as error:
        raise RunError(f"{path / THEORY} holds what is no number ({error}). {fix} {path}") from error
    rounds = [int(number) for number in columns.pop("round")]
    return [
        Snapshot(round=number, **{name: values[row] for name, values in columns.items()})
        for row, number in enumerate(rounds)
    ]


def theory_rows(
    snapshots: Sequence[Snapshot], wanted: Sequence[tuple[str, tuple[str, ...]]]
) -> list[list[str]]:
    """Return a row for each figure: its name, then a cell for each snapshot."""
    return [
        [label, *(" / ".join(_shown(one, name) for name in names) for one in snapshots)]
        for label, names in wanted
    ]


def theory_header(snapshots: Sequence[Snapshot]) -> list[str]:
    """Return the header of such a table."""
    return ["before round", *(str(one.round) for one in snapshots)]


def verdict(snapshots: Sequence[Snapshot]) -> str:
    """Return in one sentence what the snapshots mean."""
    below = sum(one.below_corrected == 1.0 for one in snapshots)
    vacuous = sum(one.promised_corrected < 0 for one in snapshots)
    return (
        f"At {below} of {len(snapshots)} models the corrected penalties put every device below the turning "
        f"point, where a smaller gradient counts more; at {vacuous} Theorem 1 promises less than nothing."
    )


def _shown(one: Snapshot, name: str) -> str:
    value = getattr(one, name)
    if math.isnan(value):
        return "–"
    return (
        f"{100 * value:.0f} %"
        if name in SHARES
        else f"{value:,.3g}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )
