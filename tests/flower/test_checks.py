"""Replies that cannot be used: the report or the upload is dropped, and the round goes on."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ConfigRecord, Error, Message, RecordDict

from tests.flower.bad_replies import Change, a_pickle, arrays, lies_about_its_shape, metrics
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import SIZE, app, rounds_by_hand
from tests.flower.toy_server import N, first_arrays, first_model, strategy

BEST = rounds_by_hand(first_model(), 1, 1, present=list(range(N)))[1][0][0]  # selected in the first round


BAD_REPORTS: dict[str, tuple[Change, str]] = {
    "nothing": (lambda message, reply: None, "no answer within"),
    "an error": (
        lambda message, reply: Message(Error(code=2, reason="Traceback:\nno battery"), reply_to=message),
        "the node reports error 2: no battery",
    ),
    "NaN": (metrics(contribution=float("nan")), "contribution is nan"),
    "an infinite loss": (metrics(loss=float("inf")), "loss is inf"),
    "an infinite norm": (metrics(gradient_norms=[float("inf")]), "gradient_norms must be finite"),
    "a negative norm": (metrics(gradient_norms=[-1.0]), "gradient_norms must be finite and not negative"),
    "too many norms": (metrics(gradient_norms=[1.0, 1.0]), "gradient_norms has 2 entries"),
    "no norms": (metrics(gradient_norms=[]), "gradient_norms must be a list of numbers"),
    "a number for a list": (metrics(gradient_norms=3.0), "gradient_norms must be a list of numbers"),
    "a list for a number": (metrics(contribution=[1.0]), "contribution must be a number"),
    "no loss": (metrics(loss=None), "loss must be a number, got None"),
    "no samples": (metrics(num_samples=0), "num_samples must be a whole number >= 1, got 0"),
    "half a sample": (metrics(num_samples=1.5), "num_samples must be a whole number >= 1, got 1.5"),
    "an absurd contribution": (metrics(contribution=1e300), "contribution 1e+300 is absurd"),
    "a huge norm": (metrics(gradient_norms=[1e200]), "is absurd"),
    "a contribution of its own": (
        metrics(contribution=1e6),
        "contribution 1e+06 is not that of its gradient norms",
    ),
    "too much": (metrics(more=[0.0] * 100_000), "bytes, at most 65536 were expected"),
    "a model": (arrays({"w": Array(np.zeros(SIZE, np.float32))}), "carries a model that nobody asked for"),
    "an empty text": (
        lambda message, reply: Message(RecordDict({"config": ConfigRecord({"a": ""})}), reply_to=message),
        'has no record "metrics"',
    ),
    "no record": (lambda message, reply: Message(RecordDict(), reply_to=message), 'has no record "metrics"'),
    "a gain like a laser's": (
        metrics(
            channel_gain=[1e300],
            max_power_w=1.0,
            max_frequency_hz=1.0,
            capacitance=1.0,
            cycles_per_sample=1.0,
        ),
        "the device's radio is absurd",
    ),
    "negative power": (
        metrics(
            channel_gain=[1.0], max_power_w=-1.0, max_frequency_hz=1.0, capacitance=1.0, cycles_per_sample=1.0
        ),
        "the device's limits must be positive",
    ),
}


BAD_UPLOADS: dict[str, tuple[Change, str]] = {
    "nothing": (lambda message, reply: None, "no answer in time"),
    "an error": (
        lambda message, reply: Message(Error(code=2, reason="gone"), reply_to=message),
        "the node reports error 2: gone",
    ),
    "NaN": (arrays({"w": Array(np.full(SIZE, np.nan, np.float32))}), "w has 6 values that are not finite"),
    "infinity": (
        arrays({"w": Array(np.array([np.inf, 0, 0, 0, 0, -np.inf], np.float32))}),
        "w has 2 values that are not finite",
    ),
    "a wrong shape": (
        arrays({"w": Array(np.zeros((2, 3), np.float32))}),
        "w has shape (2, 3), the global model (6,)",
    ),
    "a wrong type": (arrays({"w": Array(np.zeros(SIZE))}), "w has dtype float64, the global model float32"),
    "another name": (
        arrays({"v": Array(np.zeros(SIZE, np.float32))}),
        "other arrays than the global one: ['v', 'w']",
    ),
    "too much": (arrays({"w": Array(np.zeros(10_000, np.float32))}), "bytes, at most"),
    "a claim of a terabyte": (arrays({"w": lies_about_its_shape()}), "w has shape (99999999999,)"),
    "a pickle": (arrays({"w": a_pickle()}), "w has dtype object, the global model float32"),
    "rubbish": (
        arrays({"w": Array(dtype="float32", shape=(6,), stype="numpy.ndarray", data=b"rubbish")}),
        "w is no array",
    ),
    "brackets": (
        arrays(
            {
                "w": Array(
                    dtype="float32",
                    shape=(6,),
                    stype="numpy.ndarray",
                    data=b"\x93NUMPY\x01\x00\xe8\x03" + b"(" * 999 + b"\n",
                )
            }
        ),
        "w is no array",
    ),
    "two models": (
        lambda message, reply: Message(
            RecordDict({"a": first_arrays(), "b": first_arrays()}), reply_to=message
        ),
        "carries 2 models, not one",
    ),
}


@pytest.mark.parametrize("name", BAD_REPORTS)
def test_a_bad_report_is_dropped_and_the_round_goes_on(name: str, said: list[str]) -> None:
    change, why = BAD_REPORTS[name]
    grid = FakeGrid(app, N)
    grid.tamper[FIRST_NODE + BEST, "train.report"] = change
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=2)
    model, chosen = rounds_by_hand(first_model(), 2, 2, present=[i for i in range(N) if i != BEST])
    np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    for record, few in zip(result.train_metrics_clientapp.values(), chosen, strict=True):
        assert record["selected"] == few
        assert record["dropped_nodes"] == [FIRST_NODE + BEST]
    assert any(
        line.startswith(f"round 0: dropped the report of node {FIRST_NODE + BEST}:") and why in line
        for line in said
    ), said


@pytest.mark.parametrize("name", BAD_UPLOADS)
def test_a_bad_upload_is_dropped_and_the_round_goes_on(name: str, said: list[str]) -> None:
    change, why = BAD_UPLOADS[name]
    grid = FakeGrid(app, N)
    grid.tamper[FIRST_NODE + BEST, "train.upload"] = change
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=1)
    model, chosen = rounds_by_hand(first_model(), 1, 2, present=list(range(N)), lost={0: [BEST]})
    assert BEST in chosen[0]
    np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    record = result.train_metrics_clientapp[1]
    assert record["received"] == [i for i in chosen[0] if i != BEST]
    assert record["dropped_nodes"] == [FIRST_NODE + BEST]
    assert any(
        line.startswith(f"round 0: dropped the upload of node {FIRST_NODE + BEST}:") and why in line
        for line in said
    ), said
