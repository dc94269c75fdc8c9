"""What the theory says of a run as a chart: penalties beside gradients, promised and seen falls, shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedwave.plots.chart import Chart, ChartPanel, Series, looks_of, series_over_seeds
from fedwave.runs.theory_rows import Snapshot

# Each panel: its y-axis, and what a curve is called and shows. A word has one colour in all panels.
SIZES = {
    "corrected": "similarity_corrected",
    "as printed": "similarity_printed",
    "used": "similarity_used",
    "λ2 by Eq. (20)": "variance",
    "largest gradient norm": "norm_max",
    "median gradient norm": "norm_median",
}
FALLS = {
    "corrected": "promised_corrected",
    "as printed": "promised_printed",
    "used": "promised_used",
    "seen": "seen",
}
SHARES = {"corrected": "below_corrected", "as printed": "below_printed", "used": "below_used"}
GAINS = {"norm and gain": "correlation"}
LOOKS = looks_of([*SIZES, *FALLS, *SHARES, *GAINS])


def theory_chart(snapshots: Sequence[Snapshot]) -> Chart:
    """Return the chart of some snapshots of one run."""

    def series(fields: Mapping[str, str], scale: float = 1.0) -> tuple[Series, ...]:
        rounds = [float(one.round) for one in snapshots]
        return tuple(
            series_over_seeds(
                label, rounds, [[scale * getattr(one, name) for one in snapshots]], **LOOKS[label]
            )
            for label, name in fields.items()
        )

    panels = (
        ChartPanel("λ1, λ2 and gradients", "round", "size", series(SIZES), has_log_y=True),
        ChartPanel("promised and seen", "round", "fall of F in the round", series(FALLS), mark_y=0.0),
        ChartPanel("below the turning point", "round", "devices [%]", series(SHARES, 100.0)),
        ChartPanel(
            "norm and first-order gain", "round", "correlation over devices", series(GAINS), mark_y=0.0
        ),
    )
    caption = (
        "Constants are local, measured on a few devices at each model. Below its turning point a device "
        "counts more with a smaller gradient. Gain is the first-order fall of F by a device's gradient."
    )
    return Chart("theory", "What the theory says", caption, panels, 2)
