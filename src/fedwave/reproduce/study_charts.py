"""What NUFM does, as charts: lengths of steps, rates, faults, and scales of the first weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from fedwave.learning.models.base import WEIGHT_STD
from fedwave.plots.chart import Chart, ChartPanel, Series, paired_series, series_over_seeds
from fedwave.plots.style import SCHEME_COLOURS
from fedwave.reproduce.items import EVERYBODY, LEARNERS
from fedwave.reproduce.panels import (
    INTERVALS,
    PER_FEDAVG,
    SYMBOLS,
    Found,
    distinct,
    lead_series,
    transformed_series,
    varied_panel,
)
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.reproduce.readings import USUAL
from fedwave.reproduce.scheme_styles import DATASETS, STYLES
from fedwave.reproduce.seed_tables import Row, paired
from fedwave.reproduce.studies import NUFM, SAME_LENGTH, UNIFORM, stable_rates, usual_rate
from fedwave.runs.kept_runs import KeptRun
from fedwave.units import FloatArray

FIRST_WEIGHTS = "first weights "
FAULTS = {"none": "no faults", "random-labels": "random labels", "upside-down": "upside down"}
# Leads of the arms by rounds: what is ahead of what, and the colour.
LEADS = (
    (NUFM, UNIFORM, {"colour": SCHEME_COLOURS["NUFM"]}),
    (SAME_LENGTH, UNIFORM, {"colour": SCHEME_COLOURS["Per-FedAvg"]}),
    (NUFM, SAME_LENGTH, {"colour": "#9B1C1C"}),
)


def step_leads(found: Found, rows: Sequence[Row]) -> Chart:
    """Leads by rounds: NUFM over uniform choice, and over uniform choice with steps as long as NUFM's."""
    panels = []
    for dataset in distinct(rows, "dataset"):
        here = [(run, result) for run, result in found if run.point.dataset == dataset]
        name = DATASETS.get(dataset, dataset)
        for curve, label, is_percent in (
            ("heldout_loss", "held-out loss lower by [%]", True),
            ("training_loss", "training devices' loss lower by [%]", True),
            ("heldout_accuracy", "held-out accuracy higher by [points]", False),
        ):
            series = [
                lead_series(
                    f"{better} over {worse}", here, curve, better, worse, is_percent=is_percent, **look
                )
                for better, worse, look in LEADS
            ]
            own = tuple(one for one in series if one is not None)
            if own:
                panels.append(ChartPanel(name, "round", label, own, mark_x=ROUND_OF_THE_PAPER, mark_y=0.0))
    caption = (
        "Means over seeds with the 95 % intervals of the paired difference. “uniform at NUFM's norms” draws "
        "its devices like Per-FedAvg and steps as far as NUFM did in the same round: what NUFM has over it "
        "(red) is what choosing large gradients gives beside the longer step."
    )
    return Chart(
        "step-leads", "NUFM's lead, and what is left of it at equal steps", caption, tuple(panels), 3
    )


def step_arms(found: Found, rows: Sequence[Row]) -> Chart:
    """The accuracy of every arm after the last round, beside uniform choice at NUFM's norms."""
    del found
    panels, look = [], STYLES[SAME_LENGTH]
    for dataset in distinct(rows, "dataset"):
        own = [row for row in rows if row["dataset"] == dataset]
        by_arm = {
            arm: {row["seed"]: [100.0 * row["accuracy"]] for row in own if row["scheme"] == arm}
            for arm in distinct(own, "scheme")
        }
        reference = by_arm.get(SAME_LENGTH, {})
        series = []
        for arm, values in by_arm.items():
            seeds = [seed for seed in sorted(values) if seed in reference]
            differences = [[values[seed][0] - reference[seed][0]] for seed in seeds]
            if arm != SAME_LENGTH and differences and np.isfinite(differences).all():
                series.append(series_over_seeds(arm, (0.0,), differences, **STYLES.get(arm, {})))
        if series:
            title = DATASETS.get(dataset, dataset)
            label = "points above the reference"
            series.append(Series(f"{SAME_LENGTH}: the reference", (0.0,), (0.0,), (0.0,), (0.0,), **look))
            panels.append(ChartPanel(title, label, "", tuple(series), kind="dots", mark_y=0.0))
    caption = (
        f"Accuracy after the last round against “{SAME_LENGTH}” on the same seeds, with 95 % intervals. "
        "Hollow: steps of that length, so that only the choice differs; full: each at its own length."
    )
    return Chart("step-arms", "Whom to choose, at equal steps", caption, tuple(panels), 2)


