"""Snapshots of the theory as rows of text: what each figure is called, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedwave.runs.theory_snapshots import Snapshot

# Each row: what it is, and the fields of a snapshot that it shows, separated by slashes.
CONSTANTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("L: smoothness, largest / median device", ("smoothness", "smoothness_median")),
    ("ζ: gradient norm", ("gradient_bound",)),
    ("ρ: change of the Hessian along a step", ("hessian_lipschitz",)),
    ("σ_G, σ_H: noise of a sample", ("gradient_noise", "hessian_noise")),
    ("γ_G, γ_H: difference of two devices", ("gradient_dissimilarity", "hessian_dissimilarity")),
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
