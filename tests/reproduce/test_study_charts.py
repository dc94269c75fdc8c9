"""Charts of the studies, of rows whose answers are known."""

from __future__ import annotations

import math

from fedwave.reproduce.study_charts import accuracy_by_first_weights

ACCURACIES = {"as we read it": (0.7, 0.8, 0.9), "first weights 0.2": (0.5, 0.5, 0.5)}


def rows(diverged: int | None) -> list[dict]:
    """Return three seeds of three schemes at two scales; NUFM diverges in a seed at the larger one."""
    return [
        {
            "dataset": "fashion-mnist", "scheme": scheme, "counting": "", "parameter": reading, "seed": seed,
            "accuracy": math.nan if (scheme, value, seed) == ("NUFM", 0.5, diverged) else value,
        }
        for scheme in ("NUFM", "Per-FedAvg", "FedAvg")
        for reading, values in ACCURACIES.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip


def test_a_seed_in_which_a_run_diverged_is_left_out_at_every_scale_and_told() -> None:
    whole, without = (accuracy_by_first_weights([], rows(seed)) for seed in (None, 2))
    for chart, mean in ((whole, 80.0), (without, 75.0)):
        means = {series.name: series.mean for series in chart.panels[0].series}
        assert [round(value, 9) for value in means["NUFM"]] == [mean, 50.0]
    assert "left out" not in whole.caption
    assert without.caption.endswith("because a run diverged at one of them: 1.")
