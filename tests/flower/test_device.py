"""A device's report as a message carries it; how it is read is tested in test_checks.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.flower import DeviceReport, RadioFacts

RADIO = RadioFacts(
    channel_gain=np.array([1e-11, 2e-11]),
    max_power_w=0.2,
    max_frequency_hz=1e9,
    capacitance=0.0,
    cycles_per_sample=3e6,
)
REPORT = DeviceReport(
    contribution=-1.5, loss=0.25, num_samples=7, gradient_norms=np.array([2.0, 0.0]), radio=RADIO
)


@pytest.mark.parametrize("radio", [None, RADIO])
def test_a_report_travels_as_plain_numbers(radio: RadioFacts | None) -> None:
    metrics = replace(REPORT, radio=radio).to_metrics()
    assert all(type(value) in (int, float, list) for value in metrics.values())
    told = {"contribution": -1.5, "loss": 0.25, "num_samples": 7, "gradient_norms": [2.0, 0.0]}
    of_the_radio = {
        "channel_gain": [1e-11, 2e-11],
        "max_power_w": 0.2,
        "max_frequency_hz": 1e9,
        "capacitance": 0.0,
        "cycles_per_sample": 3e6,
    }
    assert metrics == (told if radio is None else {**told, **of_the_radio})