def step_lengths(found: Found, rows: Sequence[Row]) -> Chart:
    """How far NUFM steps beside uniform choice, and how a large gradient hangs together with its gain."""
    panels = []
    for dataset in distinct(rows, "dataset"):
        here = [(run, result) for run, result in found if run.point.dataset == dataset]
        name = DATASETS.get(dataset, dataset)
        ratios = _ratios(here)
        if ratios is not None:
            label = "length of NUFM's step over uniform's"
            panels.append(ChartPanel(name, "round", label, (ratios,), mark_y=1.0))
        nufm = [(run, result) for run, result in here if run.point.scheme == NUFM]
        for curve, label in (
            ("gain_correlation", "correlation of gradient norm and gain"),
            ("mean_cosine", "mean cosine of two gradients"),
        ):
            if nufm and all(curve in result.curves for _, result in nufm):
                values = [result.curve(curve).tolist() for _, result in nufm]
                if np.isfinite(values).all():
                    series = _of_nufm(values, np.arctanh, np.tanh)  # Fisher's: it stays within ±1
                    panels.append(ChartPanel(name, "round", label, (series,)))
    caption = (
        "Left: the norm of NUFM's update over that of uniform choice in the same round (each along its own "
        "run). Middle: over devices, the correlation of ‖gᵢ‖ with the first-order gain gᵢ·∇F, which NUFM "
        "takes it for. Right: how alike devices' gradients are. Means over seeds with 95 % intervals, of "
        "ratios by logarithms, of correlations and cosines by Fisher's transform."
    )
    return Chart("step-lengths", "How far NUFM steps", caption, tuple(panels), 3)


def _ratios(found: Found) -> Series | None:
    norms: dict[str, dict[int, np.ndarray]] = {}
    for run, result in found:
        norms.setdefault(run.point.scheme, {})[run.seed] = result.curve("update_norm")
    own, other = norms.get(NUFM, {}), norms.get(UNIFORM, {})
    rows = [(own[seed] / other[seed]).tolist() for seed in sorted(set(own) & set(other))]
    if not rows or not np.isfinite(rows).all():
        return None
    return _of_nufm(rows, np.log, np.exp)


def _of_nufm(
    rows: Sequence[Sequence[float]],
    there: Callable[[FloatArray], FloatArray],
    back: Callable[..., FloatArray],
) -> Series:
    """Return NUFM's curve by rounds, of a transform."""
    values = np.array(rows, dtype=np.float64)
    rounds = range(1, values.shape[1] + 1)
    return transformed_series(NUFM, rounds, values, there, back, colour=SCHEME_COLOURS["NUFM"])


def accuracy_by_rate(found: Found, rows: Sequence[Row]) -> Chart:
    """Accuracy and loss after the last round against beta, a panel for each dataset."""
    panels = []
    for dataset in distinct(rows, "dataset"):
        own = [row for row in rows if row["dataset"] == dataset]
        limits = stable_rates(
            (run.point.scheme, run.point.value or math.nan, _losses(result))
            for run, result in found
            if run.point.dataset == dataset
        )
        usual = usual_rate(rows, dataset)
        for column, label, scale in (
            ("accuracy", "held-out accuracy [%]", 100.0),
            ("training_loss", "training devices' loss", 1.0),
        ):
            is_log = column != "accuracy"
            panels.append(
                ChartPanel(
                    DATASETS.get(dataset, dataset),
                    SYMBOLS["meta_lr"],
                    label,
                    tuple(
                        series
                        for scheme in (*LEARNERS, EVERYBODY)
                        for series in _over_rates(own, scheme, column, scale, limits, is_log=is_log)
                    ),
                    has_log_x=True,
                    has_log_y=is_log,
                    mark_x=usual if math.isfinite(usual) else None,
                )
            )
    caption = (
        "After the last round; means over seeds with plain 95 % intervals (on a logarithmic axis geometric). "
        "Dashed: beyond the largest β up to which in no seed the training devices' loss ever rose by a "
        "quarter over its lowest before. Rates at which a seed diverged are left out. The dotted line is the "
        "paper's rate."
    )
    return Chart("rates", "Accuracy and loss by the meta-learning rate", caption, tuple(panels), 2)


def _losses(result: KeptRun) -> list[float]:
    """Return the training devices' loss by rounds; of a run that diverged it ends in infinity."""
    diverged = [] if math.isfinite(result.figures["accuracy"]) else [math.inf]
    return [*result.curve("training_loss").tolist(), *diverged]


def lead_by_rate(found: Found, rows: Sequence[Row]) -> Chart:
    """The leads in accuracy against beta, on the same seeds."""
    del found
    panels = []
    for dataset in distinct(rows, "dataset"):
        own = [row for row in rows if row["dataset"] == dataset]
        series = []
        for better, worse, colour in (
            ("NUFM", PER_FEDAVG, SCHEME_COLOURS["NUFM"]),
            (PER_FEDAVG, "FedAvg", SCHEME_COLOURS[PER_FEDAVG]),
            ("NUFM", EVERYBODY, "#9B1C1C"),
        ):
            leads = []
            for rate in sorted(distinct(own, "value")):
                pair = [_accuracies(own, scheme, rate) for scheme in (better, worse)]
                leads.append((rate, [100.0 * (a - b) for a, b in paired(*pair).values()]))
            count = max((len(values) for _, values in leads), default=0)
            whole = [(rate, values) for rate, values in leads if count and len(values) == count]
            if whole:
                by_seed = np.array([values for _, values in whole]).T.tolist()
                x = [rate for rate, _ in whole]
                series.append(series_over_seeds(f"{better} − {worse}", x, by_seed, colour=colour))
        if series:
            usual = usual_rate(rows, dataset)
            panels.append(
                ChartPanel(
                    DATASETS.get(dataset, dataset),
                    SYMBOLS["meta_lr"],
                    "lead in accuracy [points]",
                    tuple(series),
                    has_log_x=True,
                    mark_x=usual if math.isfinite(usual) else None,
                    mark_y=0.0,
                )
            )
    caption = (
        "Leads on the same seeds with their 95 % intervals; rates at which a seed of either scheme diverged "
        "are left out. The dotted line is the paper's rate."
    )
    return Chart("rates-lead", "Leads by the meta-learning rate", caption, tuple(panels), 2)


