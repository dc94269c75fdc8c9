"""A device's report as a message carries it, and back."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.flower import DeviceReport, RadioFacts
from fedwave.flower.messages import BadReply

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
def test_a_report_comes_back_from_its_metrics(radio: RadioFacts | None) -> None:
    sent = DeviceReport(**{**vars(REPORT), "radio": radio})
    metrics = sent.to_metrics()
    assert all(isinstance(value, int | float | list) for value in metrics.values())
    back = DeviceReport.from_metrics(metrics, num_local_steps=2)
    assert back.to_metrics() == metrics
    assert (back.radio is None) == (radio is None)
    assert back.gradient_norms.tolist() == [2.0, 0.0]
    assert (back.contribution, back.loss, back.num_samples) == (-1.5, 0.25, 7)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"max_power_w": 0.0}, "must be positive"),
        ({"max_frequency_hz": 0.0}, "must be positive"),
        ({"capacitance": -1.0}, "must be positive"),
        ({"max_power_w": 1e19}, "absurd"),
        ({"channel_gain": [1e19, 1.0]}, "absurd"),
        ({"contribution": -1e31}, "absurd"),
        ({"gradient_norms": [1e16, 1.0]}, "absurd"),
        ({"num_samples": 2**53}, "whole number"),
        ({"num_samples": True}, "whole number"),
        ({"loss": True}, "must be a number"),
        ({"gradient_norms": [1.0, float("nan")]}, "finite"),
    ],
)
def test_numbers_that_no_device_has_are_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(BadReply, match=why):
        DeviceReport.from_metrics({**REPORT.to_metrics(), **changes}, num_local_steps=2)


def test_numbers_at_the_limits_are_believed() -> None:
    changes = {"max_power_w": 1e18, "contribution": 1e30, "gradient_norms": [1e15, 0.0], "num_samples": 1}
    back = DeviceReport.from_metrics({**REPORT.to_metrics(), **changes}, num_local_steps=2)
    assert back.radio is not None
    assert (back.radio.max_power_w, back.contribution, back.num_samples) == (1e18, 1e30, 1)