def _accuracies(rows: Sequence[Row], scheme: str, rate: float) -> dict[int, float]:
    return {r["seed"]: r["accuracy"] for r in rows if r["scheme"] == scheme and r["value"] == rate}


def _over_rates(
    rows: Sequence[Row],
    scheme: str,
    column: str,
    scale: float,
    limits: Mapping[str, float],
    *,
    is_log: bool,
) -> Iterator[Series]:
    """Yield a scheme's figure against the rate: up to the last stable one, and dashed from there on."""
    x, values = [], []
    for rate in sorted(distinct(rows, "value")):
        own = [scale * row[column] for row in rows if row["scheme"] == scheme and row["value"] == rate]
        if own and all(map(math.isfinite, own)):
            x.append(rate)
            values.append(own)
    if not values or len({len(own) for own in values}) > 1:
        return
    by_seed = np.array(values).T
    there, back = (np.log, np.exp) if is_log else (np.positive, np.positive)
    limit = limits.get(scheme, math.nan)
    num_stable = sum(rate <= limit for rate in x)
    look = STYLES.get(scheme, {})
    if num_stable:
        yield transformed_series(scheme, x[:num_stable], by_seed[:, :num_stable], there, back, **look)
    if num_stable < len(x):
        rest = slice(max(num_stable - 1, 0), None)  # the two parts meet at the last stable rate
        name, dashed = f"{scheme}, unstable", {**look, "is_dashed": True}
        yield transformed_series(name, x[rest], by_seed[:, rest], there, back, **dashed)


def faults(found: Found, rows: Sequence[Row]) -> Chart:
    """By kind of fault: how often a device at fault is chosen, and the accuracies."""
    del found
    panels = []
    kinds = sorted(distinct(rows, "parameter"), key=lambda kind: kind == "none")
    for column, label in (
        ("accuracy", "held-out accuracy [%]"),
        ("accuracy_worst_tenth", "the worst tenth's accuracy [%]"),
        ("faulty_chosen", "rounds with a faulty device [%]"),
    ):
        for kind in kinds:
            own = [row for row in rows if row["parameter"] == kind and math.isfinite(row[column])]
            values = {
                scheme: {r["seed"]: [100.0 * r[column]] for r in own if r["scheme"] == scheme}
                for scheme in distinct(own, "scheme")
            }
            if PER_FEDAVG in values:
                series = paired_series((0.0,), values, STYLES, reference=PER_FEDAVG)
                title = FAULTS.get(kind, kind)
                panels.append(ChartPanel(title, label, "", series, kind="dots"))
    caption = INTERVALS.format(PER_FEDAVG).replace("curve", "dot").replace("band", "line")
    return Chart("faults", "Training devices at fault", caption, tuple(panels), len(kinds))


def accuracy_by_first_weights(found: Found, rows: Sequence[Row]) -> Chart:
    """The three learners' accuracy against the scale of the first weights, of seeds that all went well."""
    del found
    panels, diverged = [], 0
    for dataset in distinct(rows, "dataset"):
        own = [
            row | {"value": std, "accuracy_percent": 100.0 * row["accuracy"]}
            for row in rows
            if row["dataset"] == dataset and (std := _std(row["parameter"])) is not None
        ]
        if len(distinct(own, "value")) > 1:
            title = DATASETS.get(dataset, dataset)
            label = "held-out accuracy [%]"
            panel = varied_panel(
                own, "weight_std", "accuracy_percent", label, title=title, reference=PER_FEDAVG
            )
            panels.append(panel)
            diverged += len({row["seed"] for row in own if not math.isfinite(row["accuracy"])})
    caption = (
        "After the last round, all else as we read it; the paper does not give this scale. "
        f"{INTERVALS.format(PER_FEDAVG)}"
    )
    if diverged:
        caption += f" Seeds left out at every scale, because a run diverged at one of them: {diverged}."
    return Chart("first-weights", "Accuracy by the scale of the first weights", caption, tuple(panels), 2)


def _std(reading: str) -> float | None:
    """Return the scale of the first weights that a reading has, if that alone is changed."""
    if reading == USUAL:
        return WEIGHT_STD
    name = reading.removeprefix(FIRST_WEIGHTS)
    return float(name) if name != reading and "," not in name else None
